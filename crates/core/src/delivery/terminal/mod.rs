//! The route through the terminal: from an offer, its interrupt key and its record, to a text that is
//! typed and submitted. It types nothing into a box, a question or a draft that it does not know.

mod answer;
mod interrupt;
mod offer;
mod state;
mod submit;

pub use answer::{Answerable, OpenQuestion};
pub(super) use state::{
    Answer, Backoff, Lane, OutgoingTurn, Preparation, Question, State, Submission, TerminalRoute,
    TurnKind, TypedTurn,
};
