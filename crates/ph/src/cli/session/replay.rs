//! `ph replay`: plays the recording of a session's terminal, or prints it as an asciicast.

use crate::attach::{NextLine, reset_sequence};
use crate::cli::prelude::*;
use crate::cli::session::find_session;
use crate::cli::times::parse_duration;
use posthaste_screen::{self as screen, Drawing, ReplayEvent, ReplayedChange};
use posthaste_session::host::program_io::RECORDING_STEM;
use posthaste_store::live::SessionDir;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Play the recording of an agent's terminal
///
/// Plays the last 8 MiB of output of the latest session, with its pauses. Playback only draws: it
/// sets no title, writes no clipboard and rings no bell. With --cast, or if the output is not a
/// terminal, prints the recording as an asciicast for other players.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph replay coder-1
  ph replay coder-1 --speed 4 --max-pause 1s
  ph replay coder-1 --cast > coder-1.cast")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
    /// Playback speed, as a factor
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Shorten longer pauses to this time
    #[arg(long, value_name = "D", default_value = "2s", value_parser = parse_duration, allow_hyphen_values = true)]
    max_pause: jiff::SignedDuration,
    /// Print the recording as an asciicast
    #[arg(long)]
    cast: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let dir = SessionDir::of(&context.home, &args.name).dir();
    let files = screen::recording_files(&dir, RECORDING_STEM);
    if files.is_empty() {
        // For a name that never ran, this returns the error.
        find_session(context, &args.name)?;
        return Err(Report::not_found(format!("{} has no recording", args.name)));
    }
    if args.cast || context.json || !context.out.is_terminal() {
        return print(context, &files);
    }
    let result = play(context, args, &files);
    // Restore the person's terminal even after an error.
    context.out.bytes(&reset_sequence(NextLine::Below))?;
    result.map(|()| Code::Ok)
}

/// Print both halves of a recording as one asciicast with continuous times.
fn print(context: &mut Context, files: &[PathBuf]) -> Result<Code> {
    let mut is_first = true;
    for path in files {
        let replay = screen::open_recording(path).map_err(|error| unreadable(path, &error))?;
        let size = replay.size();
        if std::mem::take(&mut is_first) {
            let head = serde_json::json!({
                "version": 2,
                "width": size.cols,
                "height": size.rows,
            });
            context.out.json_text(&head.to_string())?;
        }
        for ReplayEvent { at, change } in replay {
            let (kind, data) = match change {
                ReplayedChange::Output(text) => ("o", text),
                ReplayedChange::Resize(size) => ("r", format!("{}x{}", size.cols, size.rows)),
            };
            let event = serde_json::json!([at.as_secs_f64(), kind, data]);
            context.out.json_text(&event.to_string())?;
        }
    }
    Ok(Code::Ok)
}

fn play(context: &mut Context, args: &Args, files: &[PathBuf]) -> Result<()> {
    let max_pause = Duration::try_from(args.max_pause).unwrap_or_default();
    let mut last: Option<Duration> = None;
    // Escape sequences that do more than draw are dropped.
    let mut drawing = Drawing::default();
    let mut drawn = String::new();
    // The terminal must be restored, so signals are handled between two events.
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, is_stopped.clone());
    }
    for path in files {
        let replay = screen::open_recording(path).map_err(|error| unreadable(path, &error))?;
        for ReplayEvent { at, change } in replay {
            let pause = last.map_or(Duration::ZERO, |last| at.saturating_sub(last));
            last = Some(at);
            wait(pause.min(max_pause).div_f64(args.speed), &is_stopped);
            if is_stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            if let ReplayedChange::Output(text) = change {
                drawn.clear();
                drawing.pass(&text, &mut drawn);
                context.out.bytes(drawn.as_bytes())?;
                context.out.flush()?;
            }
        }
    }
    Ok(())
}

/// Wait in short steps, so that an interrupt takes effect at once.
fn wait(pause: Duration, is_stopped: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(20);
    let end = Instant::now() + pause;
    while !is_stopped.load(Ordering::Relaxed)
        && let Some(left) = end.checked_duration_since(Instant::now())
    {
        std::thread::sleep(left.min(STEP));
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Report {
    Report::storage(format!("cannot read {}: {error}", path.display()))
}

fn speed(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.01..=1_000.0).contains(&speed) => Ok(speed),
        _ => Err("the speed must be a number from 0.01 to 1000".to_owned()),
    }
}
