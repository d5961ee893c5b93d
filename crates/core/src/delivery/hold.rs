//! The rules that hold a message back, and what is said of them.

use super::{Before, Desk, Lane, PausedBy, Phase};
use crate::activity::Activity;
use crate::harness::BoxState;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::promotion;
use crate::text;
use crate::why::{self, Hold};
use std::time::Duration;

/// A message that is on its way for so long is held up.
pub(super) const LONG: Duration = Duration::from_secs(1);
/// How much of the input box an explanation quotes.
const QUOTED_CHARS: usize = 60;
pub(super) const HANDED_OVER: &str =
    "the agent's conversation has moved to another process that ph cannot see, so nothing is typed";
pub(super) const LEFT: &str =
    "what was written before stands in the input box, and Enter did not submit it";

/// What can hold a message back on the session's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Exited,
    /// Another process has the conversation.
    HandedOver,
    Starting,
    Paused,
    Draft,
    Blocked,
    /// Another is written and waits for its Enter.
    Parked,
    NotReading,
    Working,
    /// The screen does not show the input box that the harness describes.
    Unrecognised,
    /// The screen shows the box, and has not been the same for long enough.
    Settling,
    /// It goes to the agent's next hook.
    Hook,
    /// It stands in a loop's next prompt.
    Loop,
}

impl Rule {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::HandedOver => "handed-over",
            Self::Starting => "starting",
            Self::Paused => "paused",
            Self::Draft => "draft",
            Self::Blocked => "blocked",
            Self::Parked => "in-flight",
            Self::NotReading => "not-reading",
            Self::Working => "working",
            Self::Unrecognised => "unrecognised",
            Self::Settling => "settling",
            Self::Hook => "hook",
            Self::Loop => "loop",
        }
    }
}

impl Desk {
    /// The rule that holds messages of a lane, if one does.
    pub(super) fn rule(&self, lane: Lane) -> Option<Rule> {
        if self.is_handed_over() {
            return Some(Rule::HandedOver);
        }
        let goes_by_hook = lane == Lane::Normal && self.awaits_hook();
        if goes_by_hook && !self.is_paused_for(lane) {
            return Some(Rule::Hook);
        }
        if self.goes_by_door(lane) {
            return self.rule_of_door(lane);
        }
        self.rule_of_terminal(lane)
    }

    /// The same where it is typed whatever else there is.
    pub(super) fn rule_of_terminal(&self, lane: Lane) -> Option<Rule> {
        if let Some(rule) = self.rule_of_loop() {
            return Some(rule);
        }
        if self.is_handed_over() {
            return Some(Rule::HandedOver);
        }
        // What a terminal takes is little. If it were filled up, a person's Ctrl+C would find no
        // room; an interrupt presses that key first.
        let is_unread = lane != Lane::Interrupt && self.unread.is_some();
        // Only what ends the question that holds that one up may go before it: an answer, or a key
        // that dismisses it.
        let dismisses = self.dialog.as_ref().is_some_and(|dialog| !dialog.stays);
        let is_ahead = match lane {
            Lane::Raw => true,
            Lane::Interrupt => dismisses,
            Lane::Normal | Lane::Idle => false,
        };
        let is_behind = !is_ahead && self.parked.is_some();
        self.rule_of_activity(lane)
            .or(is_behind.then_some(Rule::Parked))
            .or(is_unread.then_some(Rule::NotReading))
    }

