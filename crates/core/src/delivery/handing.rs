//! The route through the agent's own hook: what is handed to it, and what came of that.
//!
//! Nothing is typed, so neither the input box nor a draft matters here. An offer by this route
//! stands in the journal before the hook is given anything; it is made once the hook says that it
//! has passed the text on, and until then it can only be uncertain.

use super::hold::{LONG, Rule};
use super::proof::{Sent, Unproven};
use super::{Desk, Effect, Flight, Lane, Reach};
use crate::activity::Activity;
use crate::harness::{Proof, Report, Route, Turn};
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::turn::{self, Input};
use crate::why::Hold;
use jiff::Timestamp;
use std::time::Duration;

/// How long a hook may take to say that it has passed a text on.
const PASSED_ON: Duration = Duration::from_secs(5);
const HANDED: &str = "its hook has passed it on to the program";
const CALLED: &str = "its own HTTP door has taken it";
const NO_ANSWER: &str = "it did not answer";
const SHOWN: &str = "its transcript shows the id in what its hook was given";

/// Messages that go to one call of a hook; a call of the agent's door is numbered with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handing {
    pub number: u64,
    pub ids: Vec<MessageId>,
}

#[derive(Debug, Clone)]
struct Open {
    number: u64,
    /// The hook, or the door.
    route: Route,
    ids: Vec<MessageId>,
    sent: Vec<Sent>,
    since: Moment,
    /// By when the hook must have said that it has passed them on, once it has them.
    until: Option<Duration>,
    /// Whether the agent was at work when they were given.
    is_mid_turn: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Hands {
    /// How many there were.
    count: u64,
    open: Vec<Open>,
    /// What was passed on, and is not accepted yet.
    unproven: Unproven,
    /// Whether the last one told of a question.
    asked: bool,
}

impl Open {
    /// What is said of it, where it takes long.
    fn told(&self, waited: Duration) -> Hold {
        let (reason, release) = match self.route {
            Route::Http => (
                "it is on its way to the agent's own HTTP door, which has not answered yet",
                "the door answers, or has not for some seconds",
            ),
            Route::Hook | Route::Queue | Route::Terminal => (
                "it is on its way to the agent's hook, which has not taken it yet",
                "the hook says that it has passed it on, or ends",
            ),
        };
        Hold {
            rule: "in-flight",
            since: self.since.wall,
            reason: reason.to_owned(),
            evidence: format!("its way began {} s ago", waited.as_secs()),
            release: release.to_owned(),
        }
    }
}

impl Hands {
    fn heard(&mut self, turn: Option<Turn>) {
        self.asked = turn == Some(Turn::Blocked);
    }

    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        self.open.iter().filter_map(|hand| hand.until).min()
    }

    /// Whether a message is being handed over.
    pub(super) fn has(&self, id: MessageId) -> bool {
        self.open.iter().any(|hand| hand.ids.contains(&id))
    }

    /// What is said of a message that is being handed over, where that takes long.
    pub(super) fn told(&self, now: Moment, id: MessageId) -> Option<Option<Hold>> {
        let hand = self.open.iter().find(|hand| hand.ids.contains(&id))?;
        let waited = now.mono.saturating_sub(hand.since.mono);
        Some((waited >= LONG).then(|| hand.told(waited)))
    }

    /// What a message waits for while a call of the agent's door is under way.
    pub(super) fn behind_call(&self, due: Timestamp) -> Option<Hold> {
        let is_call = |hand: &&Open| hand.route == Route::Http;
        let call = self.open.iter().find(is_call)?;
        let first = call.ids.first().map(|id| id.id8()).unwrap_or_default();
        Some(Hold {
            rule: "in-flight",
            since: call.since.wall.max(due),
            reason: "another message is on its way to the agent's own HTTP door".to_owned(),
            evidence: format!("{first} is being offered"),
            release: "the door answers, or has not for some seconds".to_owned(),
        })
    }

    /// Whether a call of the agent's door is under way.
    pub(super) fn is_calling(&self) -> bool {
        self.open.iter().any(|hand| hand.route == Route::Http)
    }

    /// What a flight was to bring goes this way instead, under this number.
    pub(super) fn open(&mut self, route: Route, flight: &Flight) -> u64 {
        self.count += 1;
        self.open.push(Open {
            number: self.count,
            route,
            ids: flight.ids.clone(),
            sent: flight.sent.clone(),
            since: flight.since,
            until: None,
            is_mid_turn: false,
        });
        self.count
    }

