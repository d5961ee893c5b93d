//! The desk of one session: what is put before its agent, and when.
//!
//! It hears what happens ([`Event`]), says what to do ([`Effect`]), and can say of every message
//! that waits which rule holds it ([`Desk::hold`]). It has no clock and does nothing itself; the
//! journal has the last word on every offer.

mod answer;
mod door;
mod drafting;
mod evidence;
mod handing;
mod hold;
mod looped;
mod offering;
mod phase;
mod proof;
mod question;
mod reminders;
mod submit;
mod terms;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_door;
#[cfg(test)]
mod tests_handing;
#[cfg(test)]
mod tests_hooks;
#[cfg(test)]
mod tests_loop;
#[cfg(test)]
mod tests_screen;

pub use answer::{Answerable, OpenQuestion};
pub use handing::Handing;
pub use looped::LoopWait;
pub use proof::proven_by;
pub use terms::{Decision, Effect, Event, Manner, PausedBy, Reach};

use crate::activity::{Activity, Judgement};
use crate::harness::{Heard, Judge};
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::promotion;
use crate::turn::{self, Input};
use door::Door;
use drafting::Drafting;
use handing::Hands;
use hold::Rule;
use phase::{Cargo, Flight, Lane, Phase};
use proof::{Sent, TranscriptNaming, Unproven};
use question::{Dialog, Shown};
use std::time::Duration;
use submit::Before;

/// How often the interrupt key is pressed.
const KEYS: u8 = 3;
/// How long the journal is left alone after it failed.
pub const REST: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
struct Pause {
    by: PausedBy,
    since: Moment,
}

#[derive(Debug, Clone)]
pub struct Desk {
    manner: Manner,
    judge: Judge,
    heard: Heard,
    dialog: Option<Dialog>,
    /// The question on the screen.
    shown: Option<Shown>,
    /// When the question on the screen last changed, including its wording.
    shown_at: Option<Moment>,
    /// It is only told of there, and still to come.
    announced: bool,
    /// The sign of work that the last look at the screen showed, whatever other signs said.
    shows_work: Option<String>,
    /// The agent went on working after the last interrupt key.
    ignores_interrupts: bool,
    /// The text before the cursor at the last look.
    at_cursor: Option<String>,
    /// The job of another process that has the conversation, and since when it has.
    handed_over: Option<(Moment, String)>,
    /// How many questions there were.
    asked: u64,
    /// One for each reason, the oldest first.
    pauses: Vec<Pause>,
    drafting: Drafting,
    /// A text that is written and waits for its Enter, because the box does not show it alone.
    parked: Option<Flight>,
    /// The keys have told of a draft's end since the keyboard was last asked for again.
    has_cleared: bool,
    /// Since when the terminal holds input that the program has not read.
    unread: Option<Moment>,
    input: Input,
    unproven: Unproven,
    transcript: TranscriptNaming,
    hands: Hands,
    door: Door,
    phase: Phase,
    begun: Moment,
    /// Of a loop: what its next prompt waits for, and since when.
    looped: (Moment, LoopWait),
    /// The beginning of the rest for which the agent was reminded of what it owes.
    reminded: Option<Duration>,
    /// How many reminders came one after another, without a turn of anything else.
    reminders: u32,
    /// Not before this comes the next of them.
    spaced: Option<Duration>,
}

impl Desk {
    /// For a program that was started just now.
    pub fn new(manner: Manner, now: Moment) -> Self {
        Self {
            judge: Judge::new(&manner.harness, now),
            manner,
            heard: Heard::default(),
            dialog: None,
            shown: None,
            shown_at: None,
            announced: false,
            shows_work: None,
            ignores_interrupts: false,
            at_cursor: None,
            handed_over: None,
            unproven: Unproven::default(),
            transcript: TranscriptNaming::default(),
            hands: Hands::default(),
            door: Door::default(),
            asked: 0,
            pauses: Vec::new(),
            drafting: Drafting::default(),
            parked: None,
            has_cleared: false,
            unread: None,
            input: Input::Typed,
            phase: Phase::Free,
            begun: now,
            looped: (now, LoopWait::default()),
            reminded: None,
            reminders: 0,
            spaced: None,
        }
    }

