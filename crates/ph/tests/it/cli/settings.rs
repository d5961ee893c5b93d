//! Layers of settings, finding the home, and the doctor's reports on both.

use crate::common::{Ph, path_text};

#[test]
fn every_layer_overrides_the_previous_one_and_is_named() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&["config show"]), @"
    $ ph config show
    home = [home]  (PH_HOME)
    journal.lock_timeout = 10s  (default)
    mail.max_hops = 16  (default)
    mail.max_rate = 60  (default)
    mail.provider = journal  (default)
    mail.script =   (default)
    mail.tick = 5s  (default)
    mail.timeout = 30s  (default)
    output.color = auto  (default)
    output.time = local  (default)
    send.priority = normal  (default)
    session.without_home = 1m  (default)
    ");
    ph.file(
        "user/.config/posthaste/config.toml",
        "[output]\ntime = 'utc'\ncolor = 'always'\n[send]\npriority = 'idle'\n",
    );
    ph.file("home/config.toml", "send.priority = 'idle-first'\n");
    let shown = ph
        .call(&["config", "show", "--color", "never"])
        .env("PH_JOURNAL_LOCK_TIMEOUT", "3s")
        .env("PH_OUTPUT_COLOR", "auto")
        .run();
    insta::assert_snapshot!(ph.redact(&shown.ok()), @"
    home = [home]  (PH_HOME)
    journal.lock_timeout = 3s  (environment: PH_JOURNAL_LOCK_TIMEOUT)
    mail.max_hops = 16  (default)
    mail.max_rate = 60  (default)
    mail.provider = journal  (default)
    mail.script =   (default)
    mail.tick = 5s  (default)
    mail.timeout = 30s  (default)
    output.color = never  (flag: --color)
    output.time = utc  ([dir]/user/.config/posthaste/config.toml)
    send.priority = idle-first  ([home]/config.toml)
    session.without_home = 1m  (default)
    ");
    let json = ph
        .call(&["config", "show", "--json"])
        .env("PH_SEND_PRIORITY", "interrupt")
        .run()
        .json();
    let priority = &json["settings"][9];
    assert_eq!(
        (&priority["key"], &priority["value"], &priority["source"]),
        (
            &"send.priority".into(),
            &"interrupt".into(),
            &"environment: PH_SEND_PRIORITY".into()
        )
    );
    let sent = ph.run("send bob hi --json").json();
    assert_eq!(sent["priority"], "idle-first", "the settings hold");
}

#[test]
fn invalid_settings_are_reported() {
    let ph = Ph::new();
    let check = |content: &str, says: &[&str]| {
        ph.file("home/config.toml", content);
        for says in says {
            ph.run("config show").fails(2, says);
            ph.run("send bob hi").fails(2, says);
        }
    };
    check(
        "[output]\ncolour = 'never'\n",
        &[
            "unknown setting output.colour",
            "did you mean output.color?",
        ],
    );
    check(
        "[harness.codex]\nstatus_row = 1\n",
        &[
            "unknown setting harness.codex.status_row in",
            "did you mean status_rows?",
        ],
    );
    check(
        "[harness.codex]\nstatus_rows = 'one'\n",
        &[
            "harness.codex.status_rows in",
            "must be a whole number from 0 to 20",
        ],
    );
    check(
        "[zebra]\nx = 1\n",
        &[
            "unknown setting zebra.x",
            "'ph config show' lists all settings",
        ],
    );
    check(
        "[send]\npriority = 'urgent'\n",
        &[
            "send.priority cannot be 'urgent'",
            "interrupt, normal, idle-first or idle",
        ],
    );
    check(
        "[journal]\nlock_timeout = 10\n",
        &["cannot be '10'", "such as 10s"],
    );
    check("\n[send\n", &["are not TOML", "look at line 2"]);
    check(
        "[output]\ntime = ['utc']\n",
        &["output.time", "is not a plain value"],
    );
    assert!(!ph.home().join("journal.db").exists(), "nothing was stored");
    ph.file("home/config.toml", "");
    ph.call(&["inbox"])
        .env("PH_OUTPUT_TIME", "noon")
        .run()
        .fails(2, "environment: PH_OUTPUT_TIME");
}

#[test]
fn times_are_shown_in_the_chosen_style() {
    let ph = Ph::new();
    ph.send("bob hi");
    let check = |style: &str, zone: &str, says: &str| {
        let inbox = ph
            .call(&["inbox", "bob"])
            .env("PH_OUTPUT_TIME", style)
            .env("TZ", zone)
            .run()
            .ok();
        assert!(ph.redact(&inbox).contains(says), "{style}: {inbox}");
    };
    check("local", "PST8", "bob  [time]  stored");
    check("utc", "PST8", "bob  [time]  stored");
    check("relative", "UTC", " s ago  stored");
}

