//! Paths of the lab's programs and of `ph`, for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Return the path of one of the lab's programs. Cargo builds them with the tests of the workspace;
/// for the tests of one crate they are built here.
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

/// Return the path of `ph`, built from the current sources. The lab does not depend on it, so cargo
/// is asked every time.
pub fn ph() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("a test lies two directories below its profile's");
    // Cargo selects features of dependencies by the packages and targets of a build. Built together
    // with a test, `ph` is the same binary as in the tests of the workspace.
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
