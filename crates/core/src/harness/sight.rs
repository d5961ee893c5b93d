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
    /// What stands before it in its row.
    pub before: &'a str,
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
    /// The question that stands open, in a few words.
    pub dialog: Option<String>,
    /// All of its words, by which it is told from another.
    pub question: Option<String>,
    /// It is only told of, in a title or a status note, and not on the screen itself.
    pub announced: bool,
    pub field: Field,
    /// What stands before the cursor in its row, where that is known.
    pub before: Option<String>,
}

impl Sighting {
    /// Whether another shows nothing new. What stands before the cursor is for who looks for it.
    pub fn is_like(&self, other: &Self) -> bool {
        let Self {
            ready,
            claims,
            dialog,
            question,
            announced,
            field,
            before: _,
        } = self;
        (ready, claims, dialog) == (&other.ready, &other.claims, &other.dialog)
            && (question, field, announced) == (&other.question, &other.field, &other.announced)
    }
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
        let asked = self.dialogs.iter().find_map(|dialog| {
            let lines = foot(dialog.lines);
            let (all, what) = dialog.pattern.find(&lines, "what")?;
            let told = match what {
                Some(what) => format!("{}: {}", dialog.name, text::one_line(what, SHOWN)),
                None => dialog.name.clone(),
            };
            Some((told, all.to_owned()))
        });
        let (dialog, question) = asked.unzip();
        let asks = claims.iter().find(|claim| claim.says == Says::Blocked);
        let is_there = |claim: &Claim| matches!(claim.source, Source::Cursor | Source::Screen);
        let announced = dialog.is_none() && asks.is_some_and(|claim| !is_there(claim));
        let ready = &self.ready;
        let dialog = dialog.or_else(|| asks.map(|claim| claim.evidence.clone()));
        // What a question offers to choose from is no input of anybody's.
        let field = match dialog {
            Some(_) => Field::Unseen,
            None => self.field(glance),
        };
        Sighting {
            ready: finds(&ready.title, glance.title)
                || finds(&ready.cursor, row)
                || finds(&ready.screen, Some(&screen)),
            dialog,
            question,
            announced,
            field,
            claims,
            before: Some(glance.before.to_owned()),
        }
    }

    /// Whether a text would be taken for a question if it stood on the screen, however its lines
    /// are broken there; there is a row below it.
    pub fn would_ask(&self, text: &str) -> bool {
        let text = &format!("{text}\n");
        let activity = &self.activity;
        let mut blocked = activity
            .screen
            .blocked
            .iter()
            .chain(&activity.cursor.blocked);
        let asks = |pattern: &Pattern| {
            let is_bound = pattern.as_str().contains(['^', '$']);
            let mut breaks = text.match_indices(char::is_whitespace).map(|(at, _)| at);
            pattern.is_in(text)
                || is_bound
                    && breaks.any(|at| {
                        pattern.is_in(text[at..].trim_start()) || pattern.is_in(&text[..at])
                    })
        };
        self.dialogs.iter().any(|dialog| asks(&dialog.pattern)) || blocked.any(asks)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    fn patterns(all: &[&str]) -> Vec<Pattern> {
        let pattern = |text: &&str| (*text).to_owned().try_into().unwrap();
        all.iter().map(pattern).collect()
    }

    /// What was measured of a few agents: what is on their screens, and what it means.
    fn like_claude() -> Manifest {
        let mut manifest = Manifest::generic();
        manifest.activity.title.working = patterns(&["^[⠂⠐]"]);
        manifest.activity.title.idle = patterns(&["^✳"]);
        manifest.activity.screen.working = patterns(&["esc to interrupt"]);
        manifest.ready.screen = patterns(&["^❯"]);
        manifest.dialogs.push(super::super::Dialog {
            name: "permission".to_owned(),
            pattern: patterns(&[r"Do you want to (?<what>.+)\?\n❯ 1\. Yes"])[0].clone(),
            lines: 12,
        });
        manifest.draft.pattern = Some(patterns(&["^❯ ?(?<draft>.*)$"])[0].clone());
        manifest.draft.placeholders = patterns(&["^Try \""]);
        manifest.check().unwrap();
        manifest
    }

    fn like_codex() -> Manifest {
        let mut manifest = Manifest::generic();
        manifest.activity.osc = Some(Osc {
            number: 7501,
            working: patterns(&["state=working"]),
            idle: patterns(&["state=(idle|done)"]),
            blocked: patterns(&["state=blocked"]),
        });
        manifest.activity.title.working = patterns(&["^⠋"]);
        manifest.activity.title.blocked = patterns(&[r"^\[ ! \] Action Required"]);
        manifest.draft.pattern = Some(patterns(&["^> (?<draft>.*)$"])[0].clone());
        manifest.draft.at_cursor = true;
        manifest.check().unwrap();
        manifest
    }

    fn said(manifest: &Manifest, title: &str, osc: Option<&str>, screen: &str) -> String {
        let lines: Vec<String> = screen.lines().map(str::to_owned).collect();
        let cursor = lines.iter().position(|line| line.contains('_'));
        let sighting = manifest.recognise(&Glance {
            title: Some(title),
            osc,
            lines: &lines,
            cursor,
            ..Glance::default()
        });
        let claims = sighting.claims.iter().map(|claim| {
            let says = format!("{:?}", claim.says).to_lowercase();
            format!("{} {says}", claim.source.as_str())
        });
        let mut words: Vec<String> = claims.collect();
        words.extend(sighting.ready.then(|| "ready".to_owned()));
        words.extend(sighting.dialog.map(|what| format!("asks <{what}>")));
        words.push(match sighting.field {
            Field::Unseen => "unseen".to_owned(),
            Field::Empty => "empty".to_owned(),
            Field::Holds(text) => format!("holds <{text}>"),
        });
        words.join(", ")
    }

    #[test]
    fn what_is_on_a_screen_is_read() {
        let claude = like_claude();
        let check = |title: &str, screen: &str, want: &str| {
            assert_eq!(said(&claude, title, None, screen), want, "{screen}");
        };
        check("", "booting", "unseen");
        check(
            "✳ Claude",
            "hi\n❯\n  ? for shortcuts",
            "title idle, ready, empty",
        );
        check("✳ x", "❯ Try \"fix the tests\"", "title idle, ready, empty");
        check(
            "✳ x",
            "❯ half a thought",
            "title idle, ready, holds <half a thought>",
        );
        // The lowest row is the box; what was said above is not.
        check(
            "✳ x",
            "❯ said before\nanswer\n❯",
            "title idle, ready, empty",
        );
        let busy = "❯\n  esc to interrupt";
        check("⠂ x", busy, "title working, screen working, ready, empty");
        check("⠂ x", "text", "title working, unseen");
        // A question shows the idle title too.
        let asked = "Bash\nDo you want to run rm -r?\n❯ 1. Yes\n  2. No";
        check(
            "✳ x",
            asked,
            "title idle, ready, asks <permission: run rm -r>, unseen",
        );
        let quoted = format!("{asked}\n{}\n❯", "more\n".repeat(12));
        check("✳ x", &quoted, "title idle, ready, empty");
        let codex = like_codex();
        let check = |title: &str, osc: Option<&str>, screen: &str, want: &str| {
            assert_eq!(said(&codex, title, osc, screen), want, "{title} {osc:?}");
        };
        check("⠋ x", None, "> _", "title working, holds <_>");
        check(
            "x",
            Some("state=done"),
            "> old\n> new_",
            "osc idle, holds <new_>",
        );
        check(
            "x",
            Some("state=blocked"),
            "",
            "osc blocked, asks <its status note says: state=blocked>, unseen",
        );
        check(
            "[ ! ] Action Required",
            Some("state=working"),
            "> not here",
            "osc working, title blocked, asks <its title says: [ ! ] Action Required>, unseen",
        );
    }

    #[test]
    fn words_that_would_pass_for_a_question_are_known() {
        let mut manifest = Manifest::generic();
        let mut check = |pattern: &str, text: &str, want: bool| {
            manifest.dialogs = vec![super::super::Dialog {
                name: "permission".to_owned(),
                pattern: patterns(&[pattern])[0].clone(),
                lines: 12,
            }];
            assert_eq!(manifest.would_ask(text), want, "{pattern} {text}");
        };
        let loose = r"Do you want to (?<what>.+)\?";
        check(loose, "Do you want to have lunch?", true);
        check(loose, "hi\nso: Do you want to have lunch? Yes", true);
        check(loose, "I want lunch", false);
        // A line may be broken anywhere.
        check(r"^Run (?<what>.+)\?", "shall I Run it?", true);
        check(r"^Go on\?$", "Go on? Yes", true);
        check(r"^Run (?<what>.+)\?", "shall I run it?", false);
        assert!(!Manifest::generic().would_ask("Do you want to have lunch?"));
        let claude = like_claude();
        assert!(
            !claude.would_ask("Do you want to have lunch?"),
            "there is nothing to choose"
        );
    }

    static KNOWN: LazyLock<[Manifest; 3]> =
        LazyLock::new(|| [like_claude(), like_codex(), Manifest::generic()]);

    proptest! {
        #[test]
        fn no_screen_makes_it_stumble(
            lines in prop::collection::vec("\\PC{0,90}|❯ .{0,20}|Do you want to .*\\?", 0..30),
            title in prop::option::of("\\PC{0,40}"),
            cursor in prop::option::of(0..40_usize),
        ) {
            for manifest in KNOWN.iter() {
                let sighting = manifest.recognise(&Glance {
                    title: title.as_deref(),
                    osc: title.as_deref(),
                    lines: &lines,
                    cursor,
                    ..Glance::default()                });
                // What is told of it is one short line in which nothing acts.
                let told = sighting.claims.iter().map(|claim| &claim.evidence);
                for told in told.chain(&sighting.dialog) {
                    prop_assert!(told.chars().count() < 120, "{told}");
                    prop_assert_eq!(&crate::text::visible(told), told);
                    prop_assert!(!told.contains('\n'));
                }
            }
        }
    }
}
