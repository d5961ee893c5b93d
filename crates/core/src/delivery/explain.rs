//! The explanation of a held message: the rule, its beginning, the evidence and the release. The
//! rules themselves are in `rules`.

use super::rules::SLOW_AFTER;
use super::terminal::{
    Backoff, Lane, OutgoingTurn, Preparation, State, Submission, TurnKind, TypedTurn,
};
use super::{Decision, Delivery, PausedBy, Rule, http};
use crate::activity::Activity;
use crate::harness::BoxState;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::promotion;
use crate::text;
use crate::why::{self, Hold};

/// Maximum number of characters that an explanation quotes from the input box.
const QUOTED_CHARS: usize = 60;

impl Delivery {
    /// Return what holds a message now. `pending` is in delivery order. Return nothing if the message
    /// is in the next turn, or is no longer pending.
    pub fn hold(&self, now: Moment, mail: &MessageState, pending: &[MessageState]) -> Option<Hold> {
        if let Some(hold) = why::not_before(mail, now.wall) {
            return Some(hold);
        }
        if let Some(own) = self.in_flight(now, mail) {
            return own;
        }
        if !mail.is_pending(now.wall) {
            return None;
        }
        match self.rule(Lane::at(mail, now.wall)) {
            Some(rule) => {
                let mut hold = self.describe(now, rule, mail);
                let failure = self.http_failure().filter(|_| rule.holds_terminal_only());
                hold.evidence.extend(failure.map(http::describe_failure));
                Some(promotion::told(hold, &mail.message, now.wall))
            }
            None => self.behind(now, mail, pending),
        }
    }

    /// Explain a message that no rule holds: it waits for other messages, or for the journal.
    fn behind(&self, now: Moment, mail: &MessageState, pending: &[MessageState]) -> Option<Hold> {
        let (rule, since, reason, evidence, release) =
            match (self.http.offer(), &self.terminal.state) {
                (Some(offer), _) => (
                    "in-flight",
                    offer.since,
                    "another message is on its way to the agent's own HTTP API",
                    being_offered(&offer.ids),
                    http::ANSWERS,
                ),
                (None, State::Backoff(Backoff { since, why, .. })) => (
                    "storage",
                    *since,
                    "its offer could not be recorded, and is retried",
                    text::one_line(why, 200),
                    "the journal can be written again",
                ),
                (None, State::Free) => (
                    "queue",
                    self.activity().since,
                    "other messages are delivered before it",
                    self.queue_before(now, mail, pending)?,
                    "its turn comes",
                ),
                (
                    None,
                    State::Preparing(turn, _) | State::Submitting(TypedTurn { turn, .. }, _),
                ) => (
                    "in-flight",
                    turn.since,
                    match turn.kind {
                        TurnKind::Messages => "another message is on its way into the terminal",
                        TurnKind::Reminders => "a reminder is on its way into the terminal",
                    },
                    first_of(turn),
                    "that one is written",
                ),
            };
        Some(Hold {
            rule,
            since: since.wall.max(why::due(mail)),
            reason: reason.to_owned(),
            evidence,
            release: release.to_owned(),
        })
    }

    /// Describe how many messages go first. Return nothing if this message is in the next turn.
    fn queue_before(
        &self,
        now: Moment,
        mail: &MessageState,
        pending: &[MessageState],
    ) -> Option<String> {
        let id = mail.message.id;
        let is_next = match self.next(now, pending) {
            Decision::Offer { ids, .. } => ids.contains(&id),
            Decision::Wait { .. } => true,
        };
        if is_next {
            return None;
        }
        let place = self
            .open(now, pending)
            .position(|mail| mail.message.id == id);
        let before = place.map_or("many".to_owned(), |place| place.to_string());
        Some(format!("{before} go before it in delivery order"))
    }

