//! Names that nearly every verb uses.

pub(super) use crate::cli::names::{
    AddressParser, IdParser, NameParser, TaskIdParser, TypedId, complete_agents,
    complete_harnesses, complete_ids, complete_tasks, priority,
};
pub(super) use crate::context::{Context, GlobalOptions};
pub(super) use crate::output::message_text::field;
pub(super) use crate::output::note;
pub(super) use posthaste_core::{AgentName, text};
pub(super) use posthaste_store::report::{Code, Report, Result};
pub(super) use serde::Serialize;
