//! Mail, as an agent reads and writes it.

use super::client::Mcp;
use crate::common::Ph;
use crate::common::session::{BOT, Session};
use serde_json::{Value, json};

#[test]
fn mail_is_listed_read_and_marked() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    assert_eq!(mcp.ok("inbox_list", &json!({})), "No unread messages");
    let id = ph.send("coder 'Please prioritize the login feature' --subject login");
    let id = &id[..8];
    let second = ph.send("coder 'x\u{1b}[2J' --priority interrupt --from lead");
    let unread = mcp.list("inbox_list", &json!({}));
    assert_eq!(unread.len(), 2);
    let expected = [
        ("id", id),
        ("from", "human"),
        ("subject", "login"),
        ("status", "unread"),
        ("content", "Please prioritize the login feature"),
    ];
    for (name, want) in expected {
        assert_eq!(unread[0][name], want);
    }
    assert!(unread[0]["timestamp"].is_string());
    assert_eq!(
        (&unread[1]["content"], &unread[1]["priority"]),
        (&"x[2J".into(), &"interrupt".into())
    );

    // Listing marks nothing.
    assert_eq!(mcp.list("inbox_list", &json!({})), unread);
    assert_eq!(
        mcp.ok(
            "inbox_mark_read",
            &json!({"session_name": "coder", "id": id})
        ),
        format!("Message {id} marked as read")
    );
    assert_eq!(mcp.list("inbox_list", &json!({})).len(), 1);
    // Once more is no error.
    mcp.ok("inbox_mark_read", &json!({"id": id}));
    let read = mcp.tool("read_message", &json!({"id": &second[..8]}));
    assert_eq!(read.blocks[1], "x[2J");
    let head: Value = serde_json::from_str(&read.blocks[0]).unwrap();
    assert_eq!(
        (&head["from"], &head["status"]),
        (&"lead".into(), &"read".into())
    );
    assert_eq!(mcp.ok("inbox_list", &json!({})), "No unread messages");
}

#[test]
fn an_unknown_or_ambiguous_id_is_an_error() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let ids: Vec<_> = (0..17).map(|n| ph.send(&format!("coder m{n}"))).collect();
    let alike = |id: &&String| ids.iter().filter(|other| other[..1] == id[..1]).count() > 1;
    let digit = &ids.iter().find(alike).unwrap()[..1];
    let foreign = ph.send("other x");
    let facts = ph.facts();
    for tool in ["inbox_mark_read", "read_message"] {
        let mut check = |id: &str, says: &str| mcp.tool(tool, &json!({"id": id})).fails(says);
        check(digit, "matches more than one message");
        check(digit, "hint: give more digits");
        check("00000000", "no message 00000000");
        check("", "an id cannot be empty");
        check("--help", "an id is made of 0-9, a-f and '-'");
    }
    let reply = mcp.tool("reply", &json!({"id": digit, "body": "x"}));
    reply.fails("matches more than one message");
    let mark = mcp.tool("inbox_mark_read", &json!({"id": &foreign[..8]}));
    mark.fails("coder cannot");
    assert_eq!(ph.facts(), facts);
    assert_eq!(mcp.list("inbox_list", &json!({})).len(), 17);
}

#[test]
fn arguments_are_never_options() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let body = "--help\n\"quoted\" $(id) {{tasks}} \u{0} \u{1b}[2J";
    let sent = mcp.ok(
        "send_message",
        &json!({"to": "bob", "body": body, "subject": "--all", "priority": "idle", "expects_reply": true}),
    );
    let id = sent.strip_prefix("Message sent: ").unwrap();
    let there = ph.run(&format!("show {id} --json")).json();
    let expected = [
        ("body", body),
        ("subject", "--all"),
        ("from", "coder"),
        ("from_evidence", "env"),
        ("priority", "idle"),
    ];
    for (name, want) in expected {
        assert_eq!(there[name], want);
    }
    assert_eq!(there["expects_reply"], true);

    let several = mcp.ok("send_message", &json!({"to": "bob,carol", "body": "hi"}));
    assert_eq!(several.matches(", ").count(), 1, "{several}");
    // Once under a key.
    let keyed = json!({"to": "bob", "body": "hi", "key": "nightly"});
    let first = mcp.ok("send_message", &keyed);
    assert_eq!(mcp.ok("send_message", &keyed), first);

    let facts = ph.facts();
    let mut check = |arguments: Value, says: &str| mcp.tool("send_message", &arguments).fails(says);
    check(
        json!({"to": "bob", "body": "  "}),
        "the text of a message cannot be empty",
    );
    check(
        json!({"to": "coder", "body": "x"}),
        "coder cannot send to itself",
    );
    check(
        json!({"to": "Bad Name", "body": "x"}),
        "hint: 'bad-name' is a valid name",
    );
    check(json!({"to": "--all", "body": "x"}), "ERROR: ");
    check(json!({"to": "", "body": "x"}), "ERROR: ");
    check(json!({"to": "@nobody", "body": "x"}), "ERROR: ");
    check(
        json!({"to": "bob", "body": "x", "subject": "a\nb"}),
        "a subject is one line",
    );
    assert_eq!(ph.facts(), facts);
}

