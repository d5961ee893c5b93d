use super::{MAX_LISTED_ASKS, SHORT_ID_DIGITS, board, question, short_id, since};
use crate::cli::prelude::*;
use posthaste_client::answer::{Answerer, answer, to_closed};
use posthaste_core::ask::{AskSeen, Choice, ChoiceError, Meaning};
use posthaste_core::board::BoardAsk;
use posthaste_core::{AskState, Draft, IdPrefix, MessageId, Timestamp};
use posthaste_store::operation::{MarkSeen, Post};
use posthaste_wire::ask::Outcome;
use rustix::termios::{QueueSelector, tcflush};
use std::io::{BufRead, IsTerminal};
use uuid::Uuid;

/// Answer an agent's question or permission request
///
/// ASK is an id of 'ph asks', or an agent's name. Without CHOICE, the question is shown and your
/// answer is read from the terminal. A script names the ask, because an agent may ask something else
/// meanwhile; only 'deny' may name the agent.
///
/// The first answer counts. The result is one of: applied (exit 0); too late, changed, not applied
/// (exit 4); uncertain (exit 1).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph answer a7f2
  ph answer a7f2 allow
  ph answer a7f2 'Use the staging database instead.'
  ph answer coder-1 deny

A CHOICE that is no key and not allow, always or deny is a text: it denies, and is then sent to the
agent as a message. 'ph answer ASK seen' hides a failure from the list.")]
pub(crate) struct Args {
    /// Id of an ask, or an agent's name
    #[arg(value_name = "ASK", add = complete_agents())]
    ask: String,
    /// allow, always, deny, the key of an option, or a text
    #[arg(value_name = "CHOICE")]
    choice: Option<String>,
    /// Sender [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    from: Option<AgentName>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let (from, from_evidence) = context.sender(args.from.as_ref())?;
    let asks = board(context)?.asks();
    let (found, is_named) = find(context, &args.ask, &asks)?;
    let choice = args.choice.as_deref().map(str::trim);
    let Some(ask) = &found.recorded else {
        return put_aside(context, &from, &found, choice);
    };
    if let Some(closed) = &ask.closed {
        let mut journal = context.journal()?;
        let outcome = to_closed(&mut journal, ask, closed)?;
        return report(context, ask, &outcome);
    }
    let needs_prompt = match choice {
        None => true,
        Some(choice) => !is_named && choice != Meaning::Deny.word(),
    };
    let typed = match needs_prompt {
        true => prompt(context, ask, &found, &asks)?,
        false => None,
    };
    let Some(choice) = typed.as_deref().or(choice.filter(|_| !needs_prompt)) else {
        context.out.line("later: nothing was answered")?;
        return Ok(Code::Ok);
    };
    let answerer = Answerer {
        from,
        from_evidence,
        via: "ph answer".to_owned(),
    };
    let chosen = ask.opened.choose(choice);
    let chosen = chosen.map_err(|error| refused(ask, &error))?;
    let option = match &chosen {
        Choice::Option(option) | Choice::DenyWith(option, _) => option,
    };
    let patience = context.config.patience;
    let outcome = answer(&context.home, patience, ask, option, &answerer)?;
    let code = report(context, ask, &outcome)?;
    if let Choice::DenyWith(_, text) = &chosen {
        match outcome {
            Outcome::Applied { .. } => send_reason(context, ask, &answerer, text)?,
            _ => note("the text was not sent"),
        }
    }
    Ok(code)
}

/// Find an ask by its id or by its agent. Return whether the id was given. The name of an agent that
/// asks something, and a beginning that fits several asks, are never taken for an id.
fn find(context: &Context, name: &str, asks: &[BoardAsk]) -> Result<(BoardAsk, bool)> {
    let of_agent = |ask: &&BoardAsk| ask.agent.as_str() == name;
    let named = asks.iter().filter(of_agent);
    let dialog = named.clone().find(|ask| ask.recorded.is_some());
    let named = dialog.or(named.clone().next());
    let digits = name.chars().filter(|c| *c != '-').count();
    let prefix = IdPrefix::parse(name)
        .ok()
        .filter(|_| digits >= SHORT_ID_DIGITS);
    let mut fits: Vec<BoardAsk> = Vec::new();
    if let Some(prefix) = &prefix {
        fits.extend(asks.iter().filter(|ask| prefix.fits(ask.id)).cloned());
        // A closed ask says who has answered it.
        let closed = match context.existing_journal()? {
            Some(mut journal) => journal.latest_asks(None, MAX_LISTED_ASKS)?,
            None => Vec::new(),
        };
        let is_closed = |ask: &AskState| prefix.fits(ask.id) && !ask.is_open();
        fits.extend(closed.into_iter().filter(is_closed).map(recorded));
    }
    match (named, fits.as_slice()) {
        (Some(ask), []) => Ok((ask.clone(), false)),
        (None, [ask]) => Ok((ask.clone(), true)),
        (None, []) => Err(Report::not_found(format!("no question of {name} is open"))
            .hint("'ph asks' lists what waits for you")),
        (Some(_), _) | (None, _) => {
            Err(Report::not_found(format!("{name} fits more than one ask"))
                .hint("give more digits of the id: 'ph asks --json' has all of them"))
        }
    }
}

