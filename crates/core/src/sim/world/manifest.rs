//! The manifest of the simulated program, according to its profile.

use crate::harness::{
    Api, Below, Dialog, InputBox, Keys, Manifest, Pattern, Proof, Route, RowPattern, Sign,
};
use crate::sim::script::{KnownScreen, ProgramProfile};
use std::sync::{Arc, LazyLock};

/// A placeholder: the simulated program itself reports the state of its screen, so the patterns
/// only need to exist.
static INPUT_BOX: LazyLock<InputBox> = LazyLock::new(|| InputBox {
    above: None,
    top: vec![row("-+")],
    prompt: row("> (?<text>.*)"),
    continuation: None,
    bottom: vec![row("-+")],
    full_width: false,
    footer: Vec::new(),
    below: Below::Listed,
    status_rows: 0,
    hints: Vec::new(),
    pasted: Vec::new(),
    scrolled: None,
    visible_cursor: false,
    exceptions: Vec::new(),
    clear: None,
});
static QUESTION: LazyLock<Pattern> = LazyLock::new(|| pattern("Run command"));
static TOOL: LazyLock<Sign> = LazyLock::new(|| sign(TOOL_USED));
static HOOKS: LazyLock<[Sign; 3]> =
    LazyLock::new(|| [SESSION_STARTED, PROMPT_SUBMITTED, TURN_ENDED].map(sign));
static GIVEN_SIGN: LazyLock<Sign> = LazyLock::new(|| sign(PROMPT_GIVEN));
/// The event of the hook that takes mail.
pub(crate) const TOOL_USED: &str = "PostToolUse";
/// The events of the hooks that report the program's turns.
pub(crate) const SESSION_STARTED: &str = "SessionStart";
pub(crate) const PROMPT_SUBMITTED: &str = "UserPromptSubmit";
pub(crate) const PROMPT_GIVEN: &str = "PromptGiven";
pub(crate) const TURN_ENDED: &str = "Stop";
static WORKS: LazyLock<Pattern> = LazyLock::new(|| pattern("works"));

fn sign(event: &str) -> Sign {
    event.to_owned().try_into().expect("a sign")
}

fn pattern(text: &str) -> Pattern {
    text.to_owned().try_into().expect("a pattern")
}

/// Return the keys that clear the input box.
pub(crate) fn clear_keys() -> Keys {
    "ctrl+u".to_owned().try_into().expect("keys")
}

fn row(text: &str) -> RowPattern {
    text.to_owned().try_into().expect("a pattern")
}

pub(crate) fn manifest(profile: ProgramProfile) -> Arc<Manifest> {
    let mut manifest = Manifest::generic();
    if profile.hooks_take_mail {
        manifest.routes = vec![Route::Hook, Route::Terminal];
        manifest.hook.context.push(TOOL.clone());
    }
    if profile.hooks_report {
        let [begins, submitted, rests] = HOOKS.clone();
        manifest.proof = match profile.transcript_proves {
            true => vec![Proof::Transcript],
            false => vec![Proof::Hook],
        };
        manifest.hook.begins.push(begins);
        manifest.hook.submitted.push(submitted);
        manifest.hook.idle.push(rests);
        if profile.queues_prompts {
            manifest.hook.given.push(GIVEN_SIGN.clone());
        }
    }
    if profile.has_api {
        manifest.routes = vec![Route::Http, Route::Terminal];
        manifest.http.api = Some(Api::OpenCode);
        manifest.hook.working.push(GIVEN_SIGN.clone());
    }
    if profile.screen == KnownScreen::Nothing {
        return Arc::new(manifest);
    }
    manifest.dialogs.push(Dialog {
        name: "permission".to_owned(),
        pattern: QUESTION.clone(),
        lines: 10,
        partial: false,
        options: None,
    });
    if profile.title_shows_work {
        manifest.activity.title.working.push(WORKS.clone());
    }
    manifest.interrupt.quits_when_idle = profile.interrupt_ends_program;
    if profile.screen == KnownScreen::InputBox {
        let mut input_box = INPUT_BOX.clone();
        input_box.clear = profile.restores_input.then(clear_keys);
        manifest.input_box = Some(input_box);
        manifest.submit.seen_within = "2s".to_owned().try_into().expect("a time");
        manifest.submit.while_working = profile.types_while_working;
    }
    Arc::new(manifest)
}
