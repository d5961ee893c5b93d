//! Cases besides deliveries of a session: hooks that a person has installed, and tools over MCP.

use crate::list::CaseOutcome;
use crate::play::{ENTER, NAME, Play};
use crate::scene::Start;
use posthaste_lab::agents::{Agent, Sign};

/// Return the name under which each agent offers one of our tools to the model.
fn is_ours(tool: &str) -> bool {
    let begins = ["mcp__ph", "ph_", "mcp_ph"];
    begins.iter().any(|begin| tool.starts_with(begin)) && tool.ends_with("send_message")
}

/// Codex with a model that writes code lists the tools in code: `ALL_TOOLS`.
const CODE: &str = "exec";
const FROM_CODE: &str = "mcp__ph__send_message";

const SEARCH: &str = "ToolSearch";

/// Return the tools in the last request.
fn offers(play: &Play) -> Vec<String> {
    let last = play.tally.turns().last();
    last.map(|turn| turn.tools.clone()).unwrap_or_default()
}

/// The agent's tool sends a message to the person.
pub(crate) fn mcp(play: &mut Play) -> CaseOutcome {
    let before = play.fresh("tools");
    play.prompt(&before);
    play.free();
    // Claude Code offers a search for tools first.
    if offers(play).iter().any(|tool| tool == SEARCH) {
        let call = format!(r#"tool={SEARCH}:{{"query":"select:{FROM_CODE}","max_results":1}}"#);
        play.prompt(&call);
        play.free();
    }
    let offered = offers(play);
    let named = offered.iter().find(|tool| is_ours(tool));
    let tool = match named {
        Some(tool) => tool.clone(),
        None if offered.iter().any(|tool| tool == CODE || tool == SEARCH) => FROM_CODE.to_owned(),
        None => panic!("the model is offered none of our tools, but {offered:?}"),
    };
    let body = play.fresh("by-tool");
    let call = format!(r#"tool={tool}:{{"to":"human","body":"{body}"}}"#);
    let mut asks = false;
    play.prompt(&call);
    play.until("the message of the tool, or a question", |play| {
        asks = play.sign() == Sign::Asking;
        asks || sent(play, &body)
    });
    // Gemini has the server from its own settings, where it is not trusted.
    if asks {
        assert_eq!(play.agent, Agent::Gemini, "it asks about our own tool");
        play.terminal.type_keys(ENTER);
        play.until("the message of the tool", |play| sent(play, &body));
    }
    play.free();
    let inbox = play.asked(&["inbox", "human"]);
    let mail = inbox.as_array().into_iter().flatten();
    let came = mail.filter(|mail| mail["body"] == body.as_str());
    let from: Vec<_> = came.map(|mail| mail["from"].clone()).collect();
    assert_eq!(from, [NAME], "from whom it came");
    let who = if asks { ", after the person's yes" } else { "" };
    let (what, receipt) = (format!("{tool} sent a message{who}"), String::new());
    CaseOutcome { what, receipt }
}

fn sent(play: &Play, body: &str) -> bool {
    play.asked(&["inbox", "human"]).to_string().contains(body)
}

/// An agent that a person starts, with our hooks in its own settings.
pub(crate) fn inject(play: &Play) -> CaseOutcome {
    let mut own = Play::open(
        &play.release,
        play.program(),
        play.deadline(),
        Start::NOBODY,
    );
    // One message before each prompt: the hook passes it on with that prompt, and with no other.
    let mut left: Vec<(String, String)> = Vec::new();
    for prompt in ["first", "second", "third"] {
        if left.len() < 2 {
            let body = own.fresh("injected");
            let id = own.leave(&body);
            left.push((id, body));
        }
        let prompt = own.fresh(prompt);
        own.prompt(&prompt);
        own.free();
        for (_, body) in &left {
            assert_eq!(own.tally.seen(body), 1, "after the prompt {prompt}");
        }
        let (_, newest) = left.last().expect("one was left");
        let mut turns = own.tally.turns().iter();
        let asked = turns.find(|turn| turn.count(&prompt) > 0);
        let count = asked.map(|turn| turn.count(newest));
        assert_eq!(count, Some(1), "in the request with {prompt}");
    }
    // The journal records only that the hook printed the message: no one has reported reading it.
    for (id, _) in &left {
        let shown = own.asked(&["show", id]);
        assert_eq!(shown["receipt"], "offered", "{shown}");
        assert_eq!(shown["read"], false, "{shown}");
    }
    own.close();
    let (what, receipt) = (
        "each told once, with the next prompt".to_owned(),
        String::new(),
    );
    CaseOutcome { what, receipt }
}
