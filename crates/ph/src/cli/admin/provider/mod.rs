//! `ph provider`: acts as a mail provider script, or tests one.

pub(crate) mod answer;

use crate::cli::prelude::*;
use crate::cli::times::parse_duration;
use crate::output::Output;
use anstyle::AnsiColor;
use jiff::SignedDuration;
use posthaste_provider::suite;
use posthaste_session::pty::child::kill_with_parent;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Act as a mail provider script, or test one
///
/// 'ph provider OP [ARG]', or a link to ph named ph-mail-provider, lets other systems use ph's mail
/// through the mail provider protocol. It reads and writes JSON on the standard streams. Exit
/// codes: 0 for success, 2 for an unknown operation, 1 for any other error. An empty list prints
/// nothing.
///
///   send TO, reply ID                  {"from","subject","body"} on standard input; the message
///   inbox WHO, check WHO               unread messages
///   all WHO                            unread and read messages
///   get ID, read ID                    the message; 'read' marks it as read
///   mark-read, mark-unread, archive, delete ID
///   thread ID                          messages, in order
///   count WHO                          {"total","unread"}
#[allow(
    rustdoc::broken_intra_doc_links,
    reason = "the help text shows it unchanged"
)]
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    disable_help_subcommand = true,
    override_usage = "ph provider [OPTIONS] <OP> [ARG]\n       ph provider test [OPTIONS] <SCRIPT>",
    after_help = "\
Examples:
  ln -s \"$(command -v ph)\" ~/bin/ph-mail-provider
  echo '{\"from\":\"human\",\"subject\":\"\",\"body\":\"hi\"}' | ph provider send coder-1
  ph provider inbox coder-1
  ph provider test ./my-mail-script"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ProviderVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ProviderVerb {
    Test(TestArgs),
    /// An operation and its argument, which may look like an option.
    #[command(external_subcommand)]
    Operation(Vec<OsString>),
}

/// Test whether a script follows the protocol of mail providers
///
/// Prints pass or fail for each case, and exits with 1 if one fails. Every case uses its own agent
/// names and its own directory, which the script gets in PH_PROVIDER_STATE.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph provider test ./my-mail-script
  ph provider test ./my-mail-script --json | jq '.cases[] | select(.passed | not)'")]
struct TestArgs {
    /// Executable file
    #[arg(value_name = "SCRIPT", value_hint = clap::ValueHint::ExecutablePath)]
    script: PathBuf,
    /// Timeout of each call
    #[arg(long, value_name = "D", default_value = "10s", value_parser = parse_duration, allow_hyphen_values = true)]
    timeout: SignedDuration,
}

#[derive(Serialize)]
struct SuiteReport {
    script: String,
    passed: usize,
    failed: usize,
    cases: Vec<suite::CaseResult>,
}

pub(crate) fn run(args: Args, options: &GlobalOptions) -> std::result::Result<ExitCode, Report> {
    match args.verb {
        ProviderVerb::Operation(words) => Ok(answer::main(&words, options)),
        ProviderVerb::Test(args) => test(&args, options).map(Into::into),
    }
}

fn test(args: &TestArgs, options: &GlobalOptions) -> Result<Code> {
    let script = std::path::absolute(&args.script)
        .map_err(|error| Report::usage(format!("cannot determine the script's path: {error}")))?;
    let shown = text::visible(&script.display().to_string());
    if !posthaste_store::live::process::is_program(&script) {
        return Err(Report::usage(format!("{shown} is not an executable file"))
            .hint("'chmod +x' makes a file executable"));
    }
    let timeout = Duration::try_from(args.timeout)
        .map_err(|_| Report::usage("--timeout must be more than zero"))?;
    let mut out = Output::new(crate::cli::help::color(options));
    let results = suite::run(&script, timeout, kill_with_parent, |result| {
        if options.json {
            return Ok(());
        }
        let (word, color) = if result.passed {
            ("pass", AnsiColor::Green.on_default())
        } else {
            ("FAIL", AnsiColor::Red.on_default())
        };
        let why = result.reason.iter();
        let why: String = why.map(|why| format!(": {}", text::visible(why))).collect();
        out.line(format!("{color}{word}{color:#}  {}{why}", result.name))?;
        out.flush()
    })?;
    let passed = results.iter().filter(|result| result.passed).count();
    let failed = results.len() - passed;
    if options.json {
        out.json(&SuiteReport {
            script: shown,
            passed,
            failed,
            cases: results,
        })?;
    } else {
        out.line(format!("{passed} of {} passed", passed + failed))?;
    }
    out.flush()?;
    Ok(if failed == 0 { Code::Ok } else { Code::No })
}
