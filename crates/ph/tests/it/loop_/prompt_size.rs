//! Growing lists in a prompt that is limited by the size of an argument.

use super::stage::{Loop, Stage, TAKES};
use posthaste_core::loop_::Bounds;
use serde_json::json;

/// Maximum size of a note, a task and an injected text.
const LONG: usize = 16 << 10;

fn by_argument() -> Stage {
    Stage::new().command(&["/bin/sh", "-c", TAKES, "sh", "{prompt}"])
}

fn fill(looped: &Loop) {
    for n in 0..12 {
        let text = format!("note {n}. {}", "n".repeat(LONG - 20));
        let done = looped
            .ph()
            .call(&["note", "add", "--agent", "bot", &text])
            .run();
        assert_eq!(done.code, 0, "{}", done.err());
        let text = format!("task {n}. {}", "t".repeat(LONG - 20));
        let done = looped
            .ph()
            .call(&["task", "add", "--agent", "bot", &text])
            .run();
        assert_eq!(done.code, 0, "{}", done.err());
    }
    for n in 0..3 {
        let text = format!("text {n}. {}", "i".repeat(LONG - 20));
        looped.session.ask("inject_prompt", json!({"prompt": text}));
    }
}

#[test]
fn growing_lists_are_shortened_to_fit_an_argument() {
    let stage = by_argument();
    stage.ph.file("spec.md", "s".repeat(1 << 20));
    stage.ph.file("progress.txt", "p".repeat(1 << 20));
    let long = "c".repeat(2_000);
    let criteria = json!(vec![long; 200]).to_string();
    let story = format!(r#"{{"id": "US-1", "acceptanceCriteria": {criteria}}}"#);
    let looped = stage.prd(&story).start();
    let first = looped.prompt(1);
    assert!(first.contains("(too long for this prompt: read the file)"));
    assert!(first.contains("more criteria are in the PRD"));
    assert!(first.contains("progress.txt (newest entries last)"));
    fill(&looped);
    looped.go("true");
    let mut texts = Vec::new();
    for iteration in 2..=4 {
        let prompt = looped.prompt(iteration);
        assert!(prompt.contains("note 11.") && prompt.contains("task 0."));
        assert!(prompt.contains("older notes are omitted: note_list"));
        assert!(prompt.contains("more open tasks are omitted: task_list"));
        let given = (0..3).filter(|n| prompt.contains(&format!("text {n}. ")));
        texts.extend(given);
        looped.go("true");
    }
    // Each text is complete, and appears once and in order.
    assert_eq!(texts, [0, 1, 2]);
    looped.prompt(5);
    let ended: Vec<_> = (1..5).map(|n| format!("{n} \"ended\"")).collect();
    assert_eq!(looped.outcomes(), ended);
}

/// Standard input has no limit, but growing lists are bounded.
#[test]
fn a_prompt_on_standard_input_is_bounded() {
    let looped = Stage::new().start();
    looped.prompt(1);
    fill(&looped);
    looped.go("true");
    let second = looped.prompt(2);
    assert!(
        second.contains("text 0.") && second.contains("text 2."),
        "all of them"
    );
    assert!(second.contains("note 11.") && !second.contains("note 0."));
    let [widest, ..] = Bounds::STEPS;
    assert!(
        second.len() < 2 * widest.list + 3 * LONG + (16 << 10),
        "{}",
        second.len()
    );
}

#[test]
fn texts_that_leave_no_room_for_mail_are_refused_before_the_start() {
    let extra = "z".repeat(110_000);
    let stage = by_argument().flags(&["--extra", &extra]);
    let done = stage.try_start();
    done.fails(2, "an argument can have 131071");
    done.fails(2, "hint: move text from --prompt");
    assert!(!stage.ph.home().exists(), "nothing was changed");
}