#[test]
fn the_home_is_found_by_flag_environment_project_or_user() {
    let ph = Ph::new();
    let project = ph.dir().join("project/deep/inside");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir(ph.dir().join("project/.posthaste")).unwrap();
    let flag = path_text(&ph.dir().join("flagged"));
    let home = |args: &[&str], env: bool, within: &std::path::Path| {
        let call = ph
            .call(&[&["config", "show"], args].concat())
            .within(within);
        let call = if env { call } else { call.without("PH_HOME") };
        let shown = call.run().ok();
        ph.redact(shown.lines().next().unwrap())
    };
    assert_eq!(
        home(&["--home", &flag], true, &project),
        "home = [dir]/flagged  (--home)"
    );
    assert_eq!(home(&[], true, &project), "home = [home]  (PH_HOME)");
    let found = home(&[], false, &project);
    assert!(
        found.starts_with("home = [dir]/project/.posthaste/home-"),
        "{found}"
    );
    assert!(
        found.ends_with("(the nearest .posthaste directory)"),
        "{found}"
    );
    assert_eq!(
        home(&[], false, &ph.user()),
        "home = [dir]/user/.local/share/posthaste  (the XDG data directory)"
    );
    let sent = ph
        .call(&["send", "bob", "hi"])
        .without("PH_HOME")
        .within(&project)
        .run();
    assert_eq!(sent.code, 0);
    let ignored = std::fs::read_to_string(ph.dir().join("project/.posthaste/.gitignore")).unwrap();
    assert!(
        ignored.contains('*'),
        "a project's mail is in nobody's repository"
    );
    let xdg = ph
        .call(&["config", "show"])
        .without("PH_HOME")
        .without("HOME")
        .env("XDG_DATA_HOME", ph.dir().join("xdg"))
        .env("XDG_CONFIG_HOME", ph.dir().join("xdg"))
        .run();
    assert!(
        ph.redact(&xdg.out())
            .starts_with("home = [dir]/xdg/posthaste"),
        "{xdg:?}"
    );
}

#[test]
fn a_home_owned_by_another_user_is_refused() {
    let ph = Ph::new();
    let trap = ph.user().join(".posthaste");
    std::fs::create_dir(&trap).unwrap();
    if std::os::unix::fs::chown(&trap, Some(1), None).is_err() {
        return posthaste_lab::skip_or_fail("only root can give a directory to another user");
    }
    let sent = ph.call(&["send", "bob", "hi"]).without("PH_HOME").run();
    sent.fails(4, "belongs to another user");
    assert_eq!(std::fs::read_dir(&trap).unwrap().count(), 0);
}

/// Return the doctor's report, without values that differ between machines.
fn doctor(ph: &Ph, args: &[&str]) -> (i32, String) {
    let empty = ph.dir().join("no-programs");
    std::fs::create_dir_all(&empty).expect("a directory beside the home");
    let done = ph
        .call(&[&["doctor"], args].concat())
        .env("PATH", &empty)
        .run();
    let shown: Vec<String> = done
        .out()
        .lines()
        .map(
            |line| match line.split_once("SQLite ").or(line.split_once("WAL ")) {
                Some((before, _)) => format!("{before}…"),
                None => line.to_owned(),
            },
        )
        .collect();
    (done.code, ph.redact(&shown.join("\n")))
}

