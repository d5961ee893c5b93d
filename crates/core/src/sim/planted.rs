//! Bugs that others have and we must not: each can be planted in the engine, in tests alone, and
//! the simulation must find it.

use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A sender hears "ok" before its message is synced.
    AnsweredUnsynced,
    /// What a turn holds is looked up when it is written: by then it is pending no more.
    TurnLookedUpLate,
    /// The text is typed before the journal knows of the offer.
    WrittenFirst,
    /// "Offered" is recorded when the write begins.
    OfferedTooEarly,
    /// After a write that broke off, the text is typed again.
    TypedAgain,
    /// What may have been shown is shown again as if it were new.
    RepeatUnmarked,
    /// A message that was called back is shown.
    CancelledShown,
    /// Enter is pressed into a question that came up after the text.
    EnterIntoQuestion,
    /// A person's half-typed line holds nothing back.
    DraftIgnored,
    /// A pause holds nothing back.
    PauseIgnored,
    /// Text is typed into a program that is starting.
    TypedWhileStarting,
    /// Idle-first messages go in the order in which they came.
    IdleFirstInOrder,
    /// That the agent has fallen silent wakes nobody.
    SleepsThrough,
    /// An offer that a person was faster than is never given up.
    NeverLetsGo,
    /// A journal that has failed is left alone for hours.
    GivesUpOnDisk,
    /// What waits for an idle agent waits for no reason.
    NoReason,
    /// Enter follows the text without another look at the screen.
    EnterUnlooked,
    /// Where Enter was swallowed, the text is typed again.
    RetypedOnRetry,
    /// The agent is reminded of what it has answered.
    RemindsAnswered,
    /// What an answer is typed into is not compared with what it is for.
    AnswersAnother,
    /// Text is typed though the screen does not show an empty input box.
    WrittenUnrecognised,
    /// Enter is pressed though the box does not hold the text alone.
    EnterUnrecognised,
    /// "Offered" is recorded when a hook is given something, not when it has passed it on.
    HandedTooEarly,
    /// What was offered counts as accepted.
    AcceptedByEnter,
    /// What a hook of another session shows counts as accepted.
    AcceptedElsewhere,
    /// A text that was submitted counts as accepted, though it may be queued.
    AcceptedWhenQueued,
    /// An offer whose proof never came stays offered.
    ProofNotAwaited,
}

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Whether this bug is planted, in this thread.
pub(crate) fn is(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Plants a bug for as long as `run` takes.
pub(super) fn with<T>(bug: Bug, run: impl FnOnce() -> T) -> T {
    PLANTED.set(Some(bug));
    let value = run();
    PLANTED.set(None);
    value
}
