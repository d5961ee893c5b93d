//! The set-up of measurements: sessions, windows, limits, other programs, and the cores they run
//! on.

pub(crate) mod limit;
pub(crate) mod peer;
pub(crate) mod placement;
pub(crate) mod stage;
pub(crate) mod window;
