use crate::cli::prelude::*;
use posthaste_client::settings::{NamedSetting, SettingSource};

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
    if context.json {
        let settings: Vec<_> = context
            .layers
            .rows()
            .map(|(setting, value)| {
                serde_json::json!({
                    "key": setting.key, "value": value.text, "source": value.source.to_string(),
                    "env": setting.env, "default": setting.default, "help": setting.help,
                })
            })
            .collect();
        let named = |rows: Vec<NamedSetting>| -> Vec<_> {
            let rows = rows.into_iter().map(|row| {
                let source = row.source.to_string();
                serde_json::json!({ "key": row.key, "value": row.value, "source": source })
            });
            rows.collect()
        };
        let book = named(context.layers.roster().rows());
        let harnesses = named(context.layers.harnesses().rows());
        let ignored = named(context.layers.ignored().to_vec());
        let value = serde_json::json!({
            "home": { "value": context.home.path(), "source": context.home_source.to_string() },
            "files": context.config_files,
            "settings": settings,
            "book": book,
            "harness": harnesses,
            "ignored": ignored,
        });
        context.out.json(&value)?;
        return Ok(Code::Ok);
    }
    let home = format!(
        "home = {}  ({})",
        text::visible(&context.home.path().display().to_string()),
        context.home_source
    );
    let shown = |key: &str, value: &str, source: &SettingSource| {
        format!(
            "{key} = {}  ({})",
            text::one_line(value, 80),
            text::visible(&source.to_string())
        )
    };
    let settings = context.layers.rows();
    let mut rows: Vec<String> = settings
        .map(|(setting, value)| shown(setting.key, &value.text, &value.source))
        .collect();
    let book = context.layers.roster().rows();
    let named = book.into_iter().chain(context.layers.harnesses().rows());
    rows.extend(named.map(|row| shown(&row.key, &row.value, &row.source)));
    let ignored = context.layers.ignored().iter();
    rows.extend(ignored.map(|row| {
        let row = shown(&row.key, &row.value, &row.source);
        format!("{row}, ignored: a project cannot set it")
    }));
    context.out.line(home)?;
    for row in rows {
        context.out.line(row)?;
    }
    Ok(Code::Ok)
}
