//! Mail verbs while a script keeps the mail.

use super::{Provider, keep_by, script};
use crate::common::{Done, Ph};

#[test]
fn a_message_that_cannot_be_printed_is_not_marked() {
    let ph = Ph::new();
    let _provider = Provider::behind(&ph, "");
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return posthaste_lab::skip_or_fail("there is no /dev/full");
    };
    ph.run("send bob hi").ok();
    let read = ph.call(&["read", "m1"]).agent("bob").stdout(full).run();
    read.fails(5, "cannot write the output: No space left");
    assert!(ph.run("inbox bob").ok().contains("hi"), "still unread");
    ph.run_as("bob", "read m1").ok();
    assert_eq!(ph.run("check bob").code, 1, "read now");
}

#[test]
fn every_verb_calls_the_script() {
    let ph = Ph::new();
    let provider = Provider::behind(&ph, "");
    send_list_read_and_reply(&ph);
    mark_archive_and_delete(&ph);
    assert_eq!(provider.calls()[..2], ["ensure-running ", "send bob"]);
}

fn send_list_read_and_reply(ph: &Ph) {
    insta::assert_snapshot!(ph.transcript(&[
        "send bob --subject login 'Please fix the login page.'",
        "message --name bob 'And the logout page.'",
        "inbox bob",
        "bob$ inbox",
        "check bob",
        "check carol",
        "count bob",
        "bob$ read m1",
        "bob$ read m1 --body",
        "inbox bob",
        "inbox bob --all",
        "bob$ reply m1 Done.",
        "thread m3",
        "show m2",
        "why m1",
        "why m2",
    ]), @"
    $ ph send bob --subject login Please fix the login page.
    m1
    $ ph message --name bob And the logout page.
    Message sent: m2
    $ ph inbox bob
    m1  human → bob  [time]  stored  [login] Please fix the login page.
    m2  human → bob  [time]  stored  And the logout page.
    bob$ ph inbox
    m1  human → bob  [time]  stored  [login] Please fix the login page.
    m2  human → bob  [time]  stored  And the logout page.
    $ ph check bob
    2 unread message(s) for bob
    $ ph check carol
    [exit 1]
    $ ph count bob
    2 in total, 2 unread
    bob$ ph read m1
    message    m1
    from       human
    to         bob
    sent       [time]
    subject    login

    Please fix the login page.
    bob$ ph read m1 --body
    Please fix the login page.$ ph inbox bob
    m2  human → bob  [time]  stored  And the logout page.
    $ ph inbox bob --all
    m1  human → bob  [time]  read    [login] Please fix the login page.
    m2  human → bob  [time]  stored  And the logout page.
    bob$ ph reply m1 Done.
    m3
    $ ph thread m3
    message    m1
    from       human
    to         bob
    sent       [time]
    subject    login

        Please fix the login page.

    message    m3
    from       bob
    to         human
    sent       [time]
    reply to   m1

        Done.
    $ ph show m2
    message    m2
    from       human
    to         bob
    sent       [time]
    thread     t-m2

    And the logout page.
    $ ph why m1
    not held   it is read
    $ ph why m2
    held       [dir]/mail keeps it
    rule       script
    since      [time]
    release    its session starts, or the agent reads it
    ");
}

fn mark_archive_and_delete(ph: &Ph) {
    insta::assert_snapshot!(ph.transcript(&[
        "mark-unread m1",
        "mark-read m1 m2",
        "archive m1",
        "archive m1 m2",
        "delete m2",
        "delete m2",
        "inbox bob --prompt",
        "inbox human --prompt",
    ]), @"
    $ ph mark-unread m1
    m1 marked as unread
    $ ph mark-read m1 m2
    m1 marked as read
    m2 marked as read
    $ ph archive m1
    m1 archived
    $ ph archive m1 m2
    m1 already archived
    m2 archived
    $ ph delete m2
    m2 deleted
    $ ph delete m2
    ! error: 'delete': [dir]/mail did not find the message; standard error: gc-mail-error:not-found
    [exit 3]
    $ ph inbox bob --prompt
    $ ph inbox human --prompt
    ## INBOX (Unread Messages - Process these first!)
    - [[id1]] [time]: Done.

    After reading, call inbox_mark_read(session_name, id) for each message.
    ");
}

#[test]
fn ids_of_a_prompt_are_found() {
    let ph = Ph::new();
    Provider::behind(&ph, "");
    ph.run("send bob --from alice 'fix it'").ok();
    assert!(!ph.home().join("journal.db").exists(), "the script has it");
    let block = ph.run("inbox bob --prompt").ok();
    let id = block.split(['[', ']']).nth(1).unwrap();
    assert_eq!(ph.run(&format!("show {id} --json")).json()["id"], "m1");
    assert_eq!(ph.run_as("bob", &format!("reply {id} done")).ok(), "m2\n");
    assert_eq!(ph.run("inbox bob --prompt").ok(), block);
}

#[test]
fn json_has_the_journals_shape() {
    let ph = Ph::new();
    Provider::behind(&ph, "");
    let sent = ph.run("send bob --from alice hi --json").json();
    let keys: Vec<_> = sent.as_object().unwrap().keys().cloned().collect();
    let journal = Ph::new();
    let usual = journal.run("send bob --from alice hi --json").json();
    let wanted: Vec<_> = usual.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, wanted);
    assert_eq!(
        (&sent["id"], &sent["from_evidence"], &sent["receipt"]),
        (&"m1".into(), &"provider".into(), &"stored".into())
    );
    assert_eq!(ph.run("inbox bob --json").json()[0], sent);
    assert_eq!(ph.run("inbox carol --json").ok(), "[]\n");
    assert_eq!(ph.run("read m1 --json").json()["read"], true);
    assert_eq!(
        ph.run("check bob --json").out(),
        "{\"total\":1,\"unread\":0}\n"
    );
    let outcome = ph.run("archive m1 --json").json();
    assert_eq!(outcome[0]["outcome"], "archived");
    let several = ph.run("send bob,carol hi --json").json();
    assert_eq!(
        (&several[0]["to"], &several[1]["to"]),
        (&"bob".into(), &"carol".into())
    );
}

#[test]
fn unsupported_actions_are_refused_without_a_call() {
    let ph = Ph::new();
    let provider = Provider::behind(&ph, "");
    for line in [
        "search login",
        "cancel m1",
        "send bob hi --priority interrupt",
        "send bob hi --ttl 1h",
        "send bob hi --in 1h",
        "send bob hi --at 14:30",
        "send bob hi --key k",
        "send bob hi --reply-to 3fa8c1d2",
        "reply m1 hi --priority idle",
    ] {
        ph.run(line).fails(4, "keeps the mail and cannot");
    }
    ph.run_as("bob", "send bob hi")
        .fails(4, "bob cannot send to itself");
    ph.run_as("bob", "message --name bob hi")
        .fails(4, "bob cannot send to itself");
    assert_eq!(provider.calls(), Vec::<String>::new());
    ph.run_as("bob", "send bob hi --allow-self").ok();
}

#[test]
fn a_missing_operation_is_named() {
    let ph = Ph::new();
    let text = "#!/bin/sh\ncase $1 in inbox) exit 0;; esac\necho confused >&2\nexit 2\n";
    script(ph.dir(), "little", text);
    keep_by(&ph, "../little", "");
    assert_eq!(ph.run("inbox bob").ok(), "no unread mail for bob\n");
    for (line, op) in [
        ("send bob hi", "send"),
        ("reply x hi", "reply"),
        ("inbox bob --all", "all"),
        ("read x", "read"),
        ("show x", "get"),
        ("thread x", "thread"),
        ("count bob", "count"),
        ("check bob", "check"),
        ("archive x", "archive"),
        ("mark-unread x", "mark-unread"),
    ] {
        let done = ph.run(line);
        done.fails(4, &format!("little does not know '{op}' (exit 2)"));
    }
}

#[test]
fn an_agent_changes_only_its_own_mail() {
    let ph = Ph::new();
    let provider = Provider::behind(&ph, "");
    ph.run("send bob hi").ok();
    for verb in ["mark-read", "archive", "delete"] {
        let says = format!("carol cannot {verb} a message that belongs to bob");
        ph.run_as("carol", &format!("{verb} m1")).fails(4, &says);
    }
    let read = ph.run_as("carol", "read m1 --body");
    assert_eq!((read.code, read.out().as_str()), (0, "hi"));
    assert!(read.err().contains("not marked as read"), "{}", read.err());
    assert_eq!(provider.count("read m1"), 0);
    assert_eq!(ph.run_as("bob", "archive m1").ok(), "m1 archived\n");
}

#[test]
fn ids_and_names_that_look_like_flags() {
    let ph = Ph::new();
    let provider = Provider::behind(&ph, "");
    ph.run("send bob hi").ok();
    for id in ["-x", "--help", "--", "../m1"] {
        let done = ph.call(&["read", "--", id]).run();
        done.fails(3, "did not find the message");
        assert_eq!(provider.count(&format!("get {id}")), 1);
    }
    for name in ["-x", "--help", ""] {
        ph.call(&["send", "--", name, "hi"])
            .run()
            .fails(2, "an agent's name");
    }
    ph.call(&["read", ""])
        .run()
        .fails(2, "an id cannot be empty");
    assert_eq!(provider.count("send bob"), 1);
}

#[test]
fn ten_megabytes_go_through_a_script() {
    let ph = Ph::new();
    // The script stores its input and returns it.
    let text = format!(
        "#!/bin/sh\ncd '{}'\ncase $1 in\nsend) cat > told;;\nget|read);;\n*) exit 2;;\nesac\n\
         printf '{{\"id\":\"m1\",\"to\":\"bob\",\"created_at\":\"2026-11-15T12:00:00Z\",'\n\
         tail -c +2 told\n",
        ph.dir().display()
    );
    script(ph.dir(), "plain", &text);
    keep_by(&ph, "../plain", "");
    let body = "0123456789abcde\n".repeat(10 << 16);
    let sent = ph
        .call(&["send", "bob", "--file", "-"])
        .stdin(body.clone())
        .run();
    assert_eq!(sent.ok(), "m1\n");
    assert!(ph.run("read m1 --body").ok() == body);
}

#[test]
fn a_failed_copy_is_reported_with_those_sent() {
    let ph = Ph::new();
    let text = "#!/bin/sh\ncase \"$1 $2\" in\n\
        'send b') echo 'the disk is full' >&2; exit 1;;\n\
        send*) echo '{\"id\":\"1\",\"from\":\"human\",\"to\":\"'$2'\",\"body\":\"hi\",\"created_at\":\"2026-11-15T12:00:00Z\"}';;\n\
        esac\n";
    script(ph.dir(), "half", text);
    keep_by(&ph, "../half", "[groups]\nteam = ['a', 'b', 'c']\n");
    let done = ph.run("send team hi");
    assert_eq!((done.code, done.out().as_str()), (5, "1\n"));
    let says = "1 of 3 were sent, not the one to b:";
    assert!(done.err().contains(says), "{}", done.err());
    assert!(
        done.err().contains("standard error: the disk is full"),
        "{}",
        done.err()
    );
    ph.run("send b hi").fails(5, "nothing was sent to b:");
    // Only recipients of a sent copy are nudged.
    let done = ph.run("send team hi --notify");
    assert!(done.err().contains("a was not nudged"), "{}", done.err());
    assert!(!done.err().contains("c was not nudged"), "{}", done.err());
}

#[test]
fn the_settings_name_the_script() {
    let ph = Ph::new();
    let check = |settings: &str, code: i32, says: &str| {
        ph.file("home/config.toml", settings);
        ph.run("inbox bob").fails(code, says);
    };
    check(
        "mail.provider = 'exec:'\n",
        2,
        "mail.provider cannot be 'exec:'",
    );
    check("mail.provider = 'beadmail'\n", 2, "journal, exec:SCRIPT");
    check("mail.provider = 'exec'\n", 2, "mail.script cannot be ''");
    check(
        "mail.provider = 'exec:no-such-program'\n",
        2,
        "no program 'no-such-program' is on PATH",
    );
    check(
        "mail.provider = 'exec:./nowhere'\n",
        2,
        "home/nowhere for 'inbox': No such file",
    );
    check(
        "[mail]\nprovider = 'exec'\nscript = './nowhere'\n",
        2,
        "home/nowhere for 'inbox'",
    );
    check(
        "mail.timeout = '0s'\nmail.provider = 'exec:/x'\n",
        2,
        "mail.timeout cannot be '0s'",
    );
    script(ph.dir(), "silent", "#!/bin/sh\n");
    for settings in [
        "mail.provider = 'exec:../silent'\n",
        "[mail]\nprovider = 'exec'\nscript = '../silent'\n",
    ] {
        ph.file("home/config.toml", settings);
        assert_eq!(ph.run("inbox bob").ok(), "no unread mail for bob\n");
    }
    ph.file("home/config.toml", "");
    let found = ph
        .call(&["inbox", "bob"])
        .env("PH_MAIL_PROVIDER", "exec:silent")
        .env("PATH", ph.dir())
        .run();
    assert_eq!(found.ok(), "no unread mail for bob\n");
}

#[test]
fn the_doctor_checks_the_script() {
    let ph = Ph::new();
    keep_by(&ph, "../nowhere", "");
    let done = ph.run("doctor");
    assert_eq!(done.code, 1);
    let says = "nowhere, which is not an executable file";
    assert!(done.out().contains(says), "{}", done.out());
    script(ph.dir(), "nowhere", "#!/bin/sh\n");
    let done = ph.run("doctor --json").json();
    let findings = done["findings"].as_array().or(done.as_array()).unwrap();
    let mail = findings.iter().find(|finding| finding["check"] == "mail");
    assert_eq!(mail.unwrap()["verdict"], "ok");
}

#[test]
fn settings_of_a_project_start_nothing() {
    let ph = Ph::new();
    let project = ph.dir().join("clone");
    let home = project.join(".posthaste");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), "mail.provider = 'exec:./trap'\n").unwrap();
    let mark = ph.dir().join("sprung");
    script(
        &home,
        "trap",
        &format!("#!/bin/sh\ntouch '{}'\n", mark.display()),
    );
    let run = || {
        ph.call(&["inbox", "bob"])
            .without("PH_HOME")
            .within(&project)
            .run()
    };
    // The project's provider is ignored with a note: its script does not run.
    let assert_ignored = |done: Done| {
        assert_eq!(done.code, 0, "{}", done.err());
        let note = "ignored mail.provider in ";
        assert!(done.err().contains(note), "{}", done.err());
    };
    assert_ignored(run());
    // Neither a private directory nor its name makes it trusted: a clone can have both.
    std::fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    assert_ignored(run());
    let named = |args: &[&str]| ph.call(args).env("PH_HOME", &home).within(&project).run();
    assert_ignored(named(&["inbox", "bob"]));
    assert_ignored(named(&["send", "bob", "hi"]));
    let hook = named(&["check", "--inject", "alice"]);
    assert_eq!((hook.code, hook.out().as_str()), (0, ""));
    assert_ignored(named(&["ls"]));
    assert!(!mark.exists());
    // A script that a project names does not affect the one that the user names.
    std::fs::write(home.join("config.toml"), "mail.script = './trap'\n").unwrap();
    let mine = script(ph.dir(), "mine", "#!/bin/sh\n");
    let with = |provider: &str| {
        let inbox = ph.call(&["inbox", "bob"]).env("PH_HOME", &home);
        inbox
            .env("PH_MAIL_PROVIDER", provider)
            .within(&project)
            .run()
    };
    assert_eq!(with(&format!("exec:{}", mine.display())).code, 0);
    with("exec").fails(2, "mail.script cannot be ''");
    assert!(!mark.exists());
    // A script that the user names runs.
    let asked = ph
        .call(&["inbox", "bob"])
        .without("PH_HOME")
        .env("PH_MAIL_PROVIDER", format!("exec:{}/trap", home.display()))
        .within(&project)
        .run();
    assert_eq!(asked.code, 0, "{}", asked.err());
    assert!(mark.exists(), "a script that the user names runs");
}

#[test]
fn a_missing_script_stops_only_mail_verbs() {
    let ph = Ph::new();
    keep_by(&ph, "no-such-program", "");
    let says = "no program 'no-such-program' is on PATH";
    ph.run("inbox bob").fails(2, says);
    for line in ["ls", "config show", "provider inbox bob", "log"] {
        let done = ph.run(line);
        assert_eq!(done.code, 0, "{line}: {}", done.err());
    }
    assert_eq!(
        ph.run("provider count bob").ok(),
        "{\"total\":0,\"unread\":0}\n"
    );
    ph.run("status bob").fails(3, "bob");
    let doctor = ph.run("doctor");
    assert!(doctor.out().contains(says), "{}", doctor.out());
}
