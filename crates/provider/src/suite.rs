//! Tests a script against the provider protocol.
//!
//! Each case uses a temporary state directory and unique names, so that it can run against a live
//! service. `cases` has the cases. Prints nothing.

mod cases;

use super::error::ScriptError;
use super::process::{CallOutput, Environment, LeftGroup, Prepare};
use super::script::Script;
use posthaste_store::report::{Report, Result};
use posthaste_wire::Count;
use posthaste_wire::provider::{Message, Op, Text};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Environment variable with the directory for the state of a script under test.
const STATE_VARIABLE: &str = "PH_PROVIDER_STATE";
/// Number of consecutive cases with a timeout after which the others are skipped.
const MAX_HANGING_CASES: u32 = 3;

struct Case {
    name: &'static str,
    run: fn(&Bench) -> Verdict,
}

/// A result, or why the case fails.
type Checked<T> = std::result::Result<T, String>;
type Verdict = Checked<()>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    pub name: &'static str,
    pub passed: bool,
    /// Why the case failed.
    pub reason: Option<String>,
}

/// Run all cases, and report each as soon as it has finished.
pub fn run(
    script: &Path,
    timeout: Duration,
    prepare: Prepare,
    mut report: impl FnMut(&CaseResult) -> Result<()>,
) -> Result<Vec<CaseResult>> {
    let mut results = Vec::with_capacity(cases::CASES.len());
    let mut hung = 0;
    for case in &cases::CASES {
        let verdict = if hung >= MAX_HANGING_CASES {
            Err("skipped: the script hangs".to_owned())
        } else {
            let bench = Bench::new(script, timeout, prepare)?;
            let verdict = (case.run)(&bench);
            hung = if bench.has_hung.get() { hung + 1 } else { 0 };
            verdict
        };
        let result = CaseResult {
            name: case.name,
            passed: verdict.is_ok(),
            reason: verdict.err(),
        };
        report(&result)?;
        results.push(result);
    }
    Ok(results)
}

/// The set-up of one case: a script without mail, and the names of three agents.
struct Bench {
    script: Script,
    /// Processes that `ensure-running` has left.
    servers: RefCell<Vec<LeftGroup>>,
    alice: String,
    bob: String,
    carol: String,
    has_hung: Cell<bool>,
    _state: TempDir,
}

impl Bench {
    fn new(script: &Path, timeout: Duration, prepare: Prepare) -> Result<Self> {
        let cannot = |error| Report::storage(format!("cannot make a temporary directory: {error}"));
        let state = tempfile::tempdir().map_err(cannot)?;
        let place = Environment {
            dir: state.path().to_owned(),
            env: vec![
                (STATE_VARIABLE, state.path().join("state").into()),
                ("PH_HOME", state.path().join("home").into()),
                ("PH_AGENT", "".into()),
            ],
        };
        let own = uuid::Uuid::new_v4().simple().to_string();
        let [alice, bob, carol] =
            ["alice", "bob", "carol"].map(|name| format!("{name}-{}", &own[..8]));
        let script = Script::new(script.to_owned(), timeout, prepare).within(place);
        let servers = RefCell::new(script.wake().into_iter().collect());
        Ok(Self {
            script,
            servers,
            alice,
            bob,
            carol,
            has_hung: Cell::new(false),
            _state: state,
        })
    }

    /// Convert an error to text, and note a timeout.
    fn checked<T>(&self, reply: std::result::Result<T, ScriptError>) -> Checked<T> {
        reply.map_err(|error| {
            if error.is_timeout() {
                self.has_hung.set(true);
            }
            error.to_string()
        })
    }

    /// Send a message from alice to bob.
    fn send(&self, body: &str) -> Checked<Message> {
        self.send_to(&self.bob, "", body)
    }

    fn send_to(&self, to: &str, subject: &str, body: &str) -> Checked<Message> {
        let text = Text {
            from: self.alice.clone(),
            subject: subject.to_owned(),
            body: body.to_owned(),
        };
        self.checked(self.script.send(to, &text))
    }

