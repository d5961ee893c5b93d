//! The explanation of a held message: the rule, its beginning, the evidence and the release. The
//! rules themselves are in `rules`. A route explains the messages that it carries.

use super::outgoing::TurnKind;
use super::routes::http;
use super::{Conditions, Decision, Delivery, Lane, OutgoingTurn, PausedBy, Rule};
use crate::activity::Activity;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::promotion;
use crate::text;
use crate::why::{self, Hold};

const UNSUBMITTED: &str =
    "an earlier text is still in the input box, because Enter did not submit it";

impl Rule {
    /// Return the name, and the reason as far as the rule alone decides it.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::Exited => ["exited", "the program has exited"],
            Self::HandedOver => [
                "handed-over",
                "the agent's conversation has moved to another process that ph cannot see, so nothing \
                 is typed",
            ],
            Self::Starting => ["starting", "the program is starting"],
            Self::Paused => ["paused", "delivery is paused"],
            Self::Draft => ["draft", "a person has typed something and not submitted it"],
            Self::Blocked => ["blocked", "the program waits for an answer"],
            Self::AwaitingEnter => [
                "in-flight",
                "another message is in the input box and waits for its Enter",
            ],
            Self::NotReading => [
                "not-reading",
                "the program has not read what was typed before",
            ],
            Self::Working => ["working", "the agent is working"],
            Self::Unrecognised => [
                "unrecognised",
                "the screen does not show the agent's input box",
            ],
            Self::Settling => ["settling", "the screen is changing"],
            Self::Hook => [
                "hook",
                "the agent is working, and its next hook takes it in",
            ],
            Self::Loop => ["loop", "this is a loop, and nothing is typed into it"],
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.words()[0]
    }

    pub(super) fn reason(self) -> &'static str {
        self.words()[1]
    }
}

/// The beginning of a hold, unless it began with the agent's activity, and its reason, evidence and
/// release.
type Words = (Option<Moment>, [String; 3]);

fn words(since: Option<Moment>, reason: &str, evidence: &str, release: &str) -> Words {
    let words = [reason, evidence, release].map(str::to_owned);
    (since, words)
}

