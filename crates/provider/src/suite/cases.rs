//! The cases of the test suite, one function each. The first 32 come from the system that has defined
//! the protocol; the others cover known mistakes of scripts.

use super::{Bench, Case, Verdict, expect, expect_ids};
use jiff::SignedDuration;
use posthaste_wire::Count;
use posthaste_wire::provider::{ALREADY_ARCHIVED, Message, Op, Text};
use std::ffi::OsStr;

/// An id that no provider uses.
const UNKNOWN_ID: &str = "nonexistent";
/// More than a pipe or a command line can hold.
const LARGE_BODY_BYTES: usize = 1 << 20;

pub(super) const CASES: [Case; 44] = [
    case("send: the fields match", send_fields),
    case("send: ids are unique", send_unique),
    case("send: created_at is recent", send_recent),
    case("inbox: an empty inbox prints nothing", inbox_empty),
    case("inbox: returns what was sent", inbox_returns),
    case("inbox: contains only the agent's own mail", inbox_own),
    case("inbox: omits read messages", inbox_unread),
    case("check: returns unread messages", check_returns),
    case("check: marks nothing", check_marks_nothing),
    case("read: returns the right message", read_returns),
    case("read: marks it read", read_marks),
    case("read: the message is still returned by get", read_keeps),
    case("read: an unknown id is an error", read_unknown),
    case("get: returns the message", get_returns),
    case("get: marks nothing", get_marks_nothing),
    case("get: an unknown id is an error", get_unknown),
    case("mark-read: hides from the inbox", mark_read),
    case("mark-unread: restores to the inbox", mark_unread),
    case("reply: is in the same thread", reply_thread),
    case("reply: reply_to names the original", reply_to),
    case("reply: goes to the sender", reply_sender),
    case("thread: contains all messages", thread_all),
    case("thread: an unknown thread is empty", thread_unknown),
    case("count: total and unread", count),
    case("count: an empty inbox is 0 and 0", count_empty),
    case("delete: removes from the inbox", delete),
    case("archive: removes from the inbox", archive),
    case("archive: again is 'already archived'", archive_again),
    case("archive: an unknown id is an error", archive_unknown),
    case("life: sent, read, not in the inbox", life_read),
    case("life: sent, archived, archived again", life_archived),
    case("life: sent, replied to, read", life_answered),
    case("all: read and unread, not archived", all),
    case("all: an empty list prints nothing", all_empty),
    case("check: an empty list prints nothing", check_empty),
    case("thread: messages are in order of time", thread_order),
    case("an unknown operation exits with 2", unknown_operation),
    case(
        "ensure-running: exits with 0, or with 2 if it is not supported",
        ensure_running,
    ),
    case("text is returned byte for byte", text_exact),
    case("a large body is returned whole", large_body),
    case("unknown keys on standard input are ignored", unknown_keys),
    case("an argument that looks like a flag is not one", flags),
    case("an empty argument is an error or empty", empty_argument),
    case("no process is left running", nothing_left),
];

const fn case(name: &'static str, run: fn(&Bench) -> Verdict) -> Case {
    Case { name, run }
}

fn send_fields(bench: &Bench) -> Verdict {
    let sent = bench.send_to(&bench.bob, "Greetings", "hello")?;
    if sent.id.is_empty() {
        return Err("the id is empty".to_owned());
    }
    expect_message(&sent, bench, "Greetings", "hello")?;
    expect("read", sent.read, false)
}

fn expect_message(message: &Message, bench: &Bench, subject: &str, body: &str) -> Verdict {
    expect("from", message.from.as_str(), &bench.alice)?;
    expect("to", message.to.as_str(), &bench.bob)?;
    expect("subject", message.subject.as_str(), subject)?;
    expect("body", message.body.as_str(), body)
}

fn send_unique(bench: &Bench) -> Verdict {
    let [one, two] = [bench.send("first")?, bench.send("second")?];
    if one.id == two.id {
        return Err(format!("two messages have the id '{}'", one.id));
    }
    Ok(())
}

fn send_recent(bench: &Bench) -> Verdict {
    let sent = bench.send("now")?;
    let age = posthaste_store::times::now()
        .duration_since(sent.created_at)
        .abs();
    if age > SignedDuration::from_mins(1) {
        return Err(format!("created_at is {}", sent.created_at));
    }
    Ok(())
}

