//! Environment variables that tell the hooks of an agent to which session they belong.

/// Set to [`HOOKS_INJECTED`] if the session has given its program hooks. Hooks that the user has
/// installed then do nothing, so that no event is reported twice.
pub const HOOKS_VARIABLE: &str = "PH_HOOKS";
pub const HOOKS_INJECTED: &str = "injected";
/// Identifies the agent's run. A hook may outlive its program and call the session of the next run.
pub const RUN_VARIABLE: &str = "PH_RUN";
