//! The explanation of what holds a message: the rule, since when, the evidence and what ends it. The
//! rules themselves are in `hold`.

use super::rules::{HANDED_OVER, SLOW_AFTER, UNSUBMITTED};
use super::terminal::{Backoff, Lane, OutgoingTurn, Preparation, State, Submission, TypedTurn};
use super::{Decision, Delivery, PausedBy, Rule, http};
use crate::activity::Activity;
use crate::harness::BoxState;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::promotion;
use crate::text;
use crate::why::{self, Hold};

/// How much of the input box an explanation quotes.
const QUOTED_CHARS: usize = 60;

impl Delivery {
    /// Return what holds a message now, of those that are `pending`. Return nothing if the message is
    /// in the next turn, or is no longer pending.
    pub fn hold(
        &self,
        now: Moment,
        message_state: &MessageState,
        pending: &[MessageState],
    ) -> Option<Hold> {
        if let Some(hold) = why::not_before(message_state, now.wall) {
            return Some(hold);
        }
        if let Some(own) = self.in_flight(now, message_state) {
            return own;
        }
        if !message_state.is_pending(now.wall) {
            return None;
        }
        match self.rule(Lane::at(message_state, now.wall)) {
            Some(rule) => {
                let mut hold = self.describe(now, rule, message_state);
                let failure = self.http_failure().filter(|_| rule.holds_terminal_only());
                hold.evidence.extend(failure.map(http::describe_failure));
                Some(promotion::told(hold, &message_state.message, now.wall))
            }
            None => self
                .http
                .explain_behind(why::due(message_state))
                .or_else(|| self.behind(now, message_state, pending)),
        }
    }

    /// Explain a message that no rule holds: it waits for others, or for the journal.
    fn behind(
        &self,
        now: Moment,
        message_state: &MessageState,
        pending: &[MessageState],
    ) -> Option<Hold> {
        let (rule, since, reason, evidence, release) = match &self.terminal.state {
            State::Backoff(Backoff { since, why, .. }) => (
                "storage",
                *since,
                "its offer could not be recorded, and is tried again",
                text::one_line(why, 200),
                "the journal can be written again",
            ),
            State::Free => (
                "queue",
                self.activity().since,
                "others are to be delivered before it",
                self.queue_before(now, message_state, pending)?,
                "its turn comes",
            ),
            State::Preparing(turn, _) | State::Submitting(TypedTurn { turn, .. }, _) => {
                let first = turn.ids.first().map(|id| id.id8()).unwrap_or_default();
                (
                    "in-flight",
                    turn.since,
                    "another message is on its way into the terminal",
                    format!("{first} is being offered"),
                    "that one is written",
                )
            }
        };
        Some(Hold {
            rule,
            since: since.wall.max(why::due(message_state)),
            reason: reason.to_owned(),
            evidence,
            release: release.to_owned(),
        })
    }

    /// Say how many messages go first; nothing if this one is in the next turn.
    fn queue_before(
        &self,
        now: Moment,
        message_state: &MessageState,
        pending: &[MessageState],
    ) -> Option<String> {
        let id = message_state.message.id;
        let is_next = match self.next(now, pending) {
            Decision::Offer { ids, .. } => ids.contains(&id),
            Decision::Wait { .. } => true,
        };
        if is_next {
            return None;
        }
        let place = self.open(now, pending).position(|l| l.message.id == id);
        let before = place.map_or("many".to_owned(), |place| place.to_string());
        Some(format!("{before} stand before it in delivery order"))
    }

    /// Explain a message that is itself on its way, if it is.
    fn in_flight(&self, now: Moment, message_state: &MessageState) -> Option<Option<Hold>> {
        let id = message_state.message.id;
        let waiting = self.terminal.awaiting_enter.as_ref();
        if let Some(waiting) = waiting.filter(|typed| typed.turn.ids.contains(&id)) {
            return Some(Some(match self.enter_rule(waiting.turn.lane) {
                Some(rule) => self.describe(now, rule, message_state),
                None => self.awaits_box(waiting),
            }));
        }
        let handing = self.hook.explain(now, id);
        if let Some(handing) = handing.or_else(|| self.http.explain(now, id)) {
            return Some(handing);
        }
        let turn = self.terminal.turn()?;
        if !turn.ids.contains(&id) {
            return None;
        }
        let taking = "the program has not taken all of it";
        Some(match &self.terminal.state {
            State::Preparing(_, progress) => match progress {
                Preparation::Interrupting { keys, .. } => Some(self.interrupting(turn, *keys)),
                // Nothing is typed yet.
                Preparation::CheckingInterrupt { keys } => {
                    Some(self.interrupting(turn, keys.saturating_sub(1)))
                }
                Preparation::Settling => Some(self.describe(now, Rule::Settling, message_state)),
                Preparation::Recording => slow(
                    now,
                    turn,
                    "what was typed before it has not been written, or its offer not been recorded",
                ),
                Preparation::CheckingBox => slow(now, turn, taking),
            },
            State::Submitting(_, progress) => match progress {
                Submission::Delaying { .. } => {
                    let withheld = self.enter_rule(turn.lane);
                    withheld.map(|rule| self.describe(now, rule, message_state))
                }
                Submission::Confirming { .. } => {
                    let still = "Enter was pressed, and the input box still holds it";
                    slow(now, turn, still)
                }
                Submission::Writing
                | Submission::Checking { .. }
                | Submission::Entering
                | Submission::Resuming => slow(now, turn, taking),
            },
            State::Free | State::Backoff(_) => None,
        })
    }

