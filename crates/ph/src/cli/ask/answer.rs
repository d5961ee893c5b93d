use super::{board, question, short_id, since};
use crate::cli::prelude::*;
use posthaste_client::answer::{Answerer, answer, to_closed};
use posthaste_core::ask::{AskSeen, Choice, ChoiceError, Meaning};
use posthaste_core::board::BoardAsk;
use posthaste_core::{AskState, IdPrefix, Timestamp};
use posthaste_store::operation::MarkSeen;
use posthaste_wire::ask::Outcome;
use rustix::termios::{QueueSelector, tcflush};
use std::io::{BufRead, IsTerminal};

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

Any other CHOICE denies and is then sent to the agent as a message. 'seen' puts a failure aside.")]
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

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
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
    if let (Choice::DenyWith(_, text), Outcome::Applied { .. }) = (&chosen, &outcome) {
        return send_reason(context, ask, &answerer, text);
    }
    Ok(code)
}

/// Find an ask by its id or by its agent. Return whether the id was given.
fn find(context: &Context, name: &str, asks: &[BoardAsk]) -> Result<(BoardAsk, bool)> {
    if let Ok(prefix) = IdPrefix::parse(name) {
        let fits: Vec<&BoardAsk> = asks.iter().filter(|ask| prefix.fits(ask.id)).collect();
        match fits.as_slice() {
            [ask] => return Ok(((*ask).clone(), true)),
            [] => {}
            _ => {
                return Err(Report::not_found(format!(
                    "{name} matches more than one ask"
                )));
            }
        }
        // A closed ask says who has answered it.
        if let Some(mut journal) = context.existing_journal()?
            && let Ok(ask) = journal.ask(&prefix)
        {
            let recorded = BoardAsk {
                id: ask.id.0,
                agent: ask.agent.clone(),
                kind: ask.opened.kind,
                since: ask.opened_at,
                summary: ask.opened.summary.clone(),
                recorded: Some(Box::new(ask)),
            };
            return Ok((recorded, true));
        }
    }
    let agent = AgentName::parse(name).map_err(|_| Report::not_found(format!("no ask {name}")))?;
    let of_agent = asks.iter().filter(|ask| ask.agent == agent);
    match of_agent
        .clone()
        .find(|ask| ask.recorded.is_some())
        .or(of_agent.clone().next())
    {
        Some(ask) => Ok((ask.clone(), false)),
        None => Err(Report::not_found(format!("{agent} asks nothing"))
            .hint("'ph asks' lists what waits for you")),
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
    context
        .out
        .text("allow, always, deny, a key, or a text (Enter: later): ")?;
    context.out.flush()?;
    // Keys that were typed before the question was shown do not answer it.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
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
            (
                format!("too late     '{choice}' by {by} via {via}, {ago}"),
                Code::Refused,
            )
        }
        Outcome::Changed { now: Some(now) } => {
            let id: String = now.id.id8().chars().take(super::SHORT_ID_DIGITS).collect();
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
        Outcome::NotApplied { reason } => (
            format!("not applied  {agent}: {reason}. Still open: ph attach {agent}"),
            Code::Refused,
        ),
        Outcome::Uncertain { reason } => (
            format!("uncertain    {agent}: {reason}: ph peek {agent}"),
            Code::No,
        ),
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

/// Tell the agent why the person has denied its request.
fn send_reason(
    context: &mut Context,
    ask: &AskState,
    answerer: &Answerer,
    text: &str,
) -> Result<Code> {
    use crate::cli::mail::compose::send::{self, Outgoing, SentFormat};
    use crate::cli::mail::compose::wait::WaitArgs;
    let outgoing = Outgoing {
        from: answerer.from.clone(),
        from_evidence: answerer.from_evidence,
        to: vec![ask.agent.clone()],
        message: posthaste_wire::method::Send::new(text),
        notifies: false,
    };
    let mailbox = crate::cli::mail::mailbox::Mailbox::Journal;
    send::post(
        context,
        &mailbox,
        &outgoing,
        SentFormat::Id,
        &WaitArgs::default(),
    )
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
            let hint = format!(
                "'ph why {agent}' or 'ph restart {agent}'; 'ph answer ASK seen' puts it aside"
            );
            (format!("{agent}: {}", found.summary), hint)
        }
    };
    Err(Report::refused(format!("{summary}; this is not answered by a choice")).hint(hint))
}
