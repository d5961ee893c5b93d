//! Hook events of an agent: its activity, and proof of delivery.

use crate::common::PATIENCE;
use crate::common::stage::{Stage, until_so};
use crate::common::tui::{LAB, Tui, install_manifest};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

const HOOK: &str = r#"
[hook]
submitted = ["UserPromptSubmit"]
tool = ["PreToolUse"]
working = ["PostToolUse"]
idle = ["Stop"]
blocked = ["PermissionRequest"]
begins = ["SessionStart source=clear"]
ends = ["SessionEnd"]
"#;

/// The lab's manifest with hook events that also count as proof.
pub(crate) fn hooked(more: &str) -> String {
    format!("proof = [\"hook\"]\n{LAB}{HOOK}{more}")
}

/// Start such an agent, and wait until it is ready.
fn agent<'a>(stage: &'a Stage, flags: &[&str]) -> Tui<'a> {
    install_manifest(stage, "lab", &hooked(""));
    Tui::ready(stage, &[&["--title", "--paste"], flags].concat())
}

fn hook(stage: &Stage, event: &str, payload: &Value) {
    let params = json!({"event_name": event, "payload": payload});
    let noted = stage.rpc("bot", "hook_event", &params);
    assert_eq!(noted, json!({"status": "noted"}));
}

/// Send several events at once, so that they arrive within a moment.
fn hooks(stage: &Stage, events: &[(&str, Value)]) {
    let call = |(event, payload): &(&str, Value)| {
        let params = json!({"event_name": event, "payload": payload});
        json!({"jsonrpc": "2.0", "id": 1, "method": "hook_event", "params": params})
    };
    let answers = stage.ask("bot", &events.iter().map(call).collect());
    let answers = answers.as_array().expect("an array");
    assert_eq!(answers.len(), events.len(), "{answers:?}");
    assert!(answers.iter().all(|a| a["error"].is_null()), "{answers:?}");
}

fn evidence(stage: &Stage) -> String {
    let evidence = stage.status("bot")["evidence"].clone();
    evidence.as_str().expect("a text").to_owned()
}

fn activity(stage: &Stage) -> Value {
    stage.status("bot")["activity"].clone()
}

#[test]
fn a_message_is_accepted_by_a_hook_event() {
    let stage = Stage::new();
    let tui = agent(&stage, &["--hooks"]);
    let done = stage.run("send bot hello --wait accepted --timeout 20s");
    assert_eq!(done.code, 0, "{}", done.err());
    let id = done.out().trim().to_owned();
    assert_eq!(
        stage.receipts(&id),
        ["stored", "offering", "offered", "accepted"]
    );
    let accepted = stage.show(&id)["receipts"][3].clone();
    assert_eq!(accepted["route"], "terminal");
    assert_eq!(
        accepted["evidence"],
        "its hook UserPromptSubmit holds the id"
    );
    let told = stage.run(&format!("show {id}")).ok();
    let line = "accepted   by way of terminal; its hook UserPromptSubmit holds the id";
    assert!(told.contains(line), "{told}");
    assert_eq!(stage.why(&id)["receipt"], "accepted");
    assert_eq!(tui.turns().len(), 1);
    // Several messages in one turn, a body with several lines, and a body in a file.
    tui.order("work\nhook UserPromptSubmit {}");
    stage.until_activity("bot", "working");
    let ids = ["two", "'three\n[ph message from: human id: 00000000] x'"]
        .map(|body| stage.send(&format!("bot --priority idle {body}")));
    let long = stage.send(&format!("bot --priority idle {}", "x".repeat(400)));
    tui.order("rest");
    for id in ids.iter().chain([&long]) {
        stage.until_receipt(id, "accepted");
    }
}

#[test]
fn a_message_without_proof_stays_offered() {
    let stage = Stage::new();
    agent(&stage, &[]);
    let done = stage.run("send bot hello --wait accepted --timeout 500ms");
    assert_eq!(done.code, 1);
    let id = done.out().trim().to_owned();
    stage.until_receipt(&id, "offered");
}