    /// Explain a message that has interrupted the agent this often.
    fn interrupting(&self, turn: &OutgoingTurn, times: u8) -> Hold {
        let told = turn.interruption.aborts;
        let keys = times.saturating_sub(told);
        let told =
            (told > 0).then(|| format!("its own HTTP door was told {told} time(s) to stop it"));
        let pressed = (keys > 0 || told.is_none())
            .then(|| format!("the interrupt key was pressed {keys} time(s)"));
        let done: Vec<_> = told.into_iter().chain(pressed).collect();
        let wait = self.config.harness.interrupt.wait.get().as_secs_f32();
        Hold {
            rule: "interrupting",
            since: turn.since.wall,
            reason: "it interrupts what the agent is doing, and waits for that to stop".to_owned(),
            evidence: done.join("; "),
            release: format!("the agent is idle, or has not stopped after three times {wait} s"),
        }
    }

    /// Explain why a typed message waits for its Enter.
    fn awaits_box(&self, waiting: &TypedTurn) -> Hold {
        let evidence = match self.input_box.state() {
            BoxState::Holds(held) => {
                let held = text::one_line(&held.text, QUOTED_CHARS);
                format!("the input box should hold the message alone, and holds \"{held}\"")
            }
            BoxState::Unrecognised(mismatch) => mismatch.to_string(),
            BoxState::Empty | BoxState::Undescribed => "the screen is about to be read".to_owned(),
        };
        Hold {
            rule: Rule::AwaitingEnter.name(),
            since: waiting.turn.since.wall,
            reason: "it is written and waits for its Enter".to_owned(),
            evidence,
            release: "the input box holds it and nothing else, or a person submits or clears it"
                .to_owned(),
        }
    }