fn inbox_empty(bench: &Bench) -> Verdict {
    bench.expect_nothing("inbox", &bench.bob)
}

fn inbox_returns(bench: &Bench) -> Verdict {
    let sent = bench.send("for bob")?;
    let got = bench.check_call(bench.script.inbox(&bench.bob))?;
    expect_ids("inbox", &got, &[&sent])?;
    expect_message(&got[0], bench, "", "for bob")
}

fn inbox_own(bench: &Bench) -> Verdict {
    let sent = bench.send("for bob")?;
    bench.send_to(&bench.carol, "", "for carol")?;
    bench.expect_inbox(&[&sent])
}

fn inbox_unread(bench: &Bench) -> Verdict {
    let [read, unread] = [bench.send("one")?, bench.send("two")?];
    bench.check_call(bench.script.read(&read.id))?;
    bench.expect_inbox(&[&unread])
}

fn check_returns(bench: &Bench) -> Verdict {
    let sent = bench.send("look")?;
    let got = bench.check_call(bench.script.check(&bench.bob))?;
    expect_ids("check", &got, &[&sent])?;
    // An importer would take a message whose content changes for two messages.
    expect_message(&got[0], bench, "", "look")?;
    expect("created_at", got[0].created_at, sent.created_at)
}

fn check_marks_nothing(bench: &Bench) -> Verdict {
    let sent = bench.send("look")?;
    bench.check_call(bench.script.check(&bench.bob))?;
    bench.expect_inbox(&[&sent])
}

fn check_empty(bench: &Bench) -> Verdict {
    bench.expect_nothing("check", &bench.bob)
}

fn read_returns(bench: &Bench) -> Verdict {
    let sent = bench.send_to(&bench.bob, "Sub", "read me")?;
    bench.send("another")?;
    let got = bench.check_call(bench.script.read(&sent.id))?;
    expect("id", &got.id, &sent.id)?;
    expect_message(&got, bench, "Sub", "read me")
}

fn read_marks(bench: &Bench) -> Verdict {
    let sent = bench.send("once")?;
    bench.check_call(bench.script.read(&sent.id))?;
    bench.expect_inbox(&[])
}

fn read_keeps(bench: &Bench) -> Verdict {
    let sent = bench.send("still here")?;
    bench.check_call(bench.script.read(&sent.id))?;
    let got = bench.check_call(bench.script.get(&sent.id))?;
    expect("body", got.body.as_str(), "still here")?;
    expect("read", got.read, true)
}

fn read_unknown(bench: &Bench) -> Verdict {
    bench.expect_failure("read", UNKNOWN_ID).map(drop)
}

fn get_returns(bench: &Bench) -> Verdict {
    let sent = bench.send_to(&bench.bob, "Hi", "body")?;
    let got = bench.check_call(bench.script.get(&sent.id))?;
    expect("id", &got.id, &sent.id)?;
    expect_message(&got, bench, "Hi", "body")
}

fn get_marks_nothing(bench: &Bench) -> Verdict {
    let sent = bench.send("look")?;
    bench.check_call(bench.script.get(&sent.id))?;
    bench.expect_inbox(&[&sent])
}

fn get_unknown(bench: &Bench) -> Verdict {
    bench.expect_failure("get", UNKNOWN_ID).map(drop)
}

fn mark_read(bench: &Bench) -> Verdict {
    let sent = bench.send("mark me")?;
    bench.check_call(bench.script.order(Op::MarkRead, &sent.id))?;
    bench.expect_inbox(&[])
}

fn mark_unread(bench: &Bench) -> Verdict {
    let sent = bench.send("there and back")?;
    bench.check_call(bench.script.order(Op::MarkRead, &sent.id))?;
    bench.check_call(bench.script.order(Op::MarkUnread, &sent.id))?;
    bench.expect_inbox(&[&sent])
}

fn reply_thread(bench: &Bench) -> Verdict {
    let sent = bench.send_to(&bench.bob, "hello", "first")?;
    let reply = bench.reply(&sent.id, "second")?;
    if sent.thread_id.is_empty() {
        return Err("thread_id is empty".to_owned());
    }
    expect("thread_id", &reply.thread_id, &sent.thread_id)
}