    fn rule_of_activity(&self, lane: Lane) -> Option<Rule> {
        let is_starting = self.judge.is_starting();
        match (self.activity().activity, lane) {
            (Activity::Starting, _) => Some(Rule::Starting),
            // A question that comes this early can be answered; nothing else can be done with it.
            (Activity::Blocked(_), Lane::Interrupt | Lane::Normal | Lane::Idle) if is_starting => {
                Some(Rule::Starting)
            }
            (Activity::Working, Lane::Idle) => self.barrier(lane).or(Some(Rule::Working)),
            (Activity::Working, Lane::Normal) if !self.manner.harness.submit.while_working => {
                self.barrier(lane).or(Some(Rule::Working))
            }
            (Activity::Blocked(_), Lane::Interrupt) => self.rule_of_interrupted_dialog(),
            (Activity::Working, Lane::Interrupt) if self.ignores_interrupts => {
                self.barrier(lane).or(Some(Rule::Working))
            }
            (Activity::Working, Lane::Interrupt) => self.barrier(lane).or_else(|| {
                self.rule_of_box(lane)
                    .filter(|rule| !matches!(rule, Rule::Settling | Rule::Working))
            }),
            (Activity::Idle | Activity::Working, Lane::Interrupt | Lane::Normal | Lane::Idle) => {
                self.barrier(lane).or_else(|| self.rule_of_box(lane))
            }
            (Activity::Blocked(_) | Activity::Exited, _) | (_, Lane::Raw) => self.barrier(lane),
        }
    }

    /// Return the rule that holds an interrupt while a dialog is open. The interrupt key may cancel
    /// a dialog that the screen shows. It could also destroy a draft, so a draft holds the
    /// interrupt.
    fn rule_of_interrupted_dialog(&self) -> Option<Rule> {
        let stays = self.dialog.as_ref().is_some_and(|dialog| dialog.stays);
        let is_barred = |rule: &Rule| *rule != Rule::Blocked || stays;
        let barrier = self.barrier(Lane::Interrupt).filter(is_barred);
        let is_in_sight = !self.is_unshown() || self.drafting.state().is_recognised();
        let is_known = !self.has_described_box() || is_in_sight;
        barrier.or((!is_known).then_some(Rule::Unrecognised))
    }

    /// Return the rule by which the input box forbids typing, if any.
    fn rule_of_box(&self, lane: Lane) -> Option<Rule> {
        // A text of ours is in the box.
        if self.parked.is_some() || self.is_writing() {
            return None;
        }
        match self.drafting.state() {
            BoxState::Undescribed if self.has_described_box() => Some(Rule::Unrecognised),
            BoxState::Undescribed => None,
            BoxState::Unrecognised(_) => Some(Rule::Unrecognised),
            BoxState::Holds(_) if lane == Lane::Interrupt && self.must_clear() => None,
            BoxState::Holds(_) => Some(Rule::Draft),
            BoxState::Empty if self.is_at_work() => Some(Rule::Working),
            BoxState::Empty if self.drafting.is_empty_and_steady() => None,
            BoxState::Empty => Some(Rule::Settling),
        }
    }

    /// Return the rule that holds an interrupt key. A changing screen delays only the text that
    /// follows the key.
    pub(super) fn interrupt_barrier(&self) -> Option<Rule> {
        self.rule(Lane::Interrupt)
            .filter(|rule| *rule != Rule::Settling)
    }

    /// Return the rule that forbids typing at any stage of an offer, for interrupts too.
    pub(super) fn barrier(&self, lane: Lane) -> Option<Rule> {
        match (self.activity().activity, lane) {
            (Activity::Exited, _) => Some(Rule::Exited),
            (_, _) if self.is_handed_over() => Some(Rule::HandedOver),
            (_, _) if self.is_paused_for(lane) => Some(Rule::Paused),
            (_, Lane::Interrupt) if self.must_clear() => None,
            (_, _) if self.has_draft() => Some(Rule::Draft),
            // A raw message may be the answer. Before the question is there, its text would stand
            // in the box, and its Enter would say yes.
            (Activity::Blocked(_), Lane::Raw) => self.is_unshown().then_some(Rule::Blocked),
            (Activity::Blocked(_), Lane::Interrupt | Lane::Normal | Lane::Idle) => {
                Some(Rule::Blocked)
            }
            // The question that a raw message was to answer has gone meanwhile.
            (Activity::Starting, _) => Some(Rule::Starting),
            (Activity::Idle | Activity::Working, _) => None,
        }
    }

