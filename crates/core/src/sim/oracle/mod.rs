//! Watches a run and says which law is broken. It hears what delivery hears, sees what delivery
//! does, and judges by rules of its own, written as plainly as the design has them.

pub(crate) mod answer_targets;
pub(crate) mod delivery_record;
pub(crate) mod explanations;
pub(crate) mod law;
pub(crate) mod ledger;
pub(crate) mod observer;

use crate::activity::Activity;
use crate::delivery::{Decision, Delivery, Effect};
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::pending_replies;
use crate::priority::Priority;
use crate::sim::oracle::answer_targets::AnswerTargets;
use crate::sim::oracle::delivery_record::DeliveryRecord;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::ledger::{KnownMessage, Ledger};
use crate::sim::script::ProgramProfile;
use crate::sim::session::{Turn, TurnKind, turn_entry};
use crate::sim::world::manifest;
use crate::turn::{self, InputMode};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// How often an interrupt may press its key.
const MAX_INTERRUPT_KEYS: u8 = 3;
/// How often Enter may be pressed for one text.
const MAX_ENTERS: u8 = 2;
/// How often an answer may be typed.
const MAX_ANSWER_ATTEMPTS: u8 = 2;
/// Where every message's file is: long, so that a few of them fill a turn.
pub(crate) static MESSAGE_PATH: LazyLock<String> = LazyLock::new(|| "/deep".repeat(500));

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) ledger: Ledger,
    pub(crate) record: DeliveryRecord,
    pub(crate) answer_targets: AnswerTargets,
    acknowledged: BTreeSet<MessageId>,
    /// The text of a turn is in the terminal, and its Enter is not.
    is_half_typed: bool,
    /// The wall clock was set back: what it says of the past proves nothing.
    pub(crate) was_set_back: bool,
}

impl Oracle {
    /// A session begins, with nothing known.
    pub(crate) fn begin_session(&mut self, profile: ProgramProfile, now: Moment) {
        self.record = DeliveryRecord::new(profile, now);
        self.answer_targets.begin_session();
        self.is_half_typed = false;
    }

    pub(crate) fn acknowledge(&mut self, id: MessageId) {
        self.acknowledged.insert(id);
    }

    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = MessageId> {
        self.acknowledged.iter().copied()
    }

    /// Whether a message may be begun with now. Of an interrupt and an open question: it may try
    /// its key.
    fn check_may_go(&self, now: Moment, delivery: &Delivery, id: MessageId) -> Checked {
        let Some(known) = self.ledger.get(id) else {
            return Law::TheRightMoment.violated("a message that nobody has stored");
        };
        let priority = known.priority(now.wall);
        self.check_no_draft(known.raw, "it would be typed")?;
        if known.raw {
            self.check_answer(now, known)?;
        }
        let activity = delivery.activity().activity;
        let is_its_moment = match (&activity, priority) {
            _ if self
                .record
                .is_paused_for(known.raw || priority == Priority::Interrupt) =>
            {
                false
            }
            (Activity::Starting | Activity::Exited, _) => false,
            // Only what may end the question goes before what it holds up.
            (Activity::Blocked(_), Priority::Interrupt) => true,
            (_, _) if self.record.is_waiting_for_enter && !known.raw => false,
            (Activity::Blocked(_), _) if known.raw => true,
            (Activity::Blocked(_), priority) => priority == Priority::Interrupt,
            (Activity::Working, Priority::IdleFirst | Priority::Idle) => known.raw,
            (Activity::Working, Priority::Normal) => known.raw || !self.record.shows_box(),
            (Activity::Working, Priority::Interrupt) => true,
            (Activity::Idle, _) => true,
        };
        let is_read =
            priority == Priority::Interrupt && !known.raw || self.record.unread_since.is_none();
        let pauses = self.record.pauses.len();
        Law::TheRightMoment.holds(is_its_moment && is_read, || {
            format!(
                "{} ({priority}) goes while {activity}, {pauses} pauses, read: {}, waiting for Enter: {}",
                id.id8(),
                self.record.unread_since.is_none(),
                self.record.is_waiting_for_enter
            )
        })
    }

