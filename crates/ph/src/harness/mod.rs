//! What ph knows of kinds of agents: finding the manifests, and trying one on a program.
//!
//! What a manifest says, and what a screen means by it, is the core's.

pub(crate) mod catalogue;
#[cfg(test)]
mod known;
pub(crate) mod trial;

pub(crate) use catalogue::{Catalogue, GENERIC};
