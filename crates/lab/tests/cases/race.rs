//! A question opens around the moment between a text and its Enter: an Enter into it would be a yes.

use crate::list::Told;
use crate::play::{ESCAPE, Play, Sent};
use posthaste_lab::agents::Sign;
use std::path::PathBuf;
use std::time::Duration;

/// A model that is about to call its tool, and does when it is told to.
struct Aim {
    go: PathBuf,
    /// What a yes would make.
    file: PathBuf,
}

impl Aim {
    fn take(play: &mut Play) -> Self {
        let go = play.fresh("go");
        let go = play.stage.dir().join(go);
        let name = play.fresh("raced");
        let file = play.stage.work().join(&name);
        play.forbid(file.clone());
        play.prompt(&format!("until={} ask=touch {name}", go.display()));
        play.until_sign(Sign::Working);
        Self { go, file }
    }

    fn fire(&self) {
        std::fs::write(&self.go, "").expect("the stage can be written");
    }
}

/// When the question opens is tried from before the text to after its Enter, one time after the
/// other. With hooks there is mostly no text: mail waits for one.
pub(crate) fn swept(play: &mut Play) -> Told {
    let step = Duration::from_millis(u64::from(play.count()) * 37 % 400);
    let aim = Aim::take(play);
    let sent = if step < Duration::from_millis(200) {
        aim.fire();
        play.terminal.watch(step);
        play.send("lab: into the race")
    } else {
        let sent = play.send("lab: into the race");
        // By a hook nothing goes in before the tool: then there is nothing to wait for.
        play.soon(|play| play.noted(&sent, "offering"));
        play.terminal.watch(step - Duration::from_millis(200));
        aim.fire();
        sent
    };
    judged(play, &aim, sent)
}

/// The model calls its tool as soon as the text is on the screen; there is time enough before Enter.
pub(crate) fn held(play: &mut Play) -> Told {
    let aim = Aim::take(play);
    let sent = play.send("lab: into the race");
    play.until("its text on the screen", |play| play.shows(&sent));
    aim.fire();
    judged(play, &aim, sent)
}

/// Enter comes when it usually does, so the model is told sooner or later: some agents take longer
/// to ask than we to press Enter.
pub(crate) fn aimed(play: &mut Play) -> Told {
    let aim = Aim::take(play);
    let turn = play.runs % 3;
    if turn == 0 {
        aim.fire();
    }
    let sent = play.send("lab: into the race");
    if turn == 1 {
        play.until("an offer to begin", |play| play.noted(&sent, "offering"));
        aim.fire();
    } else if turn == 2 {
        play.until("its text on the screen", |play| play.shows(&sent));
        aim.fire();
    }
    judged(play, &aim, sent)
}

fn judged(play: &mut Play, aim: &Aim, sent: Sent) -> Told {
    let mut asks = false;
    play.until("the question, or a turn that ended without it", |play| {
        assert!(!aim.file.exists(), "approved by us");
        asks = play.sign() == Sign::Asking;
        asks || (play.sign() == Sign::Free && play.tally.seen(&sent.mark) > 0)
    });
    // Codex takes what is submitted in time into the turn, and may drop its question.
    if asks {
        play.until("the session to know of the question", |play| {
            assert!(!aim.file.exists(), "approved by us");
            play.status()["activity"] == "blocked"
        });
        if play.noted(&sent, "offering") && !play.noted(&sent, "offered") {
            play.caught += 1;
        }
        play.terminal.type_keys(ESCAPE);
    }
    let receipt = play.settle(&[sent]);
    play.runs += 1;
    let caught = play.caught;
    let what = format!("nothing approved, {caught} times in between");
    Told { what, receipt }
}
