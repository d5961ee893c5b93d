//! Keys and output that the driver has not been told about yet. Not every key and output wakes the owner
//! of the state, so the owner catches up before every other input.

use crate::pty::keyboard::TypingState;
use posthaste_core::driver::Input;
use std::time::Instant;

/// Times of the program's last output.
#[derive(Debug, Clone, Copy)]
pub(in crate::state) struct OutputTimes {
    /// The last output before something was due.
    pub(in crate::state) in_time: Option<Instant>,
    pub(in crate::state) last: Option<Instant>,
}

/// Position up to which the driver knows keys and output.
#[derive(Debug, Default)]
pub(in crate::state) struct TypingAndOutput {
    output: Option<Instant>,
    draft_inputs: u64,
}

impl TypingAndOutput {
    /// Return the inputs that are new to the driver, each with the time at which it came. Output that
    /// came before something was due comes first, so that the driver does not mistake the time since
    /// for silence. Keys come before all output that may be their echo.
    pub(in crate::state) fn news(
        &mut self,
        typing: TypingState,
        output: OutputTimes,
    ) -> Vec<(Instant, Input)> {
        let keys = typing
            .last_at
            .filter(|_| self.draft_inputs < typing.draft_inputs);
        self.draft_inputs = typing.draft_inputs;
        let typed = |at| {
            let is_draft = typing.has_draft;
            (at, Input::KeysTyped { is_draft })
        };
        let mut news = Vec::new();
        let in_time = output.in_time.filter(|at| self.output < Some(*at));
        if let Some(at) = in_time {
            self.output = Some(at);
            news.extend(keys.map(|key| typed(key.min(at))));
            news.push((at, Input::OutputSeen));
        }
        let keys_left = keys.filter(|key| in_time.is_none_or(|at| at < *key));
        news.extend(keys_left.map(typed));
        if let Some(at) = output.last.filter(|at| self.output < Some(*at)) {
            self.output = Some(at);
            news.push((keys.map_or(at, |key| key.max(at)), Input::OutputSeen));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn keys_come_before_the_output_that_may_be_their_echo() {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let typing = |draft_inputs, last| TypingState {
            has_draft: true,
            draft_inputs,
            key_inputs: draft_inputs,
            last_at: Some(at(last)),
        };
        let output = |in_time: Option<u64>, last: u64| OutputTimes {
            in_time: in_time.map(at),
            last: Some(at(last)),
        };
        let keys = |millis| (at(millis), Input::KeysTyped { is_draft: true });
        let shown = |millis| (at(millis), Input::OutputSeen);
        let mut known = TypingAndOutput::default();
        let mut check = |typing, output, want: &[(Instant, Input)]| {
            assert_eq!(known.news(typing, output), want);
        };
        check(typing(1, 5), output(None, 6), &[keys(5), shown(6)]);
        // Nothing is new.
        check(typing(1, 5), output(None, 6), &[]);
        // Keys may be older than output that is known already.
        check(typing(2, 7), output(None, 6), &[keys(7)]);
        // Output in time comes first, with keys no later than it.
        check(
            typing(3, 9),
            output(Some(10), 12),
            &[keys(9), shown(10), shown(12)],
        );
        check(
            typing(4, 20),
            output(Some(15), 18),
            &[keys(15), shown(15), keys(20), shown(20)],
        );
    }
}
