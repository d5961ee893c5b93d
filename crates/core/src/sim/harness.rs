//! What is known of the model program: the manifest that fits its nature.

use super::script::{Nature, Sight, Stash};
use crate::harness::{Dialog, Keys, Manifest, Pattern, Proof, Route, Sign};
use std::sync::{Arc, LazyLock};

/// What a program's screen means is told by the model of the program itself; that there is a
/// pattern only says that it can be recognised.
static DRAFT: LazyLock<Pattern> = LazyLock::new(|| pattern("^> (?<draft>.*)$"));
static QUESTION: LazyLock<Pattern> = LazyLock::new(|| pattern("Run command"));
static TOOL: LazyLock<Sign> = LazyLock::new(|| sign(HOOK));
static HOOKS: LazyLock<[Sign; 3]> = LazyLock::new(|| [BEGINS, SUBMITTED, RESTS].map(sign));
/// The event of the hook that takes mail.
pub(super) const HOOK: &str = "PostToolUse";
/// Those of the hooks that tell of it.
pub(super) const BEGINS: &str = "SessionStart";
pub(super) const SUBMITTED: &str = "UserPromptSubmit";
pub(super) const RESTS: &str = "Stop";
static WORKS: LazyLock<Pattern> = LazyLock::new(|| pattern("works"));

fn sign(event: &str) -> Sign {
    event.to_owned().try_into().expect("a sign")
}

fn pattern(text: &str) -> Pattern {
    text.to_owned().try_into().expect("a pattern")
}

/// A key that is pressed within a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stroked {
    Stash,
    Restore,
    Clear,
}

impl Stroked {
    fn keys(self) -> Keys {
        let said = match self {
            Self::Stash => "ctrl+s",
            Self::Restore => "ctrl+r",
            Self::Clear => "ctrl+u",
        };
        said.to_owned().try_into().expect("keys")
    }

    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        [Self::Stash, Self::Restore, Self::Clear]
            .into_iter()
            .find(|key| key.keys().bytes() == bytes)
    }
}

pub(super) fn manifest(nature: Nature) -> Arc<Manifest> {
    let mut manifest = Manifest::generic();
    if nature.has_hooks {
        manifest.routes = vec![Route::Hook, Route::Terminal];
        manifest.hook.context.push(TOOL.clone());
    }
    if nature.proves {
        let [begins, submitted, rests] = HOOKS.clone();
        manifest.proof = vec![Proof::Hook];
        manifest.hook.begins.push(begins);
        manifest.hook.submitted.push(submitted);
        manifest.hook.idle.push(rests);
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
        let draft = &mut manifest.draft;
        draft.pattern = Some(DRAFT.clone());
        draft.clear = nature.puts_back.then(|| Stroked::Clear.keys());
        let (stashes, restores) = match nature.stash {
            Stash::Unknown => (false, false),
            Stash::Fails | Stash::ByItself => (true, false),
            Stash::ByKey => (true, true),
        };
        draft.stash = stashes.then(|| Stroked::Stash.keys());
        draft.restore = restores.then(|| Stroked::Restore.keys());
    }
    Arc::new(manifest)
}
