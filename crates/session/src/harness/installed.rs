//! The version of an installed program, from where and how it is installed. Never runs the program.

use posthaste_core::harness::{Version, version};
use posthaste_store::data_file;
use posthaste_store::live::process::is_program;
use rustix::fs::OFlags;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// How many directories above a program are searched for its `package.json`.
const MAX_PARENT_DIRS: usize = 4;
/// A longer `package.json` is ignored.
const MAX_PACKAGE_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// Return the version of the program at this path, if its package or its path names it.
pub fn version_of(program: &Path, known: &Version) -> Option<String> {
    let program = program.canonicalize().ok()?;
    let packaged = known.package.as_ref().and_then(|name| {
        let dirs = program.ancestors().skip(1).take(MAX_PARENT_DIRS);
        let package = dirs.filter_map(package_in).find(|it| it.name == *name)?;
        version::readable(&package.version)
    });
    packaged.or_else(|| known.in_path(program.to_str()?))
}

fn package_in(dir: &Path) -> Option<Package> {
    let path = dir.join("package.json");
    let text = data_file::read(&path, OFlags::empty(), MAX_PACKAGE_BYTES).ok()?;
    serde_json::from_str(&text).ok()
}

/// Find the first program of this name in the directories of a `PATH`.
pub fn on_path(name: &str, path: &std::ffi::OsStr, cwd: &Path) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|dir| cwd.join(dir).join(name))
        .find(|program| is_program(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_comes_from_the_package_or_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let known = Version {
            package: Some("@lab/agent".to_owned()),
            path: Some(
                r"/agent/versions/(?<version>\d[\w.-]*)"
                    .to_owned()
                    .try_into()
                    .unwrap(),
            ),
            ..Version::default()
        };
        let check = |program: &Path, want: Option<&str>| {
            let shown = program.display();
            assert_eq!(version_of(program, &known).as_deref(), want, "{shown}");
        };
        let packed = file("pack/bin/agent.js", "");
        file(
            "pack/package.json",
            r#"{"name":"@lab/agent","version":"1.2.3"}"#,
        );
        check(&packed, Some("1.2.3"));
        let link = dir.path().join("linked");
        std::os::unix::fs::symlink(&packed, &link).unwrap();
        check(&link, Some("1.2.3"));
        let other = file("other/bin/agent.js", "");
        file(
            "other/package.json",
            r#"{"name":"another","version":"1.2.3"}"#,
        );
        check(&other, None);
        let broken = file("broken/agent.js", "");
        file("broken/package.json", r#"{"name":"@lab/agent","ver"#);
        check(&broken, None);
        check(&file("agent/versions/2.0.1", ""), Some("2.0.1"));
        check(Path::new("/no/such/program"), None);
    }
}
