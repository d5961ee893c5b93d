//! Tasks, notes and completions of each agent.

use super::marks::{Mark, MarkKind};
use super::{AMBIGUOUS_IDS_LISTED, Latest, Views, only, records};
use crate::error::{Error, Result};
use crate::journal::Journal;
use posthaste_core::tasks::{Completion, Deed, Moved, TaskCounts};
use posthaste_core::{AgentName, Event, Fact, IdPrefix, Note, NoteType, Task, TaskId, TaskStatus};
use rusqlite::params;

impl Journal {
    /// Return the task that a prefix means.
    pub fn task(&mut self, prefix: &IdPrefix) -> Result<Task> {
        let found = self.read(|views| views.tasks_with(prefix))?;
        let ambiguous = |prefix, fits: Vec<(u64, TaskId)>| Error::AmbiguousTask {
            prefix,
            fits: fits.into_iter().map(|(_, id)| id).collect(),
        };
        let (seq, _) = only(found, prefix, Error::NoTask, ambiguous)?;
        self.read(|views| views.task_at(seq))?
            .ok_or_else(|| Error::NoTask(prefix.clone()))
    }

    /// Return the tasks of one agent that have one of these statuses, oldest first.
    pub fn tasks(&mut self, agent: &AgentName, which: &[TaskStatus]) -> Result<Vec<Task>> {
        let mut seqs = self.read(|views| {
            let sql = "SELECT seq FROM v#_tasks WHERE agent = ?1 AND status = ?2 ORDER BY seq";
            let each = which.iter().map(|status| status_code(*status));
            let each = each.map(|code| views.seqs(sql, params![agent.as_str(), code]));
            Ok(each.collect::<rusqlite::Result<Vec<_>>>()?.concat())
        })?;
        seqs.sort_unstable();
        // A task that changed between two queries is in both results, and may have a third status.
        seqs.dedup();
        let mut tasks = self.in_pages(&seqs, Views::task_at)?;
        tasks.retain(|task| which.contains(&task.status));
        Ok(tasks)
    }

