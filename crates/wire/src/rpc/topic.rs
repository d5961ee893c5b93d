//! Topics that a client can subscribe to.
//!
//! As in the original, `*` is an entry of its own beside the others, so that dropping another one
//! does not narrow it.

use serde::{Deserialize, Serialize};

/// Kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// An ask was opened or closed.
    Ask,
    /// A message has a new state.
    Message,
    /// A new line of output.
    Output,
    /// The session's state has changed.
    StateChange,
}

/// One entry of a subscription, in the order of listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interest {
    #[serde(rename = "*")]
    All,
    Ask,
    Message,
    Output,
    StateChange,
}

impl Interest {
    pub const ALL: [Self; 5] = [
        Self::All,
        Self::Ask,
        Self::Message,
        Self::Output,
        Self::StateChange,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "*",
            Self::Ask => "ask",
            Self::Message => "message",
            Self::Output => "output",
            Self::StateChange => "state_change",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|interest| interest.as_str() == name)
    }
}

impl From<Topic> for Interest {
    fn from(topic: Topic) -> Self {
        match topic {
            Topic::Ask => Self::Ask,
            Topic::Message => Self::Message,
            Topic::Output => Self::Output,
            Topic::StateChange => Self::StateChange,
        }
    }
}

/// Subscriptions of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Topics {
    held: [bool; Interest::ALL.len()],
}

impl Topics {
    pub fn subscribe(&mut self, events: &[Interest]) {
        events.iter().for_each(|event| self.set(*event, true));
    }

    pub fn unsubscribe(&mut self, events: &[Interest]) {
        events.iter().for_each(|event| self.set(*event, false));
    }

    pub fn wants(&self, topic: Topic) -> bool {
        self.holds(Interest::All) || self.holds(topic.into())
    }

    /// Return the entries in order.
    pub fn list(&self) -> Vec<Interest> {
        Interest::ALL
            .into_iter()
            .filter(|interest| self.holds(*interest))
            .collect()
    }

    fn holds(&self, interest: Interest) -> bool {
        self.held[interest as usize]
    }

    fn set(&mut self, interest: Interest, held: bool) {
        self.held[interest as usize] = held;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interests_are_listed_sorted() {
        let mut names = Interest::ALL.map(Interest::as_str);
        names.sort_unstable();
        assert_eq!(names, Interest::ALL.map(Interest::as_str));
        for interest in Interest::ALL {
            assert_eq!(Interest::from_name(interest.as_str()), Some(interest));
            assert_eq!(
                serde_json::to_string(&interest).unwrap(),
                format!("{:?}", interest.as_str())
            );
        }
    }

    #[test]
    fn a_star_stands_beside_the_others() {
        let mut topics = Topics::default();
        assert!(topics.list().is_empty());
        topics.subscribe(&[Interest::StateChange, Interest::Output]);
        assert_eq!(topics.list(), [Interest::Output, Interest::StateChange]);
        assert!(topics.wants(Topic::Output) && !topics.wants(Topic::Message));
        topics.subscribe(&[Interest::All]);
        topics.unsubscribe(&[Interest::Output, Interest::Message]);
        assert_eq!(topics.list(), [Interest::All, Interest::StateChange]);
        assert!(topics.wants(Topic::Output) && topics.wants(Topic::Message));
        topics.unsubscribe(&[Interest::All]);
        assert!(!topics.wants(Topic::Output) && topics.wants(Topic::StateChange));
    }
}
