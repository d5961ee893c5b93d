//! Resumed conversations, and messages whose proof did not arrive before the end of a run.

use crate::common::stage::{Stage, kill, until, until_dead};
use crate::common::tui::install_manifest;
use crate::common::{executable, path_text};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

const MANIFEST: &str = r#"
name = "talker"
description = "An agent with conversations"
commands = ["talker"]
proof = ["transcript"]

[hook]
submitted = ["Prompt"]
idle = ["Stop"]
begins = ["Start"]

[resume]
args = ["--resume", "{conversation}"]
drop = ["--resume", "--continue"]
values = ["--resume", "--model"]
"#;

/// An agent that notes its arguments. If the file `forbidden` exists, it fails to resume, slowly if
/// the file `slow` exists.
struct Talker<'a> {
    stage: &'a Stage,
    program: String,
    transcript: PathBuf,
}

impl<'a> Talker<'a> {
    fn new(stage: &'a Stage) -> Self {
        install_manifest(stage, "talker", MANIFEST);
        let log = path_text(&stage.dir().join("args"));
        let forbidden = path_text(&stage.dir().join("forbidden"));
        let slow = path_text(&stage.dir().join("slow"));
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {log}\n\
             case \"$1\" in --resume) [ -e {slow} ] && sleep 11; [ -e {forbidden} ] && exit 1;; esac\n\
             echo ready; while read -r line; do case \"$line\" in exit*) $line;; *) echo \"$line\";; esac; done\n"
        );
        let program = stage.dir().join("talker");
        executable(&program, &script);
        Self {
            stage,
            program: path_text(&program),
            transcript: stage.dir().join("transcript.jsonl"),
        }
    }

    /// Start the agent by `ph run` with a prompt on its command line. Return the notes.
    fn run(&self) -> String {
        self.run_with(&["--model", "x", "hello"])
    }

    fn run_with(&self, more: &[&str]) -> String {
        let args = ["run", "--name", "bot", "--detach", "--", &self.program];
        let done = self.stage.call(&[&args, more].concat()).run();
        assert_eq!(done.code, 0, "{}", done.err());
        self.stage.until_activity("bot", "idle");
        done.err()
    }

    fn restart(&self, more: &str) -> String {
        let done = self.stage.run(&format!("restart bot --detach {more}"));
        assert_eq!(done.code, 0, "{}", done.err());
        self.stage.until_activity("bot", "idle");
        done.err()
    }

    /// Report a prompt, the conversation and the transcript by a hook.
    fn converse(&self) {
        if !self.transcript.exists() {
            std::fs::write(&self.transcript, "").expect("a file");
        }
        let payload = json!({"session_id": "conv-1", "prompt": "hi",
            "transcript_path": self.transcript});
        let params = json!({"event_name": "Prompt", "payload": payload});
        self.stage.rpc("bot", "hook_event", &params);
        until("the conversation", || {
            let log = self.stage.run("log").ok();
            log.contains("conversation  conv-1").then_some(())
        });
        let payload = json!({"session_id": "conv-1"});
        let params = json!({"event_name": "Stop", "payload": payload});
        self.stage.rpc("bot", "hook_event", &params);
        self.stage.until_activity("bot", "idle");
    }

    /// Its hook tells that a person began or chose another conversation.
    fn enter(&self, conversation: &str, transcript: &str) {
        let transcript = self.stage.dir().join(transcript);
        let payload = json!({"session_id": conversation, "transcript_path": transcript});
        let params = json!({"event_name": "Start", "payload": payload});
        self.stage.rpc("bot", "hook_event", &params);
        until("the conversation", || {
            let log = self.stage.run("log").ok();
            log.contains(&format!("conversation  {conversation}\n"))
                .then_some(())
        });
    }

    /// A person ends it with this exit status.
    fn exit(&self, status: u8) {
        let call = |id: u8, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let line = format!("exit {status}\n");
        let calls = [
            call(1, "set_interactive_mode", json!({"enabled": true})),
            call(2, "write_pty", json!({"data": line})),
        ];
        // The mode ends with its connection.
        let socket = self.stage.home().join("sockets/bot.sock");
        let mut connection = UnixStream::connect(socket).expect("a session that listens");
        for call in calls {
            writeln!(connection, "{call}").expect("a session that reads");
        }
        self.stage.until_activity("bot", "exited");
    }

    /// Write a message into the transcript, as given to the model.
    fn record(&self, id: &str, body: &str) {
        let text = format!("[ph message from: human id: {}] {body}", &id[..8]);
        let row = json!({"type": "user", "message": {"role": "user", "content": text}});
        std::fs::write(&self.transcript, format!("{row}\n")).expect("a file");
    }

    fn crash(&self) {
        let pid = self.stage.pid("bot");
        kill(pid, Signal::KILL);
        until_dead(pid);
    }

    fn last_args(&self) -> String {
        let log = std::fs::read_to_string(self.stage.dir().join("args")).expect("a log");
        log.lines().last().unwrap_or_default().to_owned()
    }
}