    pub fn task_counts(&mut self, agent: &AgentName) -> Result<TaskCounts> {
        self.read(|views| {
            let rows = views.rows(
                "SELECT status, count(*) FROM v#_tasks WHERE agent = ?1 GROUP BY status",
                [agent.as_str()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            let mut counts = TaskCounts::default();
            for (code, count) in rows {
                counts.add(status_of(code), count);
            }
            Ok(counts)
        })
    }

    /// Return the notes of one agent that have one of these types, oldest first.
    pub fn notes(&mut self, agent: &AgentName, which: &[NoteType]) -> Result<Vec<Note>> {
        let mut seqs = self.read(|views| {
            let sql =
                "SELECT seq FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = ?3 ORDER BY seq";
            let each = which.iter().map(|kind| note_code(*kind));
            let each = each
                .map(|code| views.seqs(sql, params![MarkKind::Note as u8, agent.as_str(), code]));
            Ok(each.collect::<rusqlite::Result<Vec<_>>>()?.concat())
        })?;
        seqs.sort_unstable();
        seqs.dedup();
        self.in_pages(&seqs, |views, seq| {
            Ok(records::fact_at(views.conn, seq)?
                .as_ref()
                .and_then(Note::of))
        })
    }

    /// Return the latest completion of an agent.
    pub fn completion(&mut self, agent: &AgentName) -> Result<Option<Completion>> {
        let fact = self.read(|views| views.latest_fact(Latest::Completion, agent))?;
        Ok(fact.as_ref().and_then(Completion::of))
    }
}

impl Views<'_> {
    pub(super) fn apply_work(self, seq: u64, fact: &Fact, deed: &Deed) -> rusqlite::Result<()> {
        match deed {
            Deed::Added(_) => self.add_task(seq, fact),
            Deed::Moved(moved) => match self.task_seq(moved.task)? {
                Some(task) => self.move_task(task, seq, moved),
                None => self.add_step(&moved.task.to_string(), seq),
            },
            Deed::Noted(noted) => self.mark(
                seq,
                &Mark {
                    kind: MarkKind::Note,
                    owner: fact.agent.to_string(),
                    at: note_code(noted.kind),
                },
            ),
            Deed::Completed(_) => {
                self.set_latest(Latest::Completion, fact.agent.as_str(), seq, None)?;
                // A completion changes the agent's loop too.
                self.apply_to_loop(fact)
            }
        }
    }

    fn add_task(self, seq: u64, fact: &Fact) -> rusqlite::Result<()> {
        let Some(task) = Task::added_by_fact(fact) else {
            return Ok(());
        };
        self.execute(
            "INSERT OR IGNORE INTO v#_tasks VALUES (?1, ?2, ?3, ?4, NULL, ?5)",
            params![
                seq,
                task.id.to_string(),
                task.agent.as_str(),
                status_code(task.status),
                task.iteration,
            ],
        )?;
        // Changes that were recorded before their task.
        for step in self.steps(&task.id.to_string())? {
            let fact = records::fact_at(self.conn, step)?;
            if let Some(Event::Work(Deed::Moved(moved))) = fact.map(|fact| fact.event) {
                self.move_task(seq, step, &moved)?;
            }
        }
        Ok(())
    }

    fn move_task(self, task: u64, seq: u64, moved: &Moved) -> rusqlite::Result<()> {
        self.execute(
            "UPDATE v#_tasks SET status = ?2, moved = ?3, iteration = coalesce(?4, iteration) WHERE seq = ?1",
            params![task, status_code(moved.status), seq, moved.iteration],
        )
        .map(drop)
    }

    fn task_seq(self, id: TaskId) -> rusqlite::Result<Option<u64>> {
        self.row(
            "SELECT seq FROM v#_tasks WHERE id = ?1",
            [id.to_string()],
            |row| row.get(0),
        )
    }

    fn tasks_with(self, prefix: &IdPrefix) -> rusqlite::Result<Vec<(u64, TaskId)>> {
        let rows: Vec<(u64, String)> = self.rows(
            &format!(
                "SELECT seq, id FROM v#_tasks WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT {AMBIGUOUS_IDS_LISTED}"
            ),
            [prefix.as_str(), &prefix.upper_bound()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let parse = |(seq, id): (u64, String)| Some((seq, id.parse().ok()?));
        Ok(rows.into_iter().filter_map(parse).collect())
    }

    pub(crate) fn task(self, id: TaskId) -> rusqlite::Result<Option<Task>> {
        match self.task_seq(id)? {
            Some(seq) => self.task_at(seq),
            None => Ok(None),
        }
    }

    fn task_at(self, seq: u64) -> rusqlite::Result<Option<Task>> {
        let row: Option<(u8, Option<u64>, Option<u32>)> = self.row(
            "SELECT status, moved, iteration FROM v#_tasks WHERE seq = ?1",
            [seq],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let added = records::fact_at(self.conn, seq)?;
        let task = added.as_ref().and_then(Task::added_by_fact);
        let (Some((status, moved, iteration)), Some(mut task)) = (row, task) else {
            return Ok(None);
        };
        task.status = status_of(status);
        task.iteration = iteration;
        if let Some(moved) = moved
            && let Some(fact) = records::fact_at(self.conn, moved)?
        {
            task.updated_at = fact.at;
        }
        Ok(Some(task))
    }
}

fn status_code(status: TaskStatus) -> u8 {
    match status {
        TaskStatus::InProgress => 0,
        TaskStatus::Blocked => 1,
        TaskStatus::Remaining => 2,
        TaskStatus::Completed => 3,
    }
}

fn status_of(code: u8) -> TaskStatus {
    match code {
        0 => TaskStatus::InProgress,
        1 => TaskStatus::Blocked,
        3 => TaskStatus::Completed,
        // Only `status_code` writes this column.
        _ => TaskStatus::Remaining,
    }
}

fn note_code(kind: NoteType) -> i64 {
    match kind {
        NoteType::Stuck => 0,
        NoteType::Learning => 1,
        NoteType::Tip => 2,
        NoteType::Decision => 3,
    }
}
