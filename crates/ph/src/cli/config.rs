use crate::context::Context;
use crate::report::{Code, Result};
use posthaste_core::text;

/// Show the settings and where each value comes from
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph config show
  ph config show --json | jq -r '.settings[].key'

Settings are read from, each overriding the one before: the defaults, the user's file
(~/.config/posthaste/config.toml), the home's file (<home>/config.toml), the environment, flags.

  [output]
  time = \"relative\"")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigVerb {
    /// Show every setting, its value, and where that came from
    Show,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Code> {
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
        let value = serde_json::json!({
            "home": { "value": context.home.path(), "source": context.home_source.to_string() },
            "files": context.config_files,
            "settings": settings,
        });
        context.out.json(&value)?;
        return Ok(Code::Ok);
    }
    let home = format!(
        "home = {}  ({})",
        text::visible(&context.home.path().display().to_string()),
        context.home_source
    );
    let rows: Vec<String> = context
        .layers
        .rows()
        .map(|(setting, value)| {
            format!(
                "{} = {}  ({})",
                setting.key,
                text::one_line(&value.text, 80),
                text::visible(&value.source.to_string())
            )
        })
        .collect();
    context.out.line(home)?;
    for row in rows {
        context.out.line(row)?;
    }
    Ok(Code::Ok)
}
