//! Restores the terminal after the client was killed with `kill -9`.
//!
//! The guardian is a process in its own process session, so that neither Ctrl+C nor a closed window
//! ends it, and so that it may set terminal modes from the background. It waits until the other end
//! of its standard input is closed, and does nothing before that. A client that ends normally kills
//! its guardian.

use super::terminal::{NextLine, TerminalOutput, reset};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

/// The first argument of a guardian process. It is not a verb for people.
pub(crate) const GUARDIAN_ARGUMENT: &str = "__restore-terminal";

pub(super) struct Guardian {
    child: Child,
    /// The guardian sees this end close when the client dies.
    _alive: Option<ChildStdin>,
}

impl Guardian {
    /// Start a guardian. Return `None` on failure: attaching works without one.
    pub(super) fn start(before: &Termios) -> Option<Self> {
        let mut child = Command::new(own_executable()?)
            .arg0("ph")
            .args([GUARDIAN_ARGUMENT, &encode(before)])
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
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The running executable, even if its file has been replaced.
fn own_executable() -> Option<PathBuf> {
    if cfg!(target_os = "linux") {
        return Some("/proc/self/exe".into());
    }
    std::env::current_exe().ok()
}

/// Run the guardian with the command line `words`.
pub(crate) fn run(words: &[OsString]) -> ExitCode {
    // Both may fail: the guardian is then only easier to interrupt.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let mut byte = [0];
    while matches!(
        rustix::io::read(stdin(), &mut byte),
        Ok(1..) | Err(Errno::INTR)
    ) {}
    reset(&TerminalOutput::open(), NextLine::AtTheBottom);
    let Ok(mut now) = rustix::termios::tcgetattr(stdout()) else {
        return ExitCode::FAILURE;
    };
    let before = words.get(2).and_then(|word| decode(word.to_str()?, &now));
    let Some(before) = before else {
        return ExitCode::FAILURE;
    };
    let mut raw = before.clone();
    raw.make_raw();
    // Other modes mean that a shell has taken over and set its own.
    if encode(&now) == encode(&raw) {
        now = before;
        let _ = rustix::termios::tcsetattr(stdout(), OptionalActions::Now, &now);
    }
    ExitCode::SUCCESS
}

/// Encode the modes that raw mode changes.
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

/// Decode modes; everything that [`encode`] leaves out is taken from `now`.
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
    fn decoded_modes_equal_the_encoded_ones() {
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
