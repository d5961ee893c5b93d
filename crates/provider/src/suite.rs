//! Whether a script keeps to the protocol: a row of cases, each in a temporary state of its own
//! and under names that nobody else uses, so that one can be run on a service that others use too.
//!
//! What each case looks at stands in `cases`; here is what they are run with. Says nothing itself.

mod cases;

use super::error::Trouble;
use super::process::{Left, Place, Prepare, Said};
use super::script::Script;
use posthaste_store::report::{Report, Result};
use posthaste_wire::provider::{Message, Text};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The directory that a script is told to keep its state in, while it is tested.
const STATE: &str = "PH_PROVIDER_STATE";
/// After so many cases in a row in which it hangs, nobody waits for the others.
const HANGS: u32 = 3;

/// What a case is called, and what it looks at.
struct Case {
    name: &'static str,
    run: fn(&Bench) -> Verdict,
}

type Verdict = std::result::Result<(), String>;

/// How a case went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub name: &'static str,
    pub passed: bool,
    /// Why it did not.
    pub reason: Option<String>,
}

/// Runs all cases, and tells each as soon as it is over.
pub fn run(
    script: &Path,
    timeout: Duration,
    prepare: Prepare,
    mut tell: impl FnMut(&Outcome) -> Result<()>,
) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::with_capacity(cases::CASES.len());
    let mut hung = 0;
    for case in &cases::CASES {
        let verdict = if hung >= HANGS {
            Err("not tried: it hangs".to_owned())
        } else {
            let bench = Bench::new(script, timeout, prepare)?;
            let verdict = (case.run)(&bench);
            hung = if bench.has_hung.get() { hung + 1 } else { 0 };
            verdict
        };
        let outcome = Outcome {
            name: case.name,
            passed: verdict.is_ok(),
            reason: verdict.err(),
        };
        tell(&outcome)?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// What a case has: the script with nothing in it, and two agents and a third.
struct Bench {
    script: Script,
    /// What 'ensure-running' has started for this case, as far as it can be seen.
    servers: RefCell<Vec<Left>>,
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
        let place = Place {
            dir: state.path().to_owned(),
            env: vec![
                (STATE, state.path().join("state").into()),
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

    /// What an operation answered, or in words why it did not.
    fn told<T>(&self, answer: std::result::Result<T, Trouble>) -> std::result::Result<T, String> {
        answer.map_err(|trouble| {
            if trouble.is_time_out() {
                self.has_hung.set(true);
            }
            trouble.to_string()
        })
    }

    /// A message from alice to bob.
    fn send(&self, body: &str) -> std::result::Result<Message, String> {
        self.send_to(&self.bob, "", body)
    }

    fn send_to(&self, to: &str, subject: &str, body: &str) -> std::result::Result<Message, String> {
        let text = Text {
            from: self.alice.clone(),
            subject: subject.to_owned(),
            body: body.to_owned(),
        };
        self.told(self.script.send(to, &text))
    }

    /// Bob's answer.
    fn reply(&self, id: &str, body: &str) -> std::result::Result<Message, String> {
        let text = Text {
            from: self.bob.clone(),
            subject: "Re: hello".to_owned(),
            body: body.to_owned(),
        };
        self.told(self.script.reply(id, &text, None))
    }

    fn call(&self, op: &str, arg: Option<&str>) -> std::result::Result<Said, String> {
        let mut said = self.told(self.script.call(op, arg.map(OsStr::new), &[]))?;
        self.servers.borrow_mut().extend(said.left.take());
        Ok(said)
    }

    /// Bob's unread mail is these, in any order.
    fn expect_inbox(&self, want: &[&Message]) -> Verdict {
        let got = self.told(self.script.inbox(&self.bob))?;
        expect_ids("inbox", &got, want)
    }

    /// Says no: an exit that is neither success nor 'unknown operation'.
    fn expect_failure(&self, op: &str, arg: &str) -> std::result::Result<Said, String> {
        let said = self.call(op, Some(arg))?;
        is_no(op, arg, &said)?;
        Ok(said)
    }

    /// Succeeds, and says nothing: that is what an empty list is.
    fn expect_nothing(&self, op: &str, arg: &str) -> Verdict {
        let said = self.call(op, Some(arg))?;
        expect("exit code", said.status.code(), Some(0))?;
        is_nothing(op, &said)
    }

    /// Says no, or nothing: what is no name has no mail.
    fn expect_no_or_nothing(&self, op: &str, arg: &str) -> Verdict {
        let said = self.call(op, Some(arg))?;
        match said.status.code() {
            Some(0) => is_nothing(op, &said),
            Some(_) | None => is_no(op, arg, &said),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.servers.borrow().iter().for_each(Left::end);
    }
}

fn is_no(op: &str, arg: &str, said: &Said) -> Verdict {
    match said.status.code() {
        Some(0) => Err(format!("{op} '{arg}' succeeded; it should fail")),
        Some(2) => Err(format!(
            "{op} '{arg}' ended with exit 2, which says that the operation is not known"
        )),
        Some(_) => Ok(()),
        None => Err(format!("{op} '{arg}' was ended by a signal")),
    }
}

fn is_nothing(op: &str, said: &Said) -> Verdict {
    let out = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if out.is_empty() || out == "null" {
        return Ok(());
    }
    let shown = posthaste_core::text::one_line(&out, 40);
    Err(format!("{op} said '{shown}'; an empty list is no output"))
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