fn reply_to(bench: &Bench) -> Verdict {
    let sent = bench.send("first")?;
    let reply = bench.reply(&sent.id, "second")?;
    expect("reply_to", &reply.reply_to, &sent.id)
}

fn reply_sender(bench: &Bench) -> Verdict {
    let sent = bench.send("first")?;
    let reply = bench.reply(&sent.id, "second")?;
    expect("from", &reply.from, &bench.bob)?;
    expect("to", &reply.to, &bench.alice)?;
    let got = bench.check_call(bench.script.inbox(&bench.alice))?;
    expect_ids("the sender's inbox", &got, &[&reply])
}

fn thread_all(bench: &Bench) -> Verdict {
    let sent = bench.send("first")?;
    let reply = bench.reply(&sent.id, "second")?;
    bench.send("another thread")?;
    let got = bench.check_call(bench.script.thread(&sent.thread_id))?;
    expect_ids("thread", &got, &[&sent, &reply])
}

fn thread_order(bench: &Bench) -> Verdict {
    let first = bench.send("first")?;
    let second = bench.reply(&first.id, "second")?;
    let third = bench.reply(&second.id, "third")?;
    let got = bench.check_call(bench.script.thread(&first.thread_id))?;
    let bodies: Vec<_> = got.iter().map(|message| message.body.as_str()).collect();
    let want: Vec<_> = [&first, &second, &third]
        .map(|message| message.body.as_str())
        .into();
    expect("thread", bodies, want)
}

fn thread_unknown(bench: &Bench) -> Verdict {
    let got = bench.check_call(bench.script.thread("nonexistent-thread"))?;
    expect_ids("thread", &got, &[])
}

fn count(bench: &Bench) -> Verdict {
    bench.send("one")?;
    let two = bench.send("two")?;
    bench.check_call(bench.script.order(Op::MarkRead, &two.id))?;
    let got = bench.check_call(bench.script.count(&bench.bob))?;
    expect(
        "count",
        got,
        Count {
            total: 2,
            unread: 1,
        },
    )
}

fn count_empty(bench: &Bench) -> Verdict {
    let got = bench.check_call(bench.script.count(&bench.bob))?;
    expect(
        "count",
        got,
        Count {
            total: 0,
            unread: 0,
        },
    )
}

fn delete(bench: &Bench) -> Verdict {
    let [gone, kept] = [bench.send("delete me")?, bench.send("keep me")?];
    bench.check_call(bench.script.order(Op::Delete, &gone.id))?;
    bench.expect_inbox(&[&kept])?;
    let got = bench.check_call(bench.script.all(&bench.bob))?;
    expect_ids("all", &got, &[&kept])
}

fn archive(bench: &Bench) -> Verdict {
    let [gone, kept] = [bench.send("archive me")?, bench.send("keep me")?];
    bench.check_call(bench.script.order(Op::Archive, &gone.id))?;
    bench.expect_inbox(&[&kept])
}

fn archive_again(bench: &Bench) -> Verdict {
    let sent = bench.send("twice")?;
    bench.check_call(bench.script.order(Op::Archive, &sent.id))?;
    let output = bench.expect_failure("archive", &sent.id)?;
    let stderr = String::from_utf8_lossy(&output.stderr).to_lowercase();
    if !stderr.contains(ALREADY_ARCHIVED) {
        return Err(format!(
            "standard error does not contain '{ALREADY_ARCHIVED}' the second time"
        ));
    }
    Ok(())
}

fn archive_unknown(bench: &Bench) -> Verdict {
    bench.expect_failure("archive", UNKNOWN_ID).map(drop)
}

fn all(bench: &Bench) -> Verdict {
    let [read, unread, gone] = [bench.send("a")?, bench.send("b")?, bench.send("c")?];
    bench.check_call(bench.script.read(&read.id))?;
    bench.check_call(bench.script.order(Op::Archive, &gone.id))?;
    let got = bench.check_call(bench.script.all(&bench.bob))?;
    expect_ids("all", &got, &[&read, &unread])
}

fn all_empty(bench: &Bench) -> Verdict {
    bench.expect_nothing("all", &bench.bob)
}