#[test]
fn a_reply_goes_to_the_sender_and_is_found() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let question = ph.send("coder 'Which branch?'");
    let sent = mcp.ok(
        "reply",
        &json!({"id": &question[..8], "body": "feature/login"}),
    );
    let id = sent.strip_prefix("Message sent: ").unwrap();
    let there = ph.run(&format!("show {id} --json")).json();
    assert_eq!(
        (&there["to"], &there["reply_to"]),
        (&"human".into(), &question.clone().into())
    );

    let found = mcp.list("search_messages", &json!({"query": "feature"}));
    assert_eq!((found.len(), &found[0]["id"]), (1, &id.into()));
    let none = json!({"query": "feature", "from": "human"});
    assert_eq!(mcp.ok("search_messages", &none), "No messages found");
    mcp.tool("search_messages", &json!({"query": "!"}))
        .fails("the query has no words");
    assert_eq!(
        mcp.list("search_messages", &json!({"query": "branch", "limit": 1}))
            .len(),
        1
    );
}

#[test]
fn ten_megabytes_go_in_and_come_out_in_parts() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let body = "0123456789 é\n".repeat(10_000_000 / 14);
    let sent = mcp.ok("send_message", &json!({"to": "bob", "body": body}));
    let id = sent.strip_prefix("Message sent: ").unwrap().to_owned();
    assert_eq!(ph.run(&format!("read {id} --body")).ok(), body);

    let mut bob = Mcp::begin(ph.call(&["mcp"]).agent("bob"));
    ph.run_as("bob", &format!("mark-unread {id}")).ok();
    let listed = bob.list("inbox_list", &json!({}));
    assert!(listed[0]["content"].as_str().unwrap().len() <= 4_000);
    assert_eq!(listed[0]["bytes"], body.len());
    let mut whole = String::new();
    loop {
        let part = json!({"id": id, "offset": whole.len(), "max_bytes": 1_000_000});
        let part = bob.tool("read_message", &part);
        assert_eq!(part.blocks.len(), 3);
        whole.push_str(&part.blocks[1]);
        // Which line breaks end a part is told by the offset alone.
        let end = part.blocks[2]
            .split(' ')
            .nth(3)
            .unwrap()
            .parse::<usize>()
            .unwrap();
        while whole.len() < end {
            whole.push('\n');
        }
        if part.blocks[2].ends_with("this is the end)") {
            break;
        }
    }
    assert_eq!(whole, body);
    let mut check = |offset: usize, says: &str| {
        let part = json!({"id": id, "offset": offset});
        bob.tool("read_message", &part).fails(says);
    };
    check(
        12,
        "offset 12 is inside a character\nhint: use the offset in the previous reply",
    );
    check(body.len() + 1, "is past the end: the text has ");
}

#[test]
fn all_agents_are_listed() {
    let session = Session::sh("read line");
    let ph = &session.ph;
    ph.send("zed hi");
    let mut mcp = Mcp::of(ph);
    let agents = mcp.list("list_agents", &json!({}));
    let names: Vec<_> = agents.iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, [BOT, "coder", "human", "zed"]);
    assert_eq!(
        (&agents[0]["running"], &agents[3]["running"]),
        (&true.into(), &false.into())
    );
    assert!(agents[0]["activity"].is_string());
    assert_eq!(agents[1]["you"], true);
}

#[test]
fn the_agent_of_a_session_is_found_by_its_process() {
    let ph = Ph::new();
    let dir = ph.dir().to_owned();
    let [calls, answers] = ["calls", "answers"].map(|name| dir.join(name));
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": super::client::greeting()});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "send_message", "arguments": {"to": "human", "body": "from inside"}}});
    let other = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "inbox_list", "arguments": {"session_name": "human"}}});
    std::fs::write(&calls, format!("{initialize}\n{call}\n{other}\n")).unwrap();
    // Without the variables: an agent may start its servers with a bare environment.
    let script = format!(
        "env -u PH_AGENT '{}' mcp < '{}' > '{}'; read line",
        env!("CARGO_BIN_EXE_ph"),
        calls.display(),
        answers.display()
    );
    let session = Session::start(ph, &[], &["/bin/sh", "-c", &script]);
    let inbox = crate::common::wait_for("the message", || {
        let inbox = session.ph.run("inbox --json").json();
        (!inbox.as_array().unwrap().is_empty()).then_some(inbox)
    });
    assert_eq!(
        (&inbox[0]["from"], &inbox[0]["from_evidence"]),
        (&BOT.into(), &"ancestry".into())
    );
    let refused = crate::common::wait_for("the refusal", || {
        let said = std::fs::read_to_string(&answers).unwrap_or_default();
        said.contains("it cannot act for human").then_some(said)
    });
    assert!(
        refused.contains(&format!("this is the session of {BOT}")),
        "{refused}"
    );
}