#[test]
fn forged_and_foreign_ids_prove_nothing() {
    let stage = Stage::new();
    let tui = agent(&stage, &[]);
    let id = stage.send("bot hello");
    stage.until_receipt(&id, "offered");
    tui.order("ask go on");
    stage.until_activity("bot", "blocked");
    let held = stage.send("bot held");
    let head = |from: &str, id: &str| format!("[ph message from: {from} id: {}] hi", &id[..8]);
    let ours = head("human", &id);
    let submit = |prompt: &str, session: &str| {
        let payload = json!({"prompt": prompt, "session_id": session});
        hook(&stage, "UserPromptSubmit", &payload);
    };
    submit("what the person typed", "own");
    for forged in [
        head("mallory", &id),
        head("human", &held),
        head("human", "01234567"),
        id.clone(),
        format!("look at this: {ours}"),
        format!("    {ours}"),
        ours.replace('[', "("),
        ours.replace(']', ""),
    ] {
        submit(&forged, "own");
    }
    submit(&ours, "another");
    let stop = json!({"prompt": ours, "session_id": "own"});
    hook(&stage, "Stop", &stop);
    hook(&stage, "Unheard", &stop);
    let params = json!({"harness": "other", "event_name": "UserPromptSubmit", "payload": stop});
    stage.rpc("bot", "hook_event", &params);
    // The true event comes last, after the others were processed.
    submit(&ours, "own");
    stage.until_receipt(&id, "accepted");
    submit(&ours, "own");
    tui.order("answer");
    stage.until_receipt(&held, "offered");
    assert_eq!(stage.receipts(&held), ["stored", "offering", "offered"]);
    // The first hook event showed that a proof can be awaited.
    let journey = ["stored", "offering", "offered", "offered", "accepted"];
    assert_eq!(stage.receipts(&id), journey);
}

#[test]
fn hook_events_beat_silence_and_the_title() {
    let stage = Stage::new();
    agent(&stage, &[]);
    hook(&stage, "PreToolUse", &json!({"tool_name": "Bash"}));
    assert_eq!(activity(&stage), "working");
    assert_eq!(evidence(&stage), "hook PreToolUse just now");
    let later = stage.send("bot --priority idle later");
    // The title says idle, and the silence is longer than the limit for idle.
    until_so("some silence", || {
        evidence(&stage) == "hook PreToolUse 1 s ago"
    });
    assert_eq!(stage.rule(&later), "working");
    let why = stage.why(&later)["evidence"].clone();
    let told = why.as_str().expect("a text");
    assert!(told.starts_with("hook PreToolUse "), "{told}");
    // The plain dialect works, too.
    let stop = json!({"type": "hook_event", "event_name": "Stop", "payload": {}});
    assert_eq!(stage.ask("bot", &stop), json!({"ok": true}));
    stage.until_receipt(&later, "offered");
}

#[test]
fn a_manifest_may_trust_the_title_more() {
    let stage = Stage::new();
    let order = "[activity]\nsilence = \"300ms\"\norder = [\"title\", \"hook\"]\n";
    let manifest = hooked("").replace("[activity]\nsilence = \"300ms\"\n", order);
    install_manifest(&stage, "lab", &manifest);
    let tui = Tui::ready(&stage, &["--title", "--paste"]);
    hook(&stage, "PreToolUse", &json!({}));
    assert_eq!(evidence(&stage), "its title says: * lab");
    tui.order("work");
    stage.until_activity("bot", "working");
    hook(&stage, "Stop", &json!({}));
    assert_eq!(evidence(&stage), "its title says: ... busy");
}

