//! The text of a message: an argument, an option or a file. Exactly one must be given.

use posthaste_store::report::{Report, Result};
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct BodyArgs {
    /// Message text; text that begins with '-' goes after '--' or in -m
    #[arg(value_name = "BODY", conflicts_with_all = ["text", "file"])]
    body: Option<String>,
    /// Message text
    #[arg(
        short = 'm',
        long = "body",
        value_name = "BODY",
        id = "text",
        allow_hyphen_values = true,
        conflicts_with = "file"
    )]
    text: Option<String>,
    /// File with the message text; '-' is standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
}

impl BodyArgs {
    /// Add a text from another place on the command line; only one may be given.
    pub(crate) fn with(mut self, body: &str) -> Result<Self> {
        if self.body.is_some() || self.text.is_some() || self.file.is_some() {
            return Err(Report::usage("--all cannot be used with a recipient")
                .hint("'ph send --all BODY' sends to every running agent"));
        }
        self.body = Some(body.to_owned());
        Ok(self)
    }

    pub(crate) fn read(self) -> Result<String> {
        let body = match (self.body.or(self.text), self.file) {
            (Some(text), _) => text,
            (None, Some(path)) => read_file(&path)?,
            (None, None) => {
                return Err(Report::usage("the message text is missing").hint(
                    "give it as BODY, with -m BODY, or with --file FILE ('-' reads standard input)",
                ));
            }
        };
        not_empty(body)
    }
}

/// Reject a body without text.
pub(crate) fn not_empty(body: String) -> Result<String> {
    if body.trim().is_empty() {
        Err(Report::usage("the text of a message cannot be empty"))
    } else {
        Ok(body)
    }
}

fn read_file(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let (name, read) = if path == Path::new("-") {
        (
            "standard input".to_owned(),
            std::io::stdin().lock().read_to_end(&mut bytes),
        )
    } else {
        let opened = std::fs::File::open(path);
        (
            path.display().to_string(),
            opened.and_then(|mut file| file.read_to_end(&mut bytes)),
        )
    };
    read.map_err(|error| Report::usage(format!("cannot read {name}: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        Report::usage(format!(
            "{name} is not UTF-8: see byte {}",
            error.utf8_error().valid_up_to() + 1
        ))
        .hint("messages are text; send a path to the file instead, or convert it with iconv")
    })
}

/// Parse a subject or key: one line of limited length.
pub(crate) fn one_line(
    what: &'static str,
) -> impl Fn(&str) -> std::result::Result<String, String> + Clone {
    const MAX: usize = 1_000;
    move |text| {
        if text.trim().is_empty() {
            Err(format!("a {what} cannot be empty"))
        } else if text.chars().any(char::is_control) {
            Err(format!("a {what} is one line without control characters"))
        } else if text.len() > MAX {
            Err(format!("a {what} has at most {MAX} bytes"))
        } else {
            Ok(text.to_owned())
        }
    }
}
