use crate::cli::mail::mailbox::{self, Entry, Mailbox};
use crate::cli::names::{NameParser, complete_agents};
use crate::context::Context;
use crate::output::{progress, progress_done};
use posthaste_core::AgentName;
use posthaste_store::report::{Code, Report, Result};
use posthaste_store::search::{Query, ResultOrder};

/// Search messages for words
///
/// Finds messages with all words in the subject or the first 16 KiB of the text, newest first. Use
/// quotes for a phrase, and a star at the end of a word for a prefix. Exits with 1 if nothing is
/// found.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph search login
  ph search '\"login page\" fix*' --from coder-1")]
pub(crate) struct Args {
    /// Words to search for
    #[arg(value_name = "QUERY", required = true)]
    words: Vec<String>,
    /// Find only messages from this agent
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    from: Option<AgentName>,
    /// Find only messages to this agent
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    to: Option<AgentName>,
    /// Print the best matches first, instead of the newest
    #[arg(long)]
    ranked: bool,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let query = Query {
        words: args.words.join(" "),
        from: args.from.clone(),
        to: args.to.clone(),
        order: if args.ranked {
            ResultOrder::BestFirst
        } else {
            ResultOrder::NewestFirst
        },
        limit: args.limit,
    };
    if !query.words.chars().any(char::is_alphanumeric) {
        return Err(Report::usage("the query has no words"));
    }
    Mailbox::open(context)?.require_journal("search")?;
    let messages = match context.reader()? {
        Some(mut journal) => {
            let found = journal.search(&query, |left| {
                progress(format!("indexing: {left} facts left"));
            });
            progress_done();
            found?
        }
        None => Vec::new(),
    };
    let code = match messages.is_empty() {
        true => Code::No,
        false => Code::Ok,
    };
    mailbox::print_list(context, &Entry::all(messages))?;
    Ok(code)
}