impl Conditions {
    /// Return the reason for which a rule holds messages, in words.
    pub(super) fn reason(&self, rule: Rule) -> &'static str {
        match rule == Rule::Draft && self.input_box.has_unsubmitted() {
            true => UNSUBMITTED,
            false => rule.reason(),
        }
    }

    /// Put the rule that holds a message into words.
    pub(super) fn describe(&self, now: Moment, rule: Rule, mail: &MessageState) -> Hold {
        let judged = self.agent.judgement();
        let to = &mail.message.to;
        let (input_box, reason) = (&self.input_box, self.reason(rule));
        let (since, [reason, evidence, release]) = match rule {
            Rule::Exited => {
                let again = format!("a session of {to} is started again");
                words(None, reason, &judged.told(now), &again)
            }
            Rule::HandedOver => self.describe_handover(mail),
            Rule::Starting => self.describe_start(&judged.told(now), mail),
            Rule::Paused => self.describe_pause(mail),
            Rule::Draft => self.describe_draft(mail),
            Rule::Blocked => self.describe_question(&judged.told(now), mail),
            Rule::AwaitingEnter => words(
                input_box.own.awaits_enter_since,
                reason,
                "a question opened, or the screen changed, before Enter was pressed",
                "that message is submitted, or cleared",
            ),
            Rule::NotReading => words(
                input_box.unread,
                reason,
                "the terminal holds unread input",
                "the program reads its input, or ends",
            ),
            Rule::Working => self.describe_work(now),
            Rule::Unrecognised => words(
                input_box.shown_since(),
                &format!("{reason}, so nothing is typed"),
                &input_box.mismatch_text(),
                &format!("the input box is back; 'ph attach {to}' shows the screen"),
            ),
            Rule::Settling => words(
                input_box.shown_since(),
                &format!("{reason}, so nothing is typed"),
                "the input box is empty, but the screen changed a moment ago",
                "the screen stays unchanged (100 ms; up to 3 s if it keeps changing)",
            ),
            Rule::Hook => {
                let release = "the agent calls its next hook, or becomes idle";
                words(None, reason, &judged.told(now), release)
            }
            Rule::Loop => {
                let since = Some(self.loop_prompt.since);
                (since, self.loop_prompt.explain(now, mail))
            }
        };
        Hold {
            rule: rule.name(),
            since: since.unwrap_or(judged.since).wall.max(why::due(mail)),
            reason,
            evidence,
            release,
        }
    }

    fn describe_handover(&self, mail: &MessageState) -> Words {
        let handover = self.agent.handed_over.as_ref();
        let job = handover.map_or("", |handover| &handover.job);
        let back = "the program takes its conversation back";
        words(
            handover.map(|handover| handover.since),
            Rule::HandedOver.reason(),
            &format!("the program's own record names {job}"),
            &format!("{back}; 'ph restart {}' starts a new one", mail.message.to),
        )
    }

    /// Describe the start of a program. An early question delays the start.
    fn describe_start(&self, evidence: &str, mail: &MessageState) -> Words {
        let (ready, reason) = (self.agent.judge.release(), Rule::Starting.reason());
        let Some(dialog) = &self.agent.questions.open else {
            let lost = format!("{reason}, and what is written to it now may be lost");
            return words(None, &lost, evidence, &ready);
        };
        let what = text::one_line(&dialog.what, 80);
        let answer = format!("'ph answer {}'", mail.message.to);
        words(
            None,
            &format!("{reason}, and waits for an answer ({what})"),
            evidence,
            &format!("the question is answered ({answer}), and then {ready}"),
        )
    }

    fn describe_pause(&self, mail: &MessageState) -> Words {
        words(
            self.pauses.first().map(|pause| pause.since),
            &format!("{}{}", Rule::Paused.reason(), cannot_set_aside(mail)),
            &self.join_pauses(|by| by.evidence().to_owned(), "; "),
            &self.join_pauses(|by| by.release(&mail.message.to), ", and "),
        )
    }

    pub(super) fn join_pauses(
        &self,
        describe: impl Fn(PausedBy) -> String,
        separator: &str,
    ) -> String {
        let mut parts: Vec<_> = self.pauses.iter().map(|p| describe(p.by)).collect();
        parts.dedup();
        parts.join(separator)
    }

    /// Describe a draft without quoting it: its text is private.
    fn describe_draft(&self, mail: &MessageState) -> Words {
        let since = self.input_box.since();
        if self.input_box.has_unsubmitted() {
            let release = "a person submits or clears it";
            return words(since, UNSUBMITTED, "the screen shows it there", release);
        }
        let evidence = match self.input_box.is_typed() {
            true => "keys were pressed, and no Enter since",
            false => "the screen shows text in the input box",
        };
        let reason = format!("{}{}", Rule::Draft.reason(), cannot_set_aside(mail));
        words(since, &reason, evidence, "it is submitted or cleared")
    }

    /// Describe an open question, and what ends it. If only a hook has reported the question, a hook
    /// must report its end, and many programs call no hook after a denial.
    fn describe_question(&self, evidence: &str, mail: &MessageState) -> Words {
        let open = self.agent.questions.open.as_ref();
        let what = text::one_line(open.map_or("", |dialog| &dialog.what), 80);
        let is_by_hook = open.is_some_and(|dialog| dialog.hook_reported_at.is_some());
        let lane = Lane::of(mail);
        let stays = match lane {
            Lane::Interrupt => ", and the interrupt key did not dismiss it",
            Lane::Raw => ", and does not show its question yet",
            Lane::Normal | Lane::Idle => "",
        };
        let release = match lane {
            Lane::Raw => "the question is on the screen, or is answered".to_owned(),
            Lane::Interrupt | Lane::Normal | Lane::Idle
                if is_by_hook && !self.agent.knows_dialogs() =>
            {
                format!(
                    "a hook says that it continues; after a denial it may call none before its next \
                     prompt, which a person can submit ('ph attach {}')",
                    mail.message.to
                )
            }
            Lane::Interrupt | Lane::Normal | Lane::Idle => "the question is answered".to_owned(),
        };
        let reason = format!("{} ({what}){stays}", Rule::Blocked.reason());
        words(None, &reason, evidence, &release)
    }

    fn describe_work(&self, now: Moment) -> Words {
        let judged = self.agent.judgement();
        let is_working = judged.activity == Activity::Working;
        let sign = self.agent.work_sign.clone().filter(|_| !is_working);
        let futile = match self.agent.ignores_interrupts {
            true => ", and the interrupt key did not stop it",
            false => "",
        };
        let reason = format!("{}{futile}, so nothing is typed", Rule::Working.reason());
        let evidence = sign.unwrap_or_else(|| judged.told(now));
        words(None, &reason, &evidence, "the agent is idle")
    }
}

