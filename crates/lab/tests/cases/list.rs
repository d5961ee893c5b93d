//! Every case, for each agent. A case begins with the agent at rest and leaves it so.

use crate::play::{CLEAR, ENTER, ESCAPE, Play, Sent, Under};
use posthaste_lab::agents::{Agent, Sign};
use std::time::Duration;

/// What happened, and what the receipts say.
pub(crate) struct Told {
    pub(crate) what: String,
    pub(crate) receipt: String,
}

fn told(what: impl Into<String>, receipt: String) -> Told {
    let what = what.into();
    Told { what, receipt }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) act: fn(&mut Play) -> Told,
    /// Whether it is run as often as wanted, or once.
    pub(crate) often: bool,
    pub(crate) under: Under,
}

impl Case {
    /// Why it cannot be had with an agent.
    pub(crate) fn absent(&self, agent: Agent) -> Option<&'static str> {
        let is_typed = match agent {
            Agent::Claude | Agent::Codex => true,
            Agent::OpenCode | Agent::Gemini => false,
        };
        let why = "nothing is typed into it while it works";
        (self.under == Under::Typed && !is_typed).then_some(why)
    }
}

const fn case(name: &'static str, act: fn(&mut Play) -> Told) -> Case {
    Case {
        name,
        act,
        often: false,
        under: Under::Session,
    }
}

pub(crate) const CASES: [Case; 18] = [
    case("idle", idle),
    case("streaming", streaming),
    case("tool", tool),
    case("interrupt-busy", interrupt_busy),
    case("interrupt-idle", interrupt_idle),
    case("dialog", dialog),
    case("draft", draft),
    case("50-lines", fifty_lines),
    case("300-bytes", three_hundred),
    case("301-bytes", three_hundred_and_one),
    case("odd-text", odd_text),
    case("ten-at-once", ten_at_once),
    case("denial", denial),
    case("clear", clear),
    case("killed", killed),
    case("mid-offer", mid_offer),
    case("inject", inject),
    case("mcp", crate::own::mcp),
];

/// By whatever way the agent has, and with the terminal alone.
pub(crate) const RACES: [Case; 2] = [
    Case {
        name: "race",
        act: race,
        often: true,
        under: Under::Session,
    },
    Case {
        name: "race-typed",
        act: race,
        often: true,
        under: Under::Typed,
    },
];

/// Another agent's conversations among those of the one that runs would be counted as its own: this
/// comes after all that count on.
pub(crate) const LAST: [Case; 1] = [case("loop", crate::looped::five)];

fn idle(play: &mut Play) -> Told {
    let body = play.fresh("idle");
    let sent = play.send(&body);
    let receipt = play.settle(&[sent]);
    assert_eq!(play.tally.seen(&body), 1, "its text");
    told("went in at once", receipt)
}

fn streaming(play: &mut Play) -> Told {
    let before = play.fresh("streams");
    play.prompt(&format!("{before} slow=6"));
    play.until_sign(Sign::Working);
    let cuts = play.tally.cuts();
    let sent = play.send("lab: while you speak");
    let receipt = play.settle(&[sent]);
    let what = if play.tally.cuts() > cuts {
        "the answer was begun anew with it"
    } else {
        "it waited for the answer"
    };
    told(what, receipt)
}

fn tool(play: &mut Play) -> Told {
    let file = play.question("; sleep 4");
    play.terminal.type_keys(ENTER);
    play.until("the tool to run", |_| file.exists());
    let sent = play.send("lab: while a tool runs");
    let receipt = play.settle(&[sent]);
    told("in with or after the tool's result", receipt)
}

fn interrupt_busy(play: &mut Play) -> Told {
    let before = play.fresh("busy");
    play.prompt(&format!("{before} slow=60"));
    play.until_sign(Sign::Working);
    let cuts = play.tally.cuts();
    let sent = play.send_as("ann", "lab: stop that", &["--priority", "interrupt"]);
    let receipt = play.settle(&[sent]);
    assert!(play.tally.cuts() > cuts, "the answer was not cut off");
    told("the answer was cut off", receipt)
}

fn interrupt_idle(play: &mut Play) -> Told {
    let child = play.status()["child_pid"].clone();
    let sent = play.send_as("ann", "lab: urgent", &["--priority", "interrupt"]);
    let receipt = play.settle(&[sent]);
    assert_eq!(play.status()["child_pid"], child, "it is another process");
    told("no key, and it lives", receipt)
}

fn dialog(play: &mut Play) -> Told {
    let file = play.question("");
    play.forbid(file);
    let sent = play.send("lab: while you ask");
    let rule = play.held(&sent);
    play.until("the session to know of the question", |play| {
        play.status()["activity"] == "blocked"
    });
    assert_eq!(play.sign(), Sign::Asking, "the question is gone");
    assert_eq!(play.tally.seen(&sent.mark), 0, "it went past the question");
    play.terminal.type_keys(ESCAPE);
    let receipt = play.settle(&[sent]);
    told(format!("held ({rule}) until the person said no"), receipt)
}

