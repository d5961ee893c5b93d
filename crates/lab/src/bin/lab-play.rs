//! Terminal program for benchmarks that follows commands from a socket. Connects, carries out each
//! line, and replies `done`:
//!
//! - `lines BYTES MARK`: numbered lines of this many bytes, then one with the mark
//! - `redraws BYTES MARK`: coloured screens of 80 by 24 cells, then the mark
//! - `screen MARK`: a screen of text whose last line is the mark
//! - `echo`: echo every key from now on
//! - `swallow`: read every key from now on, and echo none
//! - `hear`: like `swallow`, and report `enter` for input that ends with Enter, else `text`
//! - `title TEXT`: set the title
//!
//! Exits when the other end of the socket is gone.

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

const COLS: usize = 80;
const ROWS: usize = 24;
/// Bytes per write.
const WRITE_BYTES: usize = 16 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let socket = std::env::args_os().nth(1).ok_or("usage: lab-play SOCKET")?;
    let mut stream = UnixStream::connect(socket)?;
    let commands = BufReader::new(stream.try_clone()?);
    for line in commands.lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["lines", bytes, mark] => lines(bytes.parse()?, mark)?,
            ["redraws", bytes, mark] => redraws(bytes.parse()?, mark)?,
            ["screen", mark] => screen(mark)?,
            ["echo"] => keys(show)?,
            ["swallow"] => keys(|_| Ok(()))?,
            ["hear"] => {
                let mut teller = stream.try_clone()?;
                keys(move |typed| {
                    let is_enter = typed.ends_with(b"\r");
                    teller.write_all(if is_enter { b"enter\n" } else { b"text\n" })
                })?;
            }
            ["title", title] => show(format!("\x1b]0;{title}\x07").as_bytes())?,
            _ => return Err(format!("not understood: {line}").into()),
        }
        stream.write_all(b"done\n")?;
    }
    Ok(())
}

/// Write the output of `next` up to this length, then the end.
fn write(bytes: usize, mut next: impl FnMut(&mut String), end: &str) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let mut piece = String::new();
    let mut written = 0;
    while written < bytes {
        piece.clear();
        while piece.len() < WRITE_BYTES {
            next(&mut piece);
        }
        out.write_all(piece.as_bytes())?;
        written += piece.len();
    }
    out.write_all(end.as_bytes())?;
    Ok(out.flush()?)
}

fn lines(bytes: usize, mark: &str) -> Result<(), Box<dyn Error>> {
    let mut number = 0_u64;
    let next = |piece: &mut String| {
        number += 1;
        let _ = writeln!(
            piece,
            "{number:>8}  compiled, linked and tested without a warning"
        );
    };
    write(bytes, next, &format!("{mark}\n"))
}

fn redraws(bytes: usize, mark: &str) -> Result<(), Box<dyn Error>> {
    let mut frame = 0_usize;
    let next = |piece: &mut String| {
        frame += 1;
        for row in 1..=ROWS {
            let _ = write!(piece, "\x1b[{row};1H");
            for part in 0..COLS / 10 {
                let at = frame + row + part;
                let _ = write!(piece, "\x1b[38;5;{}m{at:>9} ", at % 256);
            }
            piece.push_str("\x1b[0m\x1b[K");
        }
        let _ = write!(piece, "\x1b[{};{}H", frame % ROWS + 1, frame % COLS + 1);
    };
    write(bytes, next, &format!("\x1b[2J\x1b[12;10H{mark}"))
}

fn screen(mark: &str) -> Result<(), Box<dyn Error>> {
    let mut text = "\x1b[H\x1b[2J".to_owned();
    for row in 1..ROWS {
        let _ = write!(text, "\x1b[3{}m{row:>3} ", row % 8);
        text.push_str(&"the quick brown fox jumps over it ".repeat(3)[..COLS - 4]);
        text.push_str("\r\n");
    }
    write(0, |_| {}, &format!("{text}\x1b[0m{mark}"))
}

fn show(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Read keys as they come, and pass each to a function.
fn keys(
    mut each: impl FnMut(&[u8]) -> std::io::Result<()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let stdin = std::io::stdin();
    let mut modes = tcgetattr(&stdin)?;
    modes.make_raw();
    tcsetattr(&stdin, OptionalActions::Now, &modes)?;
    std::thread::spawn(move || -> std::io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            match stdin.lock().read(&mut buffer)? {
                0 => return Ok(()),
                count => each(&buffer[..count])?,
            }
        }
    });
    Ok(())
}
