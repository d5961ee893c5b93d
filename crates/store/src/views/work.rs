//! Tasks, notes and completions: keeping them in views, looking them up there, and the pieces of
//! work that change them. As everywhere, the core decides, on views at head.

use crate::error::{Error, Result, sqlite};
use crate::journal::Journal;
use crate::journal::transaction::Log;
use crate::operation::{Answer, Denied, Done};
use crate::views::marks::{Kind, Mark};
use crate::views::messages::{NAMED, PAGE};
use crate::views::{Last, Views, record_at};
use jiff::Timestamp;
use posthaste_core::work::{self, Completion, Deed, Moved, NewNote, NewTask, TaskCounts};
use posthaste_core::{AgentName, Event, Fact, IdPrefix, Note, NoteType, Task, TaskId, TaskStatus};
use rusqlite::{Connection, OptionalExtension, params};

impl Journal {
    /// The task that a prefix means.
    pub fn task(&mut self, prefix: &IdPrefix) -> Result<Task> {
        self.catch_up()?;
        let path = self.home.journal();
        let fits = find(&self.conn, self.views, prefix).map_err(sqlite(&path))?;
        match fits.as_slice() {
            [] => Err(Error::NoTask(prefix.clone())),
            [(seq, _)] => task_at(&self.conn, self.views, *seq)
                .map_err(sqlite(&path))?
                .ok_or_else(|| Error::NoTask(prefix.clone())),
            several => Err(Error::AmbiguousTask {
                prefix: prefix.clone(),
                fits: several.iter().map(|(_, id)| *id).collect(),
            }),
        }
    }

    /// The tasks of one agent that stand so, in the order in which they were added.
    pub fn tasks(&mut self, agent: &AgentName, which: &[TaskStatus]) -> Result<Vec<Task>> {
        self.catch_up()?;
        let path = self.home.journal();
        let mut seqs: Vec<u64> = Vec::new();
        for status in which {
            let found = self
                .views
                .prepare(
                    &self.conn,
                    "SELECT seq FROM v#_tasks WHERE agent = ?1 AND status = ?2 ORDER BY seq",
                )
                .and_then(|mut look| {
                    let who = params![agent.as_str(), status_code(*status)];
                    look.query_map(who, |row| row.get(0))?.collect()
                });
            let found: Vec<u64> = found.map_err(sqlite(&path))?;
            seqs.extend(found);
        }
        seqs.sort_unstable();
        // One that was changed between two looks is in both.
        seqs.dedup();
        let tasks = self.in_pages(&seqs, task_at)?;
        // And it is what it is now.
        Ok(tasks
            .into_iter()
            .filter(|task| which.contains(&task.status))
            .collect())
    }

