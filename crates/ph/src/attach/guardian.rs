//! Gives the terminal back when the client cannot: after `kill -9`.
//!
//! A process of its own, in a session of its own, so that neither Ctrl+C nor a closed window
//! reaches it, and so that it may set modes whoever is in the foreground. It waits for the other
//! end of its standard input to close. It never acts while the client lives, and a client that
//! ends in order ends it.

use super::terminal::{GoOn, Screen, reset};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

/// The first argument of a `ph` that is a guardian. Not a verb: nobody types it.
pub(crate) const WORD: &str = "__restore-terminal";

pub(super) struct Guardian {
    child: Child,
    /// Held open for as long as we live.
    _alive: Option<ChildStdin>,
}

impl Guardian {
    /// Starts it; none if that fails, because the terminal can be used all the same.
    pub(super) fn start(before: &Termios) -> Option<Self> {
        let mut child = Command::new(ourselves()?)
            .arg0("ph")
            .args([WORD, &encode(before)])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::inherit())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let alive = child.stdin.take();
        Some(Self {
            child,
            _alive: alive,
        })
    }
}

impl Drop for Guardian {
    /// It has nothing to do any more, and nothing to tidy up.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This very program, even where its file has been replaced.
fn ourselves() -> Option<PathBuf> {
    if cfg!(target_os = "linux") {
        return Some("/proc/self/exe".into());
    }
    std::env::current_exe().ok()
}

/// What the guardian does; `words` is its command line.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    // Where these fail it is only easier to interrupt.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let mut byte = [0];
    while matches!(
        rustix::io::read(stdin(), &mut byte),
        Ok(1..) | Err(Errno::INTR)
    ) {}
    reset(&Screen::open(), GoOn::AtTheBottom);
    let Ok(mut now) = rustix::termios::tcgetattr(stdout()) else {
        return ExitCode::FAILURE;
    };
    let before = words.get(2).and_then(|word| decode(word.to_str()?, &now));
    let Some(before) = before else {
        return ExitCode::FAILURE;
    };
    let mut raw = before.clone();
    raw.make_raw();
    // A shell that set its own modes in the meantime has taken over.
    if encode(&now) == encode(&raw) {
        now = before;
        let _ = rustix::termios::tcsetattr(stdout(), OptionalActions::Now, &now);
    }
    ExitCode::SUCCESS
}

/// What raw mode changes, as words.
fn encode(modes: &Termios) -> String {
    format!(
        "{:x},{:x},{:x},{:x},{:x},{:x}",
        modes.input_modes.bits(),
        modes.output_modes.bits(),
        modes.control_modes.bits(),
        modes.local_modes.bits(),
        modes.special_codes[SpecialCodeIndex::VMIN],
        modes.special_codes[SpecialCodeIndex::VTIME],
    )
}

/// The modes that were encoded; all else is as it is now.
fn decode(words: &str, now: &Termios) -> Option<Termios> {
    fn hex<T: TryFrom<u64>>(word: Option<&str>) -> Option<T> {
        T::try_from(u64::from_str_radix(word?, 16).ok()?).ok()
    }
    let mut words = words.split(',');
    let mut modes = now.clone();
    modes.input_modes = InputModes::from_bits_retain(hex(words.next())?);
    modes.output_modes = OutputModes::from_bits_retain(hex(words.next())?);
    modes.control_modes = ControlModes::from_bits_retain(hex(words.next())?);
    modes.local_modes = LocalModes::from_bits_retain(hex(words.next())?);
    modes.special_codes[SpecialCodeIndex::VMIN] = hex(words.next())?;
    modes.special_codes[SpecialCodeIndex::VTIME] = hex(words.next())?;
    Some(modes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_come_back_as_they_were() {
        let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
        let pty = rustix::pty::openpt(flags).unwrap();
        let before = rustix::termios::tcgetattr(&pty).unwrap();
        let mut raw = before.clone();
        raw.make_raw();
        assert_ne!(encode(&raw), encode(&before));
        let back = decode(&encode(&before), &raw).unwrap();
        assert_eq!(encode(&back), encode(&before));
        for wrong in ["", "1,2,3", "x,1,1,1,1,1", "1,1,1,1,1,fff"] {
            assert!(decode(wrong, &raw).is_none(), "{wrong:?}");
        }
    }
}