const FIRST: &str = "--model x hello";
const RESUMED: &str = "--resume conv-1 --model x";

#[test]
fn a_restart_resumes_the_conversation_without_its_prompt() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    // Before the first prompt, there is no conversation to resume.
    let said = talker.restart("");
    assert!(said.contains("none is on record"), "{said}");
    assert_eq!(talker.last_args(), FIRST);
    talker.converse();
    let said = talker.restart("");
    assert!(said.contains("resuming conversation conv-1"), "{said}");
    assert_eq!(talker.last_args(), RESUMED);
    assert!(
        said.contains("the prompt on the command line is not sent"),
        "{said}"
    );
    // The conversation is resumed again, although nothing happened in it.
    talker.restart("");
    assert_eq!(talker.last_args(), RESUMED);
    assert_eq!(talker.restart("--fresh"), "");
    assert_eq!(talker.last_args(), FIRST);
    // The person has left the old conversation.
    talker.restart("");
    assert_eq!(talker.last_args(), FIRST);
}

#[test]
fn only_a_start_after_a_crash_resumes() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    talker.crash();
    let said = talker.run();
    assert!(said.contains("resuming conversation conv-1"), "{said}");
    assert_eq!(talker.last_args(), RESUMED);
    kill(stage.child("bot"), Signal::KILL);
    stage.until_activity("bot", "exited");
    talker.run();
    assert_eq!(talker.last_args(), RESUMED, "the program crashed");
    stage.run("stop bot").ok();
    assert!(!talker.run().contains("resuming"));
    assert_eq!(talker.last_args(), FIRST);
}

/// A wrapper turns a crash of its agent into an exit status, which says nothing about its cause.
#[test]
fn a_start_that_does_not_resume_a_conversation_names_it() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    for status in [0, 1] {
        talker.exit(status);
        let said = talker.run();
        assert_eq!(talker.last_args(), FIRST, "exit {status}");
        assert!(said.contains("starting a new conversation"), "{said}");
        assert!(said.contains("'ph restart bot'"), "{said}");
        assert!(said.contains("conv-1"), "{said}");
        let log = stage.run("log").ok();
        assert!(log.contains("conversation  conv-1  not resumed"), "{log}");
        talker.restart("");
        assert_eq!(talker.last_args(), RESUMED, "exit {status}");
    }
    // A shell reports SIGKILL like this.
    talker.exit(137);
    let said = talker.run();
    assert!(said.contains("resuming conversation conv-1"), "{said}");
    // The person wants a new conversation, or chooses one.
    talker.exit(0);
    let args = ["run", "--fresh", "--name", "bot", "--detach", "--"];
    let done = stage.call(&[&args[..], &[&talker.program]].concat()).run();
    assert_eq!((done.code, done.err()), (0, String::new()));
    assert!(talker.restart("").contains("none is on record"));
    talker.converse();
    talker.exit(0);
    assert_eq!(talker.run_with(&["--continue"]), "");
}

#[test]
fn a_conversation_that_was_left_does_not_come_back() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    talker.enter("conv-2", "none-yet.jsonl");
    let said = talker.restart("");
    assert!(said.contains("no transcript yet"), "{said}");
    assert_eq!(talker.last_args(), FIRST);
    // A conversation that a person has chosen exists.
    stage.file("older.jsonl", "");
    talker.enter("conv-0", "older.jsonl");
    talker.restart("");
    assert_eq!(talker.last_args(), "--resume conv-0 --model x");
}

#[test]
fn the_note_tells_which_arguments_are_dropped() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run_with(&["--continue", "--model", "x"]);
    talker.converse();
    let said = talker.restart("");
    assert_eq!(talker.last_args(), RESUMED);
    assert!(
        said.contains("'--continue' on the command line is ignored"),
        "{said}"
    );
    assert!(!said.contains("prompt"), "{said}");
}

#[test]
fn a_failed_resumption_starts_a_new_conversation_with_a_note() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    stage.file("forbidden", "");
    let said = talker.restart("");
    assert!(said.contains("cannot resume the conversation"), "{said}");
    assert_eq!(talker.last_args(), FIRST);
}

/// On a busy machine, a program may fail only after its screen is shown to the person.
#[test]
fn a_slowly_failing_resumption_starts_a_new_conversation() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    stage.file("forbidden", "");
    stage.file("slow", "");
    // It is starting until its hook reports this event, even if it is silent.
    let ready = "[hook]\nready = [\"Ready\"]";
    install_manifest(&stage, "talker", &MANIFEST.replace("[hook]", ready));
    let done = stage.run("restart bot --detach");
    assert_eq!(done.code, 0, "{}", done.err());
    let said = done.err();
    assert!(said.contains("cannot resume the conversation"), "{said}");
    until("a start without the conversation", || {
        (talker.last_args() == FIRST).then_some(())
    });
}