    pub fn task_counts(&mut self, agent: &AgentName) -> Result<TaskCounts> {
        self.catch_up()?;
        let look = || -> rusqlite::Result<TaskCounts> {
            let mut counts = TaskCounts::default();
            let mut look = self.views.prepare(
                &self.conn,
                "SELECT status, count(*) FROM v#_tasks WHERE agent = ?1 GROUP BY status",
            )?;
            let rows = look.query_map([agent.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
            for row in rows {
                let (code, count): (u8, u64) = row?;
                counts.add(status_of(code), count);
            }
            Ok(counts)
        };
        look().map_err(sqlite(&self.home.journal()))
    }

    /// The notes of one agent, of one kind or of all, in the order in which they were made.
    pub fn notes(&mut self, agent: &AgentName, which: &[NoteType]) -> Result<Vec<Note>> {
        self.catch_up()?;
        let mut seqs: Vec<u64> = Vec::new();
        for kind in which {
            let found = self
                .views
                .prepare(
                    &self.conn,
                    "SELECT seq FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = ?3 ORDER BY seq",
                )
                .and_then(|mut look| {
                    let who = params![Kind::Note as u8, agent.as_str(), kind_code(*kind)];
                    look.query_map(who, |row| row.get(0))?.collect()
                });
            let found: Vec<u64> = found.map_err(sqlite(&self.home.journal()))?;
            seqs.extend(found);
        }
        seqs.sort_unstable();
        seqs.dedup();
        self.in_pages(&seqs, |conn, _, seq| {
            Ok(fact_at(conn, seq)?.as_ref().and_then(Note::of))
        })
    }

    /// When an agent last said that it is done.
    pub fn completion(&mut self, agent: &AgentName) -> Result<Option<Completion>> {
        self.catch_up()?;
        let look = || -> rusqlite::Result<Option<Completion>> {
            let last = self
                .views
                .last(&self.conn, Last::Completion, agent.as_str())?;
            let Some((seq, _)) = last else {
                return Ok(None);
            };
            Ok(fact_at(&self.conn, seq)?.as_ref().and_then(Completion::of))
        };
        look().map_err(sqlite(&self.home.journal()))
    }

    /// What lies under these numbers, each stretch of it as of one moment.
    fn in_pages<T>(
        &self,
        seqs: &[u64],
        read: impl Fn(&Connection, Views, u64) -> rusqlite::Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(seqs.len());
        for stretch in seqs.chunks(PAGE as usize) {
            let look = || -> rusqlite::Result<Vec<Option<T>>> {
                let tx = self.conn.unchecked_transaction()?;
                stretch
                    .iter()
                    .map(|seq| read(&tx, self.views, *seq))
                    .collect()
            };
            let page = look().map_err(sqlite(&self.home.journal()))?;
            all.extend(page.into_iter().flatten());
        }
        Ok(all)
    }
}

impl Log<'_> {
    pub(crate) fn add_task(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        task: &NewTask,
    ) -> rusqlite::Result<Answer> {
        let event = match task.decide() {
            Ok(event) => event,
            Err(refusal) => return Ok(Err(Denied::Work(refusal))),
        };
        self.append_as(task.id.0, now, agent, event)?;
        // A change of it may have come from elsewhere before.
        let there = task_at(self.conn, self.views, *self.head)?;
        let task = there.unwrap_or_else(|| task.on_the_list_of(agent, now));
        let is_changed = true;
        Ok(Ok(Done::Task { task, is_changed }))
    }

    pub(crate) fn move_task(
        &mut self,
        now: Timestamp,
        who: &AgentName,
        id: TaskId,
        status: TaskStatus,
        iteration: Option<u32>,
    ) -> rusqlite::Result<Answer> {
        let seq = self.views.task_of(self.conn, id)?;
        let task = seq.map(|seq| task_at(self.conn, self.views, seq));
        let Some(mut task) = task.transpose()?.flatten() else {
            return Ok(Err(Denied::NoTask(id)));
        };
        let event = match task.decide(who, status, iteration) {
            Ok(event) => event,
            Err(refusal) => return Ok(Err(Denied::Work(refusal))),
        };
        let is_changed = event.is_some();
        if let Some(event) = event {
            let agent = task.agent.clone();
            let fact = self.append_as(uuid::Uuid::new_v4(), now, &agent, event)?;
            task.apply(&fact);
        }
        Ok(Ok(Done::Task { task, is_changed }))
    }

    pub(crate) fn add_note(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        note: &NewNote,
    ) -> rusqlite::Result<Answer> {
        let event = match note.decide() {
            Ok(event) => event,
            Err(refusal) => return Ok(Err(Denied::Work(refusal))),
        };
        self.append_as(note.id.0, now, agent, event)?;
        Ok(Ok(Done::Note(note.noted_for(agent, now))))
    }

    pub(crate) fn complete(
        &mut self,
        now: Timestamp,
        who: &AgentName,
        agent: &AgentName,
        iteration: Option<u32>,
    ) -> rusqlite::Result<Answer> {
        let run = self.views.latest_run(self.conn, agent)?;
        let run = run.map(|run| run.started.run);
        match work::complete(who, agent, run, iteration) {
            Ok(event) => {
                self.append_events(now, agent, vec![event])?;
                let agent = agent.clone();
                Ok(Ok(Done::Completed { agent, run }))
            }
            Err(refusal) => Ok(Err(Denied::Work(refusal))),
        }
    }

    pub(crate) fn append_as(
        &mut self,
        id: uuid::Uuid,
        now: Timestamp,
        agent: &AgentName,
        event: Event,
    ) -> rusqlite::Result<Fact> {
        let fact = Fact {
            id,
            at: now,
            agent: agent.clone(),
            event,
        };
        self.append(&fact)?;
        Ok(fact)
    }
}

impl Views {
    pub(crate) fn apply_work(
        self,
        conn: &Connection,
        seq: u64,
        fact: &Fact,
        deed: &Deed,
    ) -> rusqlite::Result<()> {
        match deed {
            Deed::Added(_) => self.keep_task(conn, seq, fact),
            Deed::Moved(moved) => match self.task_of(conn, moved.task)? {
                Some(task) => self.keep_move(conn, task, seq, moved),
                None => self.add_step(conn, &moved.task.to_string(), seq),
            },
            Deed::Noted(noted) => {
                let mark = Mark {
                    kind: Kind::Note,
                    whose: fact.agent.to_string(),
                    at: i64::from(kind_code(noted.kind)),
                };
                self.mark(conn, seq, &mark)
            }
            Deed::Completed(_) => {
                self.set_last(conn, Last::Completion, fact.agent.as_str(), seq, None)?;
                // It is the loop's, too.
                self.apply_to_loop(conn, fact)
            }
        }
    }