    fn take(&mut self, number: u64) -> Option<Open> {
        let at = self.open.iter().position(|hand| hand.number == number)?;
        Some(self.open.remove(at))
    }
}

impl Desk {
    /// Whether a message is on its way to a hook or to the agent's API.
    pub fn is_handing(&self, id: MessageId) -> bool {
        self.hands.has(id)
    }

    fn hands_over(&self) -> bool {
        let harness = &self.manner.harness;
        self.manner.reach == Reach::Terminal
            && harness.routes.first() == Some(&Route::Hook)
            && !harness.hook.context.is_empty()
    }

    /// Whether mail for a working agent waits for its next hook, and leaves the screen alone.
    pub(super) fn awaits_hook(&self) -> bool {
        // No hook says that a question was answered: where work is seen after one, it was, or it
        // is about to open, and the terminal is no place to be.
        let is_at_work = match self.heard.doing() {
            Some(Turn::Submitted | Turn::Tool | Turn::Working | Turn::Blocked) => true,
            Some(Turn::Idle) => false,
            None => self.hands.asked,
        };
        let is_working = self.activity().activity == Activity::Working;
        self.hands_over() && is_at_work && is_working
    }

    /// What bars this route; a draft does not.
    fn hook_barrier(&self) -> Option<Rule> {
        match self.activity().activity {
            Activity::Exited => Some(Rule::Exited),
            Activity::Starting => Some(Rule::Starting),
            Activity::Blocked(_) => Some(Rule::Blocked),
            Activity::Idle | Activity::Working if self.is_paused_for(Lane::Normal) => {
                Some(Rule::Paused)
            }
            Activity::Idle | Activity::Working => None,
        }
    }

    /// What goes to a hook that has just been heard and would pass it on, of what is `pending`. It is
    /// to be recorded, and what came of that told as [`super::Event::Handed`] or
    /// [`super::Event::NotHanded`].
    pub fn hand(&mut self, now: Moment, report: &Report, pending: &[Letter]) -> Option<Handing> {
        if !self.hands_over() || !self.heard.is_own(report) {
            return None;
        }
        self.hands.heard(report.turn);
        if !report.takes || self.heard.is_aside() || self.hook_barrier().is_some() {
            return None;
        }
        let letters = self.due_by_hook(now, pending);
        if letters.is_empty() {
            return None;
        }
        self.hands.count += 1;
        let number = self.hands.count;
        let ids: Vec<_> = letters.iter().map(|letter| letter.message.id).collect();
        self.hands.open.push(Open {
            number,
            route: Route::Hook,
            ids: ids.clone(),
            sent: letters.into_iter().map(Sent::of).collect(),
            since: now,
            until: None,
            is_mid_turn: false,
        });
        Some(Handing { number, ids })
    }