    /// What the agent is doing: an open question counts for more than silence or output.
    pub fn activity(&self) -> Judgement {
        let judged = self.judge.judgement();
        match (&self.dialog, &judged.activity) {
            (Some(dialog), Activity::Starting | Activity::Idle | Activity::Working) => Judgement {
                activity: Activity::Blocked(dialog.what.clone()),
                since: dialog.since,
                evidence: dialog.evidence.clone(),
                heard: dialog.heard,
            },
            (Some(_), Activity::Blocked(_) | Activity::Exited) | (None, _) => judged,
        }
    }

    /// For how long the program has left its input unread, if it has.
    pub fn unread_for(&self, now: Moment) -> Option<Duration> {
        let since = self.unread?;
        Some(now.mono.saturating_sub(since.mono))
    }

    /// How the program takes text now.
    pub fn input(&self) -> Input {
        self.input
    }

    /// Whether a turn is half written, so that keys must wait.
    pub fn is_writing(&self) -> bool {
        match self.phase {
            Phase::Writing(_)
            | Phase::Written { .. }
            | Phase::Looking {
                before: Before::Text | Before::Enter | Before::Retry | Before::Verdict,
                ..
            }
            | Phase::Entering(_)
            | Phase::Confirming { .. } => true,
            Phase::Free
            | Phase::Breaking { .. }
            | Phase::Settling(_)
            | Phase::Recording(_)
            | Phase::Looking {
                before: Before::Key(_),
                ..
            }
            | Phase::Resuming(_)
            | Phase::Resting { .. } => false,
        }
    }

    /// The messages of the turn that is under way, and how often Enter was pressed for it.
    pub fn turn(&self) -> (&[MessageId], u8) {
        let flight = self.phase.flight();
        flight.map_or((&[], 0), |flight| (&flight.ids, flight.enters))
    }