/// A question opens between the text and its Enter. When, is tried from before the text to after
/// its Enter, one time after the other.
fn race(play: &mut Play) -> Told {
    let go = play.fresh("go");
    let go = play.stage.dir().join(go);
    let name = play.fresh("raced");
    let file = play.stage.work().join(&name);
    play.forbid(file.clone());
    let step = Duration::from_millis(u64::from(play.count()) * 37 % 400);
    play.prompt(&format!("until={} ask=touch {name}", go.display()));
    play.until_sign(Sign::Working);
    let answer = || std::fs::write(&go, "").expect("the stage can be written");
    let sent = if step < Duration::from_millis(200) {
        answer();
        play.terminal.watch(step);
        play.send("lab: into the race")
    } else {
        let sent = play.send("lab: into the race");
        // By a hook nothing goes in before the tool: then there is nothing to wait for.
        play.soon(|play| play.noted(&sent, "offering"));
        play.terminal.watch(step - Duration::from_millis(200));
        answer();
        sent
    };
    let mut asks = false;
    play.until("the question, or a turn that ended without it", |play| {
        assert!(!file.exists(), "approved by us");
        asks = play.sign() == Sign::Asking;
        asks || (play.sign() == Sign::Free && play.tally.seen(&sent.mark) > 0)
    });
    // Codex takes what is submitted in time into the turn, and may drop its question.
    if asks {
        play.until("the session to know of the question", |play| {
            assert!(!file.exists(), "approved by us");
            play.status()["activity"] == "blocked"
        });
        if play.noted(&sent, "offering") && !play.noted(&sent, "offered") {
            play.caught += 1;
        }
        play.terminal.type_keys(ESCAPE);
    }
    let receipt = play.settle(&[sent]);
    let caught = play.caught;
    told(
        format!("nothing approved, {caught} times in between"),
        receipt,
    )
}

fn draft(play: &mut Play) -> Told {
    let half = play.fresh("half");
    play.types(&format!("{half} a thought"));
    let sent = play.send("lab: while somebody types");
    if play.agent == Agent::Claude {
        play.until("the model to see the message", |play| {
            play.tally.seen(&sent.mark) > 0
        });
        play.until("the draft in its box again", |play| {
            let screen = play.terminal.screen();
            screen
                .iter()
                .any(|line| line.starts_with('❯') && line.contains(&half))
                && play.sign() == Sign::Free
        });
        assert_eq!(play.tally.seen(&half), 0, "the draft was submitted");
        play.terminal.type_keys(CLEAR);
        let receipt = play.settle(&[sent]);
        return told("the draft was put aside and is back", receipt);
    }
    let mut rule = None;
    play.until("it to be held, or to go past the box", |play| {
        rule = play.rule(&sent);
        rule.is_some() || play.tally.seen(&sent.mark) > 0
    });
    assert_eq!(play.tally.seen(&half), 0, "the draft was submitted");
    let Some(rule) = rule else {
        // By the agent's own door; see whether the box was left alone.
        play.until("the draft in its box", |play| {
            let screen = play.terminal.screen();
            let boxed = |line: &String| line.contains('┃') && line.contains(&half);
            screen.iter().any(boxed) && play.sign() == Sign::Free
        });
        play.terminal.type_keys(CLEAR);
        let receipt = play.settle(&[sent]);
        assert_eq!(play.tally.seen(&half), 0, "the draft was submitted");
        return told("it went past the draft, which stays", receipt);
    };
    play.terminal.type_keys(ENTER);
    play.until("the person's own prompt", |play| play.tally.seen(&half) > 0);
    let receipt = play.settle(&[sent]);
    assert_eq!(play.tally.seen(&half), 1, "the draft");
    told(
        format!("held ({rule}) until the person sent the draft"),
        receipt,
    )
}

fn fifty_lines(play: &mut Play) -> Told {
    let name = play.fresh("n");
    let lines: Vec<String> = (1..=50).map(|line| format!("l{line}")).collect();
    let body = format!("{name}\n{}", lines.join("\n"));
    assert!(body.len() <= 300, "it would go as a file");
    let sent = play.send(&body);
    let receipt = play.settle(&[sent]);
    for line in [&name, "l1\n", "l50"] {
        assert_eq!(play.tally.seen(line), 1, "{line:?}");
    }
    told("all of them, once", receipt)
}

/// Words that differ: Gemini takes what repeats itself for a loop, and asks about it.
fn padded(mut text: String, bytes: usize) -> String {
    let mut word = 1000;
    while text.len() < bytes {
        text.push_str(&format!(" w{word}"));
        word += 7;
    }
    text.truncate(bytes);
    // Blanks at the end are nobody's to keep.
    text.replace_range(bytes - 1.., "w");
    text
}

