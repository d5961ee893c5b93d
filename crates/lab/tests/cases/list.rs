//! List of all cases for each agent. A case starts and ends with the agent at rest.

use crate::play::{CLEAR, ENTER, ESCAPE, Play, Sent};
use crate::scene::Start;
use posthaste_lab::agents::{Agent, Sign};
use posthaste_lab::model::{Author, Piece};

/// Outcome of a case: a description, and the receipts.
pub(crate) struct CaseOutcome {
    pub(crate) what: String,
    pub(crate) receipt: String,
}

fn outcome(what: impl Into<String>, receipt: String) -> CaseOutcome {
    let what = what.into();
    CaseOutcome { what, receipt }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) act: fn(&mut Play) -> CaseOutcome,
    /// Whether the case is repeated or run once.
    pub(crate) often: bool,
    pub(crate) start: Start,
    /// Agents that support the case.
    agents: &'static [Agent],
    /// Reason why the others do not.
    absent: &'static str,
}

impl Case {
    /// Return the reason why the case cannot be run with an agent.
    pub(crate) fn absent(&self, agent: Agent) -> Option<&'static str> {
        (!self.agents.contains(&agent)).then_some(self.absent)
    }

    const fn only(mut self, agents: &'static [Agent], absent: &'static str) -> Self {
        (self.agents, self.absent) = (agents, absent);
        self
    }

    /// A case of Claude Code with a start of its own.
    const fn claude(mut self, start: Start) -> Self {
        self.start = start;
        self.only(&[Agent::Claude], "Claude Code only")
    }

    const fn often(mut self) -> Self {
        self.often = true;
        self
    }
}

const fn case(name: &'static str, act: fn(&mut Play) -> CaseOutcome) -> Case {
    Case {
        name,
        act,
        often: false,
        start: Start::SESSION,
        agents: &Agent::ALL,
        absent: "",
    }
}

/// Agents whose dialogs are answered by keys.
const ANSWERED: [Agent; 3] = [Agent::Claude, Agent::Codex, Agent::Gemini];
const OPENCODE_NOT_ANSWERED: &str = "its dialog has no keys for its options";

pub(crate) const CASES: [Case; 33] = [
    case("idle", idle),
    case("streaming", streaming),
    case("long-stream", long_stream).only(&[Agent::Codex], "Codex only"),
    case("tool", tool),
    case("interrupt-busy", interrupt_busy),
    case("interrupt-idle", interrupt_idle),
    case("dialog", dialog),
    case("answer", crate::scenarios::answer::allow)
        .only(&ANSWERED, OPENCODE_NOT_ANSWERED)
        .often(),
    case("always", crate::scenarios::answer::always).only(&ANSWERED, OPENCODE_NOT_ANSWERED),
    case("draft", draft),
    case("views", crate::scenarios::views::known).only(
        &[Agent::Claude, Agent::Codex, Agent::Gemini],
        "mail goes by its own HTTP API",
    ),
    case("50-lines", fifty_lines),
    case("300-bytes", three_hundred),
    case("301-bytes", three_hundred_and_one),
    case("odd-text", odd_text),
    case("ten-at-once", ten_at_once),
    case("denial", denial),
    case("clear", crate::scenarios::talks::clear),
    case("older", crate::scenarios::talks::older),
    case("killed", crate::scenarios::crash::killed),
    case("mid-offer", crate::scenarios::crash::mid_offer),
    case("restart", crate::scenarios::crash::restarted),
    case("inject", inject),
    case("mcp", crate::scenarios::own::mcp),
    case("agents-view", crate::scenarios::views::agents).claude(Start::ALONE),
    case("queued-http", crate::scenarios::crash::queued).only(&[Agent::OpenCode], "OpenCode only"),
    case("queued", crate::scenarios::crash::queued).claude(Start::QUEUES),
    case("withdrawn", crate::scenarios::crash::withdrawn).claude(Start::QUEUES),
    case("status-1", idle).claude(Start::STATUS_OF_ONE_ROW),
    case("status-3", idle).claude(Start::STATUS_OF_THREE_ROWS),
    case("named", idle).claude(Start::NAMED),
    case("named-denial", denial).claude(Start::NAMED),
    case("renamed", crate::scenarios::views::renamed).claude(Start::NAMED_NO_HOOKS),
];