    /// Reply as bob.
    fn reply(&self, to: &Message, body: &str) -> Checked<Message> {
        let text = Text {
            from: self.bob.clone(),
            subject: "Re: hello".to_owned(),
            body: body.to_owned(),
        };
        self.checked(self.script.reply(&to.id, &text, None))
    }

    fn get(&self, op: Op, message: &Message) -> Checked<Message> {
        self.checked(self.script.one(op, &message.id))
    }

    fn order(&self, op: Op, message: &Message) -> Verdict {
        self.checked(self.script.order(op, &message.id))
    }

    /// Return the messages of an agent, or of a thread.
    fn list(&self, op: Op, arg: &str) -> Checked<Vec<Message>> {
        self.checked(match op == Op::Thread {
            true => self.script.thread(arg),
            false => self.script.list_of(op, arg),
        })
    }

    fn call(&self, op: &str, arg: Option<&str>) -> Checked<CallOutput> {
        let mut output = self.checked(self.script.call(op, arg.map(OsStr::new), &[]))?;
        self.servers.borrow_mut().extend(output.left.take());
        Ok(output)
    }

    /// Check a message from alice to bob.
    fn expect_message(&self, message: &Message, subject: &str, body: &str) -> Verdict {
        expect("from", message.from.as_str(), &self.alice)?;
        expect("to", message.to.as_str(), &self.bob)?;
        expect("subject", message.subject.as_str(), subject)?;
        expect("body", message.body.as_str(), body)
    }

    /// Check that an operation lists these messages, in any order.
    fn expect_list(&self, op: Op, arg: &str, want: &[&Message]) -> Verdict {
        expect_ids(op.as_str(), &self.list(op, arg)?, want)
    }

    /// Check the counts of bob's messages.
    fn expect_count(&self, total: u64, unread: u64) -> Verdict {
        let count = self.checked(self.script.count(&self.bob))?;
        expect("count", count, Count { total, unread })
    }

    /// Check that a call fails, and not with "unknown operation".
    fn expect_failure(&self, op: Op, arg: &str) -> Checked<CallOutput> {
        let output = self.call(op.as_str(), Some(arg))?;
        check_failure(op, arg, &output)?;
        Ok(output)
    }

    /// Check that a call succeeds without output, which is an empty list.
    fn expect_nothing(&self, op: Op, arg: &str) -> Verdict {
        let output = self.call(op.as_str(), Some(arg))?;
        expect("exit code", output.status.code(), Some(0))?;
        check_nothing(op, &output)
    }

    /// Check that a call fails or has no output: an invalid name has no mail.
    fn expect_failure_or_nothing(&self, op: Op, arg: &str) -> Verdict {
        let output = self.call(op.as_str(), Some(arg))?;
        match output.status.code() {
            Some(0) => check_nothing(op, &output),
            Some(_) | None => check_failure(op, arg, &output),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.servers.borrow().iter().for_each(LeftGroup::end);
    }
}

fn check_failure(op: Op, arg: &str, output: &CallOutput) -> Verdict {
    match output.status.code() {
        Some(0) => Err(format!("{op} '{arg}' succeeded; it should fail")),
        Some(2) => Err(format!(
            "{op} '{arg}' exited with 2, which means that the operation is unknown"
        )),
        Some(_) => Ok(()),
        None => Err(format!("{op} '{arg}' was ended by a signal")),
    }
}

fn check_nothing(op: Op, output: &CallOutput) -> Verdict {
    let out = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if out.is_empty() || out == "null" {
        return Ok(());
    }
    let shown = posthaste_core::text::one_line(&out, 40);
    Err(format!(
        "{op} printed '{shown}'; an empty list must print nothing"
    ))
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T) -> Verdict {
    if got == want {
        return Ok(());
    }
    let shown = |value: T| posthaste_core::text::one_line(&format!("{value:?}"), 80);
    Err(format!("{what}: {} instead of {}", shown(got), shown(want)))
}

fn expect_ids(what: &str, got: &[Message], want: &[&Message]) -> Verdict {
    let mut got: Vec<_> = got.iter().map(|message| message.id.as_str()).collect();
    let mut want: Vec<_> = want.iter().map(|message| message.id.as_str()).collect();
    got.sort_unstable();
    want.sort_unstable();
    expect(what, got, want)
}