#[test]
fn the_doctor_reports_a_healthy_home() {
    let ph = Ph::new();
    let (code, shown) = doctor(&ph, &[]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(shown, @"
    ok     version      ph 0.1.0
    ok     home         [home] (from PH_HOME)
    -      journal      nothing stored yet
    ok     settings     no file; the defaults apply
    -      claude       not installed
    -      codex        not installed
    -      gemini       not installed
    -      opencode     not installed
    -      tmux         not installed
    ");
    assert!(!ph.home().exists(), "looking makes nothing");
    ph.send("bob hi");
    let (code, shown) = doctor(&ph, &[]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(shown, @"
    ok     version      ph 0.1.0
    ok     home         [home] (from PH_HOME)
    ok     permissions  private to its user
    ok     journal      1 fact, …
    ok     views        version 8; …
    ok     settings     no file; the defaults apply
    -      claude       not installed
    -      codex        not installed
    -      gemini       not installed
    -      opencode     not installed
    -      tmux         not installed
    ");
    let facts = ph.facts();
    assert_eq!(doctor(&ph, &["--rebuild-views"]).0, 0);
    assert_eq!(ph.facts(), facts);
    assert_eq!(ph.run("count bob").ok(), "1 in total, 1 unread\n");
    let findings = ph.run("doctor --json").json();
    assert_eq!(
        (&findings[0]["check"], &findings[0]["verdict"]),
        (&"version".into(), &"ok".into())
    );
}

#[test]
fn the_doctor_reports_a_corrupt_journal() {
    let ph = Ph::new();
    ph.send("bob hi");
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(ph.home().join(format!("journal.db{end}")));
    }
    std::fs::write(ph.home().join("journal.db"), [0xa5; 16_384]).unwrap();
    let (code, shown) = doctor(&ph, &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(shown, @"
    ok     version      ph 0.1.0
    ok     home         [home] (from PH_HOME)
    ok     permissions  private to its user
    WRONG  journal      the journal in [home]/journal.db is damaged: file is not a database
           hint: import an export into a new home with 'ph import'
    ok     settings     no file; the defaults apply
    -      claude       not installed
    -      codex        not installed
    -      gemini       not installed
    -      opencode     not installed
    -      tmux         not installed
    ");
    for line in [
        "send bob hi",
        "inbox bob",
        "check bob",
        "log",
        "export",
        "count",
    ] {
        ph.run(line).fails(5, "is damaged: file is not a database");
    }
}

#[test]
fn the_doctor_reports_loose_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let ph = Ph::new();
    ph.send("bob hi");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&ph.home()), 0o700);
    assert_eq!(mode(&ph.home().join("journal.db")), 0o600);
    let (path, _) = ph.files().remove(0);
    assert_eq!(mode(std::path::Path::new(&path)), 0o600);
    std::fs::set_permissions(ph.home(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, shown) = doctor(&ph, &[]);
    assert_eq!(code, 1);
    assert!(
        shown.contains(
            "WRONG  home         [home] is open to other users (mode 755)\n       hint: make it \
             private: run 'chmod 700 [home]'"
        ),
        "{shown}"
    );
}

#[test]
fn the_doctor_runs_with_invalid_settings() {
    let ph = Ph::new();
    ph.file("home/config.toml", "[output]\ncolour = 'never'\n");
    let (code, shown) = doctor(&ph, &[]);
    assert_eq!(code, 1);
    assert!(
        shown.contains("WRONG  settings     unknown setting output.colour"),
        "{shown}"
    );
    assert!(
        shown.contains("hint: did you mean output.color?"),
        "{shown}"
    );
}

#[test]
fn the_doctor_does_not_judge_a_directory_that_is_not_a_home() {
    let ph = Ph::new();
    let file = path_text(&ph.file("some-file", "x"));
    let (code, shown) = doctor(&ph, &["--home", &file]);
    assert_eq!(code, 1);
    assert!(!shown.contains("chmod"), "{shown}");
    let (code, shown) = doctor(&ph, &["--home", &path_text(&ph.user())]);
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("chmod"), "{shown}");
}

/// Return a home as it comes with a repository.
fn checkout(ph: &Ph) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let home = ph.dir().join("clone/.posthaste");
    std::fs::create_dir_all(&home).expect("a directory");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&home, open).expect("a mode");
    home
}

#[test]
fn links_in_a_home_from_a_repository_are_harmless() {
    use std::os::unix::fs::symlink;
    let traps = [
        "host",
        "journal.lock",
        "bell/all",
        "bell/agents/bob",
        "search-1.db",
    ];
    for trap in traps {
        let ph = Ph::new();
        let home = checkout(&ph);
        let precious = ph.file("precious", "do not touch ".repeat(6_000));
        let before = std::fs::read(&precious).unwrap();
        std::fs::create_dir_all(home.join(trap).parent().unwrap()).unwrap();
        symlink(&precious, home.join(trap)).unwrap();
        for verb in [
            &["send", "bob", "hi"][..],
            &["inbox", "bob"],
            &["search", "hi"],
        ] {
            ph.call(verb)
                .without("PH_HOME")
                .within(home.parent().unwrap())
                .run();
        }
        assert!(std::fs::read(&precious).unwrap() == before, "{trap}");
    }
    for dir in ["messages", "messages/bob", "bell", "bell/agents"] {
        let ph = Ph::new();
        let home = checkout(&ph);
        let elsewhere = ph.dir().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::create_dir_all(home.join(dir).parent().unwrap()).unwrap();
        symlink(&elsewhere, home.join(dir)).unwrap();
        ph.call(&["send", "bob", "hi"])
            .without("PH_HOME")
            .within(home.parent().unwrap())
            .run();
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "{dir}");
    }
}

#[test]
fn a_journal_in_a_repository_is_not_read() {
    let ph = Ph::new();
    ph.send("bob planted");
    let home = checkout(&ph);
    std::fs::copy(ph.home().join("journal.db"), home.join("journal.db")).unwrap();
    let look = |args: &[&str]| {
        ph.call(args)
            .without("PH_HOME")
            .within(home.parent().unwrap())
            .run()
    };
    // The directory is not a home, so its journal is not read.
    assert_eq!(look(&["inbox", "bob"]).out(), "no unread mail for bob\n");
    assert_eq!(look(&["check", "bob", "--inject"]).out(), "");
}

#[test]
fn a_directory_made_by_hand_becomes_a_private_home() {
    use std::os::unix::fs::PermissionsExt;
    let ph = Ph::new();
    let home = ph.dir().join("by-hand");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o755)).unwrap();
    let sent = ph.call(&["send", "bob", "hi"]).env("PH_HOME", &home);
    sent.run().ok();
    assert_eq!(home.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn the_doctor_reports_message_files_of_a_lost_journal() {
    let ph = Ph::new();
    ph.send("bob hi");
    for file in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let _ = std::fs::remove_file(ph.home().join(file));
    }
    ph.send("alice new");
    let told = ph.run("doctor");
    assert_eq!(
        told.out()
            .matches("1 message file without a message in the journal")
            .count(),
        1,
        "{}",
        told.out()
    );
}