/// Return a recorded ask as a row of a board.
fn recorded(ask: AskState) -> BoardAsk {
    BoardAsk {
        id: ask.id.0,
        agent: ask.agent.clone(),
        kind: ask.opened.kind,
        since: ask.opened_at,
        summary: ask.opened.summary.clone(),
        recorded: Some(Box::new(ask)),
    }
}

/// Show a question, and read the answer from the terminal. `None` means later.
fn prompt(
    context: &mut Context,
    ask: &AskState,
    found: &BoardAsk,
    asks: &[BoardAsk],
) -> Result<Option<String>> {
    let id = short_id(found, asks);
    if !std::io::stdin().is_terminal() || !context.out.is_terminal() {
        let report = Report::usage(format!("{} asks: {}", ask.agent, found.summary));
        return Err(report.hint(format!(
            "'ph answer {id} allow' or 'ph answer {id} deny' answers it"
        )));
    }
    let age = since(ask.opened_at, context.now);
    context
        .out
        .line(format!("{} asks, {age} ({id})", ask.agent))?;
    for row in question(ask) {
        context.out.line(row)?;
    }
    if ask.opened.options.is_empty() {
        return Err(refused(ask, &ChoiceError::NoOptions));
    }
    context.out.flush()?;
    // Keys that were typed before the question was shown do not answer it.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    context
        .out
        .text("allow, always, deny, a key, or a text (Enter: later): ")?;
    context.out.flush()?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Report::storage(format!("cannot read the answer: {error}")))?;
    let line = line.trim().to_owned();
    Ok((!line.is_empty()).then_some(line))
}

fn refused(ask: &AskState, error: &ChoiceError) -> Report {
    let agent = &ask.agent;
    Report::refused(error.to_string()).hint(format!("'ph attach {agent}' shows the question"))
}

/// Print an outcome, and return its exit code.
fn report(context: &mut Context, ask: &AskState, outcome: &Outcome) -> Result<Code> {
    let agent = &ask.agent;
    let (line, code) = match outcome {
        Outcome::Applied { choice, evidence } => (
            format!("applied      {agent}: {choice}; {evidence}"),
            Code::Ok,
        ),
        Outcome::TooLate(given) => {
            let ago = ago(given.at, context.now);
            let (choice, by, via) = (&given.choice, &given.by, &given.via);
            let what = match choice.is_empty() {
                true => format!("answered by {by} in {via}"),
                false => format!("'{choice}' by {by} via {via}"),
            };
            (format!("too late     {what}, {ago}"), Code::Refused)
        }
        Outcome::Changed { now: Some(now) } => {
            let id: String = now.id.id8().chars().take(SHORT_ID_DIGITS).collect();
            let summary = &now.summary;
            (
                format!("changed      {agent} now asks {id}: {summary}. Nothing was answered."),
                Code::Refused,
            )
        }
        Outcome::Changed { now: None } => (
            format!("changed      {agent} no longer asks this. Nothing was answered."),
            Code::Refused,
        ),
        Outcome::NotApplied { reason } => {
            (format!("not applied  {agent}: {reason}"), Code::Refused)
        }
        Outcome::Uncertain { reason } => (format!("uncertain    {agent}: {reason}"), Code::No),
    };
    context.print(outcome, line)?;
    Ok(code)
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    format!(
        "{} ago",
        posthaste_wire::time::length(now.duration_since(at))
    )
}

/// Send the agent the text with which the person has denied its request.
fn send_reason(
    context: &mut Context,
    ask: &AskState,
    answerer: &Answerer,
    text: &str,
) -> Result<()> {
    let now = context.now;
    let mut draft = Draft::new(
        MessageId(Uuid::new_v4()),
        answerer.from.clone(),
        ask.agent.clone(),
        text,
    );
    draft.from_evidence = answerer.from_evidence;
    draft.limits = context.config.limits;
    let drafts = vec![draft];
    let posted = context.journal()?.commit(Post { now, drafts })?;
    for posted in posted.map_err(Report::from)? {
        let id = posted.state.message.id.id8();
        note(format!(
            "the text was sent to {} as message {id}",
            ask.agent
        ));
    }
    Ok(())
}

/// Put aside something that waits without being a question.
fn put_aside(
    context: &mut Context,
    by: &AgentName,
    found: &BoardAsk,
    choice: Option<&str>,
) -> Result<Code> {
    use posthaste_core::ask::AskKind;
    let agent = &found.agent;
    let (summary, hint) = match found.kind {
        AskKind::Mail => {
            let id: String = found.id.simple().to_string().chars().take(8).collect();
            (
                format!("{agent} has written: {}", found.summary),
                format!("'ph read {id}' shows the message"),
            )
        }
        AskKind::Trouble | AskKind::Permission | AskKind::Question => {
            if choice == Some("seen") {
                let seen = AskSeen {
                    what: found.id,
                    by: by.clone(),
                };
                let mark = MarkSeen {
                    now: context.now,
                    agent: agent.clone(),
                    seen,
                };
                context.journal()?.commit(mark)?.map_err(Report::from)?;
                let json = serde_json::json!({"seen": found.id.to_string()});
                context.print(&json, format!("{agent}: {} (seen)", found.summary))?;
                return Ok(Code::Ok);
            }
            let hint =
                format!("'ph why {agent}' or 'ph restart {agent}'; 'ph answer ASK seen' hides it");
            (format!("{agent}: {}", found.summary), hint)
        }
    };
    Err(Report::refused(format!("no question: {summary}")).hint(hint))
}