const fn race(name: &'static str, start: Start) -> Case {
    let mut race = case(name, crate::scenarios::race::swept).often();
    race.start = start;
    race
}

/// Races between a question and mail, with hooks and without, named and unnamed.
pub(crate) const RACES: [Case; 4] = [
    race("race", Start::SESSION),
    race("race-no-hooks", Start::NO_HOOKS),
    race("race-named", Start::NAMED).claude(Start::NAMED),
    race("race-named-no-hooks", Start::NAMED_NO_HOOKS).claude(Start::NAMED_NO_HOOKS),
];

/// Soak test with random kills, on a stage of its own.
pub(crate) const SOAK: [Case; 1] = [Case {
    start: Start::KILLS,
    ..case("kills", crate::scenarios::soak::kills)
}];

/// Cases with another agent's conversations, which would count as those of the running agent. They
/// come after all cases that count requests.
pub(crate) const LAST: [Case; 1] = [case("loop", crate::scenarios::looped::five)];

fn idle(play: &mut Play) -> CaseOutcome {
    let body = play.fresh("idle");
    let sent = play.send(&body);
    let receipt = play.settle(&[sent]);
    assert_eq!(play.tally.seen(&body), 1, "its text");
    outcome("went in at once", receipt)
}

fn streaming(play: &mut Play) -> CaseOutcome {
    let before = play.fresh("streams");
    play.prompt(&format!("{before} slow=6"));
    play.until_sign(Sign::Working);
    let cuts = play.tally.cuts();
    let sent = play.send("lab: while you speak");
    let receipt = play.settle(&[sent]);
    assert_eq!(play.tally.cuts(), cuts, "the answer was cut off");
    outcome("it waited for the answer", receipt)
}

/// Longer than any agent goes without a sign of life; no hook is called meanwhile.
const LONG_STREAM: u32 = 40;

fn long_stream(play: &mut Play) -> CaseOutcome {
    let before = play.fresh("streams-long");
    let end = play.fresh("end");
    play.prompt(&format!("{before} slow={LONG_STREAM} reply={end}"));
    play.until_sign(Sign::Working);
    let cuts = play.tally.cuts();
    let sent = play.send("lab: while you speak for long");
    let receipt = play.settle(std::slice::from_ref(&sent));
    assert_eq!(play.tally.cuts(), cuts, "the answer was cut off");
    let mut turns = play.tally.turns().iter();
    let with = turns.find(|turn| turn.count(&sent.mark) > 0);
    let with = with.expect("the model has seen it");
    let is_whole = |piece: &Piece| piece.voice == Author::Model && piece.text.contains(&end);
    assert!(with.pieces.iter().any(is_whole), "the answer is not whole");
    outcome("it waited for the whole answer", receipt)
}

/// Route to an agent while a tool runs.
fn way(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude | Agent::Codex | Agent::Gemini => "hook",
        Agent::OpenCode => "http",
    }
}

