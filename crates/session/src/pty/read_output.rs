//! Reads the program's output from its terminal.

use crate::pty::terminal::TerminalParts;
use rustix::io::Errno;

/// How many bytes are read before other tasks run.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;
/// Limit for the events of one batch: an empty outbox must have room for all of them, although
/// every byte may be a line.
const MAX_EVENT_BYTES: usize = 512 * 1024;
/// Upper bound for the size of an output event without its text.
const EVENT_OVERHEAD_BYTES: usize = 128;
/// A batch ends when fewer bytes than this may be read.
const MIN_READ_BYTES: usize = 1024;

/// The result of reading the terminal.
pub(crate) enum OutputRead {
    /// So many bytes; no more are available.
    Drained(usize),
    /// So many bytes, as many as a batch may have.
    Batch(usize),
    /// No output is available.
    Nothing,
    /// The program and all other processes have closed the terminal.
    End,
}

/// Wait for output, and read what is available up to the buffer's size.
///
/// The kernel returns output in small pieces. The screen processes each piece before the next read,
/// while the kernel prepares the next one: reading sooner would find nothing and sleep once per
/// piece.
pub(crate) async fn read(parts: &mut TerminalParts, buffer: &mut [u8]) -> OutputRead {
    let pty = parts.pty.clone();
    let Ok(mut ready) = pty.readable().await else {
        return OutputRead::End;
    };
    let read = read_now(parts, buffer);
    if let OutputRead::Drained(_) | OutputRead::Nothing = read {
        ready.clear_ready();
    }
    read
}

/// Like [`read`], but without waiting.
pub(crate) fn read_now(parts: &mut TerminalParts, buffer: &mut [u8]) -> OutputRead {
    let TerminalParts {
        pty, screen, hub, ..
    } = parts;
    let mut event_room = hub.wants_output().then_some(MAX_EVENT_BYTES);
    let mut filled = 0;
    loop {
        let limit = event_room.map_or(BATCH_BYTES, |room| room / EVENT_OVERHEAD_BYTES);
        let limit = limit.min(buffer.len() - filled);
        if limit < MIN_READ_BYTES {
            return OutputRead::Batch(filled);
        }
        match rustix::io::read(pty.get_ref(), &mut buffer[filled..filled + limit]) {
            Ok(count @ 1..) => {
                let piece = &buffer[filled..filled + count];
                screen.feed(piece);
                event_room = event_room.map(|room| room.saturating_sub(max_event_bytes(piece)));
                filled += count;
            }
            Err(Errno::AGAIN) => {
                return match filled {
                    0 => OutputRead::Nothing,
                    filled => OutputRead::Drained(filled),
                };
            }
            Err(Errno::INTR) => {}
            // Linux reports a closed terminal as an error.
            Ok(_) | Err(_) => {
                return match filled {
                    0 => OutputRead::End,
                    filled => OutputRead::Batch(filled),
                };
            }
        }
    }
}

/// Return an upper bound for the size of the events of this output. JSON writes some characters as
/// two bytes.
fn max_event_bytes(piece: &[u8]) -> usize {
    let ends_line = |byte: &&u8| matches!(byte, 0x0a..=0x0c | 0x85);
    2 * piece.len() + EVENT_OVERHEAD_BYTES * piece.iter().filter(ends_line).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::clock;
    use posthaste_screen::Lines;
    use posthaste_wire::event;

    #[test]
    fn events_are_no_larger_than_their_estimate() {
        let check = |piece: &[u8]| {
            let mut events = Vec::new();
            let at = clock::local_now();
            Lines::default().feed(piece, &mut |line: &str| {
                event::append_output(&mut events, &at, line);
            });
            assert!(!events.is_empty() && events.len() <= max_event_bytes(piece));
        };
        check(&[b'\n'; MAX_EVENT_BYTES / EVENT_OVERHEAD_BYTES]);
        check(&[b"\"\\\t".repeat(99).as_slice(), b"\n"].concat());
        check("ein Ärger\u{85}漢\u{b}x\u{c}".as_bytes());
        check(b"\x1b[31mred\x1b[m\r\n");
    }
}
