//! The delivery of one session: which messages its agent is given, by which route, and when.
//!
//! It handles events ([`DeliveryEvent`]), returns effects ([`Effect`]), and explains what holds a
//! message ([`Delivery::hold`]). It has no clock and performs no effect itself. The journal decides
//! whether an offer is recorded.

mod agent;
mod config;
mod events;
mod explain;
mod hook;
mod http;
mod input_box;
mod loop_prompt;
mod proof;
mod question;
mod reminders;
mod rules;
mod screen;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;

pub use config::{DeliveryConfig, PausedBy, Reach};
pub use events::{Decision, DeliveryEvent, Effect};
pub use hook::HookOffer;
pub use loop_prompt::LoopWait;
pub use proof::proven_by;
pub use question::ShownAsk;
pub use terminal::{AnswerEnd, Answerable, OpenQuestion};

use crate::activity::{Activity, Judgement};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::promotion;
use crate::turn::{self, InputMode};
use agent::AgentState;
use hook::HookRoute;
use http::HttpRoute;
use input_box::InputBox;
use loop_prompt::LoopPrompt;
use proof::{MessageHeader, Proofs};
use question::{OpenDialog, ShownQuestion};
use reminders::Reminders;
use rules::{Pause, Rule};
use std::time::Duration;
use terminal::{Answer, Lane, OutgoingTurn, TerminalRoute, TurnKind};

/// Time between a failed write to the journal and the next one.
pub const JOURNAL_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Decides which route carries which messages, and when.
#[derive(Debug, Clone)]
pub struct Delivery {
    config: DeliveryConfig,
    agent: AgentState,
    input_box: InputBox,
    terminal: TerminalRoute,
    hook: HookRoute,
    http: HttpRoute,
    loop_prompt: LoopPrompt,
    /// One for each reason, the oldest first.
    pauses: Vec<Pause>,
    proof: Proofs,
    reminders: Reminders,
    /// Number of offers that bypass the terminal.
    offers: u64,
    /// The end of the last answer, until the driver takes it.
    answer_end: Option<AnswerEnd>,
}

impl Delivery {
    /// Create the delivery of a program that was started just now.
    pub fn new(config: DeliveryConfig, now: Moment) -> Self {
        let harness = || config.harness.clone();
        Self {
            agent: AgentState::new(harness(), now),
            input_box: InputBox::new(harness()),
            terminal: TerminalRoute::default(),
            hook: HookRoute::default(),
            http: HttpRoute::default(),
            loop_prompt: LoopPrompt::new(now),
            pauses: Vec::new(),
            proof: Proofs::default(),
            reminders: Reminders::default(),
            offers: 0,
            answer_end: None,
            config,
        }
    }

    /// Return the activity of the agent. An open question counts for more than silence or output.
    pub fn activity(&self) -> Judgement {
        self.agent.judgement()
    }

    /// Return how long the program has left its input unread, if it has.
    pub fn unread_for(&self, now: Moment) -> Option<Duration> {
        let since = self.input_box.unread?;
        Some(now.mono.saturating_sub(since.mono))
    }

    /// Return how the program takes text now.
    pub fn input(&self) -> InputMode {
        self.input_box.mode
    }

    /// Whether a turn is partly written, so that a person's keys must wait.
    pub fn is_writing(&self) -> bool {
        self.terminal.is_writing()
    }

    /// Return the messages of the turn in flight, and how often Enter was pressed for the turn.
    pub fn turn(&self) -> (&[MessageId], u8) {
        let enters = self.terminal.typed().map_or(0, |typed| typed.enters);
        let turn = self.terminal.turn();
        (turn.map_or(&[], |turn| &turn.ids), enters)
    }

    /// Whether a message is on its way to a hook or to the agent's API.
    pub fn is_offered_directly(&self, id: MessageId) -> bool {
        self.hook.has(id) || self.http.has(id)
    }

    /// Whether any message is on its way to a hook or to the agent's API.
    pub fn has_direct_offers(&self) -> bool {
        self.hook.is_offering() || self.http.is_calling()
    }

    /// Return the number of a new offer that bypasses the terminal.
    fn number_offer(&mut self) -> u64 {
        self.offers += 1;
        self.offers
    }

    /// Whether no turn is in flight that keys or output could affect.
    pub fn is_at_rest(&self) -> bool {
        self.terminal.is_free() && !self.terminal.is_awaiting_enter()
    }

    /// Return the monotonic time from which output must be reported at once. Of earlier output, only
    /// the last needs a report, before the next event or decision.
    pub fn output_matters_from(&self) -> Option<Duration> {
        match self.is_at_rest() {
            true => self.agent.judge.heeds_output_from(),
            false => Some(Duration::ZERO),
        }
    }

    /// Whether delivery is paused.
    pub fn is_paused(&self) -> bool {
        !self.pauses.is_empty()
    }

