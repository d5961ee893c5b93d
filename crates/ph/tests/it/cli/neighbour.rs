//! A neighbour: another user of the machine, who tries every path into the person's homes. Where
//! the tests run as root, child processes take a user id that no account has.

use super::trust::{HOME_COMMANDS, NEIGHBOUR, call, project, run, set_mode};
use crate::common::session::{BOT, KillOnDrop, Session, run as start};
use crate::common::{Done, Ph, path_text, skip, wait_for};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Run a shell script as the neighbour. Return `None`, and say so, if this process may not.
fn as_neighbour(script: &str, args: &[&Path]) -> Option<Output> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, "sh"]).args(args).current_dir("/");
    match shell.uid(NEIGHBOUR).gid(NEIGHBOUR).output() {
        Ok(output) => Some(output),
        Err(error) => {
            skip(&format!(
                "only root can run a program as another user: {error}"
            ));
            None
        }
    }
}

/// Every path below a directory, with what a change would show in.
fn tree(dir: &Path) -> Vec<(PathBuf, u32, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let meta = path.symlink_metadata().expect("an entry");
        if meta.is_dir() {
            let entries = path.read_dir().expect("a directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        // The session itself writes to its databases and its log.
        let is_constant = path
            .extension()
            .is_some_and(|end| end == "md" || end == "toml");
        let content = match is_constant {
            true => std::fs::read(&path).expect("a file"),
            false => Vec::new(),
        };
        // The search index is updated in the background.
        if !path_text(&path).contains("/search-1") {
            found.push((path, meta.mode(), meta.uid(), content));
        }
    }
    found.sort();
    found
}

/// A neighbour can neither read, change nor replace anything in a home, nor connect to its
/// sessions.
#[test]
fn a_neighbour_finds_no_way_into_a_home() {
    const TRY: &str = r#"
        for path; do
            cat "$path" 2>/dev/null && echo "read $path"
            ls "$path/" 2>/dev/null && echo "listed $path"
            (echo x >> "$path") 2>/dev/null && echo "wrote $path"
            (echo x > "$path/planted") 2>/dev/null && echo "planted in $path"
            chmod 777 "$path" 2>/dev/null && echo "opened $path"
            mv "$path" "$path.moved" 2>/dev/null && echo "moved $path"
            ln -sf /etc/passwd "$path" 2>/dev/null && echo "linked $path"
            rm -rf "$path" 2>/dev/null && echo "removed $path"
        done; true"#;
    let session = Session::sh("echo ready; exec cat");
    session.wait_for_text("ready");
    let ph = &session.ph;
    set_mode(ph.dir(), 0o755);
    ph.send("alice secret");
    let config = ph.home().join("config.toml");
    std::fs::write(&config, "output.time = 'utc'\n").expect("a file");
    set_mode(&config, 0o644);
    let before = tree(&ph.home());
    let paths: Vec<&Path> = before.iter().map(|(path, ..)| path.as_path()).collect();
    let Some(tried) = as_neighbour(TRY, &paths) else {
        return;
    };
    assert_eq!(String::from_utf8_lossy(&tried.stdout), "");
    for (before, after) in before.iter().zip(tree(&ph.home())) {
        assert!(*before == after, "{} was changed", after.0.display());
    }
    let is_socket = |path: &&&Path| {
        let meta = path.symlink_metadata();
        meta.is_ok_and(|meta| meta.file_type().is_socket())
    };
    assert!(paths.iter().any(|path| is_socket(&path)));
    // Neither does ph itself let the neighbour in.
    for verb in [
        "inbox alice",
        "send bot hi",
        "status bot",
        "stop bot",
        "peek bot",
    ] {
        let user = ph.dir().join("neighbours-user");
        let call = ph.call(&ph.words(verb)).env("HOME", &user).user(NEIGHBOUR);
        let done = call.within(Path::new("/")).run();
        assert_ne!(done.code, 0, "{verb}: {}", done.out());
        assert!(!done.out().contains("secret"), "{verb}: {}", done.out());
    }
    assert_eq!(
        session.ask("get_status", serde_json::json!({}))["task_name"],
        BOT
    );
}

/// The person names a directory of their own that all users can write to, and a neighbour plants
/// settings, manifests and links in it.
#[test]
fn a_neighbour_cannot_plant_files_in_a_home() {
    const PLANT: &str = r#"
        dir=$1; mark=$2
        printf '#!/bin/sh\ntouch %s\n' "$mark" > "$dir/trap"; chmod 755 "$dir/trap"
        printf "mail.provider = 'exec:%s/trap'\n" "$dir" > "$dir/config.toml"
        mkdir "$dir/harness" "$dir/sessions"
        printf 'name = "generic"\n' > "$dir/harness/generic.toml"
        ln -s "$mark" "$dir/journal.db""#;
    let ph = Ph::new();
    set_mode(ph.dir(), 0o755);
    let (home, mark) = (ph.dir().join("open"), ph.dir().join("sprung"));
    std::fs::create_dir(&home).expect("a directory");
    let refused = |why: &str| {
        for verb in HOME_COMMANDS {
            let call = ph.call(&ph.words(verb)).env("PH_HOME", &home);
            call.run().fails(4, why);
        }
        assert!(!mark.exists());
    };
    // Even an empty directory is refused, because the neighbour can come later.
    set_mode(&home, 0o777);
    refused(&format!("hint: run 'chmod go-w {}'", home.display()));
    set_mode(&home, 0o1777);
    refused("is writable by other users");
    let Some(planted) = as_neighbour(PLANT, &[&home, &mark]) else {
        return;
    };
    assert!(planted.status.success(), "{planted:?}");
    refused("is writable by other users");
    // Following the hint does not spring the trap.
    set_mode(&home, 0o700);
    refused("belongs to another user");
}

/// Every directory above the person's place of work in which a neighbour can create something.
#[test]
fn a_neighbour_cannot_offer_a_home_above_the_person() {
    const OFFER: &str = r#"
        mkdir "$1/.posthaste" && cd "$1/.posthaste" || exit 1
        printf "mail.provider = 'exec:%s/trap'\n" "$PWD" > config.toml
        printf '#!/bin/sh\ntouch %s\n' "$2" > trap; chmod 755 trap
        mkdir -m 777 home-00000000000000000000000000000000"#;
    let ph = Ph::new();
    set_mode(ph.dir(), 0o755);
    let (shared, mark) = (ph.dir().join("shared"), ph.dir().join("sprung"));
    let work = shared.join("mine");
    std::fs::create_dir_all(&work).expect("a directory");
    set_mode(&shared, 0o1777);
    let Some(offered) = as_neighbour(OFFER, &[&shared, &mark]) else {
        return;
    };
    assert!(offered.status.success(), "{offered:?}");
    for verb in HOME_COMMANDS {
        run(&ph, &work, verb).fails(4, "belongs to another user");
    }
    assert!(!mark.exists());
    assert_eq!(work.read_dir().expect("a directory").count(), 0);
}

/// A user who knows the key can compute the id of a project's home.
#[test]
fn a_key_that_others_can_read_is_refused() {
    let ph = Ph::new();
    let project = project(&ph, "project");
    run(&ph, &project, "send bob hi").ok();
    let state = ph.user().join(".local/state/posthaste");
    let key = state.join("key");
    set_mode(&key, 0o644);
    run(&ph, &project, "inbox bob").fails(4, "is not secret");
    set_mode(&key, 0o600);
    set_mode(&state, 0o777);
    run(&ph, &project, "inbox bob").fails(4, "is writable by other users");
    set_mode(&state, 0o700);
    run(&ph, &project, "inbox bob").ok();
}

/// A neighbour who can write above the runtime directory could replace it, and the sockets in it.
#[test]
fn a_runtime_directory_that_a_neighbour_can_replace_is_not_used() {
    let ph = Ph::new();
    let shared = ph.dir().join("shared");
    let runtime = shared.join("run");
    std::fs::create_dir_all(&runtime).expect("a directory");
    set_mode(&runtime, 0o700);
    for (mode, is_used) in [(0o777, false), (0o755, true)] {
        set_mode(&shared, mode);
        let call = start(&ph, "bot", &[], &["/bin/sh", "-c", "exec cat"]);
        let done = call.env("XDG_RUNTIME_DIR", &runtime).run();
        let ends = KillOnDrop::processes_of(&done);
        let socket = done.json()["socket"].as_str().expect("a socket").to_owned();
        assert_eq!(
            socket.starts_with(&path_text(&runtime)),
            is_used,
            "{mode:o}: {socket}"
        );
        ph.run("stop bot").ok();
        drop(ends);
    }
}

/// A home may come with named pipes in place of files: whoever reads one would wait forever.
#[test]
fn pipes_in_a_home_block_no_command() {
    let ph = Ph::new();
    ph.send("evil hi");
    let dir = ph.home().join("sessions/evil");
    std::fs::create_dir_all(&dir).expect("a directory");
    for dir in [dir.parent().expect("a parent"), &dir] {
        set_mode(dir, 0o700);
    }
    for file in ["run.json", "lock", "log"] {
        let made = Command::new("mkfifo").arg(dir.join(file)).status();
        assert!(made.expect("mkfifo").success());
    }
    for verb in [
        "ls",
        "ls --all",
        "status evil",
        "restart evil --detach",
        "send evil hi",
        "why evil",
        "stop evil",
        "run --name evil --detach -- true",
    ] {
        let mut child = ph.call(&ph.words(verb)).spawn();
        wait_for(verb, || child.try_wait().expect("a child"));
        let done = Done::of(child);
        assert!(done.code < 128, "{verb}: {}", done.err());
    }
}

/// An agent can unset its variable for `ph`, but not for the programs that started it.
#[test]
fn an_agent_cannot_trust_a_home() {
    let ph = Ph::new();
    let clone = project(&ph, "clone");
    std::fs::write(clone.join(".posthaste/config.toml"), "").expect("a file");
    let flag = path_text(&clone.join(".posthaste"));
    let done = clone.join("done");
    let script = format!(
        "for home in '{}' '{}'; do env -u PH_AGENT PH_HOME=\"$home\" \"$PH\" trust --home '{flag}'; \
         echo \"exit $?\"; done > '{}.part' 2>&1; mv '{}.part' '{}'; exec cat",
        ph.home().display(),
        ph.dir().join("elsewhere").display(),
        done.display(),
        done.display(),
        done.display()
    );
    let program = format!("PH={}", env!("CARGO_BIN_EXE_ph"));
    let _session = Session::start(ph, &["--env", &program], &["/bin/sh", "-c", &script]);
    let said = wait_for("its answers", || std::fs::read_to_string(&done).ok());
    assert_eq!(
        said.matches("agents cannot run 'ph trust'").count(),
        2,
        "{said}"
    );
    assert_eq!(said.matches("exit 4").count(), 2, "{said}");
    let entries = clone.join(".posthaste").read_dir().expect("a directory");
    assert_eq!(entries.count(), 1);
}

/// Settings of a repository cannot stop or escalate mail, in the default home either.
#[test]
fn the_settings_of_a_repository_change_no_delivery() {
    let ph = Ph::new();
    let clone = project(&ph, "clone");
    let config = "mail.max_rate = 0\nmail.max_hops = 0\nsend.priority = 'interrupt'\n\
                  journal.lock_timeout = '0s'\noutput.time = 'utc'\n";
    std::fs::write(clone.join(".posthaste/config.toml"), config).expect("a file");
    let sent = call(&ph, &clone, "send bob hi").agent("alice").run();
    assert_eq!(sent.code, 0, "{}", sent.err());
    let note = "ignored journal.lock_timeout, mail.max_hops, mail.max_rate, send.priority in";
    assert!(sent.err().contains(note), "{}", sent.err());
    let shown = run(&ph, &clone, "config show").out();
    assert!(shown.contains("mail.max_rate = 60  (default)"), "{shown}");
    assert!(
        shown.contains("send.priority = normal  (default)"),
        "{shown}"
    );
    assert!(shown.contains("output.time = utc"), "{shown}");
    let mail = run(&ph, &clone, "inbox bob").out();
    assert!(
        !mail.contains("interrupt") && !mail.contains("failed"),
        "{mail}"
    );
}
