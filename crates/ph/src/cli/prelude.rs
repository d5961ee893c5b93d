//! Names that nearly every verb uses.

pub(super) use crate::cli::names::{
    TypedId, complete_agents, complete_harnesses, complete_ids, complete_tasks, one_of,
    parse_address, parse_id, parse_name, parse_task_id, priority,
};
pub(super) use crate::context::{Context, GlobalOptions};
pub(super) use crate::output::message_text::fields;
pub(super) use crate::output::note;
pub(super) use posthaste_client::mail;
pub(super) use posthaste_client::roster::Address;
pub(super) use posthaste_core::{AgentName, text};
pub(super) use posthaste_store::Journal;
pub(super) use posthaste_store::report::{Code, Report, Result};
pub(super) use posthaste_wire::method;
pub(super) use serde::Serialize;
