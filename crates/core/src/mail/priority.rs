//! Message priorities.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Declared most urgent first: `Ord` is the delivery order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Interrupts the agent.
    Interrupt,
    /// Delivered at the next boundary, whether the agent works or is idle.
    #[default]
    Normal,
    /// Delivered when the agent is idle, newest first.
    IdleFirst,
    /// Delivered when the agent is idle, oldest first.
    Idle,
}

impl Priority {
    pub const ALL: [Self; 4] = [Self::Interrupt, Self::Normal, Self::IdleFirst, Self::Idle];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Normal => "normal",
            Self::IdleFirst => "idle-first",
            Self::Idle => "idle",
        }
    }

    /// Return the position in the delivery order, by which the journal's views sort.
    pub fn rank(self) -> u8 {
        match self {
            Self::Interrupt => 1,
            Self::Normal => 2,
            Self::IdleFirst => 3,
            Self::Idle => 4,
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid priority: {0}")]
pub struct PriorityError(pub String);

impl FromStr for Priority {
    type Err = PriorityError;
    fn from_str(text: &str) -> Result<Self, PriorityError> {
        Self::ALL
            .into_iter()
            .find(|p| p.as_str() == text)
            .ok_or_else(|| PriorityError(crate::text::one_line(text, 40)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_priorities_is_their_urgency() {
        assert!(Priority::ALL.is_sorted());
        assert!(Priority::ALL.map(Priority::rank).is_sorted());
        for priority in Priority::ALL {
            assert_eq!(priority.as_str().parse(), Ok(priority));
            assert_eq!(
                serde_json::to_string(&priority).unwrap(),
                format!("\"{priority}\"")
            );
        }
        assert_eq!(
            "bogus".parse::<Priority>().unwrap_err().to_string(),
            "invalid priority: bogus"
        );
    }
}
