//! What is known of a kind of agent: how it is started, when it is ready, idle, working or
//! blocked, how text is put before it, and how it is interrupted.
//!
//! A [`Manifest`] says it, in words that a file can hold; [`Manifest::recognise`] reads a screen
//! by it, [`Hooks::read`] a hook's event, and a [`Judge`] weighs what is seen and heard. All of it
//! is pure: files are read elsewhere, and what a screen shows or a hook says is data that is looked
//! at and never obeyed.

mod handover;
pub(crate) mod hook;
mod judge;
mod manifest;
mod screen;
mod start;
pub mod transcript;

pub use handover::{Handover, Holder};
pub use hook::{Format, Heard, Hooks, Report, Sign, Turn, Word};
pub use judge::Judge;
pub use manifest::{
    Activities, Api, Dialog, Document, Fault, Http, Interrupt, Keys, Manifest, Osc, Paste, Pattern,
    Placeholder, Proof, Route, Signs, Source, Submit, Template, Version, Wait, version,
};
pub use screen::{
    Below, BoxState, Claim, Exception, Follows, FooterRow, Glance, Held, InputBox, Mismatch,
    ProgramFacts, RowPattern, Says, Sighting,
};
pub use start::{
    Headless, Output, PromptWay, Resume, Start, StartFile, add, gives_flag, take_flag, take_out,
};
