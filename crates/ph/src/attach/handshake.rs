//! The handshake of an attached connection: one line to the session and one line back.
//!
//! Bytes after the session's line are frames already and are returned to the caller.

use super::{AttachOptions, Size};
use posthaste_core::text;
use posthaste_store::live::reach;
use posthaste_store::report::{Report, Result};
use posthaste_wire::plain::{Attach, Reply, Request};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Timeout for reads and writes of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REPLY_BYTES: u64 = 64 << 10;

/// Connect and attach. Return the connection and the first bytes of its frames.
pub(super) fn connect(
    socket: &Path,
    options: &AttachOptions,
    size: Size,
) -> Result<(UnixStream, Vec<u8>)> {
    let name = &options.name;
    let silent = || {
        Report::refused(format!("the session of {name} does not answer"))
            .hint(format!("'ph stop {name}' ends it"))
    };
    let mut stream = reach(socket).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            Report::refused(format!("no session of {name} is running"))
        }
        ErrorKind::WouldBlock => silent(),
        _ => Report::refused(format!("cannot reach the session of {name}: {error}")),
    })?;
    let broken = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => silent(),
        _ => Report::refused(format!(
            "the connection to the session of {name} broke: {error}"
        )),
    };
    stream
        .set_read_timeout(Some(HANDSHAKE_TIMEOUT))
        .map_err(broken)?;
    stream
        .set_write_timeout(Some(HANDSHAKE_TIMEOUT))
        .map_err(broken)?;
    stream
        .write_all(&attach_request(options, size))
        .map_err(broken)?;
    let (line, rest) = read_line(&mut stream).map_err(broken)?;
    match check_reply(&line) {
        Ok(()) => Ok((stream, rest)),
        Err(why) => Err(Report::refused(format!("the session of {name}: {why}"))),
    }
}

fn attach_request(options: &AttachOptions, size: Size) -> Vec<u8> {
    let attach = Attach {
        cols: size.cols,
        rows: size.rows,
        client: "ph".into(),
        read_only: options.read_only,
        take: options.take,
        ..Attach::default()
    };
    Request::Attach(attach).line()
}

/// Read one line. Return the line and the bytes that were read after it.
fn read_line(stream: &mut impl Read) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    let mut limited = reader.by_ref().take(MAX_REPLY_BYTES);
    limited.read_until(b'\n', &mut line)?;
    if line.pop_if(|byte| *byte == b'\n').is_none() {
        return Err(match line.len() as u64 == MAX_REPLY_BYTES {
            true => ErrorKind::InvalidData.into(),
            false => ErrorKind::UnexpectedEof.into(),
        });
    }
    Ok((line, reader.buffer().to_vec()))
}

fn check_reply(line: &[u8]) -> std::result::Result<(), String> {
    match Reply::read(line) {
        Ok(Reply { ok: true, .. }) => Ok(()),
        Ok(Reply { error, .. }) if error.is_empty() => {
            Err("the session refused without a reason".into())
        }
        Ok(Reply { error, .. }) => Err(text::one_line(&error, 200)),
        Err(_) => Err("its reply is invalid".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one piece per read.
    struct Pieces(Vec<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn bytes_after_the_line_are_kept() {
        let check = |pieces: &[&'static [u8]], line: &[u8], rest: &[u8]| {
            let got = read_line(&mut Pieces(pieces.to_vec())).unwrap();
            assert_eq!(got, (line.to_vec(), rest.to_vec()), "{pieces:?}");
        };
        check(&[b"{\"ok\":true}\n"], b"{\"ok\":true}", b"");
        check(
            &[b"{\"ok\"", b":true}\n\x00\x00"],
            b"{\"ok\":true}",
            b"\0\0",
        );
        check(&[b"a", b"\n", b"never read"], b"a", b"");
        let cut = read_line(&mut Pieces(vec![b"{\"ok\""])).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
        let endless = read_line(&mut std::io::repeat(b'x')).unwrap_err();
        assert_eq!(endless.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_reply_accepts_or_gives_a_reason() {
        let check = |line: &str, want: std::result::Result<(), &str>| {
            let got = check_reply(line.as_bytes());
            assert_eq!(got, want.map_err(str::to_owned), "{line}");
        };
        check(r#"{"ok":true}"#, Ok(()));
        check(r#"{"ok":true,"more":1}"#, Ok(()));
        check(r#"{"ok":false,"error":"full"}"#, Err("full"));
        check(r#"{"ok":false,"error":"a\u001b[2J\nb"}"#, Err("a[2J b"));
        check(
            r#"{"ok":false}"#,
            Err("the session refused without a reason"),
        );
        check("HTTP/1.1", Err("its reply is invalid"));
    }
}