    /// Check that no draft is in the way. A text that the program put back after an interrupt is
    /// none.
    fn check_no_draft(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_ours = record.is_waiting_for_enter || is_raw;
        let has_draft = record.typed_draft_since.is_some() || (record.box_holds_text() && !is_ours);
        let is_clear = !has_draft || (!is_raw && record.may_be_restored_input());
        Law::CannotAct.holds(is_clear, || format!("{what} into a draft"))
    }

    /// An answer is for the question that stood open when it was sent, in this session, and is
    /// given once.
    fn check_answer(&self, now: Moment, known: &KnownMessage) -> Checked {
        let record = &self.record;
        let is_ours = record
            .started_at
            .is_none_or(|begun| begun.wall <= known.sent);
        let is_older = |(_, since): &(String, Moment)| since.wall <= known.sent;
        let is_its = record
            .question
            .as_ref()
            .map_or(!record.shows_questions(), is_older);
        // The clock was set back since: nobody can tell which question it was for.
        let is_past = known.sent <= now.wall;
        Law::CannotAct.holds(is_ours && is_its && is_past && !known.was_uncertain, || {
            format!("an answer goes into another question: {known:?}")
        })
    }

    /// Judge the turn that delivery begins, out of the pending mail.
    pub(crate) fn check_decision(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        view: &[MessageState],
        chosen: &Decision,
    ) -> Checked {
        let Decision::Offer { ids, interrupt } = chosen else {
            return Ok(());
        };
        self.record.interrupt_keys = 0;
        let is_idle = delivery.activity().activity == Activity::Idle;
        let is_paused = self.record.is_checkpoint_wanted && is_idle;
        Law::TheRightMoment.holds(
            !is_paused || self.is_urgent(ids),
            || "a turn begins at a checkpoint",
        )?;
        for id in ids {
            self.check_may_go(now, delivery, *id)?;
        }
        let is_free =
            delivery.activity().activity == Activity::Idle && self.record.unread_since.is_none();
        Law::TheRightMoment.holds(!interrupt || !is_free, || {
            "an idle agent is interrupted".to_owned()
        })?;
        let want = self.expected_turn(now, delivery, view, ids[0]);
        let list = |ids: &[MessageId]| ids.iter().map(|id| id.id8()).collect::<Vec<_>>().join(" ");
        Law::DeliveryOrder.holds(*ids == want, || {
            format!("goes: {}; should go: {}", list(ids), list(&want))
        })
    }

    /// Return the turn that should go next. Only delivery knows whether an interrupt still tries
    /// its key on a question, so there `first` counts.
    fn expected_turn(
        &self,
        now: Moment,
        delivery: &Delivery,
        view: &[MessageState],
        first: MessageId,
    ) -> Vec<MessageId> {
        let is_asked = matches!(delivery.activity().activity, Activity::Blocked(_));
        // What waits for a hook of a working agent lets pass what cannot wait.
        let goes_alone = self.ledger.get(first).is_some_and(KnownMessage::goes_alone);
        let has_hooks = self
            .record
            .profile
            .is_some_and(|profile| profile.hooks_take_mail);
        let is_working = delivery.activity().activity == Activity::Working;
        let is_by_hook = has_hooks && is_working && goes_alone;
        let mut open: Vec<_> = view
            .iter()
            .filter_map(|state| Some((state, self.ledger.get(state.message.id)?)))
            .filter(|(state, known)| {
                let id = state.message.id;
                let is_by_hook = is_by_hook && !known.goes_alone();
                let is_skipped = (is_asked && !known.raw || is_by_hook) && id != first;
                let is_there = known.is_due(now.wall) && state.is_pending(now.wall);
                is_there && !is_skipped && self.check_may_go(now, delivery, id).is_ok()
            })
            .collect();
        open.sort_by_key(|(_, known)| known.order(now.wall));
        let input = delivery.input();
        let mut bytes = 0;
        let fits = |(at, (state, known)): &(usize, &(&MessageState, &KnownMessage))| {
            bytes += turn::size(
                state,
                turn::TextPlacement::Inline,
                input,
                MESSAGE_PATH.len(),
            );
            let joins = input == InputMode::Pasted && !known.goes_alone() && bytes <= turn::TURN;
            *at == 0 || joins
        };
        let goes_alone = open.first().is_some_and(|(_, known)| known.goes_alone());
        let most = if goes_alone { 1 } else { open.len() };
        let turn = open.iter().take(most).enumerate().take_while(fits);
        turn.map(|(_, (state, _))| state.message.id).collect()
    }

