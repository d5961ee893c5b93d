//! A question opens at about the time when mail arrives: an Enter in it would allow the command.

use crate::list::CaseOutcome;
use crate::play::{ENTER, Play, Sent};
use posthaste_lab::agents::Sign;
use posthaste_lab::model::Author;
use std::path::PathBuf;
use std::time::Duration;

/// A model that is about to call its tool.
struct Aim {
    /// The model calls the tool once this file exists.
    go: PathBuf,
    /// File that only the allowed command creates.
    file: PathBuf,
    /// Word in the person's prompt.
    word: String,
}

impl Aim {
    fn new(play: &mut Play) -> Self {
        let go = play.fresh("go");
        let go = play.stage.dir().join(go);
        let word = play.fresh("raced");
        let file = play.stage.work().join(&word);
        play.forbid(file.clone());
        Self { go, file, word }
    }

    fn prompt(&self) -> String {
        format!("until={} ask=touch {}", self.go.display(), self.word)
    }

    fn fire(&self) {
        std::fs::write(&self.go, "").expect("the stage can be written");
    }
}

/// Alternate between the two races, and shift the timing after every pair of tries.
pub(crate) fn swept(play: &mut Play) -> CaseOutcome {
    let aim = Aim::new(play);
    let step = u64::from(play.runs / 2);
    let cuts = play.tally.cuts();
    let sent = if play.runs.is_multiple_of(2) {
        before_the_question(play, &aim, Duration::from_millis(step * 37 % 400))
    } else {
        behind_a_draft(play, &aim, Duration::from_millis(step * 53 % 700))
    };
    judged(play, &aim, &sent, cuts)
}

/// The agent works, and the question opens from 200 ms before the message is sent to 200 ms after.
fn before_the_question(play: &mut Play, aim: &Aim, step: Duration) -> Sent {
    const BEFORE: Duration = Duration::from_millis(200);
    play.prompt(&aim.prompt());
    play.until_sign(Sign::Working);
    if step < BEFORE {
        aim.fire();
        play.terminal.watch(step);
        return play.send("lab: into the race");
    }
    let sent = play.send("lab: into the race");
    play.terminal.watch(step - BEFORE);
    aim.fire();
    sent
}

/// A draft holds the message. The person submits the draft, so that the box is empty and the agent
/// is not known to work yet; the question opens up to 700 ms later.
fn behind_a_draft(play: &mut Play, aim: &Aim, step: Duration) -> Sent {
    play.types(&aim.prompt());
    let sent = play.send("lab: into the race");
    play.until("the message to be held by the draft, or past it", |play| {
        play.rule(&sent).as_deref() == Some("draft") || play.noted(&sent, "offered")
    });
    play.terminal.type_keys(ENTER);
    play.terminal.watch(step);
    aim.fire();
    // Gemini takes an Enter shortly after a paste for a line break.
    while !play.soon(|play| play.tally.seen(&aim.word) > 0 && play.sign() != Sign::Free) {
        if play.tally.seen(&aim.word) > 0 {
            break;
        }
        play.terminal.type_keys(ENTER);
    }
    sent
}

fn judged(play: &mut Play, aim: &Aim, sent: &Sent, cuts: usize) -> CaseOutcome {
    play.until("the question", |play| {
        assert!(!aim.file.exists(), "approved by us");
        play.sign() == Sign::Asking
    });
    play.until("the session to know of the question", |play| {
        assert!(!aim.file.exists(), "approved by us");
        play.status()["activity"] == "blocked"
    });
    if play.noted(sent, "offering") && !play.noted(sent, "offered") {
        play.caught += 1;
    }
    assert_eq!(play.tally.cuts(), cuts, "an answer was cut off");
    play.deny();
    let receipt = play.settle(std::slice::from_ref(sent));
    let is_mixed = play.tally.turns().iter().any(|turn| {
        turn.pieces.iter().any(|piece| {
            piece.voice == Author::User
                && piece.text.contains(&sent.mark)
                && piece.text.contains(&aim.word)
        })
    });
    let is_typed = play.route(sent).as_deref() == Some("terminal");
    assert!(!(is_mixed && is_typed), "mixed with the person's text");
    play.runs += 1;
    let caught = play.caught;
    let what = format!("{caught} times between text and Enter");
    CaseOutcome { what, receipt }
}