/// The model gets the message with the tool's result, in the next request instead of after the
/// turn.
fn tool(play: &mut Play) -> CaseOutcome {
    let go = play.fresh("tool-goes-on");
    let file = play.question(&format!("; while [ ! -e {go} ]; do sleep 0.1; done"));
    play.terminal.type_keys(ENTER);
    play.until("the tool to run", |_| file.exists());
    let before = play.tally.turns().len();
    let sent = play.send("lab: while a tool runs");
    let way = way(play.agent);
    if way == "hook" {
        play.held_by(&sent, way);
    } else {
        play.until("its door to have it", |play| play.noted(&sent, "offered"));
    }
    assert_eq!(play.tally.turns().len(), before, "the tool has ended");
    std::fs::write(play.stage.work().join(go), "").expect("the stage can be written");
    play.until("the model to be asked again", |play| {
        let is_told = play.tally.turns().len() > before;
        // The message is not typed: it is not on the screen before the model has it.
        let is_seen = way == "hook" && play.shows(&sent);
        assert!(is_told || !is_seen, "it was typed");
        is_told
    });
    let next = &play.tally.turns()[before];
    assert!(next.result().is_some(), "this is not what the tool gave");
    assert_eq!(next.count(&sent.mark), 1, "it is not in the next request");
    let receipt = play.settle(std::slice::from_ref(&sent));
    assert_eq!(play.route(&sent).as_deref(), Some(way), "its route");
    outcome("in with the tool's result", receipt)
}

fn interrupt_busy(play: &mut Play) -> CaseOutcome {
    let before = play.fresh("busy");
    play.prompt(&format!("{before} slow=60"));
    play.until_sign(Sign::Working);
    let cuts = play.tally.cuts();
    let sent = play.send_as("ann", "lab: stop that", &["--priority", "interrupt"]);
    let receipt = play.settle(&[sent]);
    assert!(play.tally.cuts() > cuts, "the answer was not cut off");
    outcome("the answer was cut off", receipt)
}

fn interrupt_idle(play: &mut Play) -> CaseOutcome {
    let child = play.status()["child_pid"].clone();
    let sent = play.send_as("ann", "lab: urgent", &["--priority", "interrupt"]);
    let receipt = play.settle(&[sent]);
    assert_eq!(play.status()["child_pid"], child, "it is another process");
    outcome("no key, and it lives", receipt)
}

fn dialog(play: &mut Play) -> CaseOutcome {
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
    outcome(format!("held ({rule}) until the person said no"), receipt)
}

fn draft(play: &mut Play) -> CaseOutcome {
    let half = play.fresh("half");
    play.types(&format!("{half} a thought"));
    let sent = play.send("lab: while somebody types");
    let mut rule = None;
    play.until("it to be held, or to go past the box", |play| {
        rule = play.rule(&sent);
        rule.is_some() || play.tally.seen(&sent.mark) > 0
    });
    assert_eq!(play.tally.seen(&half), 0, "the draft was submitted");
    let Some(rule) = rule else {
        // Delivered through the agent's HTTP API; check that the box was left alone.
        play.until("the draft in its box", |play| {
            let screen = play.terminal.screen();
            let boxed = |line: &String| line.contains('┃') && line.contains(&half);
            screen.iter().any(boxed) && play.sign() == Sign::Free
        });
        play.terminal.type_keys(CLEAR);
        let receipt = play.settle(&[sent]);
        assert_eq!(play.tally.seen(&half), 0, "the draft was submitted");
        return outcome("it went past the draft, which stays", receipt);
    };
    play.terminal.type_keys(ENTER);
    play.until("the person's own prompt", |play| play.tally.seen(&half) > 0);
    let receipt = play.settle(&[sent]);
    assert_eq!(play.tally.seen(&half), 1, "the draft");
    outcome(
        format!("held ({rule}) until the person sent the draft"),
        receipt,
    )
}

fn fifty_lines(play: &mut Play) -> CaseOutcome {
    let name = play.fresh("n");
    let lines: Vec<String> = (1..=50).map(|line| format!("l{line}")).collect();
    let body = format!("{name}\n{}", lines.join("\n"));
    assert!(body.len() <= 300, "it would go as a file");
    let sent = play.send(&body);
    let receipt = play.settle(&[sent]);
    for line in [&name, "l1\n", "l50"] {
        assert_eq!(play.tally.seen(line), 1, "{line:?}");
    }
    outcome("all of them, once", receipt)
}

