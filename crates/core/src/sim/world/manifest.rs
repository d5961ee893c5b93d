//! What is known of the model program: the manifest that fits its nature.

use crate::harness::{
    Below, Dialog, InputBox, Keys, Manifest, Pattern, Proof, Route, RowPattern, Sign,
};
use crate::sim::script::{Nature, Sight};
use std::sync::{Arc, LazyLock};

/// What a program's screen means is told by the model of the program itself; that there is a
/// pattern only says that it can be recognised.
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
static TOOL: LazyLock<Sign> = LazyLock::new(|| sign(HOOK));
static HOOKS: LazyLock<[Sign; 3]> = LazyLock::new(|| [BEGINS, SUBMITTED, RESTS].map(sign));
static GIVEN_SIGN: LazyLock<Sign> = LazyLock::new(|| sign(GIVEN));
/// The event of the hook that takes mail.
pub(crate) const HOOK: &str = "PostToolUse";
/// Those of the hooks that tell of it.
pub(crate) const BEGINS: &str = "SessionStart";
pub(crate) const SUBMITTED: &str = "UserPromptSubmit";
pub(crate) const GIVEN: &str = "PromptGiven";
pub(crate) const RESTS: &str = "Stop";
static WORKS: LazyLock<Pattern> = LazyLock::new(|| pattern("works"));

fn sign(event: &str) -> Sign {
    event.to_owned().try_into().expect("a sign")
}

fn pattern(text: &str) -> Pattern {
    text.to_owned().try_into().expect("a pattern")
}

/// The keys that empty its input box.
pub(crate) fn clear_keys() -> Keys {
    "ctrl+u".to_owned().try_into().expect("keys")
}

fn row(text: &str) -> RowPattern {
    text.to_owned().try_into().expect("a pattern")
}

pub(crate) fn manifest(nature: Nature) -> Arc<Manifest> {
    let mut manifest = Manifest::generic();
    if nature.has_hooks {
        manifest.routes = vec![Route::Hook, Route::Terminal];
        manifest.hook.context.push(TOOL.clone());
    }
    if nature.proves {
        let [begins, submitted, rests] = HOOKS.clone();
        manifest.proof = match nature.records {
            true => vec![Proof::Transcript],
            false => vec![Proof::Hook],
        };
        manifest.hook.begins.push(begins);
        manifest.hook.submitted.push(submitted);
        manifest.hook.idle.push(rests);
        if nature.queues {
            manifest.hook.given.push(GIVEN_SIGN.clone());
        }
    }
    if nature.sight == Sight::Nothing {
        return Arc::new(manifest);
    }
    manifest.dialogs.push(Dialog {
        name: "permission".to_owned(),
        pattern: QUESTION.clone(),
        lines: 10,
    });
    if nature.has_title {
        manifest.activity.title.working.push(WORKS.clone());
    }
    manifest.interrupt.quits_when_idle = nature.quits;
    if nature.sight == Sight::Box {
        let mut input_box = INPUT_BOX.clone();
        input_box.clear = nature.puts_back.then(clear_keys);
        manifest.input_box = Some(input_box);
        manifest.submit.seen_within = "2s".to_owned().try_into().expect("a time");
        manifest.submit.while_working = false;
    }
    Arc::new(manifest)
}
