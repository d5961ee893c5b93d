//! Scenarios of the cases that are longer than a few lines.

pub(crate) mod answer;
pub(crate) mod crash;
pub(crate) mod looped;
pub(crate) mod own;
pub(crate) mod race;
pub(crate) mod soak;
pub(crate) mod talks;
pub(crate) mod views;
