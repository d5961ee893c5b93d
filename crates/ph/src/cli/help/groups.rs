//! The grouped list of verbs in `ph --help`.
//!
//! Decides only where a heading begins. Order, names, aliases and descriptions of the verbs come from
//! their own definitions.

use clap::Command;
use std::fmt::Write as _;

/// The headings, each with the first verb below it.
const GROUPS: [(&str, &str); 4] = [
    ("Agents", "run"),
    ("Mail", "send"),
    ("Loops", "build"),
    ("Setup", "demo"),
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
    let verbs = || ph.get_subcommands().filter(|verb| !verb.is_hide_set());
    let width = verbs().map(|verb| verb.get_name().len()).max();
    let width = width.unwrap_or_default();
    let mut list = String::new();
    for verb in verbs() {
        let name = verb.get_name();
        if let Some((title, _)) = GROUPS.iter().find(|(_, first)| *first == name) {
            let gap = if list.is_empty() { "" } else { "\n" };
            let _ = writeln!(list, "{gap}{heading}{title}:{heading:#}");
        }
        let about = verb.get_about().cloned().unwrap_or_default();
        let _ = write!(list, "  {literal}{name:width$}{literal:#}  {about}");
        for alias in verb.get_visible_aliases() {
            let _ = write!(list, " [alias: {alias}]");
        }
        list.push('\n');
    }
    list.push('\n');
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_groups_begin_with_visible_verbs() {
        let ph = crate::cli::Cli::command();
        let visible = ph.get_subcommands().filter(|verb| !verb.is_hide_set());
        let names: Vec<_> = visible.map(Command::get_name).collect();
        let at = |(_, first): &(&str, &str)| names.iter().position(|name| name == first);
        let begins: Vec<_> = GROUPS.iter().map(|group| at(group).unwrap()).collect();
        assert!(begins[0] == 0 && begins.is_sorted(), "{begins:?}");
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