    /// Whether nothing is under way that keys or output could change the course of.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Free) && self.parked.is_none()
    }

    /// From when on output must be told as it comes, on the monotonic clock. What comes before that
    /// need be told only before the next event or decision, and of several the last.
    pub fn heeds_output_from(&self) -> Option<Duration> {
        match self.is_at_rest() {
            true => self.judge.heeds_output_from(),
            false => Some(Duration::ZERO),
        }
    }

    /// Whether somebody holds deliveries back.
    pub fn is_paused(&self) -> bool {
        !self.pauses.is_empty()
    }

    /// Why a line that is no message would not be typed now. It goes as a normal message would,
    /// and waits for nothing.
    pub fn bars_a_nudge(&self) -> Option<String> {
        let reason = match self.rule_of_terminal(Lane::Normal)? {
            Rule::Exited => "the program has exited",
            Rule::HandedOver => hold::HANDED_OVER,
            Rule::Starting => "the program is starting",
            Rule::Paused => "delivery is paused",
            Rule::Draft if self.drafting.left.is_some() => hold::LEFT,
            Rule::Draft => "a person has typed something and not submitted it",
            Rule::Blocked => "the program waits for an answer",
            Rule::Parked => "a message stands in the input box and waits for its Enter",
            Rule::NotReading => "the program has not read what was typed before",
            Rule::Working => "the agent is working",
            Rule::Unrecognised => return Some(self.mismatch_says()),
            Rule::Settling => "its screen is changing",
            Rule::Hook => "it goes to the agent's hook",
            Rule::Loop => "this is a loop, and nothing is typed into it",
        };
        Some(reason.to_owned())
    }

    /// When a tick will change something, on the monotonic clock.
    pub fn next_wakeup(&self) -> Option<Duration> {
        let phase = match &self.phase {
            Phase::Breaking { flight, until, .. } => {
                let is_clearing = flight.has_cleared && self.must_clear();
                self.settles_at().filter(|_| !is_clearing).or(Some(*until))
            }
            Phase::Confirming { until, .. } | Phase::Resting { until, .. } => Some(*until),
            Phase::Written { enter_at, flight } if self.withheld(flight).is_none() => {
                Some(*enter_at)
            }
            // At once: there is nothing to wait for.
            Phase::Free if self.can_resume() => self.parked.as_ref().map(|f| f.since.mono),
            Phase::Written { .. }
            | Phase::Free
            | Phase::Settling(_)
            | Phase::Recording(_)
            | Phase::Writing(_)
            | Phase::Looking { .. }
            | Phase::Resuming(_)
            | Phase::Entering(_) => None,
        };
        phase
            .into_iter()
            .chain(self.judge.next_wakeup())
            .chain(self.drafting.next_wakeup())
            .chain(self.transcript.next_wakeup())
            .chain(self.question_ends_at())
            .chain(self.spaced)
            .chain(self.hands.next_wakeup())
            .chain(self.door.next_wakeup())
            .min()
    }

    /// What is due now, of what is `pending` in delivery order. Changes nothing.
    pub fn next(&self, now: Moment, pending: &[Letter]) -> Decision {
        let until = self
            .next_wakeup()
            .into_iter()
            .chain(promotion::next_time(now, pending))
            .min();
        let Phase::Free = self.phase else {
            return Decision::Wait { until };
        };
        if self.hands.is_calling() {
            return Decision::Wait { until };
        }
        let mut open = self.open(now, pending);
        let Some(first) = open.next() else {
            return Decision::Wait { until };
        };
        let lane = Lane::at(first, now.wall);
        let mut ids = vec![first.message.id];
        let is_pasted = self.input == Input::Pasted || self.goes_by_door(lane);
        if !lane.goes_alone() && is_pasted {
            let size = |letter| {
                turn::size(
                    letter,
                    self.telling(letter),
                    self.input,
                    self.manner.path_bytes,
                )
            };
            let mut bytes = size(first);
            for letter in open {
                bytes += size(letter);
                if Lane::at(letter, now.wall).goes_alone() || bytes > turn::TURN {
                    break;
                }
                ids.push(letter.message.id);
            }
        }
        let is_busy = match self.activity().activity {
            Activity::Working | Activity::Blocked(_) => true,
            Activity::Starting | Activity::Idle | Activity::Exited => false,
        };
        let is_busy = is_busy || self.unread.is_some();
        let interrupt = lane == Lane::Interrupt && is_busy;
        Decision::Offer { ids, interrupt }
    }

    /// Those that no rule holds.
    fn open<'a>(&'a self, now: Moment, pending: &'a [Letter]) -> impl Iterator<Item = &'a Letter> {
        let is_open = move |l: &&Letter| {
            l.is_pending(now.wall)
                && self.rule(Lane::at(l, now.wall)).is_none()
                && self.lapse(now, l).is_none()
                && !self.hands.has(l.message.id)
        };
        pending.iter().filter(is_open)
    }

    /// Begins with what is due now. `pending` must have been looked up after the last offer was
    /// recorded.
    pub fn act(&mut self, now: Moment, pending: &[Letter]) -> Vec<Effect> {
        let Decision::Offer { ids, interrupt } = self.next(now, pending) else {
            return Vec::new();
        };
        let first = pending.iter().find(|l| Some(&l.message.id) == ids.first());
        let lane = first.map_or(Lane::Normal, |letter| Lane::at(letter, now.wall));
        let alone = first.filter(|_| ids.len() == 1);
        let is_due = |letter: &&Letter| ids.contains(&letter.message.id);
        let sent = pending.iter().filter(is_due).map(Sent::of).collect();
        let flight = Flight {
            sent,
            answers: self.dialog.as_ref().map(Dialog::asks),
            keys: alone.and_then(turn::raw).map(str::to_owned),
            ..Flight::new(ids, Cargo::Messages, lane, now)
        };
        if lane == Lane::Interrupt && !interrupt && self.must_clear() {
            return self.clear(now, flight, 0);
        }
        if interrupt {
            return self.press(now, flight, 1);
        }
        self.record(flight)
    }

    /// Something happened.
    pub fn on(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        self.judge.tick(now);
        self.drafting.tick(now);
        self.tick_question(now);
        self.spaced = self.spaced.filter(|at| now.mono < *at);
        let mut effects = self.tick_hands(now);
        effects.extend(self.hear(now, event));
        effects.extend(self.go_on());
        effects.extend(self.give_up_transcript(now));
        let awaits_proof = self.awaits_proof();
        for effect in &mut effects {
            if let Effect::Offered {
                ids, proof_awaited, ..
            } = effect
            {
                if *proof_awaited {
                    self.transcript
                        .record_offer(now, ids, self.manner.has_hooks);
                }
                *proof_awaited &= awaits_proof;
            }
        }
        effects
    }

    fn hear(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        match event {
            Event::Tick => {}
            Event::Output => {
                if self.is_writing() {
                    self.judge.typed(now);
                }
                self.judge.output(now);
            }
            Event::Exited(how) => self.judge.exited(now, &how),
            Event::Dialog(what) => self.see(now, what.as_deref().map(Shown::of)),
            Event::Seen(sighting) => self.seen(now, sighting),
            Event::Hook(report) => return self.hooked(now, &report),
            Event::Handed { number, ids } => return self.handed(now, number, ids),
            Event::NotHanded { number, ids, why } => {
                return self.not_handed(now, number, ids, &why);
            }
            Event::NotGoneOn { why } => self.door.not_gone_on(now, &why),
            Event::Taken(number) => return self.taken(now, number),
            Event::Dropped(number) => return self.dropped(now, number),
            Event::Transcribed(shown) => return self.transcribed(now, &shown),
            Event::Looked(sighting) => return self.looked(now, sighting),
            Event::Paused(by) => {
                if self.pauses.iter().all(|pause| pause.by != by) {
                    self.pauses.push(Pause { by, since: now });
                }
            }
            Event::Released(by) => self.pauses.retain(|pause| pause.by != by),
            Event::Draft => {
                self.judge.typed(now);
                self.drafting.typed(now, self.dialog.is_some());
            }
            Event::DraftGone => {
                self.has_cleared = true;
                self.judge.typed(now);
                self.drafting.gone();
            }
            Event::Unread(true) => self.unread = self.unread.or(Some(now)),
            Event::Unread(false) => {
                if self.unread.take().is_some() {
                    self.phase.reads();
                }
            }
            Event::Loop(wait) => self.loop_waits(now, wait),
            Event::Paste(true) => self.input = Input::Pasted,
            Event::Paste(false) => self.input = Input::Typed,
            Event::Recorded(ids) => return self.recorded(ids),
            Event::Barred => self.let_go(now),
            Event::NotRecorded(why) => self.rest(now, why),
            Event::Wrote(text) => return self.wrote(now, text),
            Event::Entered => return self.entered(now),
            Event::Unpressed => self.unpressed(),
            Event::Resumed => return self.resumed(now),
            Event::WriteFailed(why) => return self.cut_off(now, &why),
        }
        self.proceed(now)
    }

    /// Goes on with what is under way, as far as things allow by now.
    fn proceed(&mut self, now: Moment) -> Vec<Effect> {
        self.ignores_interrupts &= self.activity().activity == Activity::Working;
        let is_over = self.activity().activity == Activity::Exited;
        match &self.phase {
            Phase::Breaking {
                flight,
                keys,
                until,
            } => {
                let (flight, keys, until) = (flight.clone(), *keys, *until);
                self.go_on_breaking(now, flight, keys, until)
            }
            Phase::Settling(flight) => {
                let flight = flight.clone();
                self.go_on_settling(flight)
            }
            Phase::Free if is_over && self.parked.is_some() => {
                self.resume();
                self.cut_off(now, "the program exited before Enter was pressed")
            }
            Phase::Free if self.can_resume() => self.resume(),
            _ if is_over => self.cut_off(now, "the program exited before it was complete"),
            // Release the keyboard so that a person can answer the question.
            Phase::Written { flight, .. }
                if matches!(
                    self.withheld(flight),
                    Some(Rule::Blocked | Rule::HandedOver | Rule::Working)
                ) =>
            {
                let flight = flight.clone();
                self.park(flight)
            }
            Phase::Written { flight, enter_at }
                if *enter_at <= now.mono && self.withheld(flight).is_none() =>
            {
                let flight = flight.clone();
                self.enter(now, flight)
            }
            Phase::Confirming { .. } => self.confirm(now),
            Phase::Resting { until, .. } if *until <= now.mono => {
                self.phase = Phase::Free;
                self.proceed(now)
            }
            Phase::Free
            | Phase::Recording(_)
            | Phase::Writing(_)
            | Phase::Written { .. }
            | Phase::Looking { .. }
            | Phase::Resuming(_)
            | Phase::Entering(_)
            | Phase::Resting { .. } => Vec::new(),
        }
    }
}
