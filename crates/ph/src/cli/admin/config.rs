//! `ph config`: prints the settings and the source of each.

use crate::cli::prelude::*;
use posthaste_client::settings::{NamedSetting, SettingSource};
use serde_json::json;

/// Show the settings and the source of each value
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph config show
  ph config show --json | jq -r '.settings[].key'

Sources, each overriding the one before: the defaults, the user's file
(~/.config/posthaste/config.toml), the home's file (<home>/config.toml), the environment, flags.

  [output]
  time = \"relative\"

  [mail]
  provider = \"exec:/path/to/a/script\"

  [aliases]
  lead = \"coder-1\"

  [groups]
  reviewers = [\"coder-2\", \"coder-3\"]

  [agents.coder-1]
  nudge = \"Check your mail\"

Some harnesses list the rows that may appear below the input box. While any other row is shown,
messages are held. If your agent shows a status line there, set its number of rows:

  [harness.codex]
  status_rows = 1")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigVerb {
    /// Show every setting, its value and the source of the value
    #[command(after_help = "\
Examples:
  ph config show
  ph config show --json | jq -r '.settings[].key'")]
    Show,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    match args.verb {
        ConfigVerb::Show => show(context),
    }
}

fn show(context: &mut Context) -> Result<Code> {
    let layers = &context.layers;
    let (book, harnesses) = (layers.roster.rows(), layers.harnesses.rows());
    if context.json {
        let settings = layers.rows().map(|(setting, value)| {
            json!({
                "key": setting.key, "value": value.text, "source": value.source.to_string(),
                "env": setting.env, "default": setting.default, "help": setting.help,
            })
        });
        let named = |rows: &[NamedSetting]| -> Vec<_> {
            let rows = rows.iter();
            rows.map(
                |row| json!({"key": row.key, "value": row.value, "source": row.source.to_string()}),
            )
            .collect()
        };
        let value = json!({
            "home": { "value": context.home.path(), "source": context.home_source.to_string() },
            "files": context.config_files,
            "settings": settings.collect::<Vec<_>>(),
            "book": named(&book),
            "harness": named(&harnesses),
            "ignored": named(&layers.ignored),
        });
        context.out.json(&value)?;
        return Ok(Code::Ok);
    }
    let line = |key: &str, value: &str, source: &SettingSource| {
        let (value, source) = (text::one_line(value, 80), source.to_string());
        format!("{key} = {value}  ({})", text::visible(&source))
    };
    let named_line = |row: &NamedSetting| line(&row.key, &row.value, &row.source);
    let home = text::visible(&context.home.path().display().to_string());
    let mut lines = vec![format!("home = {home}  ({})", context.home_source)];
    let settings = layers.rows();
    lines.extend(settings.map(|(setting, value)| line(setting.key, &value.text, &value.source)));
    lines.extend(book.iter().chain(&harnesses).map(named_line));
    let ignored = layers.ignored.iter().map(named_line);
    lines.extend(ignored.map(|line| format!("{line}, ignored: a project cannot set it")));
    for line in lines {
        context.out.line(line)?;
    }
    Ok(Code::Ok)
}
