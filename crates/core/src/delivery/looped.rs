//! A loop's desk: its mail stands in its next prompt, which its runner writes. Nothing is typed.

use super::hold::Rule;
use super::{Desk, Lane, Reach};
use crate::activity::Activity;
use crate::mail::Letter;

impl Desk {
    /// What holds all mail of a loop at its terminal.
    pub(super) fn rule_of_loop(&self) -> Option<Rule> {
        match (self.manner.reach, self.activity().activity) {
            (Reach::Terminal, _) => None,
            (Reach::Prompt, Activity::Exited) => Some(Rule::Exited),
            (
                Reach::Prompt,
                Activity::Starting | Activity::Idle | Activity::Working | Activity::Blocked(_),
            ) => Some(Rule::Loop),
        }
    }
}

/// What is said of a message to a loop: the rule, the evidence, and what releases it.
pub(super) fn says(letter: &Letter) -> (String, String, String) {
    let reason = match Lane::of(letter) {
        Lane::Interrupt => "it ends what the loop is doing, and stands in the next prompt",
        Lane::Raw | Lane::Normal | Lane::Idle => {
            "this is a loop: it stands in the prompt of the next iteration"
        }
    };
    (
        reason.to_owned(),
        "nothing is typed into a loop".to_owned(),
        "the next iteration begins".to_owned(),
    )
}