fn life_read(bench: &Bench) -> Verdict {
    let sent = bench.send("life")?;
    bench.expect_inbox(&[&sent])?;
    let read = bench.check_call(bench.script.read(&sent.id))?;
    expect("body", read.body.as_str(), "life")?;
    bench.expect_nothing("inbox", &bench.bob)?;
    let count = bench.check_call(bench.script.count(&bench.bob))?;
    expect(
        "count",
        count,
        Count {
            total: 1,
            unread: 0,
        },
    )
}

fn life_archived(bench: &Bench) -> Verdict {
    let sent = bench.send("life")?;
    bench.expect_inbox(&[&sent])?;
    bench.check_call(bench.script.order(Op::Archive, &sent.id))?;
    bench.expect_nothing("check", &bench.bob)?;
    bench.expect_failure("archive", &sent.id).map(drop)
}

fn life_answered(bench: &Bench) -> Verdict {
    let sent = bench.send("question")?;
    bench.check_call(bench.script.read(&sent.id))?;
    let reply = bench.reply(&sent.id, "answer")?;
    let got = bench.check_call(bench.script.read(&reply.id))?;
    expect("body", got.body.as_str(), "answer")?;
    bench.expect_nothing("inbox", &bench.alice)?;
    bench.expect_nothing("inbox", &bench.bob)
}

fn unknown_operation(bench: &Bench) -> Verdict {
    let output = bench.call("no-such-operation", Some("x"))?;
    expect("exit code", output.status.code(), Some(2))
}

fn ensure_running(bench: &Bench) -> Verdict {
    let output = bench.call("ensure-running", None)?;
    match output.status.code() {
        Some(0 | 2) => Ok(()),
        other => Err(format!("exit code {other:?}")),
    }
}

fn text_exact(bench: &Bench) -> Verdict {
    let body =
        "- a list\n\n<b>&amp;</b> \"quoted\" 'single' \\back\\ $HOME `x` %s\t漢字 \u{1f4ee}\n";
    let sent = bench.send_to(&bench.bob, "--flag <&> \"é\"", body)?;
    let got = bench.check_call(bench.script.get(&sent.id))?;
    expect_message(&got, bench, "--flag <&> \"é\"", body)
}

fn large_body(bench: &Bench) -> Verdict {
    let body = "a line of a large body, with a number: 0123456789\n";
    let body = body.repeat(LARGE_BODY_BYTES / body.len());
    let sent = bench.send(&body)?;
    let got = bench.check_call(bench.script.get(&sent.id))?;
    expect("length", got.body.len(), body.len())?;
    expect("body", got.body == body, true)
}

fn unknown_keys(bench: &Bench) -> Verdict {
    let text = Text {
        from: bench.alice.clone(),
        subject: String::new(),
        body: "hi".to_owned(),
    };
    let mut value = serde_json::to_value(&text).map_err(|error| error.to_string())?;
    value["x-unknown"] = serde_json::json!({"a": [1, 2]});
    let stdin = value.to_string();
    let arg = Some(OsStr::new(&bench.bob));
    let output = bench.check_call(bench.script.call("send", arg, stdin.as_bytes()))?;
    expect("exit code", output.status.code(), Some(0))?;
    let got = bench.check_call(bench.script.inbox(&bench.bob))?;
    expect("messages", got.len(), 1)
}

fn flags(bench: &Bench) -> Verdict {
    for arg in ["-x", "--help", "--"] {
        bench.expect_failure("get", arg)?;
        bench.expect_failure("archive", arg)?;
        bench.expect_no_or_nothing("inbox", arg)?;
    }
    Ok(())
}

fn empty_argument(bench: &Bench) -> Verdict {
    bench.send("somebody's")?;
    bench.expect_failure("get", "")?;
    bench.expect_failure("archive", "")?;
    bench.expect_no_or_nothing("inbox", "")
}

fn nothing_left(bench: &Bench) -> Verdict {
    let sent = bench.send("in and out")?;
    for (op, arg) in [
        (Op::Inbox, &bench.bob),
        (Op::Check, &bench.bob),
        (Op::Get, &sent.id),
        (Op::MarkRead, &sent.id),
    ] {
        // A call that leaves processes is an error by itself.
        bench.call(op.as_str(), Some(arg))?;
    }
    Ok(())
}
