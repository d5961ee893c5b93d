//! Whether the agent itself has written that all is done.
//!
//! The token may stand in the prompt too, and programs print their prompt: as it is, wrapped,
//! framed or quoted in JSON. A token is taken for the agent's own word unless what stands before it
//! is what stands before one in the prompt. Holds a bounded piece of the output, whatever its
//! length.

use super::plain::Plain;
use std::collections::{BTreeSet, VecDeque};

/// What an agent writes when all is done and it has no tool to say so.
pub const TOKEN: &str = "<promise>COMPLETE</promise>";

/// How many letters and digits around a token tell where it comes from.
const CONTEXT: usize = 16;
/// How many of those the token has itself.
const LETTERS: usize = 20;

/// Whether a character tells where a token comes from: letters and digits do, but for those that
/// a backslash may have made of something else, wherever a line was broken.
fn tells(c: char) -> bool {
    c.is_alphanumeric() && !matches!(c, 'n' | 'r' | 't' | 'b' | 'f' | 'u')
}

/// Looks for the token in one iteration's output.
#[derive(Debug)]
pub struct Detector {
    plain: Plain,
    window: Window,
    watch: Watch,
}

impl Detector {
    /// For an agent that was given this prompt.
    pub fn new(prompt: &str) -> Self {
        Self {
            plain: Plain::default(),
            window: Window::default(),
            watch: Watch {
                marks: marks(prompt),
                ..Watch::default()
            },
        }
    }

    /// Looks at what the agent has written, in pieces of any size, and says whether it has said
    /// that all is done.
    pub fn feed(&mut self, bytes: &[u8]) -> bool {
        let Self {
            plain,
            window,
            watch,
        } = self;
        plain.feed(bytes, |c| {
            watch.follow(c);
            if window.push(c) {
                watch.found(window);
            }
        });
        self.is_complete()
    }

    /// The output has ended: what could still have become an echo of the prompt has not.
    pub fn finish(&mut self) -> bool {
        let doubts = std::mem::take(&mut self.watch.doubts);
        self.watch.is_complete |= !doubts.is_empty();
        self.is_complete()
    }

    pub fn is_complete(&self) -> bool {
        self.watch.is_complete
    }

    /// In interactive mode a token counts for nothing, then and later.
    pub fn set_interactive(&mut self, is_interactive: bool) {
        self.watch.is_suppressed = is_interactive;
        if is_interactive {
            self.watch.doubts.clear();
        }
    }
}

/// A token in the prompt: the letters and digits before it and after it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    before: Vec<char>,
    after: Vec<char>,
}

/// The tokens in the prompt.
fn marks(prompt: &str) -> BTreeSet<Mark> {
    let mut window = Window::default();
    let (mut words, mut ends) = (Vec::new(), Vec::new());
    Plain::default().feed(prompt.as_bytes(), |c| {
        if tells(c) {
            words.push(c);
        }
        if window.push(c) {
            ends.push(words.len());
        }
    });
    let mark = |end: usize| {
        let start = end.saturating_sub(LETTERS);
        Mark {
            before: words[start.saturating_sub(CONTEXT)..start].to_vec(),
            after: words[end..words.len().min(end + CONTEXT)].to_vec(),
        }
    };
    ends.into_iter().map(mark).collect()
}

/// The last of what was said.
#[derive(Debug, Default)]
struct Window {
    /// As many characters as the token has.
    recent: VecDeque<char>,
    /// Letters and digits: the token's and those before it.
    words: VecDeque<char>,
}

impl Window {
    /// Takes a character; whether it is the last one of the token.
    fn push(&mut self, c: char) -> bool {
        push_bounded(&mut self.recent, c, TOKEN.len());
        if tells(c) {
            push_bounded(&mut self.words, c, LETTERS + CONTEXT);
        }
        c == '>' && self.recent.iter().copied().eq(TOKEN.chars())
    }

    /// Whether these stand before the token that has just ended.
    fn has_before(&self, before: &[char]) -> bool {
        let start = self.words.len().saturating_sub(LETTERS);
        let Some(from) = start.checked_sub(before.len()) else {
            return false;
        };
        self.words.range(from..start).eq(before)
    }
}

fn push_bounded(queue: &mut VecDeque<char>, c: char, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(c);
}

#[derive(Debug, Default)]
struct Watch {
    marks: BTreeSet<Mark>,
    /// Tokens that what follows must tell about; a token has more letters than are waited for,
    /// so there is never more than one or two.
    doubts: Vec<Doubt>,
    is_suppressed: bool,
    is_complete: bool,
}

/// A token with as little before it as one near the beginning of the prompt has. It is an echo if
/// the prompt's own text follows.
#[derive(Debug)]
struct Doubt {
    /// What would have to follow, for each that it may be.
    after: Vec<Vec<char>>,
    followed: usize,
}

impl Watch {
    fn found(&mut self, window: &Window) {
        if self.is_suppressed || self.is_complete {
            return;
        }
        let alike = |mark: &&Mark| window.has_before(&mark.before);
        let alike: Vec<&Mark> = self.marks.iter().filter(alike).collect();
        let is_sure = |mark: &&Mark| mark.before.len() == CONTEXT || mark.after.is_empty();
        if alike.iter().any(is_sure) {
            return;
        }
        if alike.is_empty() {
            self.is_complete = true;
            return;
        }
        let after = alike.iter().map(|mark| mark.after.clone()).collect();
        let followed = 0;
        self.doubts.push(Doubt { after, followed });
    }

    /// Takes a character that follows whatever is in doubt.
    fn follow(&mut self, c: char) {
        if self.doubts.is_empty() || !tells(c) {
            return;
        }
        let is_complete = &mut self.is_complete;
        self.doubts.retain_mut(|doubt| {
            let at = doubt.followed;
            doubt.after.retain(|after| after.get(at) == Some(&c));
            doubt.followed += 1;
            *is_complete |= doubt.after.is_empty();
            // The prompt's own text, as far as it goes or as is enough.
            let is_echo = |after: &Vec<char>| after.len() == doubt.followed;
            !doubt.after.is_empty() && !doubt.after.iter().any(is_echo)
        });
    }
}

#[cfg(test)]
mod tests;