    /// Explain a message that is itself in flight. Return `None` if it is not in flight.
    fn in_flight(&self, now: Moment, mail: &MessageState) -> Option<Option<Hold>> {
        let id = mail.message.id;
        // A reminder of a message does not carry the message.
        let carries =
            |turn: &OutgoingTurn| turn.kind == TurnKind::Messages && turn.ids.contains(&id);
        let waiting = self.terminal.awaiting_enter.as_ref();
        if let Some(waiting) = waiting.filter(|typed| carries(&typed.turn)) {
            return Some(Some(match self.enter_rule(waiting.turn.lane) {
                Some(rule) => self.describe(now, rule, mail),
                None => self.awaits_box(waiting),
            }));
        }
        let by_hook = self.hook.explain(now, id);
        if let Some(direct) = by_hook.or_else(|| self.http.explain(now, id)) {
            return Some(direct);
        }
        let turn = self.terminal.turn().filter(|turn| carries(turn))?;
        let taking = "the program has not taken all of it";
        Some(match &self.terminal.state {
            State::Preparing(_, progress) => match progress {
                Preparation::Interrupting { keys, .. } => Some(self.interrupting(turn, *keys)),
                // Nothing is typed yet.
                Preparation::CheckingInterrupt { keys } => {
                    Some(self.interrupting(turn, keys.saturating_sub(1)))
                }
                Preparation::Settling => Some(self.describe(now, Rule::Settling, mail)),
                Preparation::Recording => slowly_typed(
                    now,
                    turn,
                    "the text before it is not written, or its offer is not recorded",
                ),
                Preparation::CheckingBox => slowly_typed(now, turn, taking),
            },
            State::Submitting(_, progress) => match progress {
                Submission::Delaying { .. } => {
                    let withheld = self.enter_rule(turn.lane);
                    withheld.map(|rule| self.describe(now, rule, mail))
                }
                Submission::Confirming { .. } => {
                    let still = "Enter was pressed, and the input box still holds it";
                    slowly_typed(now, turn, still)
                }
                Submission::Writing
                | Submission::Checking { .. }
                | Submission::Entering
                | Submission::Resuming => slowly_typed(now, turn, taking),
            },
            State::Free | State::Backoff(_) => None,
        })
    }

