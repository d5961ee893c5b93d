//! The verbs of sessions.

pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod ls;
pub(crate) mod nudge;
pub(crate) mod pause;
pub(crate) mod peek;
pub(crate) mod replay;
pub(crate) mod restart;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod stop;
