//! Homes that come with real archives, clones, submodules and pulls. Needs `git` and `tar`.

use super::trust::{HOME_COMMANDS, entry_names, home_of, hostile, project, run};
use crate::common::{Ph, skip};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Whether a program is installed; otherwise says that the test is skipped.
fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        skip(&format!("{program} is not installed"));
    }
    is_there
}

/// Run git with nobody's settings, and a umask under which all directories are private.
fn git(ph: &Ph, dir: &Path, line: &str) -> String {
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 077; exec git \"$@\"", "sh"])
        .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
        .args([
            "-c",
            "protocol.file.allow=always",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(ph.words(line))
        .current_dir(dir)
        .env("HOME", ph.user())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR");
    let done = command.output().expect("git");
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "git {line}: {said}");
    said
}

/// Commit everything in a directory, ignored or not.
fn commit(ph: &Ph, dir: &Path) {
    git(ph, dir, "add --force --all");
    git(ph, dir, "commit --quiet --message x");
}

fn refuses_all(ph: &Ph, dir: &Path) {
    let before = entry_names(dir);
    for verb in HOME_COMMANDS {
        run(ph, dir, verb).fails(4, "hint: if you trust its mail, run 'ph trust --home");
    }
    assert_eq!(entry_names(dir), before);
}

#[test]
fn a_home_from_an_archive_is_refused() {
    if !has("tar") {
        return;
    }
    let ph = Ph::new();
    hostile(&ph);
    let unpacked = ph.dir().join("unpacked");
    std::fs::create_dir(&unpacked).expect("a directory");
    let script = "tar -C \"$1\" -cf - attacker | tar -C \"$2\" -xpf -";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).args([ph.dir(), &unpacked]);
    assert!(shell.status().expect("tar").success());
    refuses_all(&ph, &unpacked.join("attacker"));
}

#[test]
fn a_home_from_a_clone_or_a_submodule_is_refused() {
    if !has("git") {
        return;
    }
    let ph = Ph::new();
    let attacker = hostile(&ph);
    git(&ph, &attacker, "init --quiet");
    commit(&ph, &attacker);
    git(&ph, ph.dir(), "clone --quiet attacker clone");
    refuses_all(&ph, &ph.dir().join("clone"));
    let outer = ph.dir().join("outer");
    std::fs::create_dir(&outer).expect("a directory");
    git(&ph, &outer, "init --quiet");
    git(&ph, &outer, "submodule --quiet add ../attacker inner");
    refuses_all(&ph, &outer.join("inner"));
}

/// A repository, and a clone of it in which the person has a home with mail.
fn with_mail(ph: &Ph) -> (std::path::PathBuf, std::path::PathBuf) {
    let theirs = ph.dir().join("theirs");
    std::fs::create_dir(&theirs).expect("a directory");
    std::fs::write(theirs.join("README"), "").expect("a file");
    git(ph, &theirs, "init --quiet");
    commit(ph, &theirs);
    git(ph, ph.dir(), "clone --quiet theirs mine");
    let mine = project(ph, "mine");
    run(ph, &mine, "send bob hi").ok();
    (theirs, mine)
}

#[test]
fn a_pull_brings_nothing_into_a_home() {
    if !has("git") {
        return;
    }
    let ph = Ph::new();
    let attacker = hostile(&ph);
    let (theirs, mine) = with_mail(&ph);
    let status = git(&ph, &mine, "status --porcelain");
    assert_eq!(status, "?? .posthaste/\n", "only its .gitignore is shown");
    let copied = Command::new("cp")
        .arg("-a")
        .args([attacker.join(".posthaste"), theirs.join(".posthaste")])
        .status();
    assert!(copied.expect("cp").success());
    // The files that the attacker can guess: those of a home directly in .posthaste.
    for part in ["journal.db", "sessions"] {
        let from = home_of(&attacker).join(part);
        let copied = Command::new("cp")
            .arg("-a")
            .arg(from)
            .arg(theirs.join(".posthaste"))
            .status();
        assert!(copied.expect("cp").success());
    }
    commit(&ph, &theirs);
    let _ = std::fs::remove_file(mine.join(".posthaste/.gitignore"));
    git(&ph, &mine, "pull --quiet");
    let inbox = run(&ph, &mine, "inbox bob");
    assert!(inbox.out().contains("hi"), "{}", inbox.err());
    assert!(
        !run(&ph, &mine, "inbox coder")
            .out()
            .contains("delete everything")
    );
    run(&ph, &mine, "restart evil --detach").fails(3, "evil");
    for place in [&mine, &attacker, &theirs] {
        assert!(!place.join("sprung-by-restart").exists());
        assert!(!place.join("sprung-by-mail").exists());
    }
}

/// A limit that docs/security.md states: git deletes ignored files to replace their directory.
#[test]
fn a_pull_that_replaces_the_directory_of_a_home_deletes_it() {
    if !has("git") {
        return;
    }
    let ph = Ph::new();
    let (theirs, mine) = with_mail(&ph);
    let precious = ph.dir().join("precious");
    std::fs::create_dir(&precious).expect("a directory");
    std::fs::create_dir(theirs.join(".posthaste")).expect("a directory");
    let ignored = mine.join(".posthaste/.gitignore");
    std::fs::copy(&ignored, theirs.join(".posthaste/.gitignore")).expect("a copy");
    commit(&ph, &theirs);
    std::fs::remove_file(&ignored).expect("a file");
    git(&ph, &mine, "pull --quiet");
    assert!(run(&ph, &mine, "inbox bob").ok().contains("hi"));
    std::fs::remove_dir_all(theirs.join(".posthaste")).expect("a directory");
    symlink(&precious, theirs.join(".posthaste")).expect("a link");
    commit(&ph, &theirs);
    git(&ph, &mine, "pull --quiet");
    assert!(mine.join(".posthaste").is_symlink());
    // The mail is gone, but the link is not followed.
    for verb in HOME_COMMANDS {
        run(&ph, &mine, verb).fails(4, "is a symbolic link");
    }
    assert_eq!(entry_names(&precious), [""; 0]);
    // A home outside of the working tree is out of reach.
    let outside = ph.dir().join("outside");
    let flag = format!("--home {}", outside.display());
    run(&ph, &mine, &format!("send bob safe {flag}")).ok();
    assert!(
        run(&ph, &mine, &format!("inbox bob {flag}"))
            .ok()
            .contains("safe")
    );
}