    /// Explain a message that has interrupted the agent `times` times.
    fn interrupting(&self, turn: &OutgoingTurn, times: u8) -> Hold {
        let aborts = turn.interruption.aborts;
        let keys = times.saturating_sub(aborts);
        let aborted =
            (aborts > 0).then(|| format!("its own HTTP API was told {aborts} time(s) to stop it"));
        let pressed = (keys > 0 || aborted.is_none())
            .then(|| format!("the interrupt key was pressed {keys} time(s)"));
        let done: Vec<_> = aborted.into_iter().chain(pressed).collect();
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

    fn describe(&self, now: Moment, rule: Rule, mail: &MessageState) -> Hold {
        let judged = self.activity();
        let evidence_now = judged.told(now);
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
        let set_aside = match Lane::of(mail) {
            Lane::Interrupt => "; an interrupt cannot set that aside",
            Lane::Raw | Lane::Normal | Lane::Idle => "",
        };
        let reason = self.reason(rule);
        let (reason, evidence, release) = match rule {
            Rule::Exited => (
                reason.to_owned(),
                evidence_now,
                format!("a session of {} is started again", mail.message.to),
            ),
            Rule::HandedOver => self.explain_handover(mail),
            Rule::Starting => self.explain_start(evidence_now, mail),
            Rule::Paused => (
                format!("{reason}{set_aside}"),
                self.join_pauses(|by| by.evidence().to_owned(), "; "),
                self.join_pauses(|by| by.release(&mail.message.to), ", and "),
            ),
            Rule::Draft => self.explain_draft(set_aside),
            Rule::AwaitingEnter => (
                reason.to_owned(),
                "a question opened, or the screen changed, before Enter was pressed".to_owned(),
                "that message is submitted, or cleared".to_owned(),
            ),
            Rule::Blocked => (
                self.question(mail),
                evidence_now,
                self.question_release(mail),
            ),
            Rule::NotReading => (
                reason.to_owned(),
                "the terminal holds unread input".to_owned(),
                "the program reads its input, or ends".to_owned(),
            ),
            Rule::Hook => (
                reason.to_owned(),
                evidence_now,
                "the agent calls its next hook, or becomes idle".to_owned(),
            ),
            Rule::Unrecognised => (
                format!("{reason}, so nothing is typed"),
                self.input_box.mismatch_text(),
                format!(
                    "the input box is back; 'ph attach {}' shows the screen",
                    mail.message.to
                ),
            ),
            Rule::Settling => (
                format!("{reason}, so nothing is typed"),
                "the input box is empty, but the screen changed a moment ago".to_owned(),
                "the screen stays unchanged (100 ms; up to 3 s if it keeps changing)".to_owned(),
            ),
            Rule::Loop => self.explain_loop(now, mail),
            Rule::Working => {
                let is_working = judged.activity == Activity::Working;
                let sign = self.agent.work_sign.clone().filter(|_| !is_working);
                let futile = match self.agent.ignores_interrupts {
                    true => ", and the interrupt key did not stop it",
                    false => "",
                };
                (
                    format!("{reason}{futile}, so nothing is typed"),
                    sign.unwrap_or(evidence_now),
                    "the agent is idle".to_owned(),
                )
            }
        };
        Hold {
            rule: rule.name(),
            since: since.wall.max(why::due(mail)),
            reason,
            evidence,
            release,
        }
    }

    fn explain_handover(&self, mail: &MessageState) -> (String, String, String) {
        let handover = self.agent.handed_over.as_ref();
        let job = handover.map_or("", |handover| &handover.job);
        (
            Rule::HandedOver.reason().to_owned(),
            format!("the program's own record names {job}"),
            format!(
                "the program takes its conversation back; 'ph restart {}' starts a new one",
                mail.message.to
            ),
        )
    }

    /// Describe what ends a question. If only a hook has reported the question, a hook must report
    /// its end, and many programs call no hook after a denial.
    fn question_release(&self, mail: &MessageState) -> String {
        let is_by_hook = self
            .agent
            .questions
            .open
            .as_ref()
            .is_some_and(|d| d.hook_reported_at.is_some());
        match Lane::of(mail) {
            Lane::Raw => "the question is on the screen, or is answered".to_owned(),
            Lane::Interrupt | Lane::Normal | Lane::Idle if is_by_hook && !self.knows_dialogs() => {
                format!(
                    "a hook says that it continues; after a denial it may call none before its next \
                     prompt, which a person can submit ('ph attach {}')",
                    mail.message.to
                )
            }
            Lane::Interrupt | Lane::Normal | Lane::Idle => "the question is answered".to_owned(),
        }
    }

    /// Explain a message to a program that is starting. An early question delays the start.
    fn explain_start(&self, evidence: String, mail: &MessageState) -> (String, String, String) {
        let (ready, reason) = (self.agent.judge.release(), Rule::Starting.reason());
        let Some(dialog) = &self.agent.questions.open else {
            let lost = format!("{reason}, and what is written to it now may be lost");
            return (lost, evidence, ready);
        };
        let what = text::one_line(&dialog.what, 80);
        (
            format!("{reason}, and waits for an answer ({what})"),
            evidence,
            format!(
                "the question is answered ('ph answer {}'), and then {ready}",
                mail.message.to
            ),
        )
    }

    /// Explain that a draft holds a message, without quoting the draft: its text is private.
    fn explain_draft(&self, set_aside: &str) -> (String, String, String) {
        let release = "it is submitted or cleared".to_owned();
        let reason = self.reason(Rule::Draft);
        if self.input_box.has_unsubmitted() {
            return (
                reason.to_owned(),
                "the screen shows it there".to_owned(),
                "a person submits or clears it".to_owned(),
            );
        }
        let evidence = if self.input_box.is_typed() {
            "keys were pressed, and no Enter since"
        } else {
            "the screen shows text in the input box"
        };
        (format!("{reason}{set_aside}"), evidence.to_owned(), release)
    }

    /// Return why delivery is paused, if it is.
    pub fn paused_because(&self) -> Option<String> {
        let evidence = self.join_pauses(|by| by.evidence().to_owned(), "; ");
        self.is_paused().then_some(evidence)
    }

    fn join_pauses(&self, describe: impl Fn(PausedBy) -> String, separator: &str) -> String {
        let mut parts: Vec<_> = self.pauses.iter().map(|p| describe(p.by)).collect();
        parts.dedup();
        parts.join(separator)
    }

    fn question(&self, mail: &MessageState) -> String {
        let what = self
            .agent
            .questions
            .open
            .as_ref()
            .map_or("", |dialog| &dialog.what);
        let what = text::one_line(what, 80);
        let stays = match Lane::of(mail) {
            Lane::Interrupt => ", and the interrupt key did not dismiss it",
            Lane::Raw => ", and does not show its question yet",
            Lane::Normal | Lane::Idle => "",
        };
        format!("{} ({what}){stays}", Rule::Blocked.reason())
    }
}

/// Explain a message in flight since `since`, if that takes longer than [`SLOW_AFTER`].
pub(super) fn slow(
    now: Moment,
    since: Moment,
    rule: &'static str,
    reason: String,
    release: &str,
) -> Option<Hold> {
    let waited = now.mono.saturating_sub(since.mono);
    (waited >= SLOW_AFTER).then(|| Hold {
        rule,
        since: since.wall,
        reason,
        evidence: format!("its offer began {} s ago", waited.as_secs()),
        release: release.to_owned(),
    })
}

fn slowly_typed(now: Moment, turn: &OutgoingTurn, what: &str) -> Option<Hold> {
    let reason = format!("it is on its way into the terminal, and {what}");
    let release = "the program reads its input, or ends";
    slow(now, turn.since, "not-reading", reason, release)
}

/// Return the evidence for a message that waits for this turn.
fn first_of(turn: &OutgoingTurn) -> String {
    match turn.kind {
        TurnKind::Messages => being_offered(&turn.ids),
        TurnKind::Reminders => "the agent is being reminded of expected replies".to_owned(),
    }
}

/// Return the evidence for a message that waits for these, which are being offered.
fn being_offered(ids: &[MessageId]) -> String {
    let first = ids.first().map(|id| id.id8()).unwrap_or_default();
    format!("{first} is being offered")
}