    /// Return why a nudge would not be typed now. The rules of a normal message apply.
    pub fn nudge_refusal(&self) -> Option<String> {
        Some(match self.terminal_rule(Lane::Normal)? {
            Rule::Unrecognised => self.input_box.mismatch_text(),
            rule => self.reason(rule).to_owned(),
        })
    }

    /// Return the monotonic time of the next tick that has an effect.
    pub fn next_wakeup(&self) -> Option<Duration> {
        [
            self.terminal_wakeup(),
            self.agent.judge.next_wakeup(),
            self.input_box.next_wakeup(),
            self.proof.transcript.next_wakeup(),
            self.agent
                .question_ends_at(self.input_box.recognised_since()),
            self.reminders.next_wakeup(),
            self.hook.next_wakeup(),
            self.http.next_wakeup(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Return what is due now. `pending` is in delivery order.
    pub fn next(&self, now: Moment, pending: &[MessageState]) -> Decision {
        let until = self
            .next_wakeup()
            .into_iter()
            .chain(promotion::next_time(now, pending))
            .min();
        if !self.terminal.is_free() || self.http.is_calling() {
            return Decision::Wait { until };
        }
        let mut open = self.open(now, pending);
        let Some(first) = open.next() else {
            return Decision::Wait { until };
        };
        let lane = Lane::at(first, now.wall);
        let mut ids = vec![first.message.id];
        let is_pasted = self.input() == InputMode::Pasted || self.goes_by_http(lane);
        if !lane.goes_alone() && is_pasted {
            let size = |mail| {
                let placement = self.placement(mail);
                turn::size(mail, placement, self.input(), self.config.path_bytes)
            };
            let mut bytes = size(first);
            for mail in open {
                bytes += size(mail);
                if Lane::at(mail, now.wall).goes_alone() || bytes > turn::TURN {
                    break;
                }
                ids.push(mail.message.id);
            }
        }
        let is_busy = match self.agent.activity() {
            Activity::Working | Activity::Blocked(_) => true,
            Activity::Starting | Activity::Idle | Activity::Exited => false,
        };
        let is_busy = is_busy || self.input_box.unread.is_some();
        let interrupt = lane == Lane::Interrupt && is_busy;
        Decision::Offer { ids, interrupt }
    }

    /// Return the messages that no rule holds.
    fn open<'a>(
        &'a self,
        now: Moment,
        pending: &'a [MessageState],
    ) -> impl Iterator<Item = &'a MessageState> {
        let is_open = move |mail: &&MessageState| {
            mail.is_pending(now.wall)
                && self.rule(Lane::at(mail, now.wall)).is_none()
                && self.lapse(now, mail).is_none()
                && !self.is_offered_directly(mail.message.id)
        };
        pending.iter().filter(is_open)
    }

    /// Begin what is due now. `pending` must have been read after the last offer was recorded.
    pub fn act(&mut self, now: Moment, pending: &[MessageState]) -> Vec<Effect> {
        let Decision::Offer { ids, interrupt } = self.next(now, pending) else {
            return Vec::new();
        };
        let first = pending
            .iter()
            .find(|mail| Some(&mail.message.id) == ids.first());
        let lane = first.map_or(Lane::Normal, |mail| Lane::at(mail, now.wall));
        let alone = first.filter(|_| ids.len() == 1);
        let is_due = |mail: &&MessageState| ids.contains(&mail.message.id);
        let headers = pending
            .iter()
            .filter(is_due)
            .map(MessageHeader::of)
            .collect();
        let turn = OutgoingTurn {
            headers,
            question: self.agent.questions.open.as_ref().map(OpenDialog::question),
            answer: (lane == Lane::Raw).then(|| Answer::new(alone)),
            ..OutgoingTurn::new(ids, TurnKind::Messages, lane, now)
        };
        if lane == Lane::Interrupt && !interrupt && self.must_clear() {
            return self.clear(now, turn, 0);
        }
        if interrupt {
            return self.interrupt(now, turn, 1);
        }
        self.record(turn)
    }

    /// Handle an event, and return the effects.
    pub fn on(&mut self, now: Moment, event: DeliveryEvent) -> Vec<Effect> {
        self.agent.judge.tick(now);
        self.input_box.tick(now);
        self.agent
            .tick_question(now, self.input_box.recognised_since());
        self.reminders.tick(now);
        let mut effects: Vec<_> = self.http.tick(now).into_iter().collect();
        effects.extend(self.hook.tick(now));
        effects.extend(self.handle(now, event));
        effects.extend(self.give_up_transcript(now));
        let awaits_proof = self.awaits_proof();
        for effect in &mut effects {
            if let Effect::Offered {
                ids, proof_awaited, ..
            } = effect
            {
                if *proof_awaited {
                    let transcript = &mut self.proof.transcript;
                    transcript.record_offer(now, ids, self.config.has_hooks);
                }
                *proof_awaited &= awaits_proof;
            }
        }
        effects
    }

    fn handle(&mut self, now: Moment, event: DeliveryEvent) -> Vec<Effect> {
        match event {
            DeliveryEvent::Tick => {}
            DeliveryEvent::Output => {
                if self.is_writing() {
                    self.agent.judge.typed(now);
                }
                self.agent.judge.output(now);
            }
            DeliveryEvent::Exited(how) => self.agent.judge.exited(now, &how),
            DeliveryEvent::DialogChanged(what) => {
                let shown = what.as_deref().map(ShownQuestion::of);
                let answer = self.terminal.answer();
                self.agent.note_question(now, shown, answer);
            }
            DeliveryEvent::ScreenChanged(sighting) => self.screen_changed(now, sighting),
            DeliveryEvent::HookCalled(report) => return self.hook_called(now, &report),
            DeliveryEvent::DirectRecorded { number, ids } => {
                return self.direct_recorded(now, number, ids);
            }
            DeliveryEvent::DirectRefused { number, ids, why } => {
                return self.direct_refused(now, number, ids, &why);
            }
            DeliveryEvent::ContinueFailed { why } => self.http.not_continued(now, &why),
            DeliveryEvent::DirectConfirmed(number) => {
                let passed_on = self.passed_on(number);
                let offered = passed_on.or_else(|| self.api_accepted(now, number));
                return offered.into_iter().collect();
            }
            DeliveryEvent::DirectUnconfirmed(number) => {
                let gone = self.hook.gone(number);
                let dropped = gone.or_else(|| self.http.dropped(now, number));
                return dropped.into_iter().collect();
            }
            DeliveryEvent::TranscriptRead(shown) => return self.transcript_read(now, &shown),
            DeliveryEvent::Looked(sighting) => return self.looked(now, sighting),
            DeliveryEvent::Paused(by) => {
                if self.pauses.iter().all(|pause| pause.by != by) {
                    self.pauses.push(Pause { by, since: now });
                }
            }
            DeliveryEvent::Unpaused(by) => self.pauses.retain(|pause| pause.by != by),
            DeliveryEvent::DraftTyped => {
                self.agent.judge.typed(now);
                self.input_box.note_keys(now, self.agent.is_asking());
            }
            DeliveryEvent::DraftEnded => {
                self.agent.judge.typed(now);
                self.input_box.end_draft();
            }
            DeliveryEvent::UnreadInput(is_unread) => {
                if self.input_box.set_unread(now, is_unread) {
                    self.terminal.note_reading();
                }
            }
            DeliveryEvent::LoopChanged(wait) => self.loop_prompt.set_wait(now, wait),
            DeliveryEvent::PasteMode(true) => self.input_box.mode = InputMode::Pasted,
            DeliveryEvent::PasteMode(false) => self.input_box.mode = InputMode::Typed,
            DeliveryEvent::Recorded(ids) => return self.recorded(ids),
            DeliveryEvent::KeyboardRefused => self.refused(now),
            DeliveryEvent::NotRecorded(why) => self.back_off(now, why),
            DeliveryEvent::Wrote(text) => return self.wrote(now, text),
            DeliveryEvent::Entered => return self.entered(now),
            DeliveryEvent::KeysDropped => self.keys_dropped(),
            DeliveryEvent::Resumed => return self.resumed(now),
            DeliveryEvent::WriteFailed(why) => return self.cut_off(now, &why),
        }
        self.proceed(now)
    }

    /// Continue an offer to the hook or the API that the journal has recorded.
    fn direct_recorded(&mut self, now: Moment, number: u64, ids: Vec<MessageId>) -> Vec<Effect> {
        if let Some(offer) = self.hook.offer(number) {
            let rule = self.rule_of(Route::Hook, offer.lane);
            let given = self.hook.recorded(now, number, &ids, rule);
            return given.unwrap_or_default();
        }
        let lane = self.http.offer().map_or(Lane::Normal, |offer| offer.lane);
        let rule = self.rule_of(Route::Http, lane);
        let is_mid_turn = self.agent.activity() == Activity::Working;
        let put = self.http.recorded(now, number, ids, rule, is_mid_turn);
        put.into_iter().collect()
    }

    /// End an offer of which the hook or the API was given nothing. Withdraw the recorded messages.
    fn direct_refused(
        &mut self,
        now: Moment,
        number: u64,
        ids: Vec<MessageId>,
        why: &str,
    ) -> Vec<Effect> {
        if self.hook.take(number).is_none() {
            let refused = self.http.refused(now, number, ids, why);
            return refused.into_iter().collect();
        }
        match ids.is_empty() {
            true => Vec::new(),
            false => vec![hook::withdrawn(ids, why)],
        }
    }
}