    /// Return whether anything but output shows that the agent works, where nothing may be typed
    /// meanwhile. A sign on the screen counts even if a better source says "idle".
    pub(super) fn is_at_work(&self) -> bool {
        let is_barred = !self.manner.harness.submit.while_working && self.has_described_box();
        is_barred && (self.shows_work.is_some() || self.judge.surely_works())
    }

    fn is_handed_over(&self) -> bool {
        self.handed_over.is_some() && self.activity().activity != Activity::Exited
    }

    /// A pause that was asked for lets pass what cannot wait; nobody types over a person.
    pub(super) fn is_paused_for(&self, lane: Lane) -> bool {
        self.pauses.iter().any(|pause| match (pause.by, lane) {
            (PausedBy::Viewer | PausedBy::Interactive, _) => true,
            (PausedBy::Request | PausedBy::Checkpoint, Lane::Normal | Lane::Idle) => true,
            (PausedBy::Request | PausedBy::Checkpoint, Lane::Raw | Lane::Interrupt) => false,
        })
    }

    /// What holds a message now, of those that are `pending`; nothing where it is in the turn
    /// that goes next, or beyond being held.
    pub fn hold(&self, now: Moment, letter: &Letter, pending: &[Letter]) -> Option<Hold> {
        if let Some(hold) = why::not_before(letter, now.wall) {
            return Some(hold);
        }
        if let Some(own) = self.in_flight(now, letter) {
            return own;
        }
        if !letter.is_pending(now.wall) {
            return None;
        }
        match self.rule(Lane::at(letter, now.wall)) {
            Some(rule) => {
                let hold = self.past_door(rule, self.describe(now, rule, letter));
                Some(promotion::told(hold, &letter.message, now.wall))
            }
            None => self
                .hands
                .behind_call(why::due(letter))
                .or_else(|| self.behind(now, letter, pending)),
        }
    }

    /// What a message waits for that no rule holds: others, or the journal.
    fn behind(&self, now: Moment, letter: &Letter, pending: &[Letter]) -> Option<Hold> {
        let (rule, since, reason, evidence, release) = match &self.phase {
            Phase::Breaking { flight, .. }
            | Phase::Settling(flight)
            | Phase::Recording(flight)
            | Phase::Writing(flight)
            | Phase::Written { flight, .. }
            | Phase::Looking { flight, .. }
            | Phase::Resuming(flight)
            | Phase::Entering(flight)
            | Phase::Confirming { flight, .. } => {
                let first = flight.ids.first().map(|id| id.id8()).unwrap_or_default();
                (
                    "in-flight",
                    flight.since,
                    "another message is on its way into the terminal",
                    format!("{first} is being offered"),
                    "that one is written",
                )
            }
            Phase::Resting { since, why, .. } => (
                "storage",
                *since,
                "its offer could not be recorded, and is tried again",
                text::one_line(why, 200),
                "the journal can be written again",
            ),
            Phase::Free => (
                "queue",
                self.activity().since,
                "others are to be delivered before it",
                self.queue_before(now, letter, pending)?,
                "its turn comes",
            ),
        };
        Some(Hold {
            rule,
            since: since.wall.max(why::due(letter)),
            reason: reason.to_owned(),
            evidence,
            release: release.to_owned(),
        })
    }

    /// How many go before it; none where it is in the turn that goes next.
    fn queue_before(&self, now: Moment, letter: &Letter, pending: &[Letter]) -> Option<String> {
        let id = letter.message.id;
        let is_next = match self.next(now, pending) {
            super::Decision::Offer { ids, .. } => ids.contains(&id),
            super::Decision::Wait { .. } => true,
        };
        if is_next {
            return None;
        }
        let place = self.open(now, pending).position(|l| l.message.id == id);
        let before = place.map_or("many".to_owned(), |place| place.to_string());
        Some(format!("{before} stand before it in delivery order"))
    }

