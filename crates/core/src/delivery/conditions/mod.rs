//! Everything but the mail that decides whether the agent can be given mail: the agent's state, the
//! input box, the pauses, and the proofs that are awaited.
//!
//! The routes decide by it, and note in it what they do to the program. It carries nothing itself.

pub(crate) mod agent;
pub(crate) mod input_box;
pub(crate) mod proof;
pub(crate) mod question;

use super::config::Pause;
use super::reminders::Reminders;
use super::routes::loop_prompt::LoopPrompt;
use crate::delivery::{DeliveryConfig, Lane, Rule};
use crate::driver::{Action, CommitId, Input, JournalOperation, TurnMessage};
use crate::harness::{BoxState, Route, Sighting};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
use crate::turn::{self, InputMode, TextPlacement};
use agent::AgentState;
use input_box::InputBox;
use proof::Proofs;
use question::ShownQuestion;
use std::time::Duration;

/// Time between a failed write to the journal and the next one.
pub const JOURNAL_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The journal could not record an offer. Nothing is offered until this time.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    pub(crate) since: Moment,
    pub(crate) until: Duration,
    pub(crate) why: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    /// The time of the input or tick that is being handled.
    pub(crate) now: Moment,
    pub(crate) config: DeliveryConfig,
    pub(crate) agent: AgentState,
    pub(crate) input_box: InputBox,
    /// One for each reason, the oldest first.
    pub(crate) pauses: Vec<Pause>,
    pub(crate) proof: Proofs,
    pub(crate) reminders: Reminders,
    pub(crate) loop_prompt: LoopPrompt,
    pub(crate) backoff: Option<Backoff>,
    /// Number of offers and commits so far.
    numbers: u64,
}

impl Conditions {
    pub(crate) fn new(config: DeliveryConfig, now: Moment) -> Self {
        Self {
            now,
            agent: AgentState::new(config.harness.clone(), now),
            input_box: InputBox::new(config.harness.clone()),
            pauses: Vec::new(),
            proof: Proofs::default(),
            reminders: Reminders::default(),
            loop_prompt: LoopPrompt::new(now),
            backoff: None,
            numbers: 0,
            config,
        }
    }