fn three_hundred(play: &mut Play) -> Told {
    let body = padded(play.fresh("inline"), 300);
    let sent = play.send(&body);
    let receipt = play.settle(&[sent]);
    assert_eq!(play.tally.seen(&body), 1, "its text");
    told("went in whole", receipt)
}

fn three_hundred_and_one(play: &mut Play) -> Told {
    let body = padded(play.fresh("file"), 301);
    let sent = play.send(&body);
    play.until("the model to have read the file", |play| {
        assert_ne!(play.sign(), Sign::Asking, "it asks before it reads");
        play.tally.seen(&body) > 0
    });
    let receipt = play.settle(&[sent]);
    told("read from its file, no question", receipt)
}

fn odd_text(play: &mut Play) -> Told {
    let shell = play.fresh("shell");
    let file = play.stage.work().join(&shell);
    play.forbid(file);
    std::fs::write(play.stage.work().join("notes.txt"), "notes\n").expect("its own directory");
    let bodies = [
        "/help lab".to_owned(),
        format!("!touch {shell}"),
        "@nobody lab".to_owned(),
        "# lab note".to_owned(),
        "lab: look at @notes.txt".to_owned(),
    ];
    let mut sent = Vec::new();
    for body in &bodies {
        let one = play.send(body);
        play.settle(std::slice::from_ref(&one));
        sent.push(one);
    }
    let receipt = play.settle(&sent);
    for body in &bodies {
        assert_eq!(play.tally.seen(&format!("] {body}")), 1, "{body:?}");
    }
    told("five texts, each as it was", receipt)
}

fn ten_at_once(play: &mut Play) -> Told {
    let senders = ["ann", "bob", "cy"];
    let sends: Vec<_> = (0..10)
        .map(|n| play.starts_to_send(senders[n % 3], &format!("lab: one of ten, {n}"), &[]))
        .collect();
    let sent: Vec<Sent> = sends.into_iter().map(|send| play.was_sent(send)).collect();
    let turns = play.tally.turns().len();
    let receipt = play.settle(&sent);
    let turns = play.tally.turns().len() - turns;
    told(format!("all ten, in {turns} requests at most"), receipt)
}

fn denial(play: &mut Play) -> Told {
    let file = play.question("");
    play.forbid(file);
    play.terminal.type_keys(ESCAPE);
    play.until_sign(Sign::Free);
    let sent = play.send("lab: after a no");
    let receipt = play.settle(&[sent]);
    told("went in after the no", receipt)
}

fn clear(play: &mut Play) -> Told {
    let old = play.fresh("old");
    play.prompt(&old);
    play.free();
    play.slash(match play.agent {
        Agent::Claude | Agent::Gemini => "/clear",
        Agent::Codex | Agent::OpenCode => "/new",
    });
    play.until("a new conversation", |play| {
        let screen = play.terminal.screen();
        !screen.iter().any(|line| line.contains(&old))
    });
    play.free();
    let sent = play.send("lab: after a new beginning");
    let receipt = play.settle(std::slice::from_ref(&sent));
    let turns = play.tally.turns().iter();
    let with = turns.filter(|turn| turn.count(&sent.mark) > 0);
    for turn in with {
        assert_eq!(turn.count(&old), 0, "it is the old conversation");
    }
    told("went into the new one", receipt)
}

fn killed(play: &mut Play) -> Told {
    let first = play.send("lab: before the crash");
    play.settle(std::slice::from_ref(&first));
    play.kill_session();
    let second = play.send("lab: while nobody runs");
    play.reopen();
    let receipt = play.settle(&[second]);
    told("the first stays one, the second came after", receipt)
}

/// The agent dies with a message half in: nobody may say that it had it, unless it had. It stands
/// still from before that, so that it shows nothing of the text and Enter is waited with.
fn mid_offer(play: &mut Play) -> Told {
    let agent = play.agents_pid();
    play.stop_agent(agent);
    let sent = play.send("lab: into a dying agent");
    play.until("an offer to begin", |play| play.noted(&sent, "offering"));
    play.kill_agent(agent);
    play.judge();
    let shown = play.asked(&["show", &sent.id]);
    let receipt = shown["receipt"].as_str().unwrap_or_default().to_owned();
    let had = play.tally.seen(&sent.mark);
    play.reopen();
    if had == 0 && receipt == "offered" {
        let id8 = sent.id[..8].to_owned();
        panic!("{id8} was written whole, then the agent died: offered, and the model never saw it");
    }
    let after = play.settle(&[sent]);
    told(format!("{receipt} at its death"), after)
}

/// Mail for an agent that a person has started by themselves, told by its own hook.
fn inject(play: &mut Play) -> Told {
    crate::own::inject(play)
}
