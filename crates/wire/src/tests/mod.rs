//! Tests both dialects line by line, with valid and invalid input.

mod event;
mod fuzz;
mod methods;
mod plain;
mod provider;
mod rpc;
mod server;
mod session;

use crate::{Activity, Mode, RunStatus, Session, Status};
use jiff::Timestamp;
use posthaste_core::message::{Body, Envelope, Evidence};
use posthaste_core::{Message, MessageId, MessageState, MessageStatus, Priority, Step};

const ID: &str = "3fa8c1d2-0b1c-4d2e-8f3a-4b5c6d7e8f90";

fn id() -> MessageId {
    ID.parse().unwrap()
}

fn at(second: i64) -> Timestamp {
    // 2026-01-23T10:00:00Z
    Timestamp::from_second(1_769_162_400 + second).unwrap()
}

/// A message from a to bob at 10:00:00, with one step per second.
fn message_state(steps: &[Step]) -> MessageState {
    let mut status = MessageStatus::default();
    let mut receipts = Vec::new();
    for (n, step) in (1..).zip(steps) {
        status.apply(*step);
        receipts.push(posthaste_core::Receipt {
            state: step.to_string(),
            at: at(n),
            by: None,
            route: Some("terminal".to_owned()),
            evidence: None,
            reason: None,
        });
    }
    MessageState {
        message: Message {
            id: id(),
            to: "bob".parse().unwrap(),
            created_at: at(0),
            envelope: Envelope {
                from: "a".parse().unwrap(),
                from_evidence: Evidence::Flag,
                subject: None,
                body: Body::Inline("hi".to_owned()),
                priority: Priority::Normal,
                thread_id: id(),
                reply_to: None,
                key: None,
                not_before: None,
                expires_at: None,
                deadline: None,
                expects_reply: false,
                closes: None,
                cause: None,
                hops: 0,
                raw: false,
                answers: None,
            },
        },
        status,
        receipts,
    }
}

fn session() -> Session {
    Session {
        name: "bob".to_owned(),
        activity: Activity::Blocked,
        blocked_on: Some("Bash".to_owned()),
        since: at(60),
        evidence: "hook PermissionRequest".to_owned(),
        pid: Some(10),
        child_pid: Some(11),
        socket: Some("/run/bob.sock".to_owned()),
        command: vec!["claude".to_owned(), "--model".to_owned(), "x y".to_owned()],
        cwd: "/src".to_owned(),
        harness: "claude".to_owned(),
        version: None,
        tested_versions: Vec::new(),
        handed_over: None,
        started_at: at(0),
        unread: 1,
        queued: 2,
        paused: Some("a client asked for a pause".to_owned()),
        mail_trouble: None,
        door: None,
        loop_status: None,
        ended_at: None,
        exit: None,
        orphans: Vec::new(),
    }
}

fn status() -> Status {
    Status {
        task_name: "my-feature".to_owned(),
        task_dir: "/tasks/my-feature".to_owned(),
        iteration: 3,
        max_iterations: 50,
        current_story: Some("US-003".to_owned()),
        agent: "claude".to_owned(),
        status: RunStatus::Running,
        interactive_mode: false,
        mode_indicator: Mode::new(false),
        started_at: "2026-01-23T10:00:00.000000".to_owned(),
        updated_at: "2026-01-23T10:15:30.000000".to_owned(),
        recent_output: vec!["line 1".to_owned(), "line 2".to_owned()],
    }
}
