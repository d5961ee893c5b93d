//! The grouped list of verbs in `ph --help`.
//!
//! Decides only which heading a verb is listed under. Names, aliases and descriptions come from the
//! verbs' own definitions.

use clap::Command;
use std::fmt::Write as _;

/// Every verb that is not hidden, under its heading, in the order of the list.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Agents",
        &[
            "run", "attach", "ls", "asks", "answer", "status", "peek", "replay", "nudge", "pause",
            "unpause", "restart", "stop",
        ],
    ),
    (
        "Mail",
        &[
            "send",
            "inbox",
            "read",
            "reply",
            "thread",
            "search",
            "count",
            "check",
            "show",
            "why",
            "cancel",
            "mark-read",
            "mark-unread",
            "archive",
            "delete",
            "log",
        ],
    ),
    (
        "Loops",
        &[
            "build",
            "checkpoint",
            "resume",
            "inject",
            "interactive",
            "task",
            "note",
        ],
    ),
    (
        "Setup",
        &[
            "demo",
            "doctor",
            "config",
            "trust",
            "hooks",
            "harness",
            "mcp",
            "export",
            "import",
            "completions",
            "man",
            "help",
        ],
    ),
];

/// Replace clap's single list of verbs in the help of `ph` with one list per group.
///
/// clap groups options under headings, but not subcommands.
pub(crate) fn group_verbs(ph: Command) -> Command {
    let list = list(&ph);
    let heading = ph.get_styles().get_header();
    let template = format!(
        "{{about}}\n\n{}\n\n{{usage-heading}} {{usage}}\n\n{list}\
         {heading}Options:{heading:#}\n{{options}}{{after-help}}",
        crate::cli::DESCRIPTION
    );
    ph.help_template(template)
}

fn list(ph: &Command) -> String {
    let (heading, literal) = (ph.get_styles().get_header(), ph.get_styles().get_literal());
    let names = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut list = String::new();
    for (title, verbs) in GROUPS {
        let _ = writeln!(list, "{heading}{title}:{heading:#}");
        for verb in verbs.iter().filter_map(|verb| ph.find_subcommand(verb)) {
            let name = verb.get_name();
            let about = verb.get_about().cloned().unwrap_or_default();
            let _ = write!(list, "  {literal}{name:width$}{literal:#}  {about}");
            for alias in verb.get_visible_aliases() {
                let _ = write!(list, " [alias: {alias}]");
            }
            list.push('\n');
        }
        list.push('\n');
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_visible_verb_is_in_exactly_one_group() {
        let ph = crate::cli::Cli::command();
        let mut visible: Vec<_> = ph
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| verbs.iter().copied())
            .collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn the_list_fits_80_columns_and_is_no_template() {
        let list = list(&crate::cli::Cli::command());
        for line in list.lines() {
            let plain = anstream::adapter::strip_str(line).to_string();
            assert!(plain.chars().count() <= 80, "{plain}");
            assert!(!plain.contains('{'), "{plain}");
        }
    }
}