    /// Judge an effect that delivery wants; `turn` is the turn under way.
    pub(crate) fn check_effect(
        &mut self,
        delivery: &Delivery,
        effect: &Effect,
        turn: &Turn,
    ) -> Checked {
        match effect {
            Effect::Key(keys) if keys == manifest::clear_keys().bytes() => self.check_clear_keys(),
            Effect::Key(_) => self.check_interrupt_key(),
            Effect::Offer { ids } => {
                let is_raw = ids.iter().all(|id| self.is_raw(*id));
                if is_raw {
                    self.record.answered_question = self.record.question_number();
                }
                self.check_no_draft(is_raw, "it is offered")?;
                self.check_may_write(delivery, is_raw, self.is_urgent(ids))
            }
            Effect::Write { ids } => {
                let is_raw = ids.iter().all(|id| self.is_raw(*id));
                let is_new = !ids.iter().any(|id| self.ledger.is_partly_written(*id));
                // An answer that had no effect is typed once more.
                let is_retry = is_raw && turn.attempts < MAX_ANSWER_ATTEMPTS;
                Law::NothingDoubled.holds(is_new || is_retry, || "a text is typed again")?;
                self.check_box(is_raw, "text")?;
                self.check_box_is_free(is_raw, "text")?;
                self.check_may_write(delivery, is_raw, self.is_urgent(ids))?;
                self.check_question(is_raw)
            }
            Effect::Remind { .. } => self.check_reminder(delivery),
            Effect::WriteReminder { .. } => {
                self.record.reminders_typed += 1;
                let many = self.record.reminders_typed;
                Law::RemindersAreFew.holds(many == 1, || "a reminder is typed twice")?;
                self.check_box(false, "a reminder")?;
                self.check_box_is_free(false, "a reminder")?;
                self.check_may_write(delivery, false, false)
            }
            Effect::Enter => self.check_enter(delivery, turn),
            Effect::Resume => {
                self.record.note_resumed();
                Ok(())
            }
            Effect::Offered { ids, .. } => {
                self.note_offered(ids, turn);
                Ok(())
            }
            // Judged as facts.
            Effect::SendDirect { ids, .. } => {
                let is_raw = ids.iter().any(|id| self.is_raw(*id));
                Law::CannotAct.holds(!is_raw, || "a hook is given an answer")?;
                self.check_may_write(delivery, false, self.is_urgent(ids))
            }
            // Nobody in the simulation has a door.
            Effect::Abort | Effect::Continue | Effect::OfferByApi { .. } => {
                Law::CannotAct.holds(false, || "a door is called that is not there")
            }
            Effect::Fail { ids, .. } => {
                // The keys of an unapplied answer do not count as a partly typed text.
                self.is_half_typed &= !ids.iter().any(|id| turn.ids.contains(id));
                Ok(())
            }
            Effect::Look
            | Effect::Accepted { .. }
            | Effect::Withdraw { .. }
            | Effect::Uncertain { .. } => Ok(()),
        }
    }

