//! `ph answer` while a question opens: it is applied, or reported as not applied.

use crate::list::CaseOutcome;
use crate::play::{ESCAPE, NAME, Play};
use posthaste_lab::agents::{Agent, Sign};

/// Keys that allow the command.
fn yes(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude | Agent::Gemini => "1",
        Agent::Codex => "y",
        Agent::OpenCode => unreachable!("its dialog takes Enter alone"),
    }
}

pub(crate) fn at_once(play: &mut Play) -> CaseOutcome {
    let name = play.fresh("answered");
    let file = play.stage.work().join(&name);
    play.prompt(&format!("ask=touch {name}"));
    let mut id = String::new();
    // Refused until the session has recognised the question.
    play.until("a question that can be answered", |play| {
        let answered = play.ph(&["answer", NAME, yes(play.agent), "--from", "ann"]);
        id = String::from_utf8_lossy(&answered.stdout).trim().to_owned();
        answered.status.success()
    });
    let mut receipt = String::new();
    play.until("what became of the answer", |play| {
        let shown = play.asked(&["show", &id]);
        shown["receipt"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut receipt);
        matches!(receipt.as_str(), "accepted" | "failed")
    });
    let what = if receipt == "accepted" {
        play.until("what was allowed", |_| file.exists());
        "applied"
    } else {
        let shown = play.asked(&["show", &id]).to_string();
        assert!(shown.contains("not applied"), "{shown}");
        assert_eq!(play.sign(), Sign::Asking, "it was applied");
        assert!(!file.exists(), "it was applied");
        play.terminal.type_keys(ESCAPE);
        "said not to be applied, and was not"
    };
    play.free();
    let what = what.to_owned();
    CaseOutcome { what, receipt }
}
