//! Size limits for the growing parts of a prompt: notes, tasks, criteria, injected texts and the
//! spec. Omitted entries are counted, so that the prompt can mention them. Never chooses by
//! content.

use crate::loop_::Waiting;
use crate::tasks::{MAX_TEXT_BYTES, Note, Task, TaskStatus};
use crate::text;

/// Maximum sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// One note, task or criterion.
    pub text: usize,
    /// All notes, all tasks or all criteria.
    pub list: usize,
    /// The spec; an agent reads a longer one itself.
    pub spec: usize,
    /// All injected texts; the others wait for the next prompt. The first always fits.
    pub injected: usize,
}

impl Bounds {
    /// From the widest limits, for every prompt, to the narrowest, for prompts with a maximum
    /// length.
    pub const STEPS: [Self; 3] = [
        Self {
            text: MAX_TEXT_BYTES,
            list: 64 << 10,
            spec: 32 << 10,
            injected: usize::MAX,
        },
        Self {
            text: 2 << 10,
            list: 16 << 10,
            spec: 16 << 10,
            injected: 24 << 10,
        },
        Self {
            text: 400,
            list: 4 << 10,
            spec: 2 << 10,
            injected: 0,
        },
    ];

    /// Return the injected texts that fit, in order.
    pub fn injected<'a>(&self, waiting: &'a [Waiting]) -> &'a [Waiting] {
        let mut room = self.injected;
        let fits = |waiting: &&Waiting| {
            let cost = cost(&waiting.text);
            let is_in = cost <= room;
            room = room.saturating_sub(cost);
            is_in
        };
        let count = waiting.iter().take_while(fits).count();
        &waiting[..count.max(1).min(waiting.len())]
    }

    /// Return the newest notes of earlier iterations and from outside of the loop, and the number
    /// of omitted ones.
    pub(super) fn notes(&self, notes: &[Note], iteration: u32) -> (Vec<Note>, usize) {
        let earlier = |note: &&Note| note.iteration.is_none_or(|n| n < iteration);
        let newest = notes.iter().filter(earlier).rev();
        let (mut kept, left) = self.fitting(newest, |note| &mut note.text, "note_list");
        kept.reverse();
        (kept, left)
    }

    /// Return the open tasks, those in progress first, and the number of omitted ones.
    pub(super) fn tasks(&self, tasks: &[Task]) -> (Vec<Task>, usize) {
        let of = |status| {
            tasks
                .iter()
                .filter(move |task: &&Task| task.status == status)
        };
        let ordered = TaskStatus::ALL.into_iter().flat_map(of);
        self.fitting(ordered, |task| &mut task.text, "task_list")
    }

    /// Return criteria as lines, and the number of omitted ones.
    pub(super) fn lines<'a>(&self, lines: impl Iterator<Item = &'a str>) -> (Vec<String>, usize) {
        let lines: Vec<_> = lines.map(|line| text::one_line(line, self.text)).collect();
        self.fitting(lines.iter(), |line| line, "the PRD")
    }

    /// Return the entries that fit, from the first on, each shortened if necessary.
    fn fitting<'a, T: Clone + 'a>(
        &self,
        items: impl Iterator<Item = &'a T>,
        text_of: impl Fn(&mut T) -> &mut String,
        whole: &str,
    ) -> (Vec<T>, usize) {
        let (mut room, mut left) = (self.list, 0);
        let mut kept = Vec::new();
        for item in items {
            let mut item = item.clone();
            let text = text_of(&mut item);
            let length = text.len();
            if length > self.text {
                let head = text::head(text, self.text).trim_end();
                *text = format!("{head} (cut; all {length} bytes: {whole})");
            }
            let cost = cost(text);
            if cost > room {
                left += 1;
                // Later entries must not be included either.
                room = 0;
                continue;
            }
            room -= cost;
            kept.push(item);
        }
        (kept, left)
    }
}

/// Return the maximum number of bytes of a text as an entry of a list.
fn cost(said: &str) -> usize {
    const INDENT_BYTES: usize = 8;
    const LABEL_BYTES: usize = 24;
    let lines = text::lines(said).map(|line| line.len() + INDENT_BYTES);
    lines.sum::<usize>() + LABEL_BYTES
}
