//! Reading a screen by a manifest: what a glance at it means. Looks at text and changes nothing;
//! what a program shows can at most make us wait.

use super::manifest::{Lists, Manifest, Osc, Source};
use super::pattern::Pattern;
use crate::text;

/// How much of what was seen is told as evidence.
const SHOWN: usize = 60;

/// What is to be seen of a terminal at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Glance<'a> {
    pub title: Option<&'a str>,
    /// What the program last said in the operating system command that its harness listens for.
    pub osc: Option<&'a str>,
    /// The last rows, the lowest last.
    pub lines: &'a [String],
    /// Which of them the cursor is in.
    pub cursor: Option<usize>,
}

/// What a piece of evidence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Working,
    Idle,
    Blocked,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub source: Source,
    pub says: Says,
    pub evidence: String,
}

/// The program's input box, as far as it can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Field {
    #[default]
    Unseen,
    Empty,
    Holds(String),
}

/// What a glance means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sighting {
    /// The sign that it can be written to.
    pub ready: bool,
    /// At most one for each source.
    pub claims: Vec<Claim>,
    /// The question that stands open.
    pub dialog: Option<String>,
    pub field: Field,
}

impl Manifest {
    pub fn recognise(&self, glance: &Glance<'_>) -> Sighting {
        let foot = |lines: usize| {
            let from = glance.lines.len().saturating_sub(lines);
            glance.lines[from..].join("\n")
        };
        let row = glance.cursor.and_then(|at| glance.lines.get(at));
        let row = row.map(String::as_str);
        let screen = foot(self.activity.lines);
        let claims = self.claims(glance, row, &screen);
        let dialog = self.dialogs.iter().find_map(|dialog| {
            let lines = foot(dialog.lines);
            let what = dialog.pattern.take(&lines, "what")?;
            Some(if dialog.pattern.has_group("what") {
                format!("{}: {}", dialog.name, text::one_line(what, SHOWN))
            } else {
                dialog.name.clone()
            })
        });
        let asks = claims.iter().find(|claim| claim.says == Says::Blocked);
        let ready = &self.ready;
        Sighting {
            ready: finds(&ready.title, glance.title)
                || finds(&ready.cursor, row)
                || finds(&ready.screen, Some(&screen)),
            dialog: dialog.or_else(|| asks.map(|claim| claim.evidence.clone())),
            field: self.field(glance),
            claims,
        }
    }

    fn claims(&self, glance: &Glance<'_>, row: Option<&str>, screen: &str) -> Vec<Claim> {
        let activity = &self.activity;
        let osc = activity.osc.as_ref().map(Osc::lists);
        let all = [
            (Source::Osc, osc.unwrap_or_default(), glance.osc),
            (Source::Title, activity.title.lists(), glance.title),
            (Source::Cursor, activity.cursor.lists(), row),
            (Source::Screen, activity.screen.lists(), Some(screen)),
        ];
        let claims = all.into_iter().filter_map(|(source, lists, seen)| {
            let (says, found) = read(lists, seen?)?;
            let found = text::one_line(found, SHOWN);
            let evidence = format!("its {} says: {found}", called(source));
            Some(Claim {
                source,
                says,
                evidence,
            })
        });
        claims.collect()
    }

    fn field(&self, glance: &Glance<'_>) -> Field {
        let draft = &self.draft;
        let Some(pattern) = &draft.pattern else {
            return Field::Unseen;
        };
        let from = glance.lines.len().saturating_sub(draft.lines);
        let rows = glance.lines.iter().enumerate().skip(from).rev();
        let mut rows = rows.filter(|(at, _)| !draft.at_cursor || glance.cursor == Some(*at));
        let Some(held) = rows.find_map(|(_, row)| pattern.take(row, "draft")) else {
            return Field::Unseen;
        };
        let held = held.trim();
        if held.is_empty() || finds(&draft.placeholders, Some(held)) {
            Field::Empty
        } else {
            Field::Holds(held.to_owned())
        }
    }
}

/// What a text says, and which part of it does. A question counts for more than work, and work
/// for more than rest: a wrong wait harms less than a wrong word.
fn read<'t>(lists: Lists<'_>, seen: &'t str) -> Option<(Says, &'t str)> {
    let [working, idle, blocked] = lists;
    let lists = [
        (Says::Blocked, blocked),
        (Says::Working, working),
        (Says::Idle, idle),
    ];
    lists.into_iter().find_map(|(says, patterns)| {
        let found = patterns.iter().find_map(|p| p.take(seen, "what"))?;
        Some((says, found))
    })
}

fn called(source: Source) -> &'static str {
    match source {
        Source::Hook => "hook",
        Source::Osc => "status note",
        Source::Title => "title",
        Source::Cursor => "cursor's line",
        Source::Screen => "screen",
    }
}

fn finds(patterns: &[Pattern], text: Option<&str>) -> bool {
    text.is_some_and(|text| patterns.iter().any(|pattern| pattern.is_in(text)))
}
