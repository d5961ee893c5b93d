use super::{board, json_of, short_id, since};
use crate::cli::prelude::*;
use crate::output::table;
use anstyle::{AnsiColor, Style};
use posthaste_core::ask::AskKind;
use posthaste_core::board::BoardAsk;
use posthaste_core::{AskId, AskState};
use posthaste_store::follow::{Followed, Follower};
use posthaste_store::live::SessionDir;
use posthaste_store::times;
use posthaste_wire::ask::Ask;
use std::collections::BTreeMap;

/// List what waits for you: questions of agents, failures and mail
///
/// The most urgent comes first. 'ph answer ASK' shows a question and asks for your answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph asks
  ph asks --all --json
  ph asks --follow")]
pub(crate) struct Args {
    /// List the latest questions, answered and closed ones too
    #[arg(long, short)]
    all: bool,
    /// Print the open questions, and each change of a question, until interrupted
    #[arg(long, short, conflicts_with = "all")]
    follow: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    if args.all {
        return list_all(context);
    }
    if args.follow {
        return follow(context);
    }
    let asks = board(context)?.asks();
    list(context, &asks)
}

fn list(context: &mut Context, asks: &[BoardAsk]) -> Result<Code> {
    if context.json {
        let asks: Vec<Ask> = asks.iter().map(json_of).collect();
        context.out.json(&asks)?;
    } else if asks.is_empty() {
        context.out.line("nothing waits for you")?;
    } else {
        let heading = ["ASK", "AGENT", "KIND", "SINCE", "QUESTION"];
        let now = context.now;
        let rows = asks.iter().map(|ask| {
            let row = [
                short_id(ask, asks),
                ask.agent.to_string(),
                ask.kind.to_string(),
                since(ask.since, now),
                text::one_line(&ask.summary, 120),
            ];
            (colour(ask.kind), row)
        });
        table::print(&mut context.out, heading, rows)?;
    }
    Ok(if asks.is_empty() { Code::No } else { Code::Ok })
}

fn list_all(context: &mut Context) -> Result<Code> {
    let asks = match context.existing_journal()? {
        Some(mut journal) => journal.latest_asks(None, super::MAX_LISTED_ASKS)?,
        None => Vec::new(),
    };
    if context.json {
        let asks: Vec<Ask> = asks.iter().map(Ask::new).collect();
        context.out.json(&asks)?;
        return Ok(Code::Ok);
    }
    if asks.is_empty() {
        context.out.line("no agent has asked anything yet")?;
    }
    for ask in &asks {
        print(context, ask)?;
    }
    Ok(Code::Ok)
}

/// Whether the session of an open ask is gone. The next session of its agent records the end.
fn is_left(context: &Context, ask: &AskState) -> bool {
    let dir = SessionDir::of(&context.home, &ask.agent);
    ask.is_open() && !dir.is_held().unwrap_or(true)
}

/// Print the open questions, and then every change of a question.
fn follow(context: &mut Context) -> Result<Code> {
    let mut journal = context.journal()?;
    let head = journal.head()?;
    let open = journal.open_asks(None)?;
    let mut known: BTreeMap<AskId, AskState> = BTreeMap::new();
    for ask in open {
        print(context, &ask)?;
        known.insert(ask.id, ask);
    }
    context.out.flush()?;
    let mut follower = Follower::new(journal, head, None)?;
    while let Some(next) = follower.next(None)? {
        context.now = times::now();
        if let Followed::Fact(record) = next
            && let Ok(fact) = record.read()
        {
            let opened = AskState::opened_by(&fact);
            let id = opened.as_ref().map(|ask| ask.id);
            known.extend(opened.map(|ask| (ask.id, ask)));
            let id = id.or(AskState::changed_by(&fact));
            if let Some(ask) = id.and_then(|id| known.get_mut(&id)) {
                ask.apply(&fact);
                print(context, ask)?;
            }
            known.retain(|_, ask| ask.is_open());
        }
        if follower.is_caught_up() {
            context.out.flush()?;
        }
    }
    Ok(Code::Ok)
}

/// Print the state of a recorded ask in one line.
fn print(context: &mut Context, ask: &AskState) -> Result<()> {
    let view = Ask::new(ask);
    if context.json {
        let line =
            serde_json::to_string(&view).expect("strings, numbers and times have a JSON form");
        return context.out.json_text(&line);
    }
    let id: String = ask.id.id8().chars().take(super::SHORT_ID_DIGITS).collect();
    let state = match (&view.closed, &view.answer) {
        (Some(end), _) => {
            let by = end.by.as_ref().map(|by| format!(" by {by}"));
            let choice = end.choice.as_ref().map(|choice| format!(": {choice}"));
            format!(
                "{}{}{}",
                end.how,
                by.unwrap_or_default(),
                choice.unwrap_or_default()
            )
        }
        (None, _) if is_left(context, ask) => "withdrawn: its session has ended".to_owned(),
        (None, Some(answer)) => format!("answering: {} by {}", answer.choice, answer.by),
        (None, None) => "open".to_owned(),
    };
    let when = context.config.time.show(ask.opened_at, context.now);
    let Ask {
        agent,
        kind,
        summary,
        ..
    } = &view;
    context
        .out
        .line(format!("{id}  {when}  {agent}  {kind}  {state}  {summary}"))
}

fn colour(kind: AskKind) -> Style {
    match kind {
        AskKind::Permission | AskKind::Question => AnsiColor::Yellow.on_default().bold(),
        AskKind::Trouble => AnsiColor::Red.on_default(),
        AskKind::Mail => Style::new(),
    }
}
