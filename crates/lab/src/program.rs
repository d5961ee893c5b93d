//! The lab's own programs, for tests of other crates.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Where one of the lab's programs is. Cargo builds them with the tests of the whole workspace;
/// for those of one crate alone it is asked to.
pub fn program(name: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("a test lies two directories below its profile's");
    let program = profile.join(name);
    if !program.exists() {
        build(&["-p", "posthaste-lab", "--bin", name], profile);
    }
    program
}

/// `ph` itself, as the sources are now: the lab does not depend on it, so cargo is asked each time.
pub fn ph() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("a test lies two directories below its profile's");
    // Cargo chooses features of dependencies for the packages and kinds of targets that it is asked
    // for. Together with one of the tests, `ph` is the one that the tests of the workspace built.
    let wanted: &[&str] = match profile.ends_with("release") {
        true => &["-p", "posthaste", "--bin", "ph"],
        false => &["--workspace", "--bin", "ph", "--test", "chaos"],
    };
    build(wanted, profile);
    profile.join("ph")
}

fn build(wanted: &[&str], profile: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--locked"]).args(wanted);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let built = build.status().expect("cargo can be started");
    assert!(built.success(), "cargo build {wanted:?} failed");
}