    fn note_offered(&mut self, ids: &[MessageId], turn: &Turn) {
        // Somebody else has pressed its Enter, and the agent says so.
        if ids
            .iter()
            .any(|id| self.record.waiting_messages.contains(id))
        {
            self.record.is_waiting_for_enter = false;
        }
        // A key may have been enough of an answer.
        let is_raw = ids.iter().all(|id| self.is_raw(*id));
        self.is_half_typed &= !is_raw;
        let is_answered = self.record.question_number() != self.record.answered_question;
        if is_raw && turn.is_whole && is_answered {
            ids.iter().for_each(|id| self.ledger.note_complete(*id));
        }
    }

    /// The keys that empty the box of what an interrupt made the program put back.
    fn check_clear_keys(&self) -> Checked {
        let is_free = !self.record.is_paused_for(true) && self.record.question.is_none();
        Law::CannotAct.holds(
            is_free && self.record.may_be_restored_input(),
            || "a person's text is erased",
        )
    }

    /// Text goes into a box that two looks show to be empty. An answer goes into its question.
    fn check_box(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_known = is_raw || !record.shows_box() || record.is_recognised_empty();
        Law::OnlyRecognised.holds(is_known, || {
            format!("{what} is typed, and the box is {:?}", record.input_box)
        })
    }

    /// The interrupt key. It goes where nobody types, and never ends the program.
    fn check_interrupt_key(&mut self) -> Checked {
        self.record.interrupt_keys += 1;
        let record = &self.record;
        let is_in_sight = record.input_box.is_recognised() || record.question.is_some();
        Law::OnlyRecognised.holds(
            !record.shows_box() || is_in_sight,
            || "the interrupt key goes into an unknown view",
        )?;
        let is_free = !record.is_paused_for(true)
            && (record.draft_since().is_none() || record.may_be_restored_input());
        Law::CannotAct.holds(is_free, || "a key is pressed into somebody's typing")?;
        let is_careful = record.shows_questions()
            && record
                .profile
                .is_some_and(|profile| profile.interrupt_ends_program);
        let works = |seen: &Sighting| seen.dialog.is_some() || !seen.claims.is_empty();
        let is_seen = record.question.is_some() || record.current_look.as_ref().is_some_and(works);
        let is_sure = is_seen || record.hook_says_working;
        Law::CannotAct.holds(
            !is_careful || is_sure,
            || "the interrupt key may end the program",
        )?;
        Law::TheRightMoment.holds(
            record.interrupt_keys <= MAX_INTERRUPT_KEYS,
            || "a fourth interrupt key",
        )
    }

    fn check_reminder(&mut self, delivery: &Delivery) -> Checked {
        let judged = delivery.activity();
        let is_idle = judged.activity == Activity::Idle;
        let is_read = self.record.unread_since.is_none() && !self.record.is_waiting_for_enter;
        Law::RemindersAreFew.holds(is_idle && is_read, || "it is not idle")?;
        let since = Some(judged.since.mono);
        Law::RemindersAreFew.holds(
            self.record.reminded_in_idle_since != since,
            || "it is reminded twice in one rest",
        )?;
        (
            self.record.reminded_in_idle_since,
            self.record.reminders_typed,
        ) = (since, 0);
        self.check_no_draft(false, "a reminder goes")?;
        self.check_may_write(delivery, false, false)
    }

    fn is_raw(&self, id: MessageId) -> bool {
        self.ledger.get(id).is_some_and(|known| known.raw)
    }

    fn is_urgent(&self, ids: &[MessageId]) -> bool {
        let known = |id: &MessageId| self.ledger.get(*id);
        ids.iter()
            .all(|id| known(id).is_some_and(KnownMessage::goes_alone))
    }

