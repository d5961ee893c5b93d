//! Tasks for the route through the agent's hook: record an offer in time, and render its text.

use super::Shared;
use super::clerk::Tell;
use super::errands::{self, Report};
use posthaste_core::delivery::Event;
use posthaste_core::harness::{Format, Route};
use posthaste_core::turn::{self, Telling};
use posthaste_core::{Letter, MessageId};
use posthaste_store::{Done, Job};
use posthaste_wire::method::Hooked;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the journal may take: the agent waits for its hook, and that gives up after 200 ms.
const IN_TIME: Duration = Duration::from_millis(120);

/// Mail on its way to one call of a hook.
pub(crate) struct Hand {
    pub(crate) number: u64,
    pub(crate) letters: Vec<(Letter, Telling)>,
    pub(crate) event: String,
    pub(crate) format: Format,
    pub(crate) tell: Tell<Hooked>,
}

/// The same, once it stands in the journal.
pub(crate) struct Giving {
    pub(crate) number: u64,
    pub(crate) ids: Vec<MessageId>,
    pub(crate) output: String,
    pub(crate) tell: Tell<Hooked>,
}

impl std::fmt::Debug for Giving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Giving({})", self.number)
    }
}

/// Records the offer. A hook does not wait for a slow journal; what is recorded too late for it
/// was given to nobody.
pub(crate) async fn hand(shared: Rc<Shared>, hand: Hand) -> Report {
    let Hand { number, tell, .. } = hand;
    let not_handed = |ids, why: &str| {
        Report::Event(Event::NotHanded {
            number,
            ids,
            why: why.to_owned(),
        })
    };
    let job = Job::Offer {
        now: crate::times::now(),
        agent: shared.agent.clone(),
        ids: hand.letters.iter().map(|(l, _)| l.message.id).collect(),
        route: Route::Hook.as_str().to_owned(),
        repeats: errands::repeats(&hand.letters),
    };
    let mut commit = std::pin::pin!(shared.books.commit(job));
    let (recorded, tell) = match timeout(IN_TIME, &mut commit).await {
        Ok(recorded) => (recorded, Some(tell)),
        Err(_) => {
            tell(Hooked::noted());
            (commit.await, None)
        }
    };
    let ids = match recorded {
        Ok(Ok(Done::Moved(moved))) => moved.moved,
        Ok(Ok(_) | Err(_)) | Err(_) => Vec::new(),
    };
    let Some(tell) = tell else {
        return not_handed(ids, "the journal took longer than a hook waits");
    };
    let is_in = |(letter, _): &(Letter, Telling)| ids.contains(&letter.message.id);
    let letters: Vec<_> = hand.letters.into_iter().filter(is_in).collect();
    match errands::told(&shared, &letters, turn::text) {
        Ok(text) => Report::Handing(Giving {
            number,
            ids,
            output: hand.format.print(&hand.event, &text),
            tell,
        }),
        Err(error) => {
            tell(Hooked::noted());
            not_handed(ids, &error.to_string())
        }
    }
}
