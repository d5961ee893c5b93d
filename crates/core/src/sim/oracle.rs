//! Watches a run and says when a law is broken. It hears what the desk hears, sees what it does,
//! and judges by rules of its own, written down once more and as plainly as the design has them.

use super::law::{Checked, Law};
use super::ledger::{Known, Ledger};
use crate::activity::Activity;
use crate::delivery::{Decision, Desk, Effect, Event, PausedBy};
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::turn::{self, Input};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// How often an interrupt may press its key.
const KEYS: u8 = 3;
/// Where every message's file is: long, so that a few of them fill a turn.
pub(super) static PATH: LazyLock<String> = LazyLock::new(|| "/deep".repeat(500));

/// What the desk was told, by those who saw it.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) draft: Option<Moment>,
    pub(super) question: Option<(String, Moment)>,
    pub(super) pauses: Vec<(PausedBy, Moment)>,
    pub(super) unread: Option<Moment>,
    takes_pastes: bool,
    keys: u8,
}

#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub(super) ledger: Ledger,
    pub(super) told: Told,
    acknowledged: BTreeSet<MessageId>,
    /// The text of a turn is in the terminal, and its Enter is not.
    is_half_typed: bool,
    /// The wall clock was set back: what it says of the past proves nothing.
    pub(super) was_set_back: bool,
}

impl Oracle {
    /// A session begins, with nothing known.
    pub(super) fn begin(&mut self) {
        self.told = Told::default();
        self.is_half_typed = false;
    }

    pub(super) fn acknowledge(&mut self, id: MessageId) {
        self.acknowledged.insert(id);
    }

    pub(super) fn acknowledged(&self) -> impl Iterator<Item = MessageId> {
        self.acknowledged.iter().copied()
    }

    /// The desk is about to be told this.
    pub(super) fn tell(&mut self, now: Moment, event: &Event) {
        let told = &mut self.told;
        match event {
            Event::Draft => told.draft = told.draft.or(Some(now)),
            Event::DraftGone => told.draft = None,
            Event::Dialog(what) => {
                let known = told.question.as_ref().map(|(what, _)| what);
                if known != what.as_ref() {
                    told.question = what.clone().map(|what| (what, now));
                }
            }
            Event::Paused(by) => {
                if told.pauses.iter().all(|(other, _)| other != by) {
                    told.pauses.push((*by, now));
                }
            }
            Event::Released(by) => told.pauses.retain(|(other, _)| other != by),
            Event::Unread(true) => told.unread = told.unread.or(Some(now)),
            Event::Unread(false) => told.unread = None,
            Event::Paste(on) => told.takes_pastes = *on,
            Event::Tick
            | Event::Output
            | Event::Exited(_)
            | Event::Recorded(_)
            | Event::Barred
            | Event::NotRecorded(_)
            | Event::Wrote
            | Event::Entered
            | Event::WriteFailed(_) => {}
        }
    }

    /// Whether a message may be begun with now. Of an interrupt and an open question: it may try
    /// its key.
    fn may_go(&self, desk: &Desk, id: MessageId) -> Checked {
        let Some(known) = self.ledger.get(id) else {
            return Law::TheRightMoment.broken("a message that nobody has stored");
        };
        let priority = known.priority;
        Law::CannotAct.holds(self.told.draft.is_none(), || {
            format!("{} would be typed into a draft", id.id8())
        })?;
        let activity = desk.activity().activity;
        let is_its_moment = match (&activity, priority) {
            _ if !self.told.pauses.is_empty() => false,
            (Activity::Starting | Activity::Exited, _) => false,
            (Activity::Blocked(_), _) if known.raw => true,
            (Activity::Blocked(_), priority) => priority == Priority::Interrupt,
            (Activity::Working, Priority::IdleFirst | Priority::Idle) => known.raw,
            (Activity::Working, Priority::Interrupt | Priority::Normal) => true,
            (Activity::Idle, _) => true,
        };
        let is_read = priority == Priority::Interrupt && !known.raw || self.told.unread.is_none();
        let pauses = self.told.pauses.len();
        Law::TheRightMoment.holds(is_its_moment && is_read, || {
            format!(
                "{} ({priority}) goes while {activity}, {pauses} pauses, read: {}",
                id.id8(),
                self.told.unread.is_none()
            )
        })
    }

