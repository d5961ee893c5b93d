//! `ph log`: prints the facts of the journal, and follows new ones.

use crate::cli::prelude::*;
use posthaste_core::ask::AskFact;
use posthaste_core::tasks::Deed;
use posthaste_core::{LoopFact, Record};
use posthaste_store::follow::{Followed, Follower};
use posthaste_store::times;
use posthaste_store::transfer::to_line;

/// Print the facts in the journal, in order
///
/// With --follow: prints the existing facts, then a mark, then each new fact, until interrupted.
/// With --json, each fact is one line and the mark is {"mark":{"seq":N}}.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph log
  ph log --follow --agent coder-1
  ph log --after 1200 --json | jq -r .kind")]
pub(crate) struct Args {
    /// Print new facts as they are stored
    #[arg(long, short)]
    follow: bool,
    /// Print only facts after this sequence number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    /// Print only facts about this agent's inbox
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    agent: Option<AgentName>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    if args.follow {
        return follow(context, args);
    }
    let journal = context.reader()?;
    check_after(journal.as_ref(), args.after)?;
    let Some(journal) = journal else {
        return Ok(Code::Ok);
    };
    let mut last = args.after;
    loop {
        let page = journal.facts_after(last)?;
        let Some(end) = page.last() else {
            return Ok(Code::Ok);
        };
        last = end.seq;
        for record in page
            .iter()
            .filter(|r| args.agent.as_ref().is_none_or(|a| r.agent == a.as_str()))
        {
            print(context, record)?;
        }
    }
}

/// Reject a sequence number that no fact has yet: it is a typing error or comes from another home,
/// and --follow would print nothing.
fn check_after(journal: Option<&Journal>, after: u64) -> Result<()> {
    let head = match journal {
        Some(journal) if after > 0 => journal.head()?,
        Some(_) | None => 0,
    };
    if after <= head {
        return Ok(());
    }
    let there = match head {
        0 => "the journal has no facts yet".to_owned(),
        head => format!("the last one is {head}"),
    };
    let report = Report::usage(format!("there is no fact {after}: {there}"));
    Err(report.hint("'ph log' prints all facts with their numbers"))
}

fn follow(context: &mut Context, args: Args) -> Result<Code> {
    if args.after > 0 {
        check_after(context.reader()?.as_ref(), args.after)?;
    }
    // In a home without a journal, this waits for the first fact.
    let mut follower = Follower::new(context.journal()?, args.after, args.agent)?;
    while let Some(next) = follower.next(None)? {
        context.now = times::now();
        match next {
            Followed::Fact(record) => print(context, &record)?,
            Followed::Mark { seq } if context.json => context
                .out
                .json_text(&format!("{{\"mark\":{{\"seq\":{seq}}}}}"))?,
            Followed::Mark { seq } => context.out.line(format!("-- live after {seq} --"))?,
        }
        if follower.is_caught_up() {
            context.out.flush()?;
        }
    }
    Ok(Code::Ok)
}

fn print(context: &mut Context, record: &Record) -> Result<()> {
    if context.json {
        return context.out.json_text(&to_line(record));
    }
    let when = match record.at.parse() {
        Ok(at) => context.shown_time(at),
        Err(_) => text::one_line(&record.at, 40),
    };
    let agent = text::one_line(&record.agent, 64);
    let kind = text::one_line(&record.kind, 40);
    let topics = ["session_", "task_", "loop_", "iteration_", "prompt_"];
    let short = topics.iter().find_map(|topic| kind.strip_prefix(topic));
    let kind = short.unwrap_or(&kind);
    let id8: String = text::one_line(&record.id, 64).chars().take(8).collect();
    context.out.line(format!(
        "{:>6}  {when}  {agent:<12}  {kind:<9}  {}",
        record.seq,
        summary(record, &id8)
    ))
}

