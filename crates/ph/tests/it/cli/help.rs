//! Usage, help of every verb, completions and manual pages.

use crate::common::Ph;
use std::process::{Command, Stdio};

const VERBS: [&str; 51] = [
    "run",
    "build",
    "attach",
    "ls",
    "status",
    "peek",
    "replay",
    "stop",
    "restart",
    "pause",
    "unpause",
    "checkpoint",
    "resume",
    "inject",
    "interactive",
    "answer",
    "asks",
    "nudge",
    "send",
    "message",
    "inbox",
    "read",
    "show",
    "reply",
    "thread",
    "archive",
    "delete",
    "mark-read",
    "mark-unread",
    "count",
    "search",
    "check",
    "cancel",
    "why",
    "task",
    "note",
    "log",
    "export",
    "import",
    "harness",
    "hook",
    "hooks",
    "provider",
    "mcp",
    "config",
    "doctor",
    "trust",
    "demo",
    "completions",
    "man",
    "help",
];

/// Verbs for hooks and scripts: they work and have a help text, but 'ph --help' does not list them.
const HIDDEN: [&str; 3] = ["message", "hook", "provider"];

#[test]
fn bare_ph_prints_its_help_and_creates_nothing() {
    let ph = Ph::new();
    let usage = ph.run("").ok();
    insta::assert_snapshot!("ph", usage);
    for same in ["--help", "-h", "help"] {
        assert_eq!(ph.run(same).ok(), usage, "ph {same}");
    }
    let mut listed: Vec<_> = usage
        .lines()
        .skip_while(|line| *line != "Agents:")
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .collect();
    let mut visible = VERBS.to_vec();
    visible.retain(|verb| !HIDDEN.contains(verb));
    listed.sort_unstable();
    visible.sort_unstable();
    assert_eq!(listed, visible);
    assert!(!ph.home().exists());
    let left: Vec<_> = std::fs::read_dir(ph.user()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// All subcommands of verbs.
const SUB_VERBS: [&str; 15] = [
    "config show",
    "harness ls",
    "harness match",
    "harness show",
    "harness test",
    "hooks install",
    "hooks status",
    "hooks uninstall",
    "mcp config",
    "note add",
    "note ls",
    "provider test",
    "task add",
    "task ls",
    "task status",
];

#[test]
fn every_verb_s_help_shows_an_example() {
    let ph = Ph::new();
    for verb in VERBS {
        let help = ph.run(&format!("{verb} --help")).ok();
        assert!(
            help.contains(&format!("Examples:\n  ph {verb}"))
                || help.contains(&format!("  ph {verb}")),
            "{help}"
        );
        for option in ["--home", "--json", "--color"] {
            assert!(help.contains(option), "{verb} has no {option}");
        }
        assert_eq!(ph.run(&format!("help {verb}")).ok(), help, "help {verb}");
        let short = ph.run(&format!("{verb} -h")).ok();
        assert!(short.contains(&format!("Usage: ph {verb}")), "{short}");
        insta::assert_snapshot!(format!("ph-{verb}"), help);
    }
    for verb in SUB_VERBS {
        let help = ph.run(&format!("{verb} --help")).ok();
        assert!(help.contains(&format!("\n  ph {verb}")), "{help}");
    }
    insta::assert_snapshot!("ph-config-show", ph.run("config show --help").ok());
    for verb in ["ls", "match", "show", "test"] {
        let help = ph.run(&format!("harness {verb} --help")).ok();
        insta::assert_snapshot!(format!("ph-harness-{verb}"), help);
    }
    insta::assert_snapshot!("ph-mcp-config", ph.run("mcp config --help").ok());
    for verb in ["task add", "task ls", "task status", "note add", "note ls"] {
        let help = ph.run(&format!("{verb} --help")).ok();
        assert!(help.contains(&format!("  ph {verb}")), "{help}");
        insta::assert_snapshot!(format!("ph-{}", verb.replace(' ', "-")), help);
    }
    insta::assert_snapshot!("ph-provider-test", ph.run("provider test --help").ok());
    assert!(!ph.home().exists());
}

#[test]
fn exit_codes_are_documented() {
    insta::assert_snapshot!(Ph::new().run("help exit-codes").ok(), @"
    0  success
    1  the answer is no, or nothing was found ('check' without mail, 'doctor' with a problem, 'send --wait' if the state is not reached)
    2  usage: the command line, a setting, or a file named on the command line is invalid
    3  not found: no such message, task, session or harness, or a prefix that matches more than one
    4  refused: the rules do not allow it
    5  storage: the home, or the script that keeps the mail, could not be read or written

    With 2, 3 and 4 nothing was changed, except that 'import' keeps the facts that it could import, and 'send' stores a message that is part of a storm as failed.
    ");
}

#[test]
fn unknown_verbs_and_topics_are_refused() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&["snd", "help nope", "man nope", "config", "--version"]), @r#"
    $ ph snd
    ! error: unrecognized subcommand 'snd'
    ! hint: a similar subcommand exists: 'send'
    !
    ! Usage: ph [OPTIONS] [COMMAND]
    !
    ! For more information, try '--help'.
    [exit 2]
    $ ph help nope
    ! error: there is no verb or topic 'nope'
    ! hint: 'ph' lists the verbs; the topics are: exit-codes
    [exit 2]
    $ ph man nope
    ! error: there is no verb nope
    ! hint: 'ph' lists all verbs
    [exit 2]
    $ ph config
    ! Show the settings and the source of each value
    !
    ! Usage: ph config [OPTIONS] <COMMAND>
    !
    ! Commands:
    !   show  Show every setting, its value and the source of the value
    !
    ! Options:
    !   -h, --help  Print help
    !
    ! Options of every verb:
    !       --home <DIR>    Home directory, which stores the mail [default: PH_HOME, else the nearest
    !                       .posthaste/, else the XDG data directory]
    !       --json          Print JSON
    !       --color <WHEN>  Use colour: auto, always or never
    !
    ! Examples:
    !   ph config show
    !   ph config show --json | jq -r '.settings[].key'
    !
    ! Sources, each overriding the one before: the defaults, the user's file
    ! (~/.config/posthaste/config.toml), the home's file (<home>/config.toml), the environment, flags.
    !
    !   [output]
    !   time = "relative"
    !
    !   [mail]
    !   provider = "exec:/path/to/a/script"
    !
    !   [aliases]
    !   lead = "coder-1"
    !
    !   [groups]
    !   reviewers = ["coder-2", "coder-3"]
    !
    !   [agents.coder-1]
    !   nudge = "Check your mail"
    !
    ! Some harnesses list the rows that may appear below the input box. While any other row is shown,
    ! messages are held. If your agent shows a status line there, set its number of rows:
    !
    !   [harness.codex]
    !   status_rows = 1
    [exit 2]
    $ ph --version
    ph 0.1.0
    "#);
}

#[test]
fn completion_scripts_exist_for_every_shell() {
    let ph = Ph::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ph.run(&format!("completions {shell}")).ok();
        assert!(script.contains("PH_COMPLETE"), "{shell}: {script}");
    }
    ph.run("completions tcsh").fails(2, "possible values: bash");
}