#[test]
fn a_question_reported_by_a_hook_holds_mail_and_is_named() {
    let stage = Stage::new();
    // The manifest has no patterns for dialogs.
    let manifest = hooked("");
    let (head, rest) = manifest.split_once("[[dialog]]").expect("a dialog");
    let (_, rest) = rest.split_once("[input_box]").expect("a box");
    install_manifest(&stage, "lab", &format!("{head}[input_box]{rest}"));
    Tui::ready(&stage, &["--title", "--paste"]);
    let mut listener = Listener::on(&stage);
    let asked = json!({"tool_name": "Bash", "session_id": "own"});
    hook(&stage, "PermissionRequest", &asked);
    let change = listener.next();
    assert_eq!(change["activity"], "blocked");
    assert_eq!(change["blocked_on"], "Bash");
    let plain = stage.ask("bot", &json!({"type": "status"}));
    let agent = &plain["agent"];
    assert_eq!(agent["state"], "active");
    assert_eq!(agent["sub_state"], "blocked_on_permission");
    assert_eq!(agent["blocked_on_permission"], true);
    assert_eq!(agent["blocked_tool_name"], "Bash");
    let id = stage.send("bot hello");
    stage.until_rule(&id, "blocked");
    let why = stage.why(&id);
    assert_eq!(why["reason"], "the program waits for an answer (Bash)");
    let told = why["evidence"].as_str().expect("a text").to_owned();
    assert!(told.starts_with("hook PermissionRequest "), "{told}");
    // The question stays open for some time.
    until_so("a while", || {
        evidence(&stage) == "hook PermissionRequest 1 s ago"
    });
    hook(&stage, "PostToolUse", &asked);
    assert_eq!(listener.next()["blocked_on"], Value::Null);
    stage.until_receipt(&id, "offered");
}

#[test]
fn the_plain_dialect_reports_the_phase_of_a_turn() {
    let stage = Stage::new();
    agent(&stage, &[]);
    let told = || {
        let plain = stage.ask("bot", &json!({"type": "status"}));
        let agent = &plain["agent"];
        ["state", "sub_state"].map(|key| agent[key].as_str().unwrap_or("").to_owned())
    };
    assert_eq!(told(), ["idle", ""]);
    for (event, want) in [
        ("UserPromptSubmit", ["active", "thinking"]),
        ("PreToolUse", ["active", "tool_use"]),
        ("PostToolUse", ["active", "thinking"]),
    ] {
        hook(&stage, event, &json!({"tool_name": "Bash"}));
        assert_eq!(told(), want, "{event}");
    }
}

#[test]
fn after_a_denial_the_screen_shows_that_the_question_is_closed() {
    let stage = Stage::new();
    let tui = agent(&stage, &["--hooks", "--work"]);
    let first = stage.send("bot first");
    stage.until_receipt(&first, "accepted");
    tui.order("ask remove it");
    until_so("the hook", || {
        stage.status("bot")["blocked_on"] == "remove it"
    });
    let id = stage.send("bot hello");
    stage.until_rule(&id, "blocked");
    stage.until_shown("bot", "Do you want to remove it?");
    let mut person = tui.person();
    person.type_keys("n");
    tui.until_logged("no \"remove it\"");
    // The program still draws; the message is typed once the screen is unchanged.
    tui.order("rest");
    stage.until_receipt(&id, "accepted");
    assert_eq!(tui.log()[1], "no \"remove it\"");
}

#[test]
fn why_explains_an_unreported_denial() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", &without_dialogs());
    let tui = Tui::ready(&stage, &["--title", "--paste", "--hooks"]);
    tui.order("ask remove it");
    until_so("the hook", || {
        stage.status("bot")["blocked_on"] == "remove it"
    });
    let id = stage.send("bot hello");
    stage.until_rule(&id, "blocked");
    let mut person = tui.person();
    person.type_keys("n");
    tui.until_logged("no \"remove it\"");
    // The screen shows no question any more, but the manifest cannot know that.
    stage.until_rule(&id, "blocked");
    let release = "a hook says that it continues; after a denial it may call none before its next prompt, \
                   which a person can submit ('ph attach bot')";
    assert_eq!(stage.why(&id)["release"], release);
    let told = stage.run(&format!("why {id}")).ok();
    assert!(told.contains(release), "{told}");
    // A submitted prompt releases the message.
    hook(&stage, "UserPromptSubmit", &json!({"prompt": "go on"}));
    stage.until_receipt(&id, "offered");
}

