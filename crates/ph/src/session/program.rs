//! What the files of a running program tell about it: its installed version, and whether another
//! process has its conversation. Reads them and never runs the program.

use super::place::Launch;
use super::start::find_program;
use crate::harness::installed;
use posthaste_core::harness::Manifest;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// How much of the program's own record is read.
const RECORD_BYTES: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct ProgramFiles {
    pub(crate) version: Option<String>,
    /// The file in which the program records that another process has its conversation.
    record: Option<PathBuf>,
}

impl ProgramFiles {
    pub(crate) fn of(harness: &Manifest, launch: &Launch, pid: u32) -> Self {
        let variable = |name: &str| -> Option<OsString> {
            let mut given = launch.env.iter().rev();
            let given = given.find(|(other, _)| other == name);
            given
                .map(|(_, value)| value.into())
                .or_else(|| std::env::var_os(name))
        };
        let handover = harness.handover.as_ref();
        let record = handover.and_then(|handover| handover.path(pid, variable));
        let command = launch.command.first();
        let program = command.and_then(|name| find_program(name, &launch.cwd, &launch.env));
        let version = program
            .filter(|_| harness.version.is_described())
            .and_then(|program| installed::version_of(&program, &harness.version));
        Self { version, record }
    }

    /// Describe the job of another process that has the conversation, if one has it now.
    pub(crate) fn handed_over(&self, harness: &Manifest) -> Option<String> {
        let file = File::open(self.record.as_ref()?).ok()?;
        let mut text = String::new();
        file.take(RECORD_BYTES).read_to_string(&mut text).ok()?;
        harness.handover.as_ref()?.job(&text)
    }
}
