//! Reads the files of a running program: its installed version, and the record that says whether
//! another process has its conversation. Never runs the program.

use crate::harness::installed;
use crate::host::launch_files::variable;
use crate::host::start::find_program;
use posthaste_core::harness::{Handover, Holder, Manifest};
use posthaste_store::data_file;
use posthaste_store::live::{Launch, process};
use rustix::fs::OFlags;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A longer record of the program is ignored.
const MAX_RECORD_BYTES: u64 = 64 << 10;
/// Interval between searches for the record of a process other than the session's child.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct ProgramFiles {
    pub(crate) version: Option<String>,
    record: Option<HandoverRecord>,
}

/// The file in which the program records that another process has its conversation.
#[derive(Debug)]
struct HandoverRecord {
    handover: Handover,
    env: Vec<(String, String)>,
    child: (u32, u64),
    /// The process whose record was found: the child, or one that a wrapper script has started.
    pid: Cell<Option<u32>>,
    searched_at: Cell<Option<Instant>>,
    /// The job that was read last. Only a whole record that names none ends it.
    job: RefCell<Option<String>>,
}

impl ProgramFiles {
    pub(crate) fn of(harness: &Manifest, launch: &Launch, child: (u32, u64)) -> Self {
        let record = harness.handover.clone().map(|handover| HandoverRecord {
            handover,
            env: launch.env.clone(),
            child,
            pid: Cell::new(None),
            searched_at: Cell::new(None),
            job: RefCell::new(None),
        });
        let command = launch.command.first();
        let program = command.and_then(|name| find_program(name, &launch.cwd, &launch.env));
        let version = program
            .filter(|_| harness.version.is_described())
            .and_then(|program| installed::version_of(&program, &harness.version));
        Self { version, record }
    }

    /// Describe the job of another process that has the conversation, if one has it now.
    pub(crate) fn handed_over(&self) -> Option<String> {
        self.record.as_ref()?.read()
    }
}

impl HandoverRecord {
    fn read(&self) -> Option<String> {
        let read = self.find().and_then(|path| {
            let text = data_file::read(&path, OFlags::empty(), MAX_RECORD_BYTES).ok()?;
            self.handover.read(&text)
        });
        match read {
            Some(Holder::With(job)) => *self.job.borrow_mut() = Some(job),
            Some(Holder::Here) => *self.job.borrow_mut() = None,
            None => {}
        }
        self.job.borrow().clone()
    }

    /// Find the record of the child, or of a process that the child has started.
    fn find(&self) -> Option<PathBuf> {
        if let Some(pid) = self.pid.get() {
            return self.path(pid);
        }
        let (child, started) = self.child;
        let has_record = |pid: &u32| self.path(*pid).is_some_and(|path| path.exists());
        let mut found = Some(child).filter(has_record);
        let now = Instant::now();
        let searched = self.searched_at.get();
        if found.is_none() && searched.is_none_or(|at| now >= at + SEARCH_INTERVAL) {
            self.searched_at.set(Some(now));
            found = process::left_of(child, started)
                .into_iter()
                .find(has_record);
        }
        self.pid.set(found);
        self.path(found?)
    }

    fn path(&self, pid: u32) -> Option<PathBuf> {
        self.handover
            .path(pid, |name: &str| variable(&self.env, name))
    }
}