    fn describe(&self, now: Moment, rule: Rule, message_state: &MessageState) -> Hold {
        let judged = self.activity();
        let told = judged.told(now);
        let since = match rule {
            Rule::Exited | Rule::Starting | Rule::Blocked | Rule::Working | Rule::Hook => {
                judged.since
            }
            Rule::HandedOver => self
                .agent
                .handed_over
                .as_ref()
                .map_or(judged.since, |handover| handover.since),
            Rule::Paused => self.pauses.first().map_or(judged.since, |p| p.since),
            Rule::Draft => self.input_box.since().unwrap_or(judged.since),
            Rule::AwaitingEnter => self
                .terminal
                .awaiting_enter
                .as_ref()
                .map_or(judged.since, |typed| typed.turn.since),
            Rule::NotReading => self.input_box.unread.unwrap_or(judged.since),
            Rule::Unrecognised | Rule::Settling => {
                self.input_box.shown_since().unwrap_or(judged.since)
            }
            Rule::Loop => self.loop_prompt.since,
        };
        let set_aside = match Lane::of(message_state) {
            Lane::Interrupt => "; an interrupt cannot set that aside",
            Lane::Raw | Lane::Normal | Lane::Idle => "",
        };
        let (reason, evidence, release) = match rule {
            Rule::Exited => (
                "the program has exited".to_owned(),
                told,
                format!("a session of {} is started again", message_state.message.to),
            ),
            Rule::HandedOver => self.explain_handover(message_state),
            Rule::Starting => self.explain_start(told, message_state),
            Rule::Paused => (
                format!("delivery is paused{set_aside}"),
                self.join_pauses(|by| by.evidence().to_owned(), "; "),
                self.join_pauses(|by| by.release(&message_state.message.to), ", and "),
            ),
            Rule::Draft => self.explain_draft(set_aside),
            Rule::AwaitingEnter => (
                "another message is in the input box and waits for its Enter".to_owned(),
                "a question opened, or the screen changed, before Enter was pressed".to_owned(),
                "that message is submitted, or cleared".to_owned(),
            ),
            Rule::Blocked => (
                self.question(message_state),
                told,
                self.question_release(message_state),
            ),
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
                self.input_box.mismatch_text(),
                format!(
                    "the input box is back; 'ph attach {}' shows the screen",
                    message_state.message.to
                ),
            ),
            Rule::Settling => (
                "the screen is changing, so nothing is typed".to_owned(),
                "the input box is empty, but the screen changed a moment ago".to_owned(),
                "the screen stays unchanged (100 ms; up to 3 s if it keeps changing)".to_owned(),
            ),
            Rule::Loop => self.explain_loop(now, message_state),
            Rule::Working => {
                let is_working = judged.activity == Activity::Working;
                let sign = self.agent.work_sign.clone().filter(|_| !is_working);
                let futile = match self.agent.ignores_interrupts {
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
            since: since.wall.max(why::due(message_state)),
            reason,
            evidence,
            release,
        }
    }

    fn explain_handover(&self, message_state: &MessageState) -> (String, String, String) {
        let handover = self.agent.handed_over.as_ref();
        let job = handover.map_or("", |handover| &handover.job);
        (
            HANDED_OVER.to_owned(),
            format!("the program's own record names {job}"),
            format!(
                "the program takes its conversation back; 'ph restart {}' starts a new one",
                message_state.message.to
            ),
        )
    }

    /// Say what ends a question. A question that only a hook has told of ends by a hook, and many
    /// programs call none after a denial.
    fn question_release(&self, message_state: &MessageState) -> String {
        let is_heard = self
            .agent
            .questions
            .open
            .as_ref()
            .is_some_and(|d| d.heard.is_some());
        match Lane::of(message_state) {
            Lane::Raw => "the question is on the screen, or is answered".to_owned(),
            Lane::Interrupt | Lane::Normal | Lane::Idle if is_heard && !self.knows_dialogs() => {
                format!(
                    "a hook says that it goes on; after a no it may call none before its next \
                     prompt, which a person can submit ('ph attach {}')",
                    message_state.message.to
                )
            }
            Lane::Interrupt | Lane::Normal | Lane::Idle => "the question is answered".to_owned(),
        }
    }

    /// Explain a start. A question that comes this early holds it up.
    fn explain_start(
        &self,
        evidence: String,
        message_state: &MessageState,
    ) -> (String, String, String) {
        let ready = self.agent.judge.release();
        let Some(dialog) = &self.agent.questions.open else {
            let lost = "the program is starting, and what is written to it now may be lost";
            return (lost.to_owned(), evidence, ready);
        };
        let what = text::one_line(&dialog.what, 80);
        (
            format!("the program is starting, and waits for an answer ({what})"),
            evidence,
            format!(
                "the question is answered ('ph answer {} TEXT'), and then {ready}",
                message_state.message.to
            ),
        )
    }

    /// Explain that a draft holds a message, without quoting the draft: its text is private.
    fn explain_draft(&self, set_aside: &str) -> (String, String, String) {
        let release = "it is submitted or cleared".to_owned();
        if self.input_box.has_unsubmitted() {
            return (
                UNSUBMITTED.to_owned(),
                "the screen shows it there".to_owned(),
                "a person submits or clears it".to_owned(),
            );
        }
        let evidence = if self.input_box.is_typed() {
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

    /// Say why delivery is paused, if it is.
    pub fn paused_because(&self) -> Option<String> {
        let said = self.join_pauses(|by| by.evidence().to_owned(), "; ");
        self.is_paused().then_some(said)
    }

    fn join_pauses(&self, word: impl Fn(PausedBy) -> String, between: &str) -> String {
        let mut words: Vec<_> = self.pauses.iter().map(|pause| word(pause.by)).collect();
        words.dedup();
        words.join(between)
    }

    fn question(&self, message_state: &MessageState) -> String {
        let what = self
            .agent
            .questions
            .open
            .as_ref()
            .map_or("", |dialog| &dialog.what);
        let what = text::one_line(what, 80);
        let stays = match Lane::of(message_state) {
            Lane::Interrupt => ", and the interrupt key did not dismiss it",
            Lane::Raw => ", and does not show its question yet",
            Lane::Normal | Lane::Idle => "",
        };
        format!("the program waits for an answer ({what}){stays}")
    }
}

/// Explain a message that is on its way, if that takes longer than it should.
fn slow(now: Moment, turn: &OutgoingTurn, reason: &str) -> Option<Hold> {
    let waited = now.mono.saturating_sub(turn.since.mono);
    (waited >= SLOW_AFTER).then(|| Hold {
        rule: "not-reading",
        since: turn.since.wall,
        reason: format!("it is on its way into the terminal, and {reason}"),
        evidence: format!("its way began {} s ago", waited.as_secs()),
        release: "the program reads its input, or ends".to_owned(),
    })
}