#[test]
fn late_repeated_and_foreign_hook_events_are_ignored() {
    let stage = Stage::new();
    agent(&stage, &[]);
    let own = || json!({"session_id": "own", "tool_name": "Bash"});
    let other = || json!({"session_id": "other", "tool_name": "Bash"});
    let check = |events: &[(&str, Value)], want: &str, says: &str| {
        hooks(&stage, events);
        assert_eq!(activity(&stage), want, "{events:?}");
        let told = evidence(&stage);
        assert!(told.starts_with(says), "{events:?}: {told}");
    };
    let tool = || ("PreToolUse", own());
    let done = || ("PostToolUse", own());
    let stop = || ("Stop", own());
    check(&[tool(), tool()], "working", "hook PreToolUse ");
    // The end of the turn arrived before earlier events.
    check(&[stop(), done(), stop()], "idle", "hook Stop ");
    let prompt = || ("UserPromptSubmit", own());
    // Another tool, because the same event would count as a repeat.
    let next = (
        "PreToolUse",
        json!({"session_id": "own", "tool_name": "Edit"}),
    );
    check(&[prompt(), next], "working", "hook PreToolUse ");
    // The cause of a question arrives after the question.
    let asks = || ("PermissionRequest", own());
    check(
        &[asks(), tool(), asks()],
        "blocked",
        "hook PermissionRequest ",
    );
    // Events of another session id.
    let theirs = [("Stop", other()), ("SessionEnd", other())];
    check(&theirs, "blocked", "hook PermissionRequest ");
    until_so("a while", || {
        evidence(&stage) == "hook PermissionRequest 1 s ago"
    });
    check(&[stop(), ("PreToolUse", other())], "idle", "hook Stop ");
    // The conversation continues under another id, and events of the old id are late.
    let cleared = || json!({"session_id": "other", "source": "clear"});
    let events = [
        ("SessionStart", cleared()),
        ("SessionEnd", own()),
        ("PreToolUse", own()),
    ];
    check(&events, "idle", "its title says: ");
    check(&[("PreToolUse", other())], "working", "hook PreToolUse ");
}

#[test]
fn a_cleared_conversation_continues_under_another_id() {
    let stage = Stage::new();
    let tui = agent(&stage, &["--hooks"]);
    let before = stage.send("bot before");
    stage.until_receipt(&before, "accepted");
    tui.order("clear");
    let after = stage.send("bot after");
    stage.until_receipt(&after, "accepted");
}

#[test]
fn a_swallowed_enter_is_pressed_again_and_then_proven() {
    let stage = Stage::new();
    install_manifest(
        &stage,
        "lab",
        &hooked("[submit]\nretry_after = \"200ms\"\n"),
    );
    let flags = ["--title", "--paste", "--hooks", "--swallow", "1"];
    let tui = Tui::ready(&stage, &flags);
    let id = stage.send("bot hello");
    stage.until_receipt(&id, "accepted");
    assert_eq!(tui.log(), ["swallowed".to_owned(), Tui::turn(&id, "hello")]);
    let offered = stage.show(&id)["receipts"][2]["evidence"].clone();
    let offered = offered.as_str().expect("a text");
    assert!(offered.contains("Enter pressed 2 times"), "{offered}");
}