    /// What the desk begins with, of what it was shown.
    pub(super) fn begins(
        &mut self,
        now: Moment,
        desk: &Desk,
        view: &[Letter],
        chosen: &Decision,
    ) -> Checked {
        let Decision::Offer { ids, interrupt } = chosen else {
            return Ok(());
        };
        self.told.keys = 0;
        for id in ids {
            self.may_go(desk, *id)?;
        }
        let is_free = desk.activity().activity == Activity::Idle && self.told.unread.is_none();
        Law::TheRightMoment.holds(!interrupt || !is_free, || {
            "an idle agent is interrupted".to_owned()
        })?;
        let want = self.turn(now, desk, view, ids[0]);
        let told = |ids: &[MessageId]| ids.iter().map(|id| id.id8()).collect::<Vec<_>>().join(" ");
        Law::DeliveryOrder.holds(*ids == want, || {
            format!("goes: {}; should go: {}", told(ids), told(&want))
        })
    }

    /// The turn that should go next. Whether an interrupt still tries its key on a question is the
    /// desk's to know, so there `first` counts.
    fn turn(&self, now: Moment, desk: &Desk, view: &[Letter], first: MessageId) -> Vec<MessageId> {
        let is_asked = matches!(desk.activity().activity, Activity::Blocked(_));
        let mut open: Vec<_> = view
            .iter()
            .filter_map(|letter| Some((letter, self.ledger.get(letter.message.id)?)))
            .filter(|(letter, known)| {
                let id = letter.message.id;
                let is_skipped = is_asked && !known.raw && id != first;
                let is_there = known.is_due(now.wall) && letter.is_pending(now.wall);
                is_there && !is_skipped && self.may_go(desk, id).is_ok()
            })
            .collect();
        open.sort_by_key(|(_, known)| known.place());
        let input = desk.input();
        let mut bytes = 0;
        let fits = |(at, (letter, known)): &(usize, &(&Letter, &Known))| {
            bytes += turn::size(letter, input, PATH.len());
            let joins = input == Input::Pasted && !known.goes_alone() && bytes <= turn::TURN;
            *at == 0 || joins
        };
        let goes_alone = open.first().is_some_and(|(_, known)| known.goes_alone());
        let most = if goes_alone { 1 } else { open.len() };
        let turn = open.iter().take(most).enumerate().take_while(fits);
        turn.map(|(_, (letter, _))| letter.message.id).collect()
    }

    /// What the desk wants done.
    pub(super) fn does(&mut self, desk: &Desk, effect: &Effect) -> Checked {
        let told = &mut self.told;
        match effect {
            Effect::Key(_) => {
                told.keys += 1;
                let is_free = told.draft.is_none() && told.pauses.is_empty();
                Law::CannotAct.holds(is_free, || "a key is pressed into somebody's typing")?;
                Law::TheRightMoment.holds(told.keys <= KEYS, || "a fourth interrupt key")
            }
            Effect::Offer { ids } | Effect::Write { ids } => {
                let is_raw = ids.iter().all(|id| self.is_raw(*id));
                self.may_type(desk, is_raw, "text")?;
                let is_open = self.told.pauses.is_empty();
                Law::TheRightMoment.holds(is_open, || "it is typed while paused")?;
                let is_starting = desk.activity().activity == Activity::Starting;
                Law::TheRightMoment.holds(!is_starting, || "it is typed while starting")
            }
            // Whoever presses it knows for which messages: see [`Oracle::may_type`].
            Effect::Enter => Ok(()),
            // Judged as facts.
            Effect::Offered { .. } | Effect::Withdraw { .. } | Effect::Uncertain { .. } => Ok(()),
        }
    }

    fn is_raw(&self, id: MessageId) -> bool {
        self.ledger.get(id).is_some_and(|known| known.raw)
    }