/// Summarise a fact in one line.
fn summary(record: &Record, id8: &str) -> String {
    match record.read() {
        Ok(fact) => match fact.event {
            posthaste_core::Event::Message(envelope) => {
                let body = match &envelope.body {
                    posthaste_core::Body::Inline(body) => text::one_line(text::head(body, 400), 80),
                    posthaste_core::Body::Filed { bytes, .. } => format!("({bytes} bytes)"),
                };
                format!("{id8}  from {}: {body}", envelope.from)
            }
            posthaste_core::Event::Progress(progress) => {
                let by = progress.by.map(|name| format!("by {name}"));
                let reason = progress.reason.map(|reason| text::one_line(&reason, 120));
                let details: Vec<String> = by.into_iter().chain(reason).collect();
                format!("{}  {}", progress.message.id8(), details.join(": "))
            }
            posthaste_core::Event::Started(started) => {
                let command = text::one_line(&started.command.join(" "), 80);
                format!("pid {}: {command}", started.child_pid)
            }
            posthaste_core::Event::Ended(ended) => ended.how.to_string(),
            posthaste_core::Event::Conversation(conversation) => {
                let id = text::one_line(&conversation.id, 80);
                match conversation.not_resumed {
                    true => format!("{id}  not resumed"),
                    false => id,
                }
            }
            posthaste_core::Event::Work(deed) => work_summary(&deed, id8),
            posthaste_core::Event::Loop(happened) => loop_summary(&happened, id8),
            posthaste_core::Event::Ask(ask) => ask_summary(&ask, id8),
        },
        Err(odd) => format!("{id8}  ({odd})"),
    }
}

fn ask_summary(ask: &AskFact, id8: &str) -> String {
    match ask {
        AskFact::Opened(opened) => {
            let summary = text::one_line(&opened.summary, 80);
            format!("{id8}  {}: {summary}", opened.kind)
        }
        AskFact::Seen(seen) => {
            let what: String = seen.what.to_string().chars().take(8).collect();
            format!("{what}  by {}", seen.by)
        }
        AskFact::Closed(closed) => {
            let by = closed.by.as_ref().map(|by| format!(" by {by}"));
            let choice = closed.choice.as_ref();
            let choice = choice.map(|choice| format!(": {}", text::one_line(choice, 60)));
            format!(
                "{}  {}{}{}",
                closed.ask.id8(),
                closed.how,
                by.unwrap_or_default(),
                choice.unwrap_or_default()
            )
        }
    }
}

fn work_summary(deed: &Deed, id8: &str) -> String {
    let in_iteration = |iteration: Option<u32>| {
        iteration.map_or_else(String::new, |n| format!(", in iteration {n}"))
    };
    match deed {
        Deed::Added(added) => {
            let text = text::one_line(text::head(&added.text, 400), 80);
            format!("{id8}  {} by {}: {text}", added.status, added.by)
        }
        Deed::Moved(moved) => {
            let when = in_iteration(moved.iteration);
            format!(
                "{}  {} by {}{when}",
                moved.task.id8(),
                moved.status,
                moved.by
            )
        }
        Deed::Noted(noted) => {
            let text = text::one_line(text::head(&noted.text, 400), 80);
            format!("{id8}  {} by {}: {text}", noted.kind, noted.by)
        }
        Deed::Completed(completed) => {
            let when = in_iteration(completed.iteration);
            format!("{id8}  says {}{when}", completed.by)
        }
    }
}

fn loop_summary(happened: &LoopFact, id8: &str) -> String {
    match happened {
        LoopFact::Began(began) => {
            let how = if began.goes_on { "continues" } else { "starts" };
            let settings = &began.settings;
            let what = settings.spec.as_deref().or(settings.prd.as_deref());
            let what = text::one_line(what.unwrap_or_default(), 80);
            format!("{how} at iteration {}: {what}", began.number)
        }
        LoopFact::IterationStarted(started) => {
            let on = started.story.as_deref().or(started.task.as_deref());
            let on = on.map(|on| format!(": {}", text::one_line(on, 80)));
            format!("iteration {}{}", started.number, on.unwrap_or_default())
        }
        LoopFact::IterationEnded(ended) => {
            format!("iteration {} {}", ended.number, ended.outcome)
        }
        LoopFact::Asked(asked) => format!("to {} by {}", asked.what, asked.by),
        LoopFact::Checkpointed => "paused".to_owned(),
        LoopFact::Resumed(resumed) => format!("by {}", resumed.by),
        LoopFact::Injected(injected) => {
            let text = text::one_line(text::head(&injected.text, 400), 80);
            format!("{id8}  by {}: {text}", injected.by)
        }
        LoopFact::Interactive(mode) => {
            let is = if mode.on { "on" } else { "off" };
            format!("{is} by {}", mode.by)
        }
        LoopFact::Ended(ended) => ended.how.to_string(),
    }
}
