//! The route through the terminal: interrupt the agent if needed, record the offer, type the text and
//! submit it. Nothing is typed into an unrecognised screen, an open question or a draft.

mod answer;
mod interrupt;
mod offer;
mod state;
mod submit;

pub use answer::{AnswerEnd, Answerable, OpenQuestion};
pub(super) use state::{
    Answer, Backoff, Lane, OutgoingTurn, Preparation, Question, State, Submission, TerminalRoute,
    TurnKind, TypedTurn,
};
