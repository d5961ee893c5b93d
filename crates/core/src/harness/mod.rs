//! What is known of a kind of agent: how it is started, when it is ready, idle, working or
//! blocked, how text is put before it, and how it is interrupted.
//!
//! A [`Manifest`] says it, in words that a file can hold; [`Manifest::recognise`] reads a screen
//! by it, [`Hooks::read`] a hook's event, and a [`Judge`] weighs what is seen and heard. All of it
//! is pure: files are read elsewhere, and what a screen shows or a hook says is data that is looked
//! at and never obeyed.

mod check;
mod handover;
mod headless;
mod heard;
pub(crate) mod hook;
mod input_box;
mod judge;
mod keys;
mod manifest;
mod pattern;
mod resume;
mod sight;
mod start;
mod template;
pub mod transcript;
pub mod version;
mod wait;

pub use check::Fault;
pub use handover::{Handover, Holder};
pub use headless::{Headless, Output, PromptWay};
pub use heard::{Heard, Word};
pub use hook::{Format, Hooks, Report, Sign, Turn};
pub use input_box::{
    Below, BoxState, Exception, Follows, FooterRow, Held, InputBox, Mismatch, RowPattern,
};
pub use judge::Judge;
pub use keys::Keys;
pub use manifest::{
    Activities, Api, Dialog, Http, Interrupt, Manifest, Osc, Paste, Proof, Route, Signs, Source,
    Submit,
};
pub use pattern::Pattern;
pub use resume::Resume;
pub use sight::{Claim, Glance, ProgramFacts, Says, Sighting};
pub use start::{Start, StartFile, add, gives_flag, take_flag, take_out};
pub use template::{Document, Placeholder, Template};
pub use version::Version;
pub use wait::Wait;
