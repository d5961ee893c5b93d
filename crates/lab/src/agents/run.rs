//! The start of a test program for the real agents: installs the releases, and enters a namespace.

use super::{Agent, RELEASES, Release, Wanted, cache, enter, install, is_inside};
use crate::{say, skip_or_fail};
use std::ffi::OsString;
use std::process::ExitCode;

/// Set by `just lab` and `just lab-bare`: the agents are installed from the network, and take
/// minutes.
const LAB_VARIABLE: &str = "PH_LAB";

/// Return whether the real agents are to be tested. If they are not, name the command that does.
pub fn is_requested(command: &str) -> bool {
    let is_requested = std::env::var_os(LAB_VARIABLE).is_some();
    if !is_requested {
        say(&format!(
            "skipped: the real agents are installed from the network; '{command}' runs them\n"
        ));
    }
    is_requested
}

/// Run `test` on releases of these agents, inside the namespace. It gets the variables of `setup`,
/// which runs outside.
pub fn run_inside(
    wanted: Wanted,
    agents: &[Agent],
    setup: impl FnOnce() -> Vec<(&'static str, OsString)>,
    test: impl FnOnce(&[Release]) -> ExitCode,
) -> ExitCode {
    let ended = install_all(wanted, agents).and_then(|releases| {
        if releases.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        if is_inside() {
            return Ok(test(&releases));
        }
        let mut variables = setup();
        variables.push((RELEASES, Release::encode(&releases)));
        enter(&variables)
    });
    ended.unwrap_or_else(|reason| {
        skip_or_fail(&reason);
        ExitCode::SUCCESS
    })
}

/// Choose the releases and install missing ones. This is done before the namespace is entered.
fn install_all(wanted: Wanted, agents: &[Agent]) -> Result<Vec<Release>, String> {
    let releases = wanted.releases(agents, |agent| {
        let name = agent.name();
        say(&format!("{name}: skipped: newest is the pinned version\n"));
    })?;
    for release in &releases {
        if let Some(took) = install(release, &cache())?.took {
            let took = took.as_secs_f64();
            say(&format!("installed {release} in {took:.1} s\n"));
        }
    }
    Ok(releases)
}
