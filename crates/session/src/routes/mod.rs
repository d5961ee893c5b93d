//! Routes to the agent other than its terminal, and the evidence that it has received its mail.

pub mod hook_env;
pub(crate) mod http;
pub(crate) mod script_mail;
pub(crate) mod transcript;
