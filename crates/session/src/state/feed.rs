//! What was typed and shown since the driver was told last. Output and keys do not wake the owner of
//! the state each time, so it catches up before everything else that it tells the driver.

use crate::pty::keyboard::TypingState;
use posthaste_core::driver::Input;
use std::time::Instant;

/// When the program wrote something last.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputTimes {
    /// The last output before something was due.
    pub(super) in_time: Option<Instant>,
    pub(super) last: Option<Instant>,
}

/// How far the driver was told.
#[derive(Debug, Default)]
pub(super) struct Feed {
    output: Option<Instant>,
    draft_inputs: u64,
}

impl Feed {
    /// Return the inputs that the driver is still to be told, each with the time as of which it is
    /// told. Output that came before something was due is told first, so that no silence is seen
    /// where there was none; keys are told before all output that may be their echo.
    pub(super) fn news(
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
        let mut feed = Feed::default();
        let mut check = |typing, output, want: &[(Instant, Input)]| {
            assert_eq!(feed.news(typing, output), want);
        };
        check(typing(1, 5), output(None, 6), &[keys(5), shown(6)]);
        // Everything was told.
        check(typing(1, 5), output(None, 6), &[]);
        // The keys may be older than the output that was told before them.
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