#[test]
fn names_are_completed_from_the_journal() {
    let ph = Ph::new();
    for name in ["coder-1", "cobra", "zed"] {
        ph.send(&format!("{name} hello"));
    }
    let complete = |words: &[&str], agent: &str| {
        let index = (words.len() - 1).to_string();
        ph.call(&[&["--"], words].concat())
            .env("PH_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", index)
            .env("_CLAP_IFS", "\n")
            .env("PH_AGENT", agent)
            .run()
            .ok()
    };
    assert_eq!(complete(&["ph", "send", "co"], ""), "cobra\ncoder-1");
    assert_eq!(
        complete(&["ph", "send", "zed,co"], ""),
        "zed,cobra\nzed,coder-1"
    );
    assert_eq!(complete(&["ph", "inbox", "z"], ""), "zed");
    assert_eq!(complete(&["ph", "message", "--name", "z"], ""), "zed");
    assert_eq!(complete(&["ph", "send", "hu"], ""), "human");
    let id = ph.send("zed again");
    assert_eq!(complete(&["ph", "read", &id[..4]], "zed"), id[..8]);
    assert_eq!(complete(&["ph", "archi"], ""), "archive");
    assert_eq!(complete(&["ph", "ho"], ""), "hooks", "'hook' is hidden");
    let urgent = complete(&["ph", "send", "zed", "--priority", "in"], "");
    assert_eq!(urgent, "interrupt");
}

/// A completion must be fast and print no errors, whatever the state of the home.
#[test]
fn completion_creates_nothing_and_never_fails() {
    let ph = Ph::new();
    let complete = || {
        ph.call(&["--", "ph", "send", "co"])
            .env("PH_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", "2")
            .env("_CLAP_IFS", "\n")
            .run()
    };
    assert_eq!(complete().ok(), "");
    assert!(!ph.home().exists());
    ph.file("user/.config/posthaste/config.toml", "nonsense");
    assert_eq!(complete().ok(), "");
    let foreign = ph.call(&["help", "exit-codes"]).env("COMPLETE", "1").run();
    assert_eq!(foreign.code, 0, "somebody else's variable is not ours");
}

#[test]
fn manual_pages_are_valid() {
    let ph = Ph::new();
    let page = ph.run("man").ok();
    assert!(page.contains(".TH ph 1"), "{page}");
    assert!(page.contains("EXIT STATUS"), "{page}");
    assert!(page.contains("ph\\-hooks(1)"), "{page}");
    for verb in HIDDEN {
        assert!(!page.contains(&format!("ph\\-{verb}(1)")), "{page}");
    }
    let send = ph.run("man send").ok();
    assert!(send.contains(".TH ph-send 1"), "{send}");
    assert!(send.contains(".SH EXAMPLES\n  ph send coder"), "{send}");
    let dir = ph.dir().join("pages");
    let done = ph.run(&format!("man --dir {}", crate::common::path_text(&dir)));
    assert_eq!(done.code, 0);
    assert_eq!(
        ph.redact(&done.err()),
        "note: 52 pages written to [dir]/pages\n"
    );
    let mut pages: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pages.sort();
    assert_eq!(pages.len(), VERBS.len() + 1);
    assert_eq!(
        std::fs::read_to_string(dir.join("ph-send.1")).unwrap(),
        send
    );
    for page in pages {
        let groff = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .arg(&page)
            .stdin(Stdio::null())
            .output();
        let Ok(groff) = groff else {
            return posthaste_lab::skip_or_fail("there is no groff to read the manual pages with");
        };
        let complaint = String::from_utf8_lossy(&groff.stderr);
        assert_eq!(complaint, "", "{}", page.display());
    }
}