    fn due_by_hook<'a>(&self, now: Moment, pending: &'a [Letter]) -> Vec<&'a Letter> {
        let is_due = |letter: &&Letter| {
            let id = letter.message.id;
            let is_flying =
                self.phase.flies(id) || self.parked.as_ref().is_some_and(|f| f.ids.contains(&id));
            letter.is_pending(now.wall)
                && Lane::at(letter, now.wall) == Lane::Normal
                && !is_flying
                && !self.hands.has(id)
        };
        let mut bytes = 0;
        let fits = |(at, letter): &(usize, &Letter)| {
            let telling = self.telling(letter);
            bytes += turn::size(letter, telling, Input::Pasted, self.manner.path_bytes);
            *at == 0 || bytes <= turn::TURN
        };
        let due = pending.iter().filter(is_due).enumerate().take_while(fits);
        due.map(|(_, letter)| letter).collect()
    }

    /// The offer of these stands in the journal.
    pub(super) fn handed(&mut self, now: Moment, number: u64, ids: Vec<MessageId>) -> Vec<Effect> {
        let barrier = self.hook_barrier();
        let is_mid_turn = self.activity().activity == Activity::Working;
        let at = self
            .hands
            .open
            .iter()
            .position(|hand| hand.number == number);
        let (Some(at), false) = (at, ids.is_empty()) else {
            self.hands.take(number);
            return Vec::new();
        };
        if let Some(rule) = barrier {
            self.hands.take(number);
            return vec![taken_back(ids, rule.name())];
        }
        let hand = &mut self.hands.open[at];
        hand.ids.clone_from(&ids);
        hand.until = Some(now.mono + PASSED_ON);
        hand.is_mid_turn = is_mid_turn;
        if hand.route == Route::Http {
            let given = hand.sent.iter().filter(|sent| ids.contains(&sent.id));
            self.door.give(given);
        }
        vec![Effect::Give { number, ids }]
    }

    /// The hook was given nothing, or the door; what stands in the journal of it is taken back.
    pub(super) fn not_handed(
        &mut self,
        now: Moment,
        number: u64,
        ids: Vec<MessageId>,
        why: &str,
    ) -> Vec<Effect> {
        let hand = self.hands.take(number);
        let by_door = hand.is_none_or(|hand| hand.route == Route::Http);
        if by_door {
            self.door.failed(now, why);
            self.door.take_back(&ids);
        }
        if ids.is_empty() {
            return Vec::new();
        }
        vec![match by_door {
            true => taken_back(ids, &format!("its own HTTP door: {why}")),
            false => taken_back(ids, why),
        }]
    }

    /// The hook says that it has passed them on, or the door that it has them.
    pub(super) fn taken(&mut self, now: Moment, number: u64) -> Vec<Effect> {
        let Some(hand) = self.hands.take(number) else {
            return Vec::new();
        };
        if hand.route == Route::Http {
            self.door.taken(hand.is_mid_turn);
            self.judge.given(now, Some(hand.since.mono));
            let (ids, route) = (hand.ids, hand.route);
            let evidence = CALLED.to_owned();
            return vec![Effect::Offered {
                ids,
                evidence,
                route,
                proof_awaited: true,
            }];
        }
        for sent in hand.sent.iter().filter(|sent| hand.ids.contains(&sent.id)) {
            self.hands.unproven.add(sent);
        }
        vec![self.offered_by_hook(hand.ids)]
    }

    /// The hook has gone without a word, or the door has not answered.
    pub(super) fn dropped(&mut self, now: Moment, number: u64) -> Vec<Effect> {
        let Some(hand) = self.hands.take(number) else {
            return Vec::new();
        };
        let why = match hand.route {
            Route::Http => {
                self.door.failed(now, NO_ANSWER);
                "its own HTTP door did not say whether it has it"
            }
            Route::Hook | Route::Queue | Route::Terminal => {
                "its hook ended before it had passed it on"
            }
        };
        vec![lost(hand, why)]
    }

    /// Gives up on hooks that say nothing any more.
    pub(super) fn tick_hands(&mut self, now: Moment) -> Vec<Effect> {
        self.door.tick(now);
        let is_late = |hand: &mut Open| hand.until.is_some_and(|until| until <= now.mono);
        let late = self.hands.open.extract_if(.., is_late);
        let late: Vec<_> = late.collect();
        if late.iter().any(|hand| hand.route == Route::Http) {
            self.door.failed(now, NO_ANSWER);
        }
        late.into_iter()
            .map(|hand| {
                let why = match hand.route {
                    Route::Http => "its own HTTP door did not say in time that it has it",
                    Route::Hook | Route::Queue | Route::Terminal => {
                        "its hook did not say in time that it had passed it on"
                    }
                };
                lost(hand, why)
            })
            .collect()
    }

    /// Return the effect of messages that a transcript shows as passed on by a hook.
    pub(super) fn prove_handed(&mut self, given: &str) -> Option<Effect> {
        let ids = self.hands.unproven.take_shown(given);
        let (evidence, route) = (SHOWN.to_owned(), Route::Hook);
        (!ids.is_empty()).then_some(Effect::Accepted {
            ids,
            evidence,
            route,
        })
    }

    /// Return the effect of messages that a hook has passed on. Only the transcript can prove that the
    /// model was given them.
    fn offered_by_hook(&self, ids: Vec<MessageId>) -> Effect {
        Effect::Offered {
            ids,
            evidence: HANDED.to_owned(),
            route: Route::Hook,
            proof_awaited: self.manner.harness.proof.contains(&Proof::Transcript),
        }
    }

    pub(super) fn awaits_proof_of_handed(&self) -> bool {
        !self.hands.unproven.is_empty()
    }
}

fn taken_back(ids: Vec<MessageId>, why: &str) -> Effect {
    let reason = format!("nothing was handed over: {why}");
    Effect::Withdraw { ids, reason }
}

fn lost(hand: Open, why: &str) -> Effect {
    let reason = why.to_owned();
    let ids = hand.ids;
    Effect::Uncertain { ids, reason }
}
