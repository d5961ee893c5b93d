//! Reading what the program writes.

use crate::pty::terminal::Stage;
use rustix::io::Errno;

/// How much is read before others get their turn.
pub(crate) const BATCH: usize = 64 * 1024;
/// How much the events of one batch may take up: an outbox that is read must have room for all of
/// them. Each byte may be a line.
const TOLD: usize = 512 * 1024;
/// What the event of a line takes up beside its text, at most.
const EVENT: usize = 128;
/// Less is not worth being read by itself.
const LEAST: usize = 1024;

/// How a read of the terminal went.
pub(crate) enum Read {
    /// All that was there.
    Some(usize),
    /// As much as may be read at once.
    Batch(usize),
    /// Nothing for now.
    Nothing,
    /// The program and everybody else has closed it.
    End,
}

/// Reads as much as is there, up to the buffer's size: the kernel gives it in small pieces. The
/// screen takes each in before the next is read, and meanwhile the kernel gets that one ready: who
/// asks sooner finds nothing, and sleeps once a piece.
pub(crate) async fn read(stage: &mut Stage, buffer: &mut [u8]) -> Read {
    let pty = stage.pty.clone();
    let Ok(mut ready) = pty.readable().await else {
        return Read::End;
    };
    let read = read_now(stage, buffer);
    if let Read::Some(_) | Read::Nothing = read {
        ready.clear_ready();
    }
    read
}

/// The same without waiting.
pub(crate) fn read_now(stage: &mut Stage, buffer: &mut [u8]) -> Read {
    let Stage {
        pty, screen, hub, ..
    } = stage;
    let mut told = hub.wants_output().then_some(TOLD);
    let mut filled = 0;
    loop {
        let room = told.map_or(BATCH, |told| told / EVENT);
        let room = room.min(buffer.len() - filled);
        if room < LEAST {
            return Read::Batch(filled);
        }
        match rustix::io::read(pty.get_ref(), &mut buffer[filled..filled + room]) {
            Ok(count @ 1..) => {
                let piece = &buffer[filled..filled + count];
                screen.feed(piece);
                told = told.map(|told| told.saturating_sub(most_told(piece)));
                filled += count;
            }
            Err(Errno::AGAIN) => {
                return match filled {
                    0 => Read::Nothing,
                    filled => Read::Some(filled),
                };
            }
            Err(Errno::INTR) => {}
            // The other side is closed; on Linux that is an error.
            Ok(_) | Err(_) => {
                return match filled {
                    0 => Read::End,
                    filled => Read::Batch(filled),
                };
            }
        }
    }
}

/// How much the events of this output take up, at most: some characters need two bytes.
fn most_told(piece: &[u8]) -> usize {
    let ends_line = |byte: &&u8| matches!(byte, 0x0a..=0x0c | 0x85);
    2 * piece.len() + EVENT * piece.iter().filter(ends_line).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::clock;
    use posthaste_screen::Lines;
    use posthaste_wire::event;

    #[test]
    fn no_output_takes_up_more_than_is_reckoned() {
        let check = |piece: &[u8]| {
            let mut told = Vec::new();
            let at = clock::local_now();
            Lines::default().feed(piece, &mut |line: &str| {
                event::append_output(&mut told, &at, line);
            });
            assert!(!told.is_empty() && told.len() <= most_told(piece));
        };
        check(&[b'\n'; TOLD / EVENT]);
        check(&[b"\"\\\t".repeat(99).as_slice(), b"\n"].concat());
        check("ein Ärger\u{85}漢\u{b}x\u{c}".as_bytes());
        check(b"\x1b[31mred\x1b[m\r\n");
    }
}
