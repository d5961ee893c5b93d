//! The variables by which the hooks of an agent know the session that they belong to.

/// What a session sets for its program where it has given it our hooks, so that those that a
/// person has installed do not say the same again.
pub const MARK: &str = "PH_HOOKS";
pub const INJECTED: &str = "injected";
/// What tells a hook which run of its agent's it is of: one may outlive its program, and be heard
/// by the next.
pub const RUN: &str = "PH_RUN";