    pub(crate) fn next_wakeup(&self) -> Option<Duration> {
        let box_since = self.input_box.recognised_since();
        [
            self.agent.judge.next_wakeup(),
            self.agent.question_ends_at(box_since),
            self.input_box.next_wakeup(),
            self.proof.transcript.next_wakeup(),
            self.reminders.next_wakeup(),
            self.backoff.as_ref().map(|backoff| backoff.until),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Note that it is `now`.
    pub(crate) fn tick(&mut self, now: Moment) {
        self.now = now;
        self.agent.judge.tick(now);
        self.input_box.tick(now);
        let box_since = self.input_box.recognised_since();
        self.agent.tick_question(now, box_since);
        self.reminders.tick(now);
        self.backoff.take_if(|backoff| backoff.until <= now.mono);
    }

    /// Note what an input says about the program, whatever the route. `answer` is the answer that is
    /// being typed.
    pub(crate) fn note(&mut self, input: &Input, is_writing: bool, answer: Option<&str>) {
        let (now, judge) = (self.now, &mut self.agent.judge);
        match input {
            Input::OutputSeen => {
                if is_writing {
                    judge.typed(now);
                }
                judge.output(now);
            }
            Input::Exited(how) => judge.exited(now, how),
            Input::DialogChanged(what) => {
                let shown = what.as_deref().map(ShownQuestion::of);
                self.agent.note_question(now, shown, answer);
            }
            Input::ScreenChanged(sighting) | Input::Looked { sighting, .. } => {
                self.look(sighting.clone(), answer);
            }
            Input::KeysTyped { is_draft } => {
                judge.typed(now);
                let is_asked = self.agent.is_asking();
                match is_draft {
                    true => self.input_box.note_keys(now, is_asked),
                    false => self.input_box.end_draft(),
                }
            }
            Input::InputChecked { is_unread } => self.input_box.set_unread(now, *is_unread),
            Input::PasteMode(is_requested) => {
                let is_used = self.config.harness.submit.paste.applies(*is_requested);
                self.input_box.mode = match is_used {
                    true => InputMode::Pasted,
                    false => InputMode::Typed,
                };
            }
            Input::Paused(by) if self.pauses.iter().all(|pause| pause.by != *by) => {
                let (by, since) = (*by, now);
                self.pauses.push(Pause { by, since });
            }
            Input::Unpaused(by) => self.pauses.retain(|pause| pause.by != *by),
            Input::LoopChanged(wait) => self.loop_prompt.set_wait(now, wait.clone()),
            _ => {}
        }
    }

    /// Update the agent and the input box from a look at the screen.
    fn look(&mut self, mut sighting: Sighting, answer: Option<&str>) {
        let now = self.now;
        self.agent.look(now, &sighting);
        let question = sighting.question.take();
        let view = sighting.dialog_view.take();
        let shown = sighting.dialog.take().map(|what| ShownQuestion {
            text: question.unwrap_or_else(|| what.clone()),
            what,
            view,
        });
        let is_announced = sighting.announced;
        self.agent.note_look(now, shown, is_announced, answer);
        self.input_box.look(now, sighting);
    }

    /// Whether the harness can read the screen of this program.
    pub(crate) fn reads_screen(&self) -> bool {
        self.config.harness.looks()
    }

    /// Return the time between a text and its Enter.
    pub(crate) fn enter_after(&self) -> Duration {
        self.config.harness.submit.delay.get()
    }

    /// Return how long the program has left its input unread, if it has.
    pub(crate) fn unread_for(&self, now: Moment) -> Option<Duration> {
        let since = self.input_box.unread?;
        Some(now.mono.saturating_sub(since.mono))
    }

    /// Return where the text of a message goes. On the screen, the text must not look like a
    /// question of the program, which would hold this message and all later ones for ever.
    fn placement(&self, mail: &MessageState) -> TextPlacement {
        let would_ask = |text: &str| self.config.harness.would_ask(text);
        let asks = turn::words(mail).is_some_and(|words| {
            let head = turn::beginning(mail, self.input_box.mode);
            would_ask(&words) || would_ask(&head)
        });
        match asks {
            true => TextPlacement::File,
            false => TextPlacement::Inline,
        }
    }

    /// Return the size of a message in a turn.
    pub(crate) fn size(&self, mail: &MessageState, mode: InputMode) -> usize {
        turn::size(mail, self.placement(mail), mode, self.config.path_bytes)
    }

    pub(crate) fn turn_messages(&self, messages: &[MessageState]) -> Vec<TurnMessage> {
        let messages = messages.iter().map(|state| TurnMessage {
            placement: self.placement(state),
            state: state.clone(),
        });
        messages.collect()
    }

    /// Return why a line is not typed now. The rules of a normal message apply.
    pub(crate) fn line_refusal(&self) -> Option<String> {
        Some(match self.terminal_rule(Lane::Normal)? {
            Rule::Unrecognised => self.input_box.mismatch_text(),
            rule => self.reason(rule).to_owned(),
        })
    }

    /// Return why Enter may not follow a line that is typed.
    pub(crate) fn enter_refusal(&self, line: &str) -> Option<String> {
        if let Some(rule) = self.enter_rule(Lane::Normal) {
            let open = self.agent.questions.open.as_ref();
            let opened = open.filter(|_| rule == Rule::Blocked);
            let opened = opened.map(|dialog| format!("a question opened ({})", dialog.what));
            return Some(opened.unwrap_or_else(|| self.reason(rule).to_owned()));
        }
        if !self.input_box.is_described() {
            return None;
        }
        match self.input_box.state() {
            BoxState::Holds(_) if self.input_box.holds_only(line) => None,
            BoxState::Holds(_) => Some("the input box does not hold exactly this line".to_owned()),
            BoxState::Empty => Some("the input box is empty and does not show the line".to_owned()),
            BoxState::Unrecognised(_) | BoxState::Undescribed => {
                Some(self.input_box.mismatch_text())
            }
        }
    }

    /// Offer nothing for a while, because the journal could not record an offer.
    pub(crate) fn back_off(&mut self, why: &str) {
        self.backoff = Some(Backoff {
            since: self.now,
            until: self.now.mono + JOURNAL_RETRY_INTERVAL,
            why: why.to_owned(),
        });
    }

    /// Return the number of a new offer or commit.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn commit(&mut self, operation: JournalOperation) -> Action {
        let commit = CommitId(self.next_number());
        Action::Commit { commit, operation }
    }

    fn record(&mut self, ids: Vec<MessageId>, report: OfferReport) -> Action {
        self.commit(JournalOperation::RecordStep { ids, report })
    }

    /// Record that these messages were typed completely, passed on by a hook, or taken by the API.
    /// A proof is awaited only if the agent can give one.
    pub(crate) fn offered(
        &mut self,
        ids: Vec<MessageId>,
        route: Route,
        evidence: String,
        is_provable: bool,
    ) -> Action {
        let proof_awaited = is_provable && self.awaits_proof();
        if is_provable {
            let has_hooks = self.config.has_hooks;
            let transcript = &mut self.proof.transcript;
            transcript.record_offer(self.now, &ids, has_hooks);
        }
        let report = OfferReport::Offered {
            route: route.as_str().to_owned(),
            evidence,
            proof_awaited,
        };
        self.record(ids, report)
    }

    /// Record that the agent's evidence shows these messages.
    pub(crate) fn accepted(
        &mut self,
        ids: Vec<MessageId>,
        route: Route,
        evidence: String,
    ) -> Action {
        let route = route.as_str().to_owned();
        self.record(ids, OfferReport::Accepted { route, evidence })
    }

    /// Record that the offer of these messages is withdrawn: no part of it was shown to the agent.
    pub(crate) fn withdrawn(&mut self, ids: Vec<MessageId>, reason: String) -> Action {
        self.record(ids, OfferReport::Withdrawn { reason })
    }

    /// Record that the offer of these messages was cut off.
    pub(crate) fn uncertain(&mut self, ids: Vec<MessageId>, reason: &str) -> Action {
        let reason = reason.to_owned();
        self.record(ids, OfferReport::Uncertain { reason })
    }

    /// Record that these messages will never be offered, or that an answer had no effect.
    pub(crate) fn failed(&mut self, ids: Vec<MessageId>, reason: &str) -> Action {
        let reason = reason.to_owned();
        self.record(ids, OfferReport::Failed { reason })
    }
}
