//! Checks of everything that is typed: texts, Enter, the interrupt key, and the keys around them.

use crate::activity::Activity;
use crate::delivery::Delivery;
use crate::harness::Sighting;
use crate::id::MessageId;
use crate::pending_replies;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::{Oracle, delivery_record};
use crate::sim::session::{Turn, TurnKind, turn_entry};
use crate::turn::{self, InputMode};

/// Maximum number of interrupt keys for one message.
pub(super) const MAX_INTERRUPT_KEYS: u8 = 3;
/// Maximum number of Enter keys for one text.
const MAX_ENTERS: u8 = 2;

impl Oracle {
    /// Check the keys that clear a restored prompt from the input box.
    pub(super) fn check_clear_keys(&self) -> Checked {
        let is_free = !self.record.is_paused_for(true) && self.record.question.is_none();
        Law::CannotAct.holds(
            is_free && self.record.may_be_restored_input(),
            || "a person's text is erased",
        )
    }

    /// Check that two looks show the box to be empty before text is typed. An answer goes into its
    /// question instead.
    pub(super) fn check_box(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_known = is_raw || !record.shows_box() || record.is_recognised_empty();
        Law::OnlyRecognised.holds(is_known, || {
            format!("{what} is typed, and the box is {:?}", record.input_box)
        })
    }

    /// Check the interrupt key: no person is typing, and the key does not end the program.
    pub(super) fn check_interrupt_key(&mut self) -> Checked {
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

    /// Check that no draft is in the box.
    pub(super) fn check_box_is_free(&self, is_raw: bool, what: &str) -> Checked {
        let record = &self.record;
        let is_ours = record.is_waiting_for_enter || is_raw;
        let is_free = record.typed_draft_since.is_none() && (is_ours || !record.box_holds_text());
        Law::CannotAct.holds(is_free, || format!("{what} goes into a draft"))
    }

    /// Check that an answer goes into the question for which it was begun.
    pub(super) fn check_question(&self, is_raw: bool) -> Checked {
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
    pub(super) fn check_enter(&self, delivery: &Delivery, turn: &Turn) -> Checked {
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

    pub(super) fn check_messages(&mut self, turn: &Turn, input: InputMode) -> Checked {
        let messages = &turn.messages;
        let entries: Vec<_> = messages.iter().map(turn_entry).collect();
        let text = turn::render(&entries, input);
        let text = String::from_utf8_lossy(&text);
        for id in turn.ids.iter().copied() {
            let is_in = messages.iter().any(|state| state.message.id == id);
            Law::NothingLost.holds(is_in, || format!("{} is missing from its turn", id.id8()))?;
            self.check_shown(id, &text)?;
        }
        if let [only] = &messages[..]
            && self.is_raw(only.message.id)
        {
            return Ok(());
        }
        check_plain(&text, input)
    }

    /// Check that a text that is about to reach the agent shows a message, after its offer was
    /// recorded, and marked if it is a repeat.
    pub(super) fn check_shown(&mut self, id: MessageId, text: &str) -> Checked {
        Law::NothingDoubled.holds(self.ledger.is_open(id), || {
            format!("{} is written without a recorded offer", id.id8())
        })?;
        let is_raw = self.is_raw(id);
        let header = format!("id: {}", id.id8());
        let rest = text.split_once(&header).map(|(_, rest)| rest);
        Law::NothingLost.holds(is_raw || rest.is_some(), || {
            format!("{} is missing from its turn", id.id8())
        })?;
        // A raw text has no room for a mark, so it is shown only once.
        let is_marked = rest.is_some_and(|rest| rest.starts_with(" (repeat"));
        match is_raw && self.ledger.is_partly_written(id) {
            true => Ok(()),
            false => self.ledger.note_shown(id, is_marked && !is_raw),
        }
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
            let works = works && self.record.holds_during_work();
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
