//! `ph hook`: the arguments with which agents' hooks call `ph`.

/// Report an agent's hook event to its session
///
/// Agents run this command as a hook. It reads the hook's JSON from standard input, sends it to the
/// session in PH_SOCKET, and prints the reply that the agent expects, if any: for example new mail.
/// Without a session it prints new mail at a prompt, each message once, like 'ph check --inject'.
/// Always exits with 0, within seconds. Errors are printed only if PH_LOG is set.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  echo '{\"hook_event_name\":\"Stop\"}' | ph hook claude
  ph hook my-agent --event Stop < /dev/null")]
pub(crate) struct Args {
    /// Harness of the calling agent; 'ph harness ls' lists them
    #[arg(value_name = "HARNESS")]
    pub(crate) harness: String,
    /// Event name, if the JSON has no 'hook_event_name'
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Agent whose mail is printed if there is no session and PH_AGENT is not set
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Set by a session that added this hook to the program's settings
    #[arg(long)]
    pub(crate) injected: bool,
}

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    #[test]
    fn an_agent_hook_is_read_by_the_command_line() {
        let check = |line: &str, want: Option<(&str, Option<&str>, bool)>| {
            let words = ["ph", "hook"].into_iter().chain(line.split_whitespace());
            let args = match Cli::try_parse_from(words).map(|cli| cli.verb) {
                Ok(Some(Verb::Hook(args))) => Some(args),
                Ok(_) | Err(_) => None,
            };
            let read = args
                .as_ref()
                .map(|args| (args.harness.as_str(), args.event.as_deref(), args.injected));
            assert_eq!(read, want, "{line:?}");
        };
        check("claude", Some(("claude", None, false)));
        check("claude --injected", Some(("claude", None, true)));
        check("--event Stop x", Some(("x", Some("Stop"), false)));
        for other in ["", "--injected", "x y", "x --help", "-h", "x --event"] {
            check(other, None);
        }
    }
}
