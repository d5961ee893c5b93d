//! The route through the agent's own door: a call puts a message before it, past the terminal.
//!
//! Nothing is typed, so neither the input box nor a draft matters here. An offer by this route is
//! kept beside those of hooks (see `handing.rs`), one at a time; where the door does not answer, the
//! terminal is the way for a while.

use super::hold::Rule;
use super::phase::Cargo;
use super::proof::{Sent, Unproven};
use super::{Desk, Effect, Flight, Lane, Phase};
use crate::activity::Activity;
use crate::harness::{Report, Route};
use crate::id::MessageId;
use crate::moment::Moment;
use crate::text;
use crate::why::Hold;
use std::time::Duration;

/// For how long a door that did not answer is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// It did not answer, or not as it should.
#[derive(Debug, Clone)]
struct Shut {
    /// Until when it is left alone.
    until: Duration,
    why: String,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Door {
    shut: Option<Shut>,
    /// The conversation that hooks have told of last.
    conversation: Option<String>,
    /// What went there and is not accepted yet.
    unproven: Unproven,
    /// Whether something went there in the middle of a turn, which is not over yet.
    is_mid_turn: bool,
}

impl Door {
    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        self.shut.as_ref().map(|shut| shut.until)
    }

    pub(super) fn tick(&mut self, now: Moment) {
        self.shut.take_if(|shut| shut.until <= now.mono);
    }

    /// What is about to go there.
    pub(super) fn give<'a>(&mut self, sent: impl Iterator<Item = &'a Sent>) {
        sent.for_each(|sent| self.unproven.add(sent));
    }

    /// It has taken something. To one at rest that is a turn of its own, in which all is heard that
    /// came before.
    pub(super) fn taken(&mut self, is_mid_turn: bool) {
        self.is_mid_turn = is_mid_turn;
    }

    /// It did not answer, or not as it should.
    pub(super) fn failed(&mut self, now: Moment, why: &str) {
        self.shut = Some(Shut {
            until: now.mono + LEFT_ALONE,
            why: text::one_line(why, 200),
        });
    }

    /// It did not answer when the agent was to go on: it is asked once more, when it is not left
    /// alone any more.
    pub(super) fn not_gone_on(&mut self, now: Moment, why: &str) {
        self.failed(now, why);
        self.is_mid_turn = true;
    }

    /// Where the agent is, as far as hooks tell. Another conversation may have a door, whatever
    /// became of that of the one before.
    pub(super) fn enter(&mut self, conversation: Option<&str>) {
        if conversation.is_some() && conversation != self.conversation.as_deref() {
            self.conversation = conversation.map(str::to_owned);
            self.shut = None;
            self.is_mid_turn = false;
        }
    }

    /// These never went there.
    pub(super) fn take_back(&mut self, ids: &[MessageId]) {
        self.unproven.forget(ids);
    }

    /// Return the messages that this event proves to be given to the model.
    pub(super) fn hear(&mut self, report: &Report) -> Vec<MessageId> {
        let given = report.given.as_deref();
        given.map_or_else(Vec::new, |text| self.unproven.take_shown(text))
    }
}

/// What is said of a message that goes by the terminal, or waits for it, in place of the door.
pub(super) fn detour(why: &str) -> String {
    format!("; not by its own HTTP door: {why}")
}

impl Desk {
    fn has_door(&self) -> bool {
        self.manner.harness.routes.first() == Some(&Route::Http)
    }

    /// The conversation that the door leads to, where mail may go that way.
    pub fn conversation(&self) -> Option<&str> {
        let is_open = self.has_door() && self.door.shut.is_none();
        self.heard.session().filter(|_| is_open)
    }

    /// Why the door is left alone, where it is.
    pub(super) fn door_fails(&self) -> Option<&str> {
        let shut = self.door.shut.as_ref().filter(|_| self.has_door());
        shut.map(|shut| shut.why.as_str())
    }

    /// The same for a person, and for how long yet.
    pub fn door_told(&self, now: Moment) -> Option<String> {
        let why = self.door_fails()?;
        let until = self.door.next_wakeup()?;
        let rest = until.saturating_sub(now.mono).as_secs() + 1;
        Some(format!("it is left alone for {rest} s more: {why}"))
    }

    /// Adds that to what holds a message which would go past the terminal else.
    pub(super) fn past_door(&self, rule: Rule, mut hold: Hold) -> Hold {
        let is_terminals = match rule {
            Rule::Draft
            | Rule::Parked
            | Rule::NotReading
            | Rule::Working
            | Rule::Unrecognised
            | Rule::Settling => true,
            Rule::Exited
            | Rule::HandedOver
            | Rule::Starting
            | Rule::Paused
            | Rule::Blocked
            | Rule::Hook
            | Rule::Loop => false,
        };
        if let (true, Some(why)) = (is_terminals, self.door_fails()) {
            hold.evidence.push_str(&detour(why));
        }
        hold
    }

    /// Whether messages of a lane go by the door now. An answer is for the terminal, and so is the
    /// key that dismisses a question.
    pub(super) fn goes_by_door(&self, lane: Lane) -> bool {
        let is_steady = match self.activity().activity {
            Activity::Idle | Activity::Working => true,
            Activity::Starting | Activity::Blocked(_) | Activity::Exited => false,
        };
        lane != Lane::Raw && is_steady && self.conversation().is_some()
    }

    /// What holds messages of a lane on this route; a draft does not, nor input that is not read.
    pub(super) fn rule_of_door(&self, lane: Lane) -> Option<Rule> {
        let is_working = self.activity().activity == Activity::Working;
        if self.is_paused_for(lane) {
            Some(Rule::Paused)
        } else if is_working && lane == Lane::Idle {
            Some(Rule::Working)
        } else {
            // What waits for its Enter in the box was due before it.
            self.parked.is_some().then_some(Rule::Parked)
        }
    }

    /// A turn that ends with a no leaves what came in the middle of it unheard: then the agent is
    /// told to go on. Where a message is on its way, an interrupt's above all, it goes on with that.
    pub(super) fn go_on(&mut self) -> Option<Effect> {
        let is_over = self.door.is_mid_turn && self.activity().activity == Activity::Idle;
        let is_quiet = self.is_free() && !self.hands.is_calling();
        if !is_over || !is_quiet || self.conversation().is_none() {
            return None;
        }
        self.door.is_mid_turn = false;
        Some(Effect::GoOn)
    }

    /// Begins with an offer by the door, where that is its way.
    pub(super) fn call(&mut self, flight: &Flight) -> Option<Effect> {
        if flight.cargo != Cargo::Messages || !self.goes_by_door(flight.lane) {
            return None;
        }
        self.phase = Phase::Free;
        let number = self.hands.open(Route::Http, flight);
        let ids = flight.ids.clone();
        Some(Effect::Call { number, ids })
    }
}