/// Words that differ: Gemini takes repetitions for a loop, and asks about it.
fn padded(mut text: String, bytes: usize) -> String {
    let mut word = 1000;
    while text.len() < bytes {
        text.push_str(&format!(" w{word}"));
        word += 7;
    }
    text.truncate(bytes);
    // Agents may drop trailing blanks.
    text.replace_range(bytes - 1.., "w");
    text
}

fn three_hundred(play: &mut Play) -> CaseOutcome {
    let body = padded(play.fresh("inline"), 300);
    let sent = play.send(&body);
    let receipt = play.settle(std::slice::from_ref(&sent));
    let whole = format!("{}] {body}", sent.mark);
    assert_eq!(play.tally.seen(&whole), 1, "its text, behind its header");
    outcome("went in whole", receipt)
}

fn three_hundred_and_one(play: &mut Play) -> CaseOutcome {
    let body = padded(play.fresh("file"), 301);
    let sent = play.send(&body);
    play.until("the model to have read the file", |play| {
        assert_ne!(play.sign(), Sign::Asking, "it asks before it reads");
        play.tally.seen(&body) > 0
    });
    let receipt = play.settle(std::slice::from_ref(&sent));
    assert_eq!(play.tally.seen(&body), 1, "its text");
    let says = format!("{}] Read /", sent.mark);
    assert_eq!(play.tally.seen(&says), 1, "where it is");
    let turns = play.tally.turns().iter().flat_map(|turn| &turn.pieces);
    let mut with = turns.filter(|piece| piece.text.contains(&body));
    let is_found = with.all(|piece| matches!(piece.voice, Author::Tool | Author::Model));
    assert!(
        is_found,
        "the message was delivered but its file was not read"
    );
    outcome("read from its file, no question", receipt)
}

fn odd_text(play: &mut Play) -> CaseOutcome {
    let shell = play.fresh("shell");
    let file = play.stage.work().join(&shell);
    play.forbid(file);
    let inside = play.fresh("inside");
    std::fs::write(play.stage.work().join("notes.txt"), &inside).expect("its own directory");
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
    let opened = match play.tally.seen(&inside) {
        0 => "",
        _ => ", and opened the file",
    };
    outcome(format!("five texts, each as it was{opened}"), receipt)
}

fn ten_at_once(play: &mut Play) -> CaseOutcome {
    let senders = ["ann", "bob", "cy"];
    let sends: Vec<_> = (0..10)
        .map(|n| play.starts_to_send(senders[n % 3], &format!("lab: one of ten, {n}"), &[]))
        .collect();
    let sent: Vec<Sent> = sends.into_iter().map(|send| play.was_sent(send)).collect();
    let turns = play.tally.turns().len();
    let receipt = play.settle(&sent);
    let turns = play.tally.turns().len() - turns;
    let last = play.tally.turns().last().expect("the model was asked");
    let all: Vec<&str> = last.pieces.iter().map(|p| p.text.as_str()).collect();
    let all = all.join("\n");
    let mut came: Vec<&Sent> = sent.iter().collect();
    came.sort_by_key(|one| all.find(&one.mark));
    let mut stored: Vec<&Sent> = sent.iter().collect();
    stored.sort_by_key(|one| play.place(one));
    let ids = |sent: &[&Sent]| -> Vec<String> { sent.iter().map(|one| one.id.clone()).collect() };
    assert_eq!(ids(&came), ids(&stored), "the order in which they came");
    outcome(
        format!("all ten in order, in {turns} requests at most"),
        receipt,
    )
}

fn denial(play: &mut Play) -> CaseOutcome {
    let file = play.question("");
    play.forbid(file);
    play.terminal.type_keys(ESCAPE);
    play.until_sign(Sign::Free);
    let sent = play.send("lab: after a no");
    let receipt = play.settle(&[sent]);
    outcome("went in after the no", receipt)
}

/// Mail for an agent that a person has started, passed on by its own hook.
fn inject(play: &mut Play) -> CaseOutcome {
    crate::scenarios::own::inject(play)
}
