//! Harnesses: how one kind of agent is started, observed, given text and interrupted.
//!
//! A [`Manifest`] describes a harness. [`Manifest::recognise`] interprets a screen, [`Hooks::read`]
//! a hook event, and a [`Judge`] weighs the evidence. Reads no files. Screens and hook events are
//! untrusted data.

mod activity_tracker;
mod handover;
pub(crate) mod hook;
mod manifest;
mod screen;
mod start;
pub mod transcript;

pub use activity_tracker::Judge;
pub use handover::{Handover, Holder};
pub use hook::{Format, Heard, Hooks, Report, Sign, Turn, Word};
pub use manifest::{
    ActivityPatterns, ActivitySettings, Api, ChoosesBy, Dialog, Document, Http, Interrupt, Keys,
    Manifest, ManifestError, OptionPatterns, Osc, Paste, Pattern, Placeholder, Proof, Route,
    Source, Submit, Template, Version, Wait, version,
};
pub use screen::{
    Below, BoxState, Claim, DialogView, ExcludedView, FooterRow, Glance, Held, InputBox, Mismatch,
    ProgramFacts, RowPattern, RowPosition, Says, ShownOption, Sighting,
};
pub use start::{
    Headless, Output, PromptWay, Resume, ResumeArgs, Start, StartFile, add, gives_flag, take_flag,
    take_out,
};
