use super::{board, json_of, short_id, since};
use crate::cli::prelude::*;
use crate::output::table;
use anstyle::{AnsiColor, Style};
use posthaste_core::AskState;
use posthaste_core::ask::AskKind;
use posthaste_core::board::BoardAsk;
use posthaste_store::follow::{Followed, Follower};
use posthaste_store::times;
use posthaste_wire::ask::Ask;

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
    /// Print each question when it is opened, answered or closed, until interrupted
    #[arg(long, short, conflicts_with = "all")]
    follow: bool,
}

/// Questions that `--all` lists.
const MAX_LISTED: u32 = 1_000;

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    if args.all {
        return list_all(context);
    }
    let asks = board(context)?.asks();
    if !args.follow {
        return list(context, &asks);
    }
    let head = context.journal()?.head()?;
    list(context, &asks)?;
    context.out.flush()?;
    follow(context, head)
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
        Some(mut journal) => journal.latest_asks(None, MAX_LISTED)?,
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

/// Print every change of an ask after the fact `head`.
fn follow(context: &mut Context, head: u64) -> Result<Code> {
    let mut journal = context.journal()?;
    let mut follower = Follower::new(context.journal()?, head, None)?;
    while let Some(next) = follower.next(None)? {
        context.now = times::now();
        if let Followed::Fact(record) = next
            && let Ok(fact) = record.read()
        {
            let opened = AskState::opened_by(&fact).map(|ask| ask.id);
            if let Some(id) = opened.or(AskState::changed_by(&fact)) {
                let ask = journal.ask(&id.into())?;
                print(context, &ask)?;
            }
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
