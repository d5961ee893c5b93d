//! The cases of the suite, each with the calls of the script and what they must return.
//!
//! The methods of [`Script`](crate::script::Script) check the shape of each reply, so a case checks
//! only what its name says.

use super::{Bench, Case, Verdict, expect, expect_ids};
use jiff::SignedDuration;
use posthaste_wire::provider::{ALREADY_ARCHIVED, Op, Text};
use std::ffi::OsStr;

/// An id that no provider uses.
const UNKNOWN_ID: &str = "nonexistent";
/// More than a pipe or a command line can hold.
const LARGE_BODY_BYTES: usize = 1 << 20;

const fn case(name: &'static str, run: fn(&Bench) -> Verdict) -> Case {
    Case { name, run }
}

pub(super) const CASES: [Case; 44] = [
    case("send: the fields match", |bench| {
        let sent = bench.send_to(&bench.bob, "Greetings", "hello")?;
        if sent.id.is_empty() {
            return Err("the id is empty".to_owned());
        }
        bench.expect_message(&sent, "Greetings", "hello")?;
        expect("read", sent.read, false)
    }),
    case("send: ids are unique", |bench| {
        let [one, two] = [bench.send("first")?, bench.send("second")?];
        if one.id == two.id {
            return Err(format!("two messages have the id '{}'", one.id));
        }
        Ok(())
    }),
    case("send: created_at is recent", |bench| {
        let sent = bench.send("now")?;
        let age = posthaste_store::times::now().duration_since(sent.created_at);
        if age.abs() > SignedDuration::from_mins(1) {
            return Err(format!("created_at is {}", sent.created_at));
        }
        Ok(())
    }),
    case("inbox: an empty inbox prints nothing", |bench| {
        bench.expect_nothing(Op::Inbox, &bench.bob)
    }),
    case("inbox: returns what was sent", |bench| {
        let sent = bench.send("for bob")?;
        let listed = bench.list(Op::Inbox, &bench.bob)?;
        expect_ids("inbox", &listed, &[&sent])?;
        bench.expect_message(&listed[0], "", "for bob")
    }),
    case("inbox: contains only the agent's own mail", |bench| {
        let sent = bench.send("for bob")?;
        bench.send_to(&bench.carol, "", "for carol")?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&sent])
    }),
    case("inbox: omits read messages", |bench| {
        let [read, unread] = [bench.send("one")?, bench.send("two")?];
        bench.get(Op::Read, &read)?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&unread])
    }),
    case("check: returns unread messages", |bench| {
        let sent = bench.send("look")?;
        let listed = bench.list(Op::Check, &bench.bob)?;
        expect_ids("check", &listed, &[&sent])?;
        // An importer would take a message whose content changes for two messages.
        bench.expect_message(&listed[0], "", "look")?;
        expect("created_at", listed[0].created_at, sent.created_at)
    }),
    case("check: marks nothing", |bench| {
        let sent = bench.send("look")?;
        bench.list(Op::Check, &bench.bob)?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&sent])
    }),
    case("read: returns the right message", |bench| {
        let sent = bench.send_to(&bench.bob, "Sub", "read me")?;
        bench.send("another")?;
        let read = bench.get(Op::Read, &sent)?;
        expect("id", &read.id, &sent.id)?;
        bench.expect_message(&read, "Sub", "read me")
    }),
    case("read: marks it read", |bench| {
        let sent = bench.send("once")?;
        bench.get(Op::Read, &sent)?;
        bench.expect_list(Op::Inbox, &bench.bob, &[])
    }),
    case("read: the message is still returned by get", |bench| {
        let sent = bench.send("still here")?;
        bench.get(Op::Read, &sent)?;
        let got = bench.get(Op::Get, &sent)?;
        expect("body", got.body.as_str(), "still here")?;
        expect("read", got.read, true)
    }),
    case("read: an unknown id is an error", |bench| {
        bench.expect_failure(Op::Read, UNKNOWN_ID).map(drop)
    }),
    case("get: returns the message", |bench| {
        let sent = bench.send_to(&bench.bob, "Hi", "body")?;
        let got = bench.get(Op::Get, &sent)?;
        expect("id", &got.id, &sent.id)?;
        bench.expect_message(&got, "Hi", "body")
    }),
    case("get: marks nothing", |bench| {
        let sent = bench.send("look")?;
        bench.get(Op::Get, &sent)?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&sent])
    }),
    case("get: an unknown id is an error", |bench| {
        bench.expect_failure(Op::Get, UNKNOWN_ID).map(drop)
    }),
    case("mark-read: hides from the inbox", |bench| {
        let sent = bench.send("mark me")?;
        bench.order(Op::MarkRead, &sent)?;
        bench.expect_list(Op::Inbox, &bench.bob, &[])
    }),
    case("mark-unread: restores to the inbox", |bench| {
        let sent = bench.send("there and back")?;
        bench.order(Op::MarkRead, &sent)?;
        bench.order(Op::MarkUnread, &sent)?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&sent])
    }),
    case("reply: is in the same thread", |bench| {
        let sent = bench.send_to(&bench.bob, "hello", "first")?;
        let reply = bench.reply(&sent, "second")?;
        if sent.thread_id.is_empty() {
            return Err("thread_id is empty".to_owned());
        }
        expect("thread_id", &reply.thread_id, &sent.thread_id)
    }),
    case("reply: reply_to names the original", |bench| {
        let sent = bench.send("first")?;
        let reply = bench.reply(&sent, "second")?;
        expect("reply_to", &reply.reply_to, &sent.id)
    }),
    case("reply: goes to the sender", |bench| {
        let reply = bench.reply(&bench.send("first")?, "second")?;
        expect("from", &reply.from, &bench.bob)?;
        expect("to", &reply.to, &bench.alice)?;
        bench.expect_list(Op::Inbox, &bench.alice, &[&reply])
    }),
    case("thread: contains all messages", |bench| {
        let sent = bench.send("first")?;
        let reply = bench.reply(&sent, "second")?;
        bench.send("another thread")?;
        bench.expect_list(Op::Thread, &sent.thread_id, &[&sent, &reply])
    }),
    case("thread: an unknown thread is empty", |bench| {
        bench.expect_list(Op::Thread, "nonexistent-thread", &[])
    }),
    case("count: total and unread", |bench| {
        let [_, read] = [bench.send("one")?, bench.send("two")?];
        bench.order(Op::MarkRead, &read)?;
        bench.expect_count(2, 1)
    }),
    case("count: an empty inbox is 0 and 0", |bench| {
        bench.expect_count(0, 0)
    }),
    case("delete: removes from the inbox", |bench| {
        let [gone, kept] = [bench.send("delete me")?, bench.send("keep me")?];
        bench.order(Op::Delete, &gone)?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&kept])?;
        bench.expect_list(Op::All, &bench.bob, &[&kept])
    }),
    case("archive: removes from the inbox", |bench| {
        let [gone, kept] = [bench.send("archive me")?, bench.send("keep me")?];
        bench.order(Op::Archive, &gone)?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&kept])
    }),
    case("archive: again is 'already archived'", |bench| {
        let sent = bench.send("twice")?;
        bench.order(Op::Archive, &sent)?;
        let output = bench.expect_failure(Op::Archive, &sent.id)?;
        let stderr = String::from_utf8_lossy(&output.stderr).to_lowercase();
        if !stderr.contains(ALREADY_ARCHIVED) {
            return Err(format!(
                "standard error does not contain '{ALREADY_ARCHIVED}' the second time"
            ));
        }
        Ok(())
    }),
    case("archive: an unknown id is an error", |bench| {
        bench.expect_failure(Op::Archive, UNKNOWN_ID).map(drop)
    }),
    case("life: sent, read, not in the inbox", |bench| {
        let sent = bench.send("life")?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&sent])?;
        let read = bench.get(Op::Read, &sent)?;
        expect("body", read.body.as_str(), "life")?;
        bench.expect_nothing(Op::Inbox, &bench.bob)?;
        bench.expect_count(1, 0)
    }),
    case("life: sent, archived, archived again", |bench| {
        let sent = bench.send("life")?;
        bench.expect_list(Op::Inbox, &bench.bob, &[&sent])?;
        bench.order(Op::Archive, &sent)?;
        bench.expect_nothing(Op::Check, &bench.bob)?;
        bench.expect_failure(Op::Archive, &sent.id).map(drop)
    }),
    case("life: sent, replied to, read", |bench| {
        let sent = bench.send("question")?;
        bench.get(Op::Read, &sent)?;
        let reply = bench.reply(&sent, "answer")?;
        let read = bench.get(Op::Read, &reply)?;
        expect("body", read.body.as_str(), "answer")?;
        bench.expect_nothing(Op::Inbox, &bench.alice)?;
        bench.expect_nothing(Op::Inbox, &bench.bob)
    }),
    case("all: read and unread, not archived", |bench| {
        let [read, unread, gone] = [bench.send("a")?, bench.send("b")?, bench.send("c")?];
        bench.get(Op::Read, &read)?;
        bench.order(Op::Archive, &gone)?;
        bench.expect_list(Op::All, &bench.bob, &[&read, &unread])
    }),
    case("all: an empty list prints nothing", |bench| {
        bench.expect_nothing(Op::All, &bench.bob)
    }),
    case("check: an empty list prints nothing", |bench| {
        bench.expect_nothing(Op::Check, &bench.bob)
    }),
    case("thread: messages are in order of time", |bench| {
        let first = bench.send("first")?;
        let second = bench.reply(&first, "second")?;
        bench.reply(&second, "third")?;
        let listed = bench.list(Op::Thread, &first.thread_id)?;
        let bodies: Vec<_> = listed.iter().map(|message| message.body.as_str()).collect();
        expect("thread", bodies, vec!["first", "second", "third"])
    }),
    case("an unknown operation exits with 2", |bench| {
        let output = bench.call("no-such-operation", Some("x"))?;
        expect("exit code", output.status.code(), Some(2))
    }),
    case(
        "ensure-running: exits with 0, or with 2 if it is not supported",
        |bench| match bench.call("ensure-running", None)?.status.code() {
            Some(0 | 2) => Ok(()),
            other => Err(format!("exit code {other:?}")),
        },
    ),
    case("text is returned byte for byte", |bench| {
        let subject = "--flag <&> \"é\"";
        let body =
            "- a list\n\n<b>&amp;</b> \"quoted\" 'single' \\back\\ $HOME `x` %s\t漢字 \u{1f4ee}\n";
        let sent = bench.send_to(&bench.bob, subject, body)?;
        bench.expect_message(&bench.get(Op::Get, &sent)?, subject, body)
    }),
    case("a large body is returned whole", |bench| {
        let line = "a line of a large body, with a number: 0123456789\n";
        let body = line.repeat(LARGE_BODY_BYTES / line.len());
        let got = bench.get(Op::Get, &bench.send(&body)?)?;
        expect("length", got.body.len(), body.len())?;
        expect("body", got.body == body, true)
    }),
    case("unknown keys on standard input are ignored", |bench| {
        let text = Text {
            from: bench.alice.clone(),
            subject: String::new(),
            body: "hi".to_owned(),
        };
        let mut value = serde_json::to_value(&text).map_err(|error| error.to_string())?;
        value["x-unknown"] = serde_json::json!({"a": [1, 2]});
        let stdin = value.to_string();
        let to = Some(OsStr::new(&bench.bob));
        let output = bench.checked(bench.script.call("send", to, stdin.as_bytes()))?;
        expect("exit code", output.status.code(), Some(0))?;
        let listed = bench.list(Op::Inbox, &bench.bob)?;
        expect("messages", listed.len(), 1)
    }),
    case("an argument that looks like a flag is not one", |bench| {
        for arg in ["-x", "--help", "--"] {
            bench.expect_failure(Op::Get, arg)?;
            bench.expect_failure(Op::Archive, arg)?;
            bench.expect_failure_or_nothing(Op::Inbox, arg)?;
        }
        Ok(())
    }),
    case("an empty argument is an error or empty", |bench| {
        bench.send("somebody's")?;
        bench.expect_failure(Op::Get, "")?;
        bench.expect_failure(Op::Archive, "")?;
        bench.expect_failure_or_nothing(Op::Inbox, "")
    }),
    case("no process is left running", |bench| {
        let sent = bench.send("in and out")?;
        // A call that leaves processes is an error by itself.
        bench.call(Op::Inbox.as_str(), Some(&bench.bob))?;
        bench.call(Op::Check.as_str(), Some(&bench.bob))?;
        bench.call(Op::Get.as_str(), Some(&sent.id))?;
        bench.call(Op::MarkRead.as_str(), Some(&sent.id))?;
        Ok(())
    }),
];
