//! The oracle: observes a run and reports the first broken law.
//!
//! Sees delivery's inputs and effects, and checks them by rules of its own, which are as simple as
//! the design states them.

pub(crate) mod answer_targets;
pub(crate) mod delivery_record;
pub(crate) mod explanations;
pub(crate) mod law;
pub(crate) mod ledger;
pub(crate) mod observer;

use crate::activity::Activity;
use crate::delivery::{Decision, Delivery};
use crate::driver::{Action, JournalOperation, KeyboardUser, TurnContent};
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
use crate::pending_replies;
use crate::priority::Priority;
use crate::sim::oracle::answer_targets::AnswerTargets;
use crate::sim::oracle::delivery_record::DeliveryRecord;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::ledger::{KnownMessage, Ledger};
use crate::sim::script::ProgramProfile;
use crate::sim::session::{Turn, TurnKind, turn_entry};
use crate::turn::{self, InputMode};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Maximum number of interrupt keys for one message.
const MAX_INTERRUPT_KEYS: u8 = 3;
/// Maximum number of Enter keys for one text.
const MAX_ENTERS: u8 = 2;
/// Maximum number of times that an answer is typed.
const MAX_ANSWER_ATTEMPTS: u8 = 2;
/// Path of every message's file. Long, so that a few messages fill a turn.
pub(crate) static MESSAGE_PATH: LazyLock<String> = LazyLock::new(|| "/deep".repeat(500));

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) ledger: Ledger,
    pub(crate) record: DeliveryRecord,
    pub(crate) answer_targets: AnswerTargets,
    acknowledged: BTreeSet<MessageId>,
    /// Whether the text of a turn is in the terminal and its Enter is not.
    is_half_typed: bool,
    /// Whether the wall clock was set back, so that past times prove nothing.
    pub(crate) was_set_back: bool,
}

impl Oracle {
    /// Begin a session, with an empty record.
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

