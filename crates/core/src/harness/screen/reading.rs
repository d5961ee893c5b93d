//! Interprets a screen by a manifest. Changes nothing: the worst effect of a screen is that
//! delivery waits.

use super::dialog::DialogView;
use super::input_box::{BoxState, Mismatch};
use crate::harness::Pattern;
use crate::harness::manifest::{Lists, Manifest, Osc, Source};
use crate::text;
use std::sync::Arc;

/// Maximum number of characters that evidence quotes.
const EVIDENCE_CHARS: usize = 60;

/// The visible state of a terminal at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Glance<'a> {
    pub title: Option<&'a str>,
    /// The last text of the operating system command that the manifest names.
    pub osc: Option<&'a str>,
    /// The last rows, top to bottom.
    pub lines: &'a [String],
    /// The cursor's row, as an index into `lines`.
    pub cursor: Option<usize>,
    /// The text before the cursor in its row.
    pub before: &'a str,
    pub cursor_shown: bool,
    /// The width of the terminal.
    pub columns: usize,
    /// Number of bytes that the program had written: nothing was written between two looks with the
    /// same count.
    pub output: u64,
}

/// A piece of evidence.
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

/// The interpretation of a screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Whether the pattern that shows readiness appeared.
    pub ready: bool,
    /// At most one claim per source.
    pub claims: Vec<Claim>,
    /// A short description of the open question.
    pub dialog: Option<String>,
    /// The question's whole text, which identifies it.
    pub question: Option<String>,
    /// The question and its options as a person sees them.
    pub dialog_view: Option<Arc<DialogView>>,
    /// Whether only the title or a status note announces the question, and the screen does not show
    /// it.
    pub announced: bool,
    pub input_box: BoxState,
    /// Number of bytes that the program had written.
    pub output: u64,
    /// The text before the cursor in its row, if known.
    pub before: Option<String>,
    pub program: Arc<ProgramFacts>,
}

/// Facts about the running program, from its files and its banner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramFacts {
    pub version: Option<String>,
    /// The job of another process that has the conversation. While it does, nothing is typed.
    pub handed_over: Option<String>,
}

impl Sighting {
    /// Whether `other` shows nothing new. Ignores the text before the cursor.
    pub fn is_like(&self, other: &Self) -> bool {
        let Self {
            ready,
            claims,
            dialog,
            question,
            dialog_view,
            announced,
            input_box,
            output,
            before: _,
            program,
        } = self;
        (ready, claims, dialog) == (&other.ready, &other.claims, &other.dialog)
            && (question, announced) == (&other.question, &other.announced)
            && dialog_view == &other.dialog_view
            && (input_box, output) == (&other.input_box, &other.output)
            && program == &other.program
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
            let summary = match what {
                Some(what) => format!("{}: {}", dialog.name, text::one_line(what, EVIDENCE_CHARS)),
                None => dialog.name.clone(),
            };
            let view = DialogView::read(all, what, dialog, &self.options);
            Some((summary, (view.identity(), Arc::new(view))))
        });
        let (dialog, asked) = asked.unzip();
        let (question, dialog_view) = asked.unzip();
        let asks = claims.iter().find(|claim| claim.says == Says::Blocked);
        let is_there = |claim: &Claim| matches!(claim.source, Source::Cursor | Source::Screen);
        let announced = dialog.is_none() && asks.is_some_and(|claim| !is_there(claim));
        let dialog = dialog.or_else(|| asks.map(|claim| claim.evidence.clone()));
        let input_box = match (&self.input_box, &dialog) {
            (None, _) => BoxState::Undescribed,
            (Some(_), Some(asked)) => {
                BoxState::Unrecognised(Mismatch::new("the input box and no dialog", asked))
            }
            (Some(input_box), None) => input_box.recognise(glance, &self.name),
        };
        Sighting {
            ready: input_box.is_recognised(),
            dialog,
            question,
            dialog_view,
            announced,
            input_box,
            claims,
            output: glance.output,
            before: Some(glance.before.to_owned()),
            program: Arc::default(),
        }
    }

    /// Whether `text` on the screen would be taken for a question, at any line wrapping, with a row
    /// below it.
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
            let found = text::one_line(found, EVIDENCE_CHARS);
            let evidence = format!("its {} says: {found}", called(source));
            Some(Claim {
                source,
                says,
                evidence,
            })
        });
        claims.collect()
    }
}

