//! Conversations that are resumed, and messages whose proof did not come before the end of a run.

use crate::common::stage::{Stage, kill, until, until_dead};
use crate::common::tui::teach;
use crate::common::{executable, path_text};
use rustix::process::Signal;
use serde_json::json;
use std::path::PathBuf;

const MANIFEST: &str = r#"
name = "talker"
description = "An agent with conversations"
commands = ["talker"]
proof = ["transcript"]

[hook]
submitted = ["Prompt"]
idle = ["Stop"]

[resume]
args = ["--resume", "{conversation}"]
drop = ["--resume"]
values = ["--resume", "--model"]
"#;

/// An agent that notes its arguments. It fails if it is to resume what is forbidden, and does so
/// slowly if it is slow.
struct Talker<'a> {
    stage: &'a Stage,
    program: String,
    transcript: PathBuf,
}

impl<'a> Talker<'a> {
    fn new(stage: &'a Stage) -> Self {
        teach(stage, "talker", MANIFEST);
        let log = path_text(&stage.dir().join("args"));
        let forbidden = path_text(&stage.dir().join("forbidden"));
        let slow = path_text(&stage.dir().join("slow"));
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {log}\n\
             case \"$1\" in --resume) [ -e {slow} ] && sleep 11; [ -e {forbidden} ] && exit 1;; esac\n\
             echo ready; exec cat\n"
        );
        let program = stage.dir().join("talker");
        executable(&program, &script);
        Self {
            stage,
            program: path_text(&program),
            transcript: stage.dir().join("transcript.jsonl"),
        }
    }

    /// Start it by `ph run`, with a prompt on its command line; return what is said about that.
    fn run(&self) -> String {
        let args = [
            "run",
            "--name",
            "bot",
            "--detach",
            "--",
            &self.program,
            "--model",
            "x",
            "hello",
        ];
        let done = self.stage.call(&args).run();
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

    /// Its hook tells of a prompt, the conversation and the transcript.
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
    // Before any prompt there is nothing to resume.
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
    // Nothing happened in it, and it is resumed again.
    talker.restart("");
    assert_eq!(talker.last_args(), RESUMED);
    assert_eq!(talker.restart("--fresh"), "");
    assert_eq!(talker.last_args(), FIRST);
    // The person has left the old one.
    talker.restart("");
    assert_eq!(talker.last_args(), FIRST);
}

#[test]
fn a_start_after_a_crash_resumes_and_any_other_begins_anew() {
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
    assert_eq!(talker.run(), "");
    assert_eq!(talker.last_args(), FIRST);
}

#[test]
fn a_conversation_that_cannot_be_resumed_begins_anew_and_that_is_said() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    stage.file("forbidden", "");
    let said = talker.restart("");
    assert!(said.contains("cannot resume the conversation"), "{said}");
    assert_eq!(talker.last_args(), FIRST);
}

/// On a busy machine a program can take longer to fail than a person waits for its screen.
#[test]
fn a_conversation_that_fails_slowly_begins_anew() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    stage.file("forbidden", "");
    stage.file("slow", "");
    // Until its hook reports this event, it is starting, however long it is silent.
    let ready = "[hook]\nready = [\"Ready\"]";
    teach(&stage, "talker", &MANIFEST.replace("[hook]", ready));
    let done = stage.run("restart bot --detach");
    assert_eq!(done.code, 0, "{}", done.err());
    let said = done.err();
    assert!(said.contains("cannot resume the conversation"), "{said}");
    until("a start without the conversation", || {
        (talker.last_args() == FIRST).then_some(())
    });
}

#[test]
fn a_conversation_without_a_transcript_begins_anew_and_that_is_said() {
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
fn a_message_is_not_accepted_by_a_conversation_that_is_not_resumed() {
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
fn a_message_that_was_only_queued_comes_again_after_a_crash() {
    let stage = Stage::new();
    let talker = Talker::new(&stage);
    talker.run();
    talker.converse();
    let queued = stage.send("bot 'was it queued?'");
    let given = stage.send("bot 'was it given?'");
    stage.until_receipt(&queued, "offered");
    stage.until_receipt(&given, "offered");
    talker.crash();
    // The agent wrote one of them into its transcript in its last moment.
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
    teach(&stage, "talker", &MANIFEST.replace("[hook]", ready));
    stage.run("restart bot --detach");
    stage.until_activity("bot", "starting");
    assert_eq!(talker.last_args(), RESUMED);
    stage.run("stop bot").ok();
    assert_eq!(stage.receipts(&given)[2..], ["offered"]);
    teach(&stage, "talker", MANIFEST);
    talker.restart("");
    assert_eq!(talker.last_args(), RESUMED);
    stage.until_receipt(&given, "accepted");
    assert_eq!(stage.receipts(&given)[2..], ["offered", "accepted"]);
}

/// Reading a long transcript takes seconds, in which the session may offer new mail.
#[test]
fn an_offer_of_this_run_is_not_settled_with_those_of_the_last() {
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
fn a_program_that_ends_leaves_what_is_unproven_uncertain() {
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
fn a_transcript_that_does_not_exist_leaves_a_message_offered_until_the_end_of_the_run() {
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