    /// Whether the agent can be written to, by what delivery was told.
    fn check_may_write(&self, delivery: &Delivery, is_raw: bool, is_urgent: bool) -> Checked {
        let activity = delivery.activity().activity;
        let is_starting = activity == Activity::Starting;
        let is_asked = self.record.question.is_some();
        let is_open = !self.record.is_paused_for(is_urgent);
        Law::CannotAct.holds(is_raw || !is_asked, || "text goes into a question")?;
        Law::TheRightMoment.holds(is_open, || "it is typed while paused")?;
        Law::TheRightMoment.holds(!is_starting, || "it is typed while starting")?;
        Law::TheRightMoment.holds(activity != Activity::Exited, || "it is typed to nobody")
    }

    /// No draft is there.
    fn check_box_is_free(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_ours = record.is_waiting_for_enter || is_raw;
        let is_free = record.typed_draft_since.is_none() && (is_ours || !record.box_holds_text());
        Law::CannotAct.holds(is_free, || format!("{what} goes into a draft"))
    }

    /// An answer goes into the question that it was begun for.
    fn check_question(&self, is_raw: bool) -> Checked {
        let record = &self.record;
        let is_same = record.question_number() == record.answered_question;
        let is_unknown = !record.shows_questions() && record.question_number().is_none();
        Law::CannotAct.holds(!is_raw || is_same || is_unknown, || {
            format!(
                "an answer to {:?} goes into {:?}",
                record.answered_question, record.question
            )
        })
    }

    /// Enter, only after a look at the screen where that tells something: no question, no draft,
    /// and once more only where the text still stands there.
    fn check_enter(&self, delivery: &Delivery, turn: &Turn) -> Checked {
        let record = &self.record;
        let is_raw = turn.ids.iter().all(|id| self.is_raw(*id)) && turn.kind == TurnKind::Messages;
        Law::CannotAct.holds(
            record.typed_draft_since.is_none(),
            || "Enter goes into a draft",
        )?;
        let is_asked = record.question.is_some();
        Law::CannotAct.holds(is_raw || !is_asked, || "Enter goes into a question")?;
        let has_looked = !record.shows_questions() || record.current_look.is_some();
        Law::CannotAct.holds(has_looked, || "Enter is pressed without a look")?;
        if is_raw && record.shows_questions() {
            self.check_question(true)?;
        }
        let is_alone = is_raw || !record.shows_box() || record.is_recognised_with(&turn.text());
        Law::OnlyRecognised.holds(is_alone, || {
            format!("Enter is pressed, and the box is {:?}", record.input_box)
        })?;
        Law::CannotAct.holds(turn.enters < MAX_ENTERS, || {
            format!("Enter is pressed again, after {} times", turn.enters)
        })?;
        let is_over = delivery.activity().activity == Activity::Exited;
        Law::TheRightMoment.holds(!is_over, || "Enter goes to nobody")
    }

    /// The text of a turn goes in: its first bytes.
    pub(crate) fn check_text(&mut self, turn: &Turn) -> Checked {
        let is_retry = turn.attempts > 1;
        let is_alone = !self.is_half_typed || is_retry;
        Law::CannotAct.holds(is_alone, || "a text falls into another")?;
        self.is_half_typed = true;
        let input = turn.input.unwrap_or(InputMode::Typed);
        match turn.kind {
            TurnKind::Messages => self.check_messages(turn, input),
            TurnKind::Reminder => {
                let text = turn::enclose(&pending_replies::reminder(&turn.messages), input);
                let text = String::from_utf8_lossy(&text);
                let is_in = |id: &MessageId| text.contains(&id.id8());
                Law::NothingLost.holds(
                    turn.ids.iter().all(is_in),
                    || "a reminder does not say of what",
                )?;
                check_plain(&text, input)
            }
        }
    }