    /// Check that an offer of a message may begin now. An interrupt may try its key on an open
    /// question.
    fn check_may_go(&self, now: Moment, delivery: &Delivery, id: MessageId) -> Checked {
        let Some(known) = self.ledger.get(id) else {
            return Law::TheRightMoment.violated("a message that is not stored is offered");
        };
        let priority = known.priority(now.wall);
        self.check_no_draft(known.raw, "it would be typed")?;
        if known.raw {
            self.check_answer(now, known)?;
        }
        let activity = delivery.activity().activity;
        let is_right_moment = match (&activity, priority) {
            _ if self
                .record
                .is_paused_for(known.raw || priority == Priority::Interrupt) =>
            {
                false
            }
            (Activity::Starting | Activity::Exited, _) => false,
            // Only a message that may close the question goes before the message that it blocks.
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
        Law::TheRightMoment.holds(is_right_moment && is_read, || {
            format!(
                "{} ({priority}) goes while {activity}, {pauses} pauses, read: {}, \
                 waiting for Enter: {}",
                id.id8(),
                self.record.unread_since.is_none(),
                self.record.is_waiting_for_enter
            )
        })
    }

    /// Check that no draft is in the way. A prompt that the program restored after an interrupt is
    /// not a draft.
    fn check_no_draft(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_ours = record.is_waiting_for_enter || is_raw;
        let has_draft = record.typed_draft_since.is_some() || (record.box_holds_text() && !is_ours);
        let is_clear = !has_draft || (!is_raw && record.may_be_restored_input());
        Law::CannotAct.holds(is_clear, || format!("{what} into a draft"))
    }

    /// Check that an answer belongs to the open question: sent in this session while the question
    /// was open, and given once.
    fn check_answer(&self, now: Moment, known: &KnownMessage) -> Checked {
        let record = &self.record;
        let is_ours = record
            .started_at
            .is_none_or(|begun| begun.wall <= known.sent);
        let is_older = |(_, since): &(String, Moment)| since.wall <= known.sent;
        let was_open = record
            .question
            .as_ref()
            .map_or(!record.shows_questions(), is_older);
        // If the clock was set back since, the question of the answer is unknown.
        let is_past = known.sent <= now.wall;
        Law::CannotAct.holds(
            is_ours && was_open && is_past && !known.was_uncertain,
            || format!("an answer goes into another question: {known:?}"),
        )
    }

    /// Check delivery's choice of the next turn from the pending mail.
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
            format!("the turn has {}; it should have {}", list(ids), list(&want))
        })
    }

    /// Return the messages that the next turn must have. Only delivery knows whether an interrupt
    /// may still try its key on a question, so `first` is accepted there.
    fn expected_turn(
        &self,
        now: Moment,
        delivery: &Delivery,
        view: &[MessageState],
        first: MessageId,
    ) -> Vec<MessageId> {
        let is_asked = matches!(delivery.activity().activity, Activity::Blocked(_));
        // An urgent message passes the messages that wait for a hook of a working agent.
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

    /// Check an action that delivery requests. `turn` is the current turn.
    pub(crate) fn check_action(
        &mut self,
        delivery: &Delivery,
        action: &Action,
        turn: &Turn,
    ) -> Checked {
        match action {
            Action::ClearBox(_) => self.check_clear_keys(),
            Action::PressKeys(_) => self.check_interrupt_key(),
            Action::LeaseKeyboard(KeyboardUser::Turn) => self.check_lease(delivery),
            Action::ReleaseKeyboard(KeyboardUser::Turn) => self.check_keyboard_release(turn),
            Action::Type {
                turn: content @ TurnContent::Messages(_),
                ..
            } => self.check_text_begin(delivery, &ids(content), turn),
            Action::Type {
                turn: TurnContent::Reminder(_),
                ..
            } => {
                self.record.reminders_typed += 1;
                let many = self.record.reminders_typed;
                Law::RemindersAreFew.holds(many == 1, || "a reminder is typed twice")?;
                self.check_box(false, "a reminder")?;
                self.check_box_is_free(false, "a reminder")?;
                self.check_may_write(delivery, false, false)
            }
            Action::PressEnter {
                by: KeyboardUser::Turn,
                ..
            } => self.check_enter(delivery, turn),
            Action::Commit {
                operation: JournalOperation::RecordStep { ids, report },
                ..
            } => {
                match report {
                    OfferReport::Offered { .. } => self.note_offered(ids, turn),
                    // The keys of an unapplied answer do not count as a partly typed text.
                    OfferReport::Failed { .. } => {
                        self.is_half_typed &= !ids.iter().any(|id| turn.ids.contains(id));
                    }
                    // The following facts are checked instead.
                    OfferReport::Offering { .. }
                    | OfferReport::Reminded { .. }
                    | OfferReport::Accepted { .. }
                    | OfferReport::Withdrawn { .. }
                    | OfferReport::Uncertain { .. } => {}
                }
                Ok(())
            }
            Action::AnswerHook {
                mail: Some(mail), ..
            } => {
                let ids = ids(&TurnContent::Messages(mail.messages.clone()));
                let is_raw = ids.iter().any(|id| self.is_raw(*id));
                Law::CannotAct.holds(!is_raw, || "a hook is given an answer")?;
                self.check_may_write(delivery, false, self.is_urgent(&ids))
            }
            // No simulated program has an HTTP API.
            Action::CheckApi { .. }
            | Action::PutMail { .. }
            | Action::ApiInterrupt { .. }
            | Action::ApiContinue { .. } => {
                Law::CannotAct.holds(false, || "an API is called that does not exist")
            }
            _ => Ok(()),
        }
    }

    /// Check a request for the keyboard.
    fn check_lease(&mut self, delivery: &Delivery) -> Checked {
        match delivery.turn_in_flight() {
            None => self.check_may_write(delivery, false, false),
            Some(turn) if turn.enters.is_some() => {
                self.record.note_resumed();
                Ok(())
            }
            Some(turn) if turn.is_reminder => self.check_reminder(delivery),
            Some(turn) => {
                let is_raw = turn.ids.iter().all(|id| self.is_raw(*id));
                if is_raw {
                    self.record.answered_question = self.record.question_number();
                }
                self.check_no_draft(is_raw, "it is offered")?;
                self.check_may_write(delivery, is_raw, self.is_urgent(&turn.ids))
            }
        }
    }

    /// Check that the text of messages may be typed now.
    fn check_text_begin(&self, delivery: &Delivery, ids: &[MessageId], turn: &Turn) -> Checked {
        let is_raw = ids.iter().all(|id| self.is_raw(*id));
        let is_new = !ids.iter().any(|id| self.ledger.is_partly_written(*id));
        // An answer without effect is typed once more.
        let is_retry = is_raw && turn.attempts < MAX_ANSWER_ATTEMPTS;
        Law::NothingDoubled.holds(is_new || is_retry, || "a text is typed again")?;
        self.check_box(is_raw, "text")?;
        self.check_box_is_free(is_raw, "text")?;
        self.check_may_write(delivery, is_raw, self.is_urgent(ids))?;
        self.check_question(is_raw)
    }

    fn note_offered(&mut self, ids: &[MessageId], turn: &Turn) {
        // A person has pressed Enter for the text, and the program's hook reports it.
        if ids
            .iter()
            .any(|id| self.record.waiting_messages.contains(id))
        {
            self.record.is_waiting_for_enter = false;
        }
        // A single key may have answered the question.
        let is_raw = ids.iter().all(|id| self.is_raw(*id));
        self.is_half_typed &= !is_raw;
        let is_answered = self.record.question_number() != self.record.answered_question;
        if is_raw && turn.is_whole && is_answered {
            ids.iter().for_each(|id| self.ledger.note_complete(*id));
        }
    }

    /// Check the keys that clear a restored prompt from the input box.
    fn check_clear_keys(&self) -> Checked {
        let is_free = !self.record.is_paused_for(true) && self.record.question.is_none();
        Law::CannotAct.holds(
            is_free && self.record.may_be_restored_input(),
            || "a person's text is erased",
        )
    }

    /// Check that two looks show the box to be empty before text is typed. An answer goes into its
    /// question instead.
    fn check_box(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_known = is_raw || !record.shows_box() || record.is_recognised_empty();
        Law::OnlyRecognised.holds(is_known, || {
            format!("{what} is typed, and the box is {:?}", record.input_box)
        })
    }

    /// Check the interrupt key: no person is typing, and the key does not end the program.
    fn check_interrupt_key(&mut self) -> Checked {
        self.record.interrupt_keys += 1;
        let record = &self.record;
        let is_in_sight = record.input_box.is_recognised() || record.question.is_some();
        Law::OnlyRecognised.holds(
            !record.shows_box() || is_in_sight,
            || "the interrupt key goes into an unrecognised view",
        )?;
        let is_free = !record.is_paused_for(true)
            && (record.draft_since().is_none() || record.may_be_restored_input());
        Law::CannotAct.holds(is_free, || "a key is pressed while a person types")?;
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
        Law::RemindersAreFew.holds(
            is_idle && is_read,
            || "a reminder is sent to an agent that is not idle",
        )?;
        let since = Some(judged.since.mono);
        Law::RemindersAreFew.holds(
            self.record.reminded_in_idle_since != since,
            || "the agent is reminded twice in one idle period",
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

    /// Check, against the delivery record, that the agent can be written to.
    fn check_may_write(&self, delivery: &Delivery, is_raw: bool, is_urgent: bool) -> Checked {
        let activity = delivery.activity().activity;
        let is_starting = activity == Activity::Starting;
        let is_asked = self.record.question.is_some();
        let is_open = !self.record.is_paused_for(is_urgent);
        Law::CannotAct.holds(is_raw || !is_asked, || "text goes into a question")?;
        Law::TheRightMoment.holds(is_open, || "text is typed while paused")?;
        Law::TheRightMoment.holds(!is_starting, || "text is typed while starting")?;
        Law::TheRightMoment.holds(
            activity != Activity::Exited,
            || "it is typed after the program has ended",
        )
    }

    /// Check that no draft is in the box.
    fn check_box_is_free(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_ours = record.is_waiting_for_enter || is_raw;
        let is_free = record.typed_draft_since.is_none() && (is_ours || !record.box_holds_text());
        Law::CannotAct.holds(is_free, || format!("{what} goes into a draft"))
    }

    /// Check that an answer goes into the question for which it was begun.
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

    /// Check Enter. If the screen shows questions, a look must come first. No question and no draft
    /// may be open, and a second Enter requires that the text is still in the box.
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
        Law::TheRightMoment.holds(!is_over, || "Enter is pressed after the program has ended")
    }

    /// Check the text of a turn when its first bytes are written.
    pub(crate) fn check_text(&mut self, turn: &Turn) -> Checked {
        let is_retry = turn.attempts > 1;
        let is_alone = !self.is_half_typed || is_retry;
        Law::CannotAct.holds(is_alone, || "a text is typed into another text")?;
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
                    || "a reminder does not name its messages",
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
                format!("{} is written without a recorded offer", id.id8())
            })?;
            let is_raw = self.is_raw(id);
            let is_in = messages.iter().any(|state| state.message.id == id);
            let header = format!("id: {}", id.id8());
            let rest = text.split_once(&header).map(|(_, rest)| rest);
            Law::NothingLost.holds(is_in && (is_raw || rest.is_some()), || {
                format!("{} is missing from its turn", id.id8())
            })?;
            // A raw text has no room for a mark, so it is shown only once.
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

    /// Note that Enter was written, which completes a turn.
    pub(crate) fn note_enter(&mut self, turn: &Turn, is_alive: bool) {
        self.is_half_typed = false;
        if is_alive && turn.kind == TurnKind::Messages {
            turn.ids
                .iter()
                .for_each(|id| self.ledger.note_complete(*id));
        }
    }

    /// Check a release of the keyboard by the session.
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
                || "the keyboard is released between a text and its Enter",
            );
        }
        Ok(())
    }

    /// Note that a partly typed text will not be continued.
    pub(crate) fn note_text_cut_off(&mut self) {
        self.is_half_typed = false;
    }

    /// Check the first bytes of a nudge's line.
    pub(crate) fn check_line_start(&self) -> Checked {
        Law::CannotAct.holds(!self.is_half_typed, || "a line is typed into a text")
    }

    /// Check a key of a person, or the interrupt key.
    pub(crate) fn check_key(&self) -> Checked {
        // A person must be able to answer a question at any time.
        let is_answer = self.record.question.is_some();
        Law::CannotAct.holds(
            !self.is_half_typed || is_answer,
            || "a key is pressed between a text and its Enter",
        )
    }

    /// Check a block with which a hook shows these messages.
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

/// Check that a text has no effect of its own: no key, no escape sequence, no line break that would
/// submit it.
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
    Law::CannotAct.holds(is_plain, || {
        format!("a text has a control character: {text:?}")
    })
}

/// Return the messages of a turn.
fn ids(turn: &TurnContent) -> Vec<MessageId> {
    let messages = turn.messages().into_iter();
    messages.map(|mail| mail.message.id).collect()
}
