//! Installs an agent from npm, once, into a directory that is kept.

use super::Release;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Environment variable with the directory; by default it is in the build's.
const CACHE_VARIABLE: &str = "PH_LAB_CACHE";

#[derive(Debug, Clone)]
pub struct Installed {
    pub program: PathBuf,
    /// Duration of the installation, if it was needed.
    pub took: Option<Duration>,
}

/// Return the directory that outlives a run of the lab.
pub fn cache() -> PathBuf {
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/lab/agents");
    std::env::var_os(CACHE_VARIABLE).map_or_else(|| usual.into(), PathBuf::from)
}

/// Return the agent's program, installing it if needed. It is renamed into place, so that a partial
/// installation is never used.
pub fn install(release: &Release, cache: &Path) -> Result<Installed, String> {
    let Release { agent, version } = release;
    let package = agent.package();
    let failed = |error: std::io::Error| format!("{} cannot be written: {error}", cache.display());
    std::fs::create_dir_all(cache).map_err(failed)?;
    let cache = &cache.canonicalize().map_err(failed)?;
    let lock = File::create(cache.join("lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let whole = cache.join(format!("{}-{version}", agent.name()));
    let program = whole.join("node_modules/.bin").join(agent.name());
    if program.exists() {
        let took = None;
        return Ok(Installed { program, took });
    }
    let begun = Instant::now();
    let part = cache.join(format!("{}-{version}.part", agent.name()));
    for left in [&whole, &part] {
        if left.exists() {
            std::fs::remove_dir_all(left).map_err(failed)?;
        }
    }
    std::fs::create_dir(&part).map_err(failed)?;
    npm_install(&format!("{package}@{version}"), &part, cache)?;
    std::fs::rename(&part, &whole).map_err(failed)?;
    if !program.exists() {
        return Err(format!(
            "{package} {version} has no program {:?}",
            agent.name()
        ));
    }
    let took = Some(begun.elapsed());
    Ok(Installed { program, took })
}

/// The person's own npm with its settings. Its files and those of the packages' scripts go to the
/// cache, because OpenCode's script runs the program, which creates directories in its home.
fn npm_install(package: &str, into: &Path, cache: &Path) -> Result<(), String> {
    let mut npm = npm(cache)?;
    npm.args(["install", "--no-audit", "--no-fund"]);
    npm.arg("--prefix").arg(into).arg(package).current_dir(into);
    output(&mut npm, &format!("install {package}")).map(drop)
}

/// Ask npm for the newest version of a package.
pub(super) fn newest(package: &str) -> Result<String, String> {
    let mut npm = npm(&cache())?;
    npm.args(["view", package, "version"]);
    let version = output(
        &mut npm,
        &format!("look up the newest version of {package}"),
    )?;
    Ok(version.trim().to_owned())
}

fn npm(cache: &Path) -> Result<Command, String> {
    let home = cache.join("home");
    std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
    let mut npm = Command::new("npm");
    npm.arg("--loglevel=error");
    if let Some(theirs) = std::env::var_os("HOME")
        && std::env::var_os("npm_config_userconfig").is_none()
    {
        npm.env("npm_config_userconfig", Path::new(&theirs).join(".npmrc"));
    }
    for name in [
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
    ] {
        npm.env_remove(name);
    }
    npm.env("HOME", home)
        .env("npm_config_cache", cache.join("npm"));
    npm.env("npm_config_update_notifier", "false");
    Ok(npm)
}

fn output(npm: &mut Command, what: &str) -> Result<String, String> {
    let done = npm
        .output()
        .map_err(|error| format!("npm cannot be started: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&done.stderr);
    Err(format!("npm cannot {what}: {}", errors.trim()))
}