    /// What is said of a message that is itself on its way.
    fn in_flight(&self, now: Moment, letter: &Letter) -> Option<Option<Hold>> {
        let is_in = |flight: &super::Flight| flight.ids.contains(&letter.message.id);
        if let Some(parked) = self.parked.as_ref().filter(|parked| is_in(parked)) {
            return Some(Some(match self.withheld(parked) {
                Some(rule) => self.describe(now, rule, letter),
                None => self.awaits_box(parked),
            }));
        }
        if let Some(told) = self.hands.told(now, letter.message.id) {
            return Some(told);
        }
        match &self.phase {
            Phase::Breaking { flight, keys, .. } if is_in(flight) => {
                Some(Some(self.interrupting(flight, *keys)))
            }
            Phase::Settling(flight) if is_in(flight) => {
                Some(Some(self.describe(now, Rule::Settling, letter)))
            }
            // Nothing of it is typed yet.
            Phase::Looking {
                flight,
                before: Before::Key(keys),
            } if is_in(flight) => Some(Some(self.interrupting(flight, keys.saturating_sub(1)))),
            Phase::Written { flight, .. } if is_in(flight) => {
                let withheld = self.withheld(flight);
                Some(withheld.map(|rule| self.describe(now, rule, letter)))
            }
            Phase::Recording(flight) if is_in(flight) => Some(slow(
                now,
                flight,
                "what was typed before it has not been written, or its offer not been recorded",
            )),
            Phase::Writing(flight)
            | Phase::Looking { flight, .. }
            | Phase::Resuming(flight)
            | Phase::Entering(flight)
                if is_in(flight) =>
            {
                Some(slow(now, flight, "the program has not taken all of it"))
            }
            Phase::Confirming { flight, .. } if is_in(flight) => {
                let still = "Enter was pressed, and the input box still holds it";
                Some(slow(now, flight, still))
            }
            Phase::Free
            | Phase::Breaking { .. }
            | Phase::Settling(_)
            | Phase::Recording(_)
            | Phase::Writing(_)
            | Phase::Written { .. }
            | Phase::Looking { .. }
            | Phase::Resuming(_)
            | Phase::Entering(_)
            | Phase::Confirming { .. }
            | Phase::Resting { .. } => None,
        }
    }

    /// What is said of one that has interrupted the agent so often.
    fn interrupting(&self, flight: &super::Flight, times: u8) -> Hold {
        let (told, keys) = (flight.aborts, times.saturating_sub(flight.aborts));
        let told =
            (told > 0).then(|| format!("its own HTTP door was told {told} time(s) to stop it"));
        let pressed = (keys > 0 || told.is_none())
            .then(|| format!("the interrupt key was pressed {keys} time(s)"));
        let done: Vec<_> = told.into_iter().chain(pressed).collect();
        let wait = self.manner.harness.interrupt.wait.get().as_secs_f32();
        Hold {
            rule: "interrupting",
            since: flight.since.wall,
            reason: "it interrupts what the agent is doing, and waits for that to stop".to_owned(),
            evidence: done.join("; "),
            release: format!("the agent is idle, or has not stopped after three times {wait} s"),
        }
    }

    /// Explain why a typed message waits for its Enter.
    fn awaits_box(&self, parked: &super::Flight) -> Hold {
        let evidence = match self.drafting.state() {
            BoxState::Holds(held) => {
                let held = text::one_line(&held.text, QUOTED_CHARS);
                format!("the input box should hold the message alone, and holds \"{held}\"")
            }
            BoxState::Unrecognised(mismatch) => mismatch.to_string(),
            BoxState::Empty | BoxState::Undescribed => "the screen is about to be read".to_owned(),
        };
        Hold {
            rule: Rule::Parked.name(),
            since: parked.since.wall,
            reason: "it is written and waits for its Enter".to_owned(),
            evidence,
            release: "the input box holds it and nothing else, or a person submits or clears it"
                .to_owned(),
        }
    }

