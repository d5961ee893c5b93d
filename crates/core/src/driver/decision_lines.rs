//! Log lines for the decisions of a driver, one per decision. A session's log and the report of a
//! failed simulation use the same lines. No line holds the text of a message.

use super::{Action, Input, JournalOperation, KeyboardUser, TurnContent, TurnMessage};
use crate::delivery::{Delivery, NudgeOutcome};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
use crate::why::Hold;
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of message ids in one line.
const MAX_IDS: usize = 100;

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// A log line: the decision, its messages, and the details as `key=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub level: LogLevel,
    text: String,
}

impl LogLine {
    fn new(level: LogLevel, what: &str) -> Self {
        let text = what.to_owned();
        Self { level, text }
    }

    fn of(self, ids: &[MessageId]) -> Self {
        let shown: Vec<_> = ids
            .iter()
            .take(MAX_IDS)
            .copied()
            .map(MessageId::id8)
            .collect();
        let more = match ids.len().saturating_sub(MAX_IDS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.plain("messages", format_args!("{}{more}", shown.join(",")))
    }

    fn of_operation(self, operation: &JournalOperation) -> Self {
        match operation {
            JournalOperation::RecordStep { ids, .. } => self.of(ids),
            JournalOperation::OpenAsk { id, .. } => self.plain("ask", id.id8()),
            JournalOperation::CloseAsk { ask, .. } => self.plain("ask", ask.id8()),
            _ => self,
        }
    }

    fn plain(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.text += &format!(" {key}={value}");
        self
    }

    /// Add a detail that may contain spaces.
    fn quoted(self, key: &str, value: &str) -> Self {
        self.plain(key, format_args!("{value:?}"))
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Formats the inputs and actions of a delivery as log lines.
#[derive(Debug, Clone, Default)]
pub struct DecisionLines {
    /// The messages of the turn that was offered last.
    turn: Vec<MessageId>,
}

impl DecisionLines {
    /// Return the line for an input that prevented an offer or cut it off.
    pub fn on_input(&self, input: &Input) -> Option<LogLine> {
        let turn = &self.turn;
        let line = match input {
            Input::TerminalFailed {
                by: KeyboardUser::Turn,
                why,
            } => warn("typing failed").of(turn).quoted("reason", why),
            Input::KeyboardRefused(KeyboardUser::Turn) => {
                info("not typed: a person is typing").of(turn)
            }
            Input::KeyboardGone(KeyboardUser::Turn) => {
                warn("not typed: the terminal is gone").of(turn)
            }
            Input::HookUnanswered { ids, why, .. } | Input::ApiRefused { ids, why, .. } => {
                info("not sent").of(ids).quoted("reason", why)
            }
            _ => return None,
        };
        Some(line)
    }

    /// Return the line for an action that delivery requests.
    pub fn on_action(&mut self, delivery: &Delivery, action: &Action) -> Option<LogLine> {
        let turn = delivery.turn_in_flight();
        let enters = turn.as_ref().and_then(|turn| turn.enters);
        self.turn = turn.map(|turn| turn.ids).unwrap_or_default();
        let turn = &self.turn;
        let line = match action {
            Action::PressKeys(_) => info("interrupt key pressed").of(turn),
            Action::ClearBox(_) => info("input box cleared of the restored prompt").of(turn),
            Action::ApiInterrupt { .. } => {
                info("agent interrupted").of(turn).quoted("route", "http")
            }
            Action::ApiContinue { .. } => debug("agent told to continue").quoted("route", "http"),
            Action::LeaseKeyboard(KeyboardUser::Turn) if enters.is_some() => {
                debug("keyboard requested again").of(turn)
            }
            Action::Type { turn: content, .. } => {
                let what = match content {
                    TurnContent::Messages(_) => "typing",
                    TurnContent::Reminder(_) => "typing a reminder",
                };
                debug(what).of(turn)
            }
            Action::PressEnter {
                by: KeyboardUser::Turn,
                ..
            } => match enters.filter(|enters| *enters > 0) {
                Some(enters) => info("Enter pressed again")
                    .of(turn)
                    .plain("pressed", enters),
                None => debug("Enter pressed").of(turn),
            },
            Action::AnswerHook {
                mail: Some(mail), ..
            } => sent(&mail.messages),
            Action::PutMail { messages, .. } => sent(messages),
            Action::Commit {
                operation: JournalOperation::RecordStep { ids, report },
                ..
            } => on_step(ids, report),
            Action::EndNudge { outcome, .. } => match outcome {
                NudgeOutcome::Typed => info("nudge typed"),
                NudgeOutcome::Refused(reason) => info("nudge refused").quoted("reason", reason),
            },
            Action::EndAnswerCheck {
                keys: Err(reason), ..
            } => info("answer refused").quoted("reason", reason),
            _ => return None,
        };
        Some(line)
    }

    pub fn on_commit_retry(&self, operation: &JournalOperation, why: &str) -> LogLine {
        let what = match operation {
            JournalOperation::RecordStep { .. } => "a receipt has to wait",
            JournalOperation::Expire => "expired messages have to wait",
            JournalOperation::RecordConversation(_) => "the conversation has to wait",
            JournalOperation::SettleEarlierOffers(_) => "earlier offers have to wait",
            JournalOperation::CloseKilledHooks => "unprinted mail has to wait",
            JournalOperation::CloseUnproven => "unproven messages have to wait",
            JournalOperation::OpenAsk { .. } => "an ask has to wait",
            JournalOperation::CloseAsk { .. } => "the end of an ask has to wait",
        };
        warn(&format!("{what}: {why}")).of_operation(operation)
    }

    pub fn on_commit_lost(&self, operation: &JournalOperation, why: &str) -> LogLine {
        let line = match operation {
            operation if operation.begins_offer() => {
                return warn("offer not recorded")
                    .of_operation(operation)
                    .quoted("reason", why);
            }
            JournalOperation::RecordStep { .. } => {
                return error(&format!("a receipt could not be recorded: {why}"))
                    .of_operation(operation);
            }
            JournalOperation::OpenAsk { .. } => {
                return error(&format!("an ask could not be recorded: {why}"))
                    .of_operation(operation);
            }
            JournalOperation::CloseAsk { .. } => {
                let what = "the end of an ask could not be recorded before the end of the session";
                return error(&format!("{what}: {why}")).of_operation(operation);
            }
            JournalOperation::Expire => "expired messages could not be recorded",
            JournalOperation::RecordConversation(_) => "the conversation could not be recorded",
            JournalOperation::SettleEarlierOffers(_) => {
                "earlier offers stay unproven until the next start"
            }
            JournalOperation::CloseKilledHooks => {
                "cannot mark unprinted mail as uncertain until the next check"
            }
            JournalOperation::CloseUnproven => {
                "unproven messages stay offered until the next start"
            }
        };
        warn(&format!("{line}: {why}"))
    }
}

fn error(what: &str) -> LogLine {
    LogLine::new(LogLevel::Error, what)
}

fn warn(what: &str) -> LogLine {
    LogLine::new(LogLevel::Warn, what)
}

fn info(what: &str) -> LogLine {
    LogLine::new(LogLevel::Info, what)
}

fn debug(what: &str) -> LogLine {
    LogLine::new(LogLevel::Debug, what)
}

fn sent(messages: &[TurnMessage]) -> LogLine {
    let ids: Vec<_> = messages.iter().map(|m| m.state.message.id).collect();
    debug("sent").of(&ids)
}

/// Return the line for a step in the delivery of these messages.
fn on_step(ids: &[MessageId], report: &OfferReport) -> LogLine {
    match report {
        OfferReport::Offering { route, .. } => debug("offering").of(ids).quoted("route", route),
        OfferReport::Offered {
            route,
            evidence,
            proof_awaited,
        } => info("offered")
            .of(ids)
            .plain("route", route)
            .quoted("evidence", evidence)
            .plain("proof_awaited", proof_awaited),
        OfferReport::Accepted { route, evidence } => info("accepted")
            .of(ids)
            .plain("route", route)
            .quoted("proof", evidence),
        OfferReport::Withdrawn { reason } => {
            info("offer withdrawn").of(ids).quoted("reason", reason)
        }
        OfferReport::Uncertain { reason } => warn("uncertain").of(ids).quoted("reason", reason),
        OfferReport::Reminded { .. } => info("reminding of expected replies").of(ids),
        OfferReport::Failed { reason } => warn("failed").of(ids).quoted("reason", reason),
    }
}

/// Remembers the holds that were logged, so that each is logged once.
#[derive(Debug, Clone, Default)]
pub struct HoldLog {
    /// The rule and the reason that were last logged for each message.
    logged: BTreeMap<MessageId, (&'static str, String)>,
}

/// Messages that one rule newly holds for one reason.
struct Held {
    ids: Vec<MessageId>,
    hold: Hold,
}

impl HoldLog {
    /// Return one line for each rule and reason that newly holds messages.
    pub fn news(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        pending: &[MessageState],
    ) -> Vec<LogLine> {
        let holds = pending.iter().map(|mail| {
            let hold = delivery.hold(now, mail, pending);
            (mail.message.id, hold)
        });
        let holds: Vec<_> = holds.collect();
        self.changes(holds).iter().map(Held::line).collect()
    }

    /// Return the messages whose rule or reason has changed, and remember what holds them now.
    fn changes(&mut self, waiting: Vec<(MessageId, Option<Hold>)>) -> Vec<Held> {
        let mut news: Vec<Held> = Vec::new();
        let mut all = BTreeMap::new();
        for (id, hold) in waiting {
            let Some(hold) = hold else { continue };
            let held = (hold.rule, hold.reason.clone());
            let is_known = self.logged.get(&id) == Some(&held);
            all.insert(id, held);
            if is_known {
                continue;
            }
            let is_same =
                |held: &&mut Held| (held.hold.rule, &held.hold.reason) == (hold.rule, &hold.reason);
            match news.iter_mut().find(is_same) {
                Some(held) => held.ids.push(id),
                None => news.push(Held {
                    ids: vec![id],
                    hold,
                }),
            }
        }
        self.logged = all;
        news
    }
}

impl Held {
    fn line(&self) -> LogLine {
        info("held")
            .of(&self.ids)
            .plain("rule", self.hold.rule)
            .quoted("reason", &self.hold.reason)
            .quoted("evidence", &self.hold.evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use uuid::Uuid;

    fn hold(rule: &'static str, evidence: &str) -> Option<Hold> {
        Some(Hold {
            rule,
            since: Timestamp::UNIX_EPOCH,
            reason: format!("because of {rule}"),
            evidence: evidence.to_owned(),
            release: String::new(),
        })
    }

    #[test]
    fn a_hold_is_news_once_for_each_reason() {
        let [a, b] = [1, 2].map(|n| MessageId(Uuid::from_u128(n)));
        let mut log = HoldLog::default();
        let mut check = |waiting: &[(MessageId, Option<Hold>)], want: &[(&[MessageId], &str)]| {
            let news = log.changes(waiting.to_vec());
            let news: Vec<_> = news.iter().map(|h| (&h.ids[..], h.hold.rule)).collect();
            assert_eq!(news, want);
        };
        check(&[(a, hold("working", "1 s ago"))], &[(&[a], "working")]);
        // A message whose evidence alone has changed is not logged again.
        check(&[(a, hold("working", "2 s ago"))], &[]);
        check(
            &[(a, hold("blocked", "")), (b, hold("blocked", ""))],
            &[(&[a, b], "blocked")],
        );
        check(&[(a, hold("blocked", "")), (b, None)], &[]);
        check(
            &[(a, hold("draft", "")), (b, hold("blocked", ""))],
            &[(&[a], "draft"), (&[b], "blocked")],
        );
        // A message that stopped waiting and waits again is logged again.
        check(&[(b, hold("blocked", ""))], &[]);
        check(&[(a, hold("draft", ""))], &[(&[a], "draft")]);
    }

    #[test]
    fn a_line_names_its_messages_and_quotes_its_reasons() {
        let ids: Vec<_> = (0..102_u128)
            .map(|n| MessageId(Uuid::from_u128(n << 96)))
            .collect();
        let line = info("held")
            .of(&ids[1..3])
            .plain("rule", "paused")
            .quoted("reason", "a \"client\"");
        let want = r#"held messages=00000001,00000002 rule=paused reason="a \"client\"""#;
        assert_eq!(line.to_string(), want);
        let many = info("held").of(&ids).to_string();
        assert!(many.ends_with("00000063 and 2 more"), "{many}");
    }
}