    /// Whether a text, or its Enter, may go into the terminal, by what the desk was told.
    pub(super) fn may_type(&self, desk: &Desk, is_raw: bool, what: &str) -> Checked {
        Law::CannotAct.holds(self.told.draft.is_none(), || {
            format!("{what} goes into a draft")
        })?;
        let is_asked = self.told.question.is_some();
        Law::CannotAct.holds(is_raw || !is_asked, || {
            format!("{what} goes into a question")
        })?;
        let is_over = desk.activity().activity == Activity::Exited;
        Law::TheRightMoment.holds(!is_over, || format!("{what} goes to nobody"))
    }

    /// The text of a turn goes in: its first bytes, for these messages.
    pub(super) fn writes(
        &mut self,
        ids: &[MessageId],
        letters: &[Letter],
        input: Input,
    ) -> Checked {
        let entries: Vec<_> = letters
            .iter()
            .map(|letter| turn::Entry {
                letter,
                path: &PATH,
            })
            .collect();
        let text = turn::render(&entries, input);
        let text = String::from_utf8_lossy(&text);
        for id in ids.iter().copied() {
            Law::NothingDoubled.holds(self.ledger.is_open(id), || {
                format!("{} is written, and no offer of it is on record", id.id8())
            })?;
            let is_raw = self.is_raw(id);
            let is_in = letters.iter().any(|letter| letter.message.id == id);
            let header = format!("id: {}", id.id8());
            let rest = text.split_once(&header).map(|(_, rest)| rest);
            Law::NothingLost.holds(is_in && (is_raw || rest.is_some()), || {
                format!("{} is not in its turn", id.id8())
            })?;
            let is_marked = rest.is_some_and(|rest| rest.starts_with(" (repeat"));
            // A raw text has no room for a mark: it is its sender's own act.
            let cut = self.ledger.get(id).is_some_and(|known| known.cut);
            self.ledger
                .expose(id, if is_raw { cut } else { is_marked })?;
        }
        self.is_half_typed = true;
        if let [only] = letters
            && self.is_raw(only.message.id)
        {
            return Ok(());
        }
        is_plain(&text, input)
    }

    /// Enter goes in, with which a turn is whole.
    pub(super) fn enters(&mut self, ids: &[MessageId], is_alive: bool) {
        self.is_half_typed = false;
        if is_alive {
            ids.iter().for_each(|id| self.ledger.complete(*id));
        }
    }

    /// Nobody writes on what is half typed.
    pub(super) fn is_cut_off(&mut self) {
        self.is_half_typed = false;
    }

    /// A key of a person's goes in, or the interrupt key.
    pub(super) fn types(&self) -> Checked {
        // A question must be answered, whatever else is under way.
        let is_answer = self.told.question.is_some();
        Law::CannotAct.holds(
            !self.is_half_typed || is_answer,
            || "a key falls between a text and its Enter",
        )
    }

    /// A hook puts these before the agent, as this block.
    pub(super) fn injects(&mut self, letters: &[Letter], block: &str) -> Checked {
        for letter in letters {
            let id = letter.message.id;
            let line = block.lines().find(|line| line.contains(&id.id8()));
            let is_marked = line.is_some_and(|line| line.contains("(repeat"));
            self.ledger.expose(id, is_marked)?;
        }
        Ok(())
    }
}

/// Nothing in a text acts: no key, no escape, no line break that would submit it.
fn is_plain(text: &str, input: Input) -> Checked {
    let inside = match input {
        Input::Typed => Some(text),
        Input::Pasted => text
            .strip_prefix("\u{1b}[200~")
            .and_then(|text| text.strip_suffix("\u{1b}[201~")),
    };
    let is_quiet = |c: char| match c {
        '\n' | '\t' => input == Input::Pasted,
        c => !c.is_control(),
    };
    let is_plain = inside.is_some_and(|text| text.chars().all(is_quiet));
    Law::CannotAct.holds(is_plain, || format!("a text acts: {text:?}"))
}
