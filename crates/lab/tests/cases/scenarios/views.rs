//! Views into which nothing may be typed: mail waits until the person has closed them, and no key
//! is pressed meanwhile.

use crate::list::CaseOutcome;
use crate::play::{ESCAPE, NAME, Play, Sent};
use posthaste_lab::agents::{Agent, Sign};
use std::time::Duration;

const LEFT: &str = "\x1b[D";
const CTRL_C: &str = "\x03";
const CTRL_O: &str = "\x0f";
const CTRL_R: &str = "\x12";
/// Longer than `ph` takes to type a message and its Enter.
const TYPED_WITHIN: Duration = Duration::from_millis(1500);
/// Timeout for a view to be drawn.
const DRAWN_WITHIN: Duration = Duration::from_millis(500);
/// Number of times that a person presses the key that closes a view.
const CLOSE_ATTEMPTS: usize = 4;

enum Opens {
    Keys(&'static str),
    Command(&'static str),
}

struct View {
    opens: Opens,
    /// Text that only this view shows.
    shows: &'static str,
    closes: &'static str,
}

fn views(agent: Agent) -> Vec<View> {
    use Opens::{Command, Keys};
    let view = |opens, shows| View {
        opens,
        shows,
        closes: ESCAPE,
    };
    match agent {
        Agent::Claude => vec![
            view(Keys(CTRL_O), "Showing detailed transcript"),
            view(Keys(CTRL_R), "earch prompts"),
            view(Command("/model"), "Select model"),
            view(Command("/config"), "Usage   Stats"),
        ],
        Agent::Codex => vec![
            view(Command("/model"), "Select Model and Effort"),
            view(Keys(CTRL_R), "reverse-i-search"),
            View {
                closes: CTRL_C,
                ..view(Command("/side"), "Side from main thread")
            },
        ],
        Agent::Gemini => vec![
            view(Command("/settings"), "Apply To"),
            view(Keys(CTRL_R), "(r:)"),
        ],
        Agent::OpenCode => Vec::new(),
    }
}

/// Send a message while a view is open, and check that it is held and nothing is typed.
#[track_caller]
fn send_into(play: &mut Play, shows: &str, still: fn(&Play) -> Vec<String>) -> (Sent, String) {
    play.until(&format!("{shows:?} on the screen"), |play| {
        play.has_on_screen(shows)
    });
    play.terminal.watch(DRAWN_WITHIN);
    // Gemini CLI shows in this row that a hook runs.
    let is_steady = |row: &String| !row.contains("? for shortcuts");
    let still =
        |play: &Play| -> Vec<String> { still(play).into_iter().filter(is_steady).collect() };
    let before = still(play);
    let sent = play.send("lab: into another view");
    let mut rule = String::new();
    play.until("the message to be held", |play| {
        rule = play.rule(&sent).unwrap_or_default();
        let held = ["unrecognised", "blocked", "draft", "handed-over"];
        held.contains(&rule.as_str())
    });
    play.soon_not(TYPED_WITHIN, |play| play.noted(&sent, "offering"));
    assert_eq!(still(play), before, "a key was pressed into {shows:?}");
    (sent, rule)
}

pub(crate) fn known(play: &mut Play) -> CaseOutcome {
    let turn = play.fresh("before-views");
    play.prompt(&turn);
    play.free();
    let mut receipt = String::new();
    let mut rules: Vec<String> = Vec::new();
    let views = views(play.agent);
    for view in &views {
        match view.opens {
            Opens::Keys(keys) => play.terminal.type_keys(keys),
            Opens::Command(command) => play.slash(command),
        }
        let (sent, rule) = send_into(play, view.shows, |play| play.terminal.screen());
        for _ in 0..CLOSE_ATTEMPTS {
            play.terminal.type_keys(view.closes);
            if play.soon(|play| !play.has_on_screen(view.shows)) {
                break;
            }
        }
        receipt = play.settle(&[sent]);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let (count, rules) = (views.len(), rules.join(", "));
    let what = format!("{count} views: held ({rules}) until each was closed, no key pressed");
    CaseOutcome { what, receipt }
}

/// Open and leave Claude Code's agents view: then another process has the conversation.
pub(crate) fn agents(play: &mut Play) -> CaseOutcome {
    let turn = play.fresh("before-agents");
    play.prompt(&turn);
    play.free();
    play.terminal.type_keys(LEFT);
    let shows = "describe a task for a new session";
    // The rows above the box show how long ago an event was.
    let input = |play: &Play| {
        let mut screen = play.terminal.screen().into_iter();
        screen
            .rfind(|row| row.starts_with('❯'))
            .into_iter()
            .collect()
    };
    let (first, rule) = send_into(play, shows, input);
    play.terminal.type_keys(ESCAPE);
    play.until("the conversation's box", |play| {
        play.has_empty_box() && !play.has_on_screen(shows)
    });
    stays_held(play, &first);
    let handed_over = play.status()["handed_over"].to_string();
    assert!(
        handed_over.contains("job "),
        "the session does not say so: {handed_over}"
    );
    let name = play.fresh("asked-after");
    let file = play.stage.work().join(&name);
    play.forbid(file);
    play.prompt(&format!("ask=touch {name}"));
    play.until_sign(Sign::Asking);
    let (second, _) = send_into(play, "Do you want to proceed?", |_| Vec::new());
    play.judge();
    assert_eq!(play.sign(), Sign::Asking, "the question was answered");
    play.deny();
    stays_held(play, &second);
    let stopped = play.ph(&["stop", NAME]);
    let output = String::from_utf8_lossy(&stopped.stdout).into_owned();
    assert_eq!(stopped.status.code(), Some(1), "{output}");
    assert!(output.contains("its conversation continues"), "{output}");
    play.end_background();
    play.reopen();
    let receipt = play.settle(&[first, second]);
    play.judge();
    let what = format!(
        "held ({rule}) in the view and after it, nothing approved; stop did not claim an end; both \
         went into the next session"
    );
    CaseOutcome { what, receipt }
}

/// `ph` cannot see the process that has the conversation, and types nothing.
#[track_caller]
fn stays_held(play: &mut Play, sent: &Sent) {
    play.held_by(sent, "handed-over");
    play.soon_not(TYPED_WITHIN, |play| play.noted(sent, "offering"));
    assert_eq!(play.tally.seen(&sent.mark), 0, "it went in");
}

/// `/rename` in a session without hooks: the dialog has the name below it.
pub(crate) fn renamed(play: &mut Play) -> CaseOutcome {
    let turn = play.fresh("before-name");
    play.prompt(&turn);
    play.free();
    let name = play.fresh("name");
    play.slash(&format!("/rename {name}"));
    play.free();
    let first = play.send("lab: to one with another name");
    play.settle(&[first]);
    let file = play.question("");
    play.forbid(file);
    let sent = play.send("lab: while you ask, renamed");
    let rule = play.held(&sent);
    play.soon_not(TYPED_WITHIN, |play| play.noted(&sent, "offering"));
    play.judge();
    assert_eq!(play.sign(), Sign::Asking, "the question was answered");
    play.deny();
    let receipt = play.settle(&[sent]);
    let what = format!("went in; held ({rule}) while a question was open");
    CaseOutcome { what, receipt }
}