    /// Why the screen is not typed into, in one sentence.
    pub(super) fn mismatch_says(&self) -> String {
        match self.drafting.state() {
            BoxState::Unrecognised(mismatch) => mismatch.to_string(),
            BoxState::Undescribed | BoxState::Empty | BoxState::Holds(_) => {
                "the screen has not shown the input box yet".to_owned()
            }
        }
    }

    fn describe(&self, now: Moment, rule: Rule, letter: &Letter) -> Hold {
        let judged = self.activity();
        let told = judged.told(now);
        let since = match rule {
            Rule::Exited | Rule::Starting | Rule::Blocked | Rule::Working | Rule::Hook => {
                judged.since
            }
            Rule::HandedOver => self
                .handed_over
                .as_ref()
                .map_or(judged.since, |(at, _)| *at),
            Rule::Paused => self.pauses.first().map_or(judged.since, |p| p.since),
            Rule::Draft => self.drafting.since().unwrap_or(judged.since),
            Rule::Parked => self.parked.as_ref().map_or(judged.since, |p| p.since),
            Rule::NotReading => self.unread.unwrap_or(judged.since),
            Rule::Unrecognised | Rule::Settling => {
                self.drafting.shown_since().unwrap_or(judged.since)
            }
            Rule::Loop => self.looped.0,
        };
        let set_aside = match Lane::of(letter) {
            Lane::Interrupt => "; an interrupt cannot set that aside",
            Lane::Raw | Lane::Normal | Lane::Idle => "",
        };
        let (reason, evidence, release) = match rule {
            Rule::Exited => (
                "the program has exited".to_owned(),
                told,
                format!("a session of {} is started again", letter.message.to),
            ),
            Rule::HandedOver => self.handover_says(letter),
            Rule::Starting => self.starting_says(told, letter),
            Rule::Paused => (
                format!("delivery is paused{set_aside}"),
                self.pauses_say(|by| by.evidence().to_owned(), "; "),
                self.pauses_say(|by| by.release(&letter.message.to), ", and "),
            ),
            Rule::Draft => self.draft_says(set_aside),
            Rule::Parked => (
                "another message is in the input box and waits for its Enter".to_owned(),
                "a question opened, or the screen changed, before Enter was pressed".to_owned(),
                "that message is submitted, or cleared".to_owned(),
            ),
            Rule::Blocked => (self.question(letter), told, self.answers_say(letter)),
            Rule::NotReading => (
                "the program has not read what was typed before".to_owned(),
                "the terminal holds input that nobody has read".to_owned(),
                "the program reads its input, or ends".to_owned(),
            ),
            Rule::Hook => (
                "the agent is working, and its next hook takes it in".to_owned(),
                told,
                "the agent calls its next hook, or becomes idle".to_owned(),
            ),
            Rule::Unrecognised => (
                "the screen does not show the agent's input box, so nothing is typed".to_owned(),
                self.mismatch_says(),
                format!(
                    "the input box is back; 'ph attach {}' shows the screen",
                    letter.message.to
                ),
            ),
            Rule::Settling => (
                "the screen is changing, so nothing is typed".to_owned(),
                "the input box is empty, but the screen changed a moment ago".to_owned(),
                "the screen stays unchanged (100 ms; up to 3 s if it keeps changing)".to_owned(),
            ),
            Rule::Loop => self.loop_says(now, letter),
            Rule::Working => {
                let is_working = judged.activity == Activity::Working;
                let sign = self.shows_work.clone().filter(|_| !is_working);
                let futile = match self.ignores_interrupts {
                    true => ", and the interrupt key did not stop it",
                    false => "",
                };
                (
                    format!("the agent is working{futile}, so nothing is typed"),
                    sign.unwrap_or(told),
                    "the agent is idle".to_owned(),
                )
            }
        };
        Hold {
            rule: rule.name(),
            since: since.wall.max(why::due(letter)),
            reason,
            evidence,
            release,
        }
    }

