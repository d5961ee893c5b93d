use crate::context::Context;
use crate::output::{counted, note};
use posthaste_store::portable::{self, Exported};
use posthaste_store::report::{Code, Report, Result};
use posthaste_store::{Error, Journal};
use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Export the journal as NDJSON, one fact per line
///
/// 'ph import' brings it back, byte for byte into an empty home.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph export backup.ndjson
  ph export | gzip > backup.ndjson.gz")]
pub(crate) struct Args {
    /// Where to write; a file that is there is not overwritten [default: standard output]
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let to_stdout = args
        .file
        .as_deref()
        .is_none_or(|path| path == Path::new("-"));
    if to_stdout && context.out.is_terminal() {
        return Err(Report::usage("an export is not made for a terminal")
            .hint("name a FILE, or send it through a pipe; 'ph log' is for reading"));
    }
    let journal = context.reader()?;
    let exported = match args.file.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => to_file(journal.as_ref(), path)?,
        None => match &journal {
            Some(journal) => portable::export(journal, context.out.writer())?,
            None => Exported::default(),
        },
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

/// Writes the whole file or none.
fn to_file(journal: Option<&Journal>, path: &Path) -> Result<Exported> {
    let failed = |error| Report::storage(format!("cannot write {}: {error}", path.display()));
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                Report::refused(format!("{} is there already", path.display()))
                    .hint("an export overwrites nothing; choose another name")
            }
            _ => failed(error),
        })?;
    let mut out = BufWriter::new(file);
    let mut write = || -> Result<Exported> {
        let exported = match journal {
            Some(journal) => portable::export(journal, &mut out).map_err(|error| match error {
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
        // Half an export must not pass for a whole one.
        let _ = std::fs::remove_file(path);
    })
}