#[test]
fn ineffective_settings_of_a_manifest_are_reported() {
    let stage = Stage::new();
    let manifest = "name = \"vain\"\ndescription = \"A test's own\"\n\
                    routes = [\"hook\", \"http\", \"queue\", \"terminal\"]\nproof = [\"transcript\"]\n";
    install_manifest(&stage, "vain", manifest);
    let notes = [
        "routes: 'hook' needs an event in [hook] context",
        "routes: 'http' needs [http] api",
        "routes: 'queue' is not supported; mail is delivered through the terminal",
        "proof: 'transcript' needs a hook that names the transcript",
    ];
    for verb in ["ls", "show vain", "test vain -- true"] {
        let done = stage.run(&format!("harness {verb}"));
        for note in notes {
            let line = format!("note: the harness vain: {note}");
            assert!(done.err().contains(&line), "{verb}: {}", done.err());
        }
    }
    let shown = stage.run("harness show vain --json").json();
    assert_eq!(shown["notes"], json!(notes));
    let listed = stage.run("harness ls --json").json();
    let notes_of = |name: &str| {
        let all = listed.as_array().expect("an array");
        let one = all.iter().find(|one| one["name"] == name);
        one.expect("it is listed")["notes"].clone()
    };
    assert_eq!(notes_of("vain"), json!(notes));
    assert_eq!(notes_of("generic"), json!([]));
    install_manifest(&stage, "lab", &hooked(""));
    let done = stage.run("harness test lab --for 200ms -- sleep 100");
    let note = "note: hooks work in sessions only, not in 'ph harness test'";
    assert!(done.err().contains(note), "{}", done.err());
}

/// A connection that is subscribed to changes.
struct Listener(BufReader<UnixStream>);

impl Listener {
    fn on(stage: &Stage) -> Self {
        let socket = stage.home().join("sockets/bot.sock");
        let mut stream = UnixStream::connect(socket).expect("a session that listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let params = json!({"events": ["state_change"]});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": params});
        stream
            .write_all(format!("{call}\n").as_bytes())
            .expect("a session that reads");
        let mut listener = Self(BufReader::new(stream));
        listener.line();
        listener
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Return the next change.
    fn next(&mut self) -> Value {
        let line = self.line();
        let event = if line["params"].is_null() {
            &line
        } else {
            &line["params"]
        };
        event["data"].clone()
    }
}

/// The lab's manifest with hooks and without dialogs.
fn without_dialogs() -> String {
    let at = LAB.find("[[dialog]]").expect("a question");
    let rest = LAB[at..].find("\n\n").map_or("", |end| &LAB[at + end..]);
    format!("{}{rest}{HOOK}", &LAB[..at])
}

#[test]
fn a_nudge_gets_no_enter_if_a_hook_reports_a_question() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", &without_dialogs());
    let flags = ["--title", "--paste", "--hooks", "--ask-on-text", "drop it"];
    let tui = Tui::ready(&stage, &flags);
    let done = stage.run("nudge bot 'status please'");
    assert_eq!(done.code, 1, "{}", done.out());
    assert!(
        done.out().contains("a question opened (drop it)"),
        "{}",
        done.out()
    );
    assert!(tui.log().is_empty(), "{:?}", tui.log());
}

#[test]
fn an_answer_gets_no_enter_if_a_hook_reports_the_next_question() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", &without_dialogs());
    let tui = Tui::ready(&stage, &["--title", "--paste", "--hooks", "--again"]);
    tui.order("ask push it");
    until_so("the hook", || {
        stage.status("bot")["blocked_on"] == "push it"
    });
    let id = stage.run("send bot --raw y").ok().trim().to_owned();
    stage.until_receipt(&id, "offered");
    let evidence = stage.show(&id)["receipts"][2]["evidence"].clone();
    let says = evidence.as_str().expect("a text");
    assert!(
        says.ends_with("; Enter was not pressed, because the question or the screen changed first"),
        "{says}"
    );
    assert_eq!(tui.log(), ["yes \"push it\""]);
}
