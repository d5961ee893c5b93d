//! `ph answer` while permission requests open: each answer is applied, and the first one counts.

use crate::list::CaseOutcome;
use crate::play::{NAME, Play};
use serde_json::Value;

pub(crate) fn allow(play: &mut Play) -> CaseOutcome {
    let name = play.fresh("allowed");
    let file = play.stage.work().join(&name);
    let ask = asks(play, &name);
    let id = ask["id"].as_str().expect("an id").to_owned();
    // Two faces answer at once.
    let late = play
        .command()
        .args(["answer", &id, "deny", "--json"])
        .output();
    let late: Value = serde_json::from_slice(&late.expect("ph runs").stdout).expect("JSON");
    let first = answer(play, &id, "allow");
    let outcomes = [&first["outcome"], &late["outcome"]].map(Value::to_string);
    // The first one denied.
    assert_eq!(outcomes, ["\"too_late\"", "\"applied\""], "{first} {late}");
    assert_eq!(first["choice"], late["choice"], "{first} {late}");
    play.soon_not(std::time::Duration::from_millis(300), |_| file.exists());
    play.free();
    let ask = asks(play, &name);
    let id = ask["id"].as_str().expect("an id").to_owned();
    let applied = answer(play, &id, "allow");
    assert_eq!(applied["outcome"], "applied", "{applied}");
    play.until("what was allowed", |_| file.exists());
    let again = answer(play, &id, "deny");
    assert_eq!(again["outcome"], "too_late", "{again}");
    assert_eq!(again["choice"], applied["choice"], "{again}");
    play.free();
    outcome("the first answer counts", &applied)
}

/// Allow all requests of a kind, and deny one.
pub(crate) fn always(play: &mut Play) -> CaseOutcome {
    let name = play.fresh("denied");
    let file = play.stage.work().join(&name);
    let ask = asks(play, &name);
    let id = ask["id"].as_str().expect("an id").to_owned();
    let denied = answer(play, &id, "deny");
    assert_eq!(denied["outcome"], "applied", "{denied}");
    play.free();
    assert!(!file.exists(), "it was denied");
    let ask = asks(play, &name);
    let id = ask["id"].as_str().expect("an id").to_owned();
    let applied = answer(play, &id, "always");
    assert_eq!(applied["outcome"], "applied", "{applied}");
    play.until("what was allowed", |_| file.exists());
    play.free();
    outcome("denied, then allowed always", &applied)
}

/// Prompt the agent to run a command that needs permission, and return its ask.
fn asks(play: &mut Play, name: &str) -> Value {
    play.prompt(&format!("ask=touch {name}"));
    let mut found = Value::Null;
    play.until("an ask with options", |play| {
        let listed = play.command().args(["asks", "--json"]).output();
        let asks = listed
            .ok()
            .and_then(|l| serde_json::from_slice(&l.stdout).ok());
        let asks: Vec<Value> = asks.unwrap_or_default();
        let is_it = |ask: &Value| ask["agent"] == NAME && ask["kind"] == "permission";
        found = asks.into_iter().find(is_it).unwrap_or_default();
        found["options"].as_array().is_some_and(|o| !o.is_empty())
    });
    let text = found["text"].as_str().expect("a text");
    assert!(text.contains(&format!("touch {name}")), "{found}");
    assert_eq!(found["partial"], false, "{found}");
    found
}

fn answer(play: &Play, id: &str, choice: &str) -> Value {
    let answered = play.ph(&["answer", id, choice, "--json", "--from", "ann"]);
    serde_json::from_slice(&answered.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&answered.stderr)))
}

fn outcome(what: &str, applied: &Value) -> CaseOutcome {
    CaseOutcome {
        what: what.to_owned(),
        receipt: applied["outcome"].as_str().unwrap_or_default().to_owned(),
    }
}