#[test]
fn a_missing_transcript_starts_a_new_conversation_with_a_note() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    std::fs::remove_file(&talker.transcript).expect("a file");
    let said = talker.restart("");
    assert!(said.contains("no transcript"), "{said}");
    assert_eq!(talker.last_args(), FIRST);
}

#[test]
fn a_conversation_that_is_not_resumed_accepts_no_message() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    let given = stage.send("bot 'was it given?'");
    stage.until_receipt(&given, "offered");
    talker.crash();
    talker.record(&given, "was it given?");
    stage.file("forbidden", "");
    let said = talker.run();
    assert!(said.contains("cannot resume the conversation"), "{said}");
    stage.until_shown("bot", "(repeat: may have been shown before)");
    let steps = stage.receipts(&given);
    assert_eq!(steps[..4], ["stored", "offering", "offered", "uncertain"]);
}

#[test]
fn a_message_that_was_only_queued_is_repeated_after_a_crash() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    let queued = stage.send("bot 'was it queued?'");
    let given = stage.send("bot 'was it given?'");
    stage.until_receipt(&queued, "offered");
    stage.until_receipt(&given, "offered");
    talker.crash();
    // The agent recorded one of the messages in its transcript just before its end.
    talker.record(&given, "was it given?");
    talker.run();
    stage.until_receipt(&given, "accepted");
    stage.until_shown("bot", "(repeat: may have been shown before)");
    let steps = stage.receipts(&queued);
    assert_eq!(steps[..4], ["stored", "offering", "offered", "uncertain"]);
    until("the repeat", || {
        (stage.receipts(&queued).len() == 6).then_some(())
    });
}

/// The run that was stopped early has not taken the conversation up, so it decides nothing.
#[test]
fn a_resumed_run_that_is_stopped_early_leaves_the_proof_to_the_next() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    let given = stage.send("bot 'was it given?'");
    stage.until_receipt(&given, "offered");
    talker.crash();
    talker.record(&given, "was it given?");
    // Until its hook reports this event, it is starting, however long it is silent.
    let ready = "[hook]\nready = [\"Ready\"]";
    install_manifest(&stage, "talker", &MANIFEST.replace("[hook]", ready));
    stage.run("restart bot --detach");
    stage.until_activity("bot", "starting");
    assert_eq!(talker.last_args(), RESUMED);
    stage.run("stop bot").ok();
    assert_eq!(stage.receipts(&given)[2..], ["offered"]);
    install_manifest(&stage, "talker", MANIFEST);
    talker.restart("");
    assert_eq!(talker.last_args(), RESUMED);
    stage.until_receipt(&given, "accepted");
    assert_eq!(stage.receipts(&given)[2..], ["offered", "accepted"]);
}

/// Reading a long transcript takes seconds, in which the session may offer new mail.
#[test]
fn offers_of_this_run_are_not_settled_with_those_of_the_last() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    let old = stage.send("bot 'before the crash'");
    stage.until_receipt(&old, "offered");
    talker.crash();
    std::fs::write(&talker.transcript, "{}\n".repeat(1 << 18)).expect("a file");
    talker.run();
    talker.converse();
    let new = stage.send("bot 'after the crash'");
    stage.until_receipt(&new, "offered");
    until("the old offer's end", || {
        let steps = stage.receipts(&old);
        steps.iter().any(|step| step == "uncertain").then_some(())
    });
    assert_eq!(stage.receipts(&new), ["stored", "offering", "offered"]);
}

#[test]
fn unproven_messages_are_uncertain_after_the_programs_end() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    let unheard = stage.send("bot 'before any hook'");
    stage.until_receipt(&unheard, "offered");
    let why = stage.why(&unheard);
    let reason = why["reason"].as_str().expect("a reason");
    assert!(reason.contains("no transcript"), "{reason}");
    stage.run("stop bot").ok();
    assert_eq!(stage.receipt(&unheard), "offered");
    talker.run();
    talker.converse();
    let lost = stage.send("bot 'never in the transcript'");
    stage.until_receipt(&lost, "offered");
    stage.run("stop bot").ok();
    assert_eq!(stage.receipt(&lost), "uncertain");
    assert_eq!(stage.receipt(&unheard), "offered");
    let why = stage.why(&lost);
    let evidence = why["evidence"].as_str().expect("evidence");
    assert!(evidence.contains("nothing shows that its model"), "{why}");
}

/// Claude Code names its transcript before it creates the file, so a missing file proves nothing.
#[test]
fn a_missing_transcript_leaves_messages_offered_until_the_end() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    std::fs::remove_file(&talker.transcript).expect("a file");
    let sent = stage.send("bot 'was it given?'");
    stage.until_receipt(&sent, "offered");
    until("the reason", || {
        let why = stage.why(&sent);
        let reason = why["reason"].as_str().unwrap_or_default();
        reason.contains("no transcript: ").then_some(())
    });
    stage.run("stop bot").ok();
    assert_eq!(stage.receipts(&sent)[2..], ["offered", "uncertain"]);
}
