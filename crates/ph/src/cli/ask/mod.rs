//! The verbs of asks, and how an ask looks in a terminal.

pub(crate) mod answer;
pub(crate) mod asks;

use crate::cli::prelude::*;
use posthaste_client::board;
use posthaste_core::board::{Board, BoardAsk};
use posthaste_core::{AskId, AskState, Timestamp};
use posthaste_wire::ask::Ask;

/// Digits of an id in a list: more if two ids begin alike.
const SHORT_ID_DIGITS: usize = 4;

fn board(context: &Context) -> Result<Board> {
    board::snapshot(&context.home, context.config.patience, context.now)
}

/// Return an ask in the form of `--json`.
fn json_of(ask: &BoardAsk) -> Ask {
    match &ask.recorded {
        Some(recorded) => Ask::new(recorded),
        None => Ask::derived(AskId(ask.id), &ask.agent, ask.kind, ask.since, &ask.summary),
    }
}

/// Return the first digits of an id that no other id in the list begins with.
fn short_id(ask: &BoardAsk, all: &[BoardAsk]) -> String {
    let id = ask.id.simple().to_string();
    let is_ambiguous = |digits: usize| {
        let begins = |other: &BoardAsk| other.id.simple().to_string().starts_with(&id[..digits]);
        all.iter().any(|other| other.id != ask.id && begins(other))
    };
    let digits = (SHORT_ID_DIGITS..id.len()).find(|digits| !is_ambiguous(*digits));
    id[..digits.unwrap_or(id.len())].to_owned()
}

/// Return how long something has lasted: `<1m`, `2m`, `1h`.
fn since(at: Timestamp, now: Timestamp) -> String {
    let length = now.duration_since(at);
    match length.as_secs() < 60 {
        true => "<1m".to_owned(),
        false => posthaste_wire::time::length(length),
    }
}

/// Return the rows that show a question and its options.
fn question(ask: &AskState) -> Vec<String> {
    let view = Ask::new(ask);
    let mut rows: Vec<String> = view.text.lines().map(|line| format!("  {line}")).collect();
    if view.partial {
        rows.push("  (the agent has cut this text; 'ph attach' shows all of it)".to_owned());
    }
    let word = view
        .options
        .iter()
        .map(|option| option.meaning.word().len())
        .max();
    let key = view.options.iter().map(|option| option.key.len()).max();
    let (word, key) = (word.unwrap_or(0), key.unwrap_or(0));
    rows.extend(view.options.iter().map(|option| {
        let meaning = option.meaning.word();
        format!("{meaning:<word$}  {:<key$}  {}", option.key, option.label)
    }));
    rows
}
