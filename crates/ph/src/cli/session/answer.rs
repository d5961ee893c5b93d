use crate::cli::mail::compose::body::not_empty;
use crate::cli::mail::compose::send::{self, Answer, new_id};
use crate::cli::mail::compose::wait::WaitArgs;
use crate::cli::names::{NameParser, complete_agents};
use crate::cli::session::status;
use crate::context::Context;
use posthaste_client::session::client::{Client, NoAnswer, UNHURRIED};
use posthaste_core::{AgentName, Draft, Priority};
use posthaste_store::report::{Code, Report, Result};
use posthaste_wire::method::{self, GOOD_FOR};

/// Answer an agent's question or permission request
///
/// The text goes to its terminal as it is, without a header, then Enter. Where the program's
/// questions are known, it answers the one that stands open, and Enter is pressed only while that
/// one still does. Of a program of which nothing is known, it is typed into whatever is there.
/// Refused where it is known that no question stands open, and where the agent does not run. The
/// same as 'ph send --raw'.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph peek coder-1
  ph answer coder-1 y
  ph answer coder-1 2 --wait offered --timeout 5s")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
    /// What to type
    #[arg(value_name = "TEXT")]
    text: String,
    /// Who answers [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    from: Option<AgentName>,
    #[command(flatten)]
    wait: WaitArgs,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let (from, from_evidence) = context.sender(args.from.as_ref())?;
    let text = not_empty(args.text).map_err(|report| {
        let name = &args.name;
        report.hint(format!(
            "'ph answer {name} y' types y and Enter; 'ph peek {name}' shows the question"
        ))
    })?;
    let draft = Draft {
        from_evidence,
        priority: Priority::Interrupt,
        raw: true,
        limits: context.config.limits,
        ..Draft::new(new_id(), from, args.name, text)
    };
    send::post(context, &[draft], Answer::Id, &args.wait)
}

/// Hands an answer to the session whose program is to have it. There is no other way: what is not
/// typed now must not be typed into something else later.
pub(crate) fn hand_over(
    context: &Context,
    draft: &Draft,
    send: &method::Send,
) -> Result<method::Sent> {
    let name = &draft.to;
    let Some(mut client) = Client::awake(&context.home, name) else {
        return Err(nobody(context, name));
    };
    // Longer than the session would begin with it.
    client.call(send, UNHURRIED).map_err(|error| match error {
        NoAnswer::Refused(failure) => Report::refused(failure.message).hint(format!(
            "'ph peek {name}' shows what it shows; 'ph send {name}' leaves a message"
        )),
        NoAnswer::Silence => Report::storage(format!("the session of {name} does not answer"))
            .hint(format!(
                "'ph show {}' says whether it was stored; after {} s it is not typed any more",
                draft.id.id8(),
                GOOD_FOR.as_secs()
            )),
    })
}

/// Why there is nobody to answer.
fn nobody(context: &Context, name: &AgentName) -> Report {
    match status::is_silent(context, name) {
        true => Report::storage(format!("the session of {name} does not answer")).hint(format!(
            "nothing was stored; 'ph status {name}' says more, 'ph stop {name}' ends it"
        )),
        false => Report::refused(format!(
            "no session of {name} is running: there is nothing to answer"
        ))
        .hint(format!("'ph send {name}' leaves a message")),
    }
}
