//! Cases with what is not there yet in every build: hooks that a person has installed, and tools
//! over MCP.

use crate::list::{Done, Told};
use crate::play::{Play, Under};

/// What the model calls one of our tools, as each agent names it.
fn is_ours(tool: &str) -> bool {
    let begins = ["mcp__ph", "ph_", "mcp_ph"];
    begins.iter().any(|begin| tool.starts_with(begin)) && tool.ends_with("send")
}

/// The agent's tool brings a message to the person.
pub(crate) fn mcp(play: &mut Play) -> Done {
    let before = play.fresh("tools");
    play.prompt(&before);
    play.free();
    let turns = play.tally.turns();
    let offered = turns.last().map_or(&[][..], |turn| &turn.tools);
    let Some(tool) = offered.iter().find(|tool| is_ours(tool)).cloned() else {
        let why = "ph run gives the agent no tools of ours yet";
        return Done::Absent(why.to_owned());
    };
    let body = play.fresh("by-tool");
    play.prompt(&format!(r#"tool={tool}:{{"to":"human","body":"{body}"}}"#));
    play.until("the message of the tool", |play| {
        let inbox = play.asked(&["inbox", "human"]).to_string();
        inbox.contains(&body)
    });
    play.free();
    let (what, receipt) = (format!("{tool} sent a message"), String::new());
    Done::Told(Told { what, receipt })
}

/// An agent that a person starts by themselves, with our hooks in its own settings.
pub(crate) fn inject(play: &Play) -> Done {
    let mut own = Play::open(play.agent, play.program(), play.deadline(), Under::Nobody);
    let body = own.fresh("injected");
    own.leave(&body);
    for prompt in ["first", "second"] {
        let prompt = own.fresh(prompt);
        own.prompt(&prompt);
        own.free();
        assert_eq!(own.tally.seen(&body), 1, "after the prompt {prompt}");
    }
    own.close();
    let (what, receipt) = ("told once, with the first prompt".to_owned(), String::new());
    Done::Told(Told { what, receipt })
}