    fn check_messages(&mut self, turn: &Turn, input: InputMode) -> Checked {
        let messages = &turn.messages;
        let entries: Vec<_> = messages.iter().map(turn_entry).collect();
        let text = turn::render(&entries, input);
        let text = String::from_utf8_lossy(&text);
        for id in turn.ids.iter().copied() {
            Law::NothingDoubled.holds(self.ledger.is_open(id), || {
                format!("{} is written, and no offer of it is on record", id.id8())
            })?;
            let is_raw = self.is_raw(id);
            let is_in = messages.iter().any(|state| state.message.id == id);
            let header = format!("id: {}", id.id8());
            let rest = text.split_once(&header).map(|(_, rest)| rest);
            Law::NothingLost.holds(is_in && (is_raw || rest.is_some()), || {
                format!("{} is not in its turn", id.id8())
            })?;
            // A raw text has no room for a mark, and goes once.
            let is_marked = rest.is_some_and(|rest| rest.starts_with(" (repeat"));
            if !is_raw || !self.ledger.is_partly_written(id) {
                self.ledger.note_shown(id, is_marked && !is_raw)?;
            }
        }
        if let [only] = &messages[..]
            && self.is_raw(only.message.id)
        {
            return Ok(());
        }
        check_plain(&text, input)
    }

    /// Enter goes in, with which a turn is whole.
    pub(crate) fn note_enter(&mut self, turn: &Turn, is_alive: bool) {
        self.is_half_typed = false;
        if is_alive && turn.kind == TurnKind::Messages {
            turn.ids
                .iter()
                .for_each(|id| self.ledger.note_complete(*id));
        }
    }

    /// Nobody of ours has the keyboard any more.
    pub(crate) fn check_keyboard_release(&mut self, turn: &Turn) -> Checked {
        let is_half_typed = std::mem::take(&mut self.is_half_typed);
        if is_half_typed && turn.is_open {
            self.record.is_waiting_for_enter = true;
            self.record.waiting_messages.clone_from(&turn.ids);
            let is_alone = delivery_record::holds(&self.record.input_box, &turn.text());
            let works = self.record.screen_shows_work || self.record.hook_says_working;
            let is_barred =
                works || self.record.question.is_some() || self.record.typed_draft_since.is_some();
            return Law::CannotAct.holds(
                is_barred || (self.record.shows_box() && !is_alone),
                || "the keyboard is given back between a text and its Enter",
            );
        }
        Ok(())
    }

    /// Nobody writes on what is half typed.
    pub(crate) fn note_text_cut_off(&mut self) {
        self.is_half_typed = false;
    }

    /// The first bytes of a line go in that is no message.
    pub(crate) fn check_line_start(&self) -> Checked {
        Law::CannotAct.holds(!self.is_half_typed, || "a line falls into a text")
    }

    /// A key of a person's goes in, or the interrupt key.
    pub(crate) fn check_key(&self) -> Checked {
        // A question must be answered, whatever else is under way.
        let is_answer = self.record.question.is_some();
        Law::CannotAct.holds(
            !self.is_half_typed || is_answer,
            || "a key falls between a text and its Enter",
        )
    }

    /// A hook puts these before the agent, as this block.
    pub(crate) fn check_injected(&mut self, messages: &[MessageState], block: &str) -> Checked {
        for state in messages {
            let id = state.message.id;
            let line = block.lines().find(|line| line.contains(&id.id8()));
            let is_marked = line.is_some_and(|line| line.contains("(repeat"));
            self.ledger.note_shown(id, is_marked)?;
        }
        Ok(())
    }
}

/// Nothing in a text acts: no key, no escape, no line break that would submit it.
fn check_plain(text: &str, input: InputMode) -> Checked {
    let inside = match input {
        InputMode::Typed => Some(text),
        InputMode::Pasted => text
            .strip_prefix("\u{1b}[200~")
            .and_then(|text| text.strip_suffix("\u{1b}[201~")),
    };
    let is_quiet = |c: char| match c {
        '\n' | '\t' => input == InputMode::Pasted,
        c => !c.is_control(),
    };
    let is_plain = inside.is_some_and(|text| text.chars().all(is_quiet));
    Law::CannotAct.holds(is_plain, || format!("a text acts: {text:?}"))
}
