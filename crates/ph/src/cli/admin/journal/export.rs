//! `ph export`: writes the journal as NDJSON. A failed export leaves no file.

use crate::cli::prelude::*;
use crate::output::counted;
use posthaste_store::transfer::{self, Exported};
use posthaste_store::{Error, Journal};
use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Export the journal as NDJSON, one fact per line
///
/// 'ph import' restores it: imported into an empty home, the facts are equal byte for byte.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph export backup.ndjson
  ph export | gzip > backup.ndjson.gz")]
pub(crate) struct Args {
    /// Output file, which must not exist yet [default: standard output]
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let file = args.file.as_deref().filter(|path| *path != Path::new("-"));
    if file.is_none() && context.out.is_terminal() {
        return Err(Report::usage("cannot export to a terminal")
            .hint("name a FILE, or use a pipe; 'ph log' prints facts for people"));
    }
    let journal = context.reader()?;
    let exported = match (file, &journal) {
        (Some(path), journal) => to_file(journal.as_ref(), path)?,
        (None, Some(journal)) => transfer::export(journal, context.out.writer())?,
        (None, None) => Exported::default(),
    };
    for id in &exported.lost_bodies {
        note(format!(
            "the body of message {id} is lost; its fact is exported without it"
        ));
    }
    if args.file.is_some() {
        if context.json {
            context.out.json(&serde_json::json!({ "facts": exported.facts, "lost_bodies": exported.lost_bodies }))?;
        } else {
            note(format!("{} exported", counted(exported.facts, "fact")));
        }
    }
    Ok(Code::Ok)
}

/// Export to a file. If the export fails, no file is left.
fn to_file(journal: Option<&Journal>, path: &Path) -> Result<Exported> {
    let failed = |error| Report::storage(format!("cannot write {}: {error}", path.display()));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                Report::refused(format!("{} already exists", path.display()))
                    .hint("choose another file name")
            }
            _ => failed(error),
        })?;
    let mut out = BufWriter::new(file);
    let mut write = || -> Result<Exported> {
        let exported = match journal {
            Some(journal) => transfer::export(journal, &mut out).map_err(|error| match error {
                Error::Output(error) => failed(error),
                other => other.into(),
            })?,
            None => Exported::default(),
        };
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .map_err(failed)?;
        Ok(exported)
    };
    write().inspect_err(|_| {
        // A partial export could be mistaken for a complete one.
        let _ = std::fs::remove_file(path);
    })
}