/// Return what a text says, and the part that says it. Blocked beats working, and working beats
/// idle: a needless wait does less harm than an untimely message.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    fn patterns(all: &[&str]) -> Vec<Pattern> {
        let pattern = |text: &&str| (*text).to_owned().try_into().unwrap();
        all.iter().map(pattern).collect()
    }

    /// Patterns measured on real agents.
    fn like_claude() -> Manifest {
        let mut manifest = Manifest::generic();
        manifest.activity.title.working = patterns(&["^[⠂⠐]"]);
        manifest.activity.title.idle = patterns(&["^✳"]);
        manifest.activity.screen.working = patterns(&["esc to interrupt"]);
        manifest.dialogs.push(crate::harness::Dialog {
            name: "permission".to_owned(),
            pattern: patterns(&[r"Do you want to (?<what>.+)\?\n❯ 1\. Yes"])[0].clone(),
            lines: 12,
            partial: false,
            options: None,
        });
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
        words.extend(sighting.dialog.map(|what| format!("asks <{what}>")));
        words.join(", ")
    }

    #[test]
    fn a_screen_shows_work_and_questions() {
        let claude = like_claude();
        let check = |title: &str, screen: &str, want: &str| {
            assert_eq!(said(&claude, title, None, screen), want, "{screen}");
        };
        check("", "booting", "");
        check("✳ Claude", "hi\n❯\n  ? for shortcuts", "title idle");
        let busy = "❯\n  esc to interrupt";
        check("⠂ x", busy, "title working, screen working");
        check("⠂ x", "text", "title working");
        // The idle title stays while a question is open.
        let asked = "Bash\nDo you want to run rm -r?\n❯ 1. Yes\n  2. No";
        check("✳ x", asked, "title idle, asks <permission: run rm -r>");
        let quoted = format!("{asked}\n{}\n❯", "more\n".repeat(12));
        check("✳ x", &quoted, "title idle");
        let codex = like_codex();
        let check = |title: &str, osc: Option<&str>, screen: &str, want: &str| {
            assert_eq!(said(&codex, title, osc, screen), want, "{title} {osc:?}");
        };
        check("⠋ x", None, "> _", "title working");
        check("x", Some("state=done"), "> old\n> new_", "osc idle");
        check(
            "x",
            Some("state=blocked"),
            "",
            "osc blocked, asks <its status note says: state=blocked>",
        );
        check(
            "[ ! ] Action Required",
            Some("state=working"),
            "> not here",
            "osc working, title blocked, asks <its title says: [ ! ] Action Required>",
        );
    }

    #[test]
    fn a_text_that_resembles_a_question_is_recognised() {
        let mut manifest = Manifest::generic();
        let mut check = |pattern: &str, text: &str, want: bool| {
            manifest.dialogs = vec![crate::harness::Dialog {
                name: "permission".to_owned(),
                pattern: patterns(&[pattern])[0].clone(),
                lines: 12,
                partial: false,
                options: None,
            }];
            assert_eq!(manifest.would_ask(text), want, "{pattern} {text}");
        };
        let loose = r"Do you want to (?<what>.+)\?";
        check(loose, "Do you want to have lunch?", true);
        check(loose, "hi\nso: Do you want to have lunch? Yes", true);
        check(loose, "I want lunch", false);
        // A line may wrap anywhere.
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
        fn no_screen_causes_a_panic(
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
                    ..Glance::default()
                });
                // Evidence is one short line without control characters.
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
