//! What ph knows of kinds of agents: finding the manifests, and trying one on a program.
//!
//! What a manifest says, and what a screen means by it, is the core's.

pub mod catalogue;
pub mod installed;
#[cfg(test)]
mod known;
#[cfg(test)]
mod mutated;
pub mod trial;

pub use catalogue::{Catalogue, GENERIC, StatusRows};

use posthaste_core::harness::Manifest;
use posthaste_core::text;
use posthaste_store::report::Report;

/// Says with a report that a program is not there how a person gets it.
pub(crate) fn install_hint(report: Report, harness: &Manifest, program: &str) -> Report {
    match harness.install_of(program) {
        Some(how) => report.hint(format!("to install it: {}", text::one_line(how, 200))),
        None => report.hint("is it installed, and on PATH? a path needs a '/'"),
    }
}