    fn handover_says(&self, letter: &Letter) -> (String, String, String) {
        let job = self.handed_over.as_ref().map_or("", |(_, job)| job);
        (
            HANDED_OVER.to_owned(),
            format!("the program's own record names {job}"),
            format!(
                "the program takes its conversation back; 'ph restart {}' starts a new one",
                letter.message.to
            ),
        )
    }

    /// What ends a question. One that only a hook has told of ends by a hook alone, and after a no
    /// many programs call none.
    fn answers_say(&self, letter: &Letter) -> String {
        let is_heard = self.dialog.as_ref().is_some_and(|d| d.heard.is_some());
        match Lane::of(letter) {
            Lane::Raw => "the question is on the screen, or is answered".to_owned(),
            Lane::Interrupt | Lane::Normal | Lane::Idle if is_heard && !self.knows_dialogs() => {
                format!(
                    "a hook says that it goes on; after a no it may call none before its next \
                     prompt, which a person can submit ('ph attach {}')",
                    letter.message.to
                )
            }
            Lane::Interrupt | Lane::Normal | Lane::Idle => "the question is answered".to_owned(),
        }
    }

    /// What is said of a start; a question that comes this early is what it waits for.
    fn starting_says(&self, evidence: String, letter: &Letter) -> (String, String, String) {
        let ready = self.judge.release();
        let Some(dialog) = &self.dialog else {
            let lost = "the program is starting, and what is written to it now may be lost";
            return (lost.to_owned(), evidence, ready);
        };
        let what = text::one_line(&dialog.what, 80);
        (
            format!("the program is starting, and waits for an answer ({what})"),
            evidence,
            format!(
                "the question is answered ('ph answer {} TEXT'), and then {ready}",
                letter.message.to
            ),
        )
    }

    /// Explain that a draft holds a message, without quoting the draft: its text is private.
    fn draft_says(&self, set_aside: &str) -> (String, String, String) {
        let release = "it is submitted or cleared".to_owned();
        if self.drafting.left.is_some() {
            return (
                LEFT.to_owned(),
                "the screen shows it there".to_owned(),
                "a person submits or clears it".to_owned(),
            );
        }
        let evidence = if self.drafting.is_typed() {
            "keys were pressed, and no Enter since"
        } else {
            "the screen shows text in the input box"
        };
        (
            format!("a person has typed something and not submitted it{set_aside}"),
            evidence.to_owned(),
            release,
        )
    }

    /// What holds everything back, where somebody does.
    pub fn paused_because(&self) -> Option<String> {
        let said = self.pauses_say(|by| by.evidence().to_owned(), "; ");
        self.is_paused().then_some(said)
    }

    fn pauses_say(&self, word: impl Fn(PausedBy) -> String, between: &str) -> String {
        let mut words: Vec<_> = self.pauses.iter().map(|pause| word(pause.by)).collect();
        words.dedup();
        words.join(between)
    }

    fn question(&self, letter: &Letter) -> String {
        let what = self.dialog.as_ref().map_or("", |dialog| &dialog.what);
        let what = text::one_line(what, 80);
        let stays = match Lane::of(letter) {
            Lane::Interrupt => ", and the interrupt key did not dismiss it",
            Lane::Raw => ", and does not show its question yet",
            Lane::Normal | Lane::Idle => "",
        };
        format!("the program waits for an answer ({what}){stays}")
    }
}

/// What is said of a message that is on its way, where that takes longer than it should.
fn slow(now: Moment, flight: &super::Flight, reason: &str) -> Option<Hold> {
    let waited = now.mono.saturating_sub(flight.since.mono);
    (waited >= LONG).then(|| Hold {
        rule: "not-reading",
        since: flight.since.wall,
        reason: format!("it is on its way into the terminal, and {reason}"),
        evidence: format!("its way began {} s ago", waited.as_secs()),
        release: "the program reads its input, or ends".to_owned(),
    })
}
