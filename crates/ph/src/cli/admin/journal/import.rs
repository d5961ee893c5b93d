//! `ph import`: adds exported facts to the journal, each once.

use crate::cli::prelude::*;
use crate::output::{counted, progress, progress_done};
use posthaste_store::transfer;
use serde_json::json;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Import an exported journal into this home
///
/// Facts that the journal already has are skipped, so an import can be repeated. A fact whose id is
/// in the journal with different content is not imported: each such conflict is reported, and the
/// exit code is 4.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph import backup.ndjson
  gzip -dc backup.ndjson.gz | ph import - --home ~/restored")]
pub(crate) struct Args {
    /// Export file; '-' is standard input
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let mut input: Box<dyn BufRead> = if args.file == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(&args.file).map_err(|error| {
            Report::usage(format!("cannot read {}: {error}", args.file.display()))
        })?;
        Box::new(BufReader::new(file))
    };
    let mut journal = context.journal()?;
    let imported = transfer::import(&mut journal, &mut input, |count| {
        progress(format!("{count} facts"));
    });
    progress_done();
    let imported = imported?;
    let (added, known) = (imported.added, imported.known);
    context.print(
        &json!({"added": added, "known": known, "conflicts": imported.conflicts}),
        format!("{} added, {known} already present", counted(added, "fact")),
    )?;
    context.out.flush()?;
    if imported.conflicts.is_empty() {
        return Ok(Code::Ok);
    }
    for id in &imported.conflicts {
        note(format!(
            "conflict: {} is in the journal with different content",
            posthaste_core::text::one_line(id, 40)
        ));
    }
    Err(Report::refused(format!(
        "{} not imported",
        counted(imported.conflicts.len() as u64, "fact")
    )))
}