    fn keep_task(self, conn: &Connection, seq: u64, fact: &Fact) -> rusqlite::Result<()> {
        let Some(task) = Task::added_by_fact(fact) else {
            return Ok(());
        };
        self.prepare(
            conn,
            "INSERT OR IGNORE INTO v#_tasks VALUES (?1, ?2, ?3, ?4, NULL, ?5)",
        )?
        .execute(params![
            seq,
            task.id.to_string(),
            task.agent.as_str(),
            status_code(task.status),
            task.iteration,
        ])?;
        for step in self.steps(conn, &task.id.to_string())? {
            if let Some(Fact {
                event: Event::Work(Deed::Moved(moved)),
                ..
            }) = fact_at(conn, step)?
            {
                self.keep_move(conn, seq, step, &moved)?;
            }
        }
        Ok(())
    }

    fn keep_move(
        self,
        conn: &Connection,
        task: u64,
        seq: u64,
        moved: &Moved,
    ) -> rusqlite::Result<()> {
        self.prepare(
            conn,
            "UPDATE v#_tasks SET status = ?2, moved = ?3, iteration = coalesce(?4, iteration) WHERE seq = ?1",
        )?
        .execute(params![task, status_code(moved.status), seq, moved.iteration])?;
        Ok(())
    }

    /// The seq of the task with this id.
    fn task_of(self, conn: &Connection, id: TaskId) -> rusqlite::Result<Option<u64>> {
        self.prepare(conn, "SELECT seq FROM v#_tasks WHERE id = ?1")?
            .query_row([id.to_string()], |row| row.get(0))
            .optional()
    }
}

fn find(
    conn: &Connection,
    views: Views,
    prefix: &IdPrefix,
) -> rusqlite::Result<Vec<(u64, TaskId)>> {
    let mut look = views.prepare(
        conn,
        &format!(
            "SELECT seq, id FROM v#_tasks WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT {NAMED}"
        ),
    )?;
    let rows = look.query_map([prefix.as_str(), &prefix.upper_bound()], |row| {
        Ok((row.get(0)?, row.get::<_, String>(1)?))
    })?;
    rows.filter_map(|row| {
        row.map(|(seq, id)| id.parse().ok().map(|id| (seq, id)))
            .transpose()
    })
    .collect()
}

fn task_at(conn: &Connection, views: Views, seq: u64) -> rusqlite::Result<Option<Task>> {
    let kept: Option<(u8, Option<u64>, Option<u32>)> = views
        .prepare(
            conn,
            "SELECT status, moved, iteration FROM v#_tasks WHERE seq = ?1",
        )?
        .query_row([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let task = fact_at(conn, seq)?.as_ref().and_then(Task::added_by_fact);
    let (Some((status, moved, iteration)), Some(mut task)) = (kept, task) else {
        return Ok(None);
    };
    task.status = status_of(status);
    task.iteration = iteration;
    if let Some(moved) = moved
        && let Some(fact) = fact_at(conn, moved)?
    {
        task.updated_at = fact.at;
    }
    Ok(Some(task))
}

fn fact_at(conn: &Connection, seq: u64) -> rusqlite::Result<Option<Fact>> {
    Ok(record_at(conn, seq)?.and_then(|record| record.read().ok()))
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

fn kind_code(kind: NoteType) -> u8 {
    match kind {
        NoteType::Stuck => 0,
        NoteType::Learning => 1,
        NoteType::Tip => 2,
        NoteType::Decision => 3,
    }
}