fn cannot_set_aside(mail: &MessageState) -> &'static str {
    match Lane::of(mail) {
        Lane::Interrupt => "; an interrupt cannot set that aside",
        Lane::Raw | Lane::Normal | Lane::Idle => "",
    }
}

impl Delivery {
    /// Return what holds a message now. `pending` is in delivery order. Return nothing if the message
    /// is in the next turn, or is no longer pending.
    pub fn hold(&self, now: Moment, mail: &MessageState, pending: &[MessageState]) -> Option<Hold> {
        let id = mail.message.id;
        if let Some(hold) = why::not_before(mail, now.wall) {
            return Some(hold);
        }
        let interruption = self.interruption.as_ref();
        if let Some(own) = interruption.filter(|interruption| interruption.turn.has(id)) {
            let wait = self.at.config.harness.interrupt.wait.get();
            return Some(own.explain(wait));
        }
        if let Some(route) = self.routes().into_iter().find(|route| route.has(id)) {
            return route.explain(now, &self.at, mail);
        }
        if !mail.is_pending(now.wall) {
            return None;
        }
        match self.rule(Lane::at(mail, now.wall)) {
            Some(rule) => {
                let mut hold = self.at.describe(now, rule, mail);
                let failure = self.http.failure(&self.at);
                let failure = failure.filter(|_| rule.holds_terminal_only());
                hold.evidence.extend(failure.map(http::describe_failure));
                Some(promotion::told(hold, &mail.message, now.wall))
            }
            None => self.behind(now, mail, pending),
        }
    }

    /// Explain a message that no rule holds: it waits for other messages, or for the journal.
    fn behind(&self, now: Moment, mail: &MessageState, pending: &[MessageState]) -> Option<Hold> {
        let interruption = self.interruption.as_ref();
        let by_terminal = interruption.map(|interruption| &interruption.turn);
        let by_terminal = by_terminal.or_else(|| self.terminal.turn());
        let (rule, since, reason, evidence, release) = if let Some(turn) = self.http.turn() {
            (
                "in-flight",
                turn.since,
                "another message is on its way to the agent's own HTTP API",
                is_being_offered(turn),
                http::ANSWERS,
            )
        } else if let Some(turn) = by_terminal {
            let reason = match turn.kind {
                TurnKind::Messages | TurnKind::Answer(_) => {
                    "another message is on its way into the terminal"
                }
                TurnKind::Reminder => "a reminder is on its way into the terminal",
                TurnKind::Line(_) => "a nudge is on its way into the terminal",
            };
            let written = "that one is written";
            (
                "in-flight",
                turn.since,
                reason,
                is_being_offered(turn),
                written,
            )
        } else if let Some(backoff) = &self.at.backoff {
            (
                "storage",
                backoff.since,
                "its offer could not be recorded, and is retried",
                text::one_line(&backoff.why, 200),
                "the journal can be written again",
            )
        } else {
            (
                "queue",
                self.activity().since,
                "other messages are delivered before it",
                self.queue_before(now, mail, pending)?,
                "its turn comes",
            )
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

    /// Return why delivery is paused, if it is.
    pub fn paused_because(&self) -> Option<String> {
        let evidence = |by: PausedBy| by.evidence().to_owned();
        let evidence = self.at.join_pauses(evidence, "; ");
        self.is_paused().then_some(evidence)
    }
}

/// Return the evidence for a message that waits for this turn.
fn is_being_offered(turn: &OutgoingTurn) -> String {
    match turn.kind {
        TurnKind::Messages | TurnKind::Answer(_) => {
            let first = turn.messages.first().map(|mail| mail.message.id.id8());
            format!("{} is being offered", first.unwrap_or_default())
        }
        TurnKind::Reminder => "the agent is being reminded of expected replies".to_owned(),
        TurnKind::Line(_) => "it is being typed".to_owned(),
    }
}
