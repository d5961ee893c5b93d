//! Aliases, groups, everybody who runs, and nudges.

use crate::common::Ph;
use crate::common::stage::Stage;
use serde_json::{Value, json};

const BOOK: &str = "[aliases]\nlead = 'a'\n[groups]\nreviewers = ['lead', 'b', 'human']\n\
    everyone = ['@reviewers', 'c']\n";

/// Return the agents with mail, and the number of messages.
fn mail(ph: &Ph) -> Vec<(String, u64)> {
    let names = ["a", "b", "c", "human", "lead", "reviewers", "everyone"];
    let count = |name: &str| {
        // Of this very inbox, whatever the settings call it.
        let count = ph.run(&format!("provider count {name}")).json();
        (name.to_owned(), count["total"].as_u64().expect("a number"))
    };
    names
        .into_iter()
        .map(count)
        .filter(|(_, count)| *count > 0)
        .collect()
}

fn has(names: &[(&str, u64)]) -> Vec<(String, u64)> {
    let owned = |(name, count): &(&str, u64)| ((*name).to_owned(), *count);
    names.iter().map(owned).collect()
}

#[test]
fn a_group_gets_one_copy_each() {
    let ph = Ph::new();
    ph.file("home/config.toml", BOOK);
    let sent = ph
        .run("send everyone,a,lead,@reviewers hi --from x --json")
        .json();
    let to: Vec<_> = sent.as_array().unwrap().iter().map(|m| &m["to"]).collect();
    assert_eq!(to, ["a", "b", "human", "c"]);
    assert_eq!(
        mail(&ph),
        has(&[("a", 1), ("b", 1), ("c", 1), ("human", 1)])
    );
    // Copies are messages of their own: each has its thread.
    let thread = |at: usize| &sent[at]["thread_id"];
    assert!((0..4).all(|at| thread(at) == &sent[at]["id"]));
    assert_eq!(ph.run("send lead hi --json").json()["to"], "a");
    assert_eq!(ph.run("message --name lead hi").code, 0);
    assert_eq!(mail(&ph)[0], ("a".to_owned(), 3));
}

#[test]
fn a_key_holds_for_each_of_a_group() {
    let ph = Ph::new();
    ph.file("home/config.toml", BOOK);
    let first = ph.run("send reviewers hi --key k --from c").ok();
    ph.run("send lead hi --from c").ok();
    let again = ph.run("send everyone hi --key k --from c");
    assert_eq!(again.out(), first, "c itself gets none");
    assert_eq!(again.err().matches("sent to").count(), 3, "{}", again.err());
}

#[test]
fn a_sender_in_its_own_group_gets_no_copy() {
    let ph = Ph::new();
    ph.file(
        "home/config.toml",
        "[groups]\nteam = ['a', 'b']\nalone = ['a']\n",
    );
    assert_eq!(ph.run_as("a", "send team hi").ok().lines().count(), 1);
    assert_eq!(mail(&ph), has(&[("b", 1)]));
    ph.run_as("a", "send alone hi")
        .fails(4, "the sender is the only recipient");
    ph.run_as("a", "send a hi")
        .fails(4, "a cannot send to itself");
    ph.run_as("a", "send team hi --allow-self").ok();
    assert_eq!(mail(&ph), has(&[("a", 1), ("b", 2)]));
}

#[test]
fn unknown_names_are_refused_before_anything_is_sent() {
    let ph = Ph::new();
    ph.file("home/config.toml", BOOK);
    ph.run("send a,@nobody hi")
        .fails(2, "no alias or group is named 'nobody'");
    ph.run("send a,@reviewer hi")
        .fails(2, "did you mean @reviewers?");
    ph.run("send a,@a hi")
        .fails(2, "no alias or group is named 'a'");
    ph.run("send a,reviewer hi")
        .fails(2, "did you mean reviewers?");
    ph.run("message --name reviewer hi")
        .fails(2, "did you mean reviewers?");
    ph.run("send a,@ hi")
        .fails(2, "an agent's name cannot be empty");
    assert!(!ph.home().join("journal.db").exists(), "nothing was sent");
    // Any other name has an inbox, and so does the person.
    ph.run_as("a", "send somebody,human hi").ok();
    // An agent with exactly this name exists.
    ph.file("home/config.toml", "");
    ph.run("send reviewer hi").ok();
    ph.file("home/config.toml", BOOK);
    ph.run("send reviewer hi").ok();
}

#[test]
fn verbs_resolve_aliases() {
    let stage = Stage::new();
    stage.file("home/config.toml", BOOK);
    stage.run("send lead hi").ok();
    for name in ["lead", "@lead"] {
        let inbox = stage.run(&format!("inbox {name} --json")).json();
        assert_eq!(inbox[0]["to"], "a");
    }
    for verb in ["inbox", "count", "check", "status"] {
        let line = format!("{verb} @nobody");
        stage.run(&line).fails(2, "no alias or group is named");
    }
    assert_eq!(stage.run("count lead --json").json()["total"], 1);
    assert_eq!(stage.run("check lead").ok(), "1 unread message(s) for a\n");
    stage.script("a", "sleep 1000");
    assert_eq!(stage.status("lead")["name"], "a");
    for line in ["inbox reviewers", "count reviewers", "status reviewers"] {
        stage.run(line).fails(2, "'reviewers' is a group");
    }
    for name in ["lead", "reviewers"] {
        stage
            .run(&format!("run --name {name} --detach -- true"))
            .fails(
                2,
                "is an alias or a group in the settings: mail to it would go to other agents",
            );
    }
}

#[test]
fn short_names_are_not_typing_errors() {
    let ph = Ph::new();
    ph.file("home/config.toml", "[groups]\nx = ['a', 'b']\n");
    ph.run("send y hi").ok();
}

#[test]
fn aliases_and_groups_are_shown_and_checked() {
    let ph = Ph::new();
    let book = format!("{BOOK}[agents.a]\nnudge = 'Look at your mail'\n");
    ph.file("home/config.toml", &book);
    let shown = ph.redact(&ph.run("config show").ok());
    let book = ["agents.", "aliases.", "groups."];
    let of_book = |line: &&str| book.iter().any(|part| line.starts_with(part));
    let shown: Vec<_> = shown.lines().filter(of_book).collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    agents.a.nudge = Look at your mail  ([home]/config.toml)
    aliases.lead = a  ([home]/config.toml)
    groups.everyone = reviewers, c  ([home]/config.toml)
    groups.reviewers = lead, b, human  ([home]/config.toml)
    ");
    let json = ph.run("config show --json").json();
    assert_eq!(json["book"][0]["key"], "agents.a.nudge");
    for (book, says) in [
        ("[groups]\nx = ['y']\ny = ['x']\n", "'x' refers to itself"),
        ("[groups]\nhuman = ['y']\n", "'human' is the person"),
        ("[groups]\nx = []\n", "groups.x in"),
        ("[groups]\nx = ['@y']\n", "no alias or group is named 'y'"),
        (
            "[agents.a]\nnudge = \"a\\u001bb\"\n",
            "must be a text of one line",
        ),
        ("[groups]\nx = ['No Name']\n", "is invalid: an agent's name"),
        (
            "[agents.a]\nnoodge = 'x'\n",
            "unknown setting agents.a.noodge",
        ),
    ] {
        ph.file("home/config.toml", book);
        ph.run("send a hi").fails(2, says);
    }
    assert!(!ph.home().join("journal.db").exists(), "nothing was sent");
}

#[test]
fn all_means_every_running_agent_but_the_sender() {
    let stage = Stage::new();
    stage
        .run("send --all hi")
        .fails(4, "no agent other than human is running");
    stage.run("send gone before").ok();
    stage.script("a", "sleep 1000");
    stage.script("b", "sleep 1000");
    stage.script("c", "sleep 1000");
    stage.run("stop c --kill");
    let sent = stage
        .run_as("a", "send --all 'main is green' --json")
        .json();
    let to: Vec<_> = sent.as_array().unwrap().iter().map(|m| &m["to"]).collect();
    assert_eq!(to, ["b"]);
    assert_eq!(sent[0]["body"], "main is green");
    let both = stage.run("send --all -m hi --json").json();
    assert_eq!(both.as_array().unwrap().len(), 2);
    stage
        .run("send --all bob hi")
        .fails(2, "--all cannot be used with a recipient");
    stage
        .run("send --all")
        .fails(2, "the message text is missing");
    assert_eq!(stage.run("count human --json").json()["total"], 0);
    assert_eq!(stage.run("count c --json").json()["total"], 0);
}

#[test]
fn a_failed_nudge_gets_a_hint() {
    let stage = Stage::new();
    let done = stage.run("nudge nobody hi");
    assert_eq!(
        (done.code, done.out().as_str(), done.err().as_str()),
        (
            1,
            "not nudged: nobody is not running\n",
            "note: 'ph send nobody' leaves a message; 'ph run --name nobody COMMAND' starts it\n"
        )
    );
    // Standard output has only the JSON.
    let done = stage.run("nudge nobody hi --json");
    assert_eq!((done.code, done.err().as_str()), (1, ""));
    assert_eq!(done.json()["reason"], "nobody is not running");
    assert!(!stage.home().exists());
}

#[test]
fn the_text_of_a_nudge_is_set_for_each_agent() {
    let stage = Stage::new();
    let book = "[aliases]\nlead = 'bot'\n[groups]\nteam = ['bot', 'gone']\n\
        [agents.bot]\nnudge = 'Look at your mail'\n[agents.gone]\nnudge = 'You too'\n";
    stage.file("home/config.toml", book);
    let agent = stage.agent("bot", "");
    stage.until_activity("bot", "idle");
    stage.run("nudge bot").ok();
    agent.until_heard("Look at your mail");
    stage.run("nudge lead 'And now'").ok();
    agent.until_heard("And now");
    assert_eq!(stage.run("nudge @team 'Listed'").code, 1);
    agent.until_heard("Listed");
    stage
        .run("nudge @bot hey")
        .fails(2, "no alias or group is named 'bot'");
    stage
        .call(&["nudge", "bot", "a\nb"])
        .run()
        .fails(2, "a nudge is one line");
    let team = stage.run("nudge team 'All of you' --json");
    assert_eq!(team.code, 1);
    let nudged: Vec<Value> = team.json().as_array().unwrap().clone();
    assert_eq!(nudged[0]["nudged"], json!(true));
    assert_eq!(nudged[1]["reason"], json!("gone is not running"));
    stage
        .run("nudge other")
        .fails(2, "the settings have none for other");
    let gone = stage.run("nudge gone");
    assert_eq!(
        (gone.code, gone.out().as_str()),
        (1, "not nudged: gone is not running\n")
    );
    // Nothing of it is kept.
    assert!(!stage.facts().contains("Look at"), "{}", stage.facts());
    assert_eq!(stage.run("count gone --json").json()["total"], 0);
}

#[test]
fn recipients_can_be_nudged_once() {
    let stage = Stage::new();
    stage.file(
        "home/config.toml",
        "[agents.set]\nnudge = 'Look at your mail'\n",
    );
    let bot = stage.agent("bot", "");
    let set = stage.agent("set", "");
    for name in ["bot", "set"] {
        stage.until_activity(name, "idle");
    }
    // Recipients of a repeated message are not nudged again.
    let first = stage.run("send bot hello --from alice --in 1h --key k");
    let again = stage.run("send bot hello --from alice --in 1h --key k --notify");
    assert_eq!(again.out(), first.out());
    assert!(!again.err().contains("nudged"), "{}", again.err());
    // Not to be delivered now, so that nothing else is typed.
    let done = stage.run("send bot,set,gone hello --from alice --in 1h --notify");
    assert_eq!((done.code, done.out().lines().count()), (0, 3));
    insta::assert_snapshot!(done.err(), @"
    note: nudged bot
    note: nudged set
    note: gone was not nudged: gone is not running
    ");
    bot.until_heard("You have mail from alice");
    set.until_heard("Look at your mail");
    let heard = bot.heard_text();
    assert_eq!(heard.matches("You have mail").count(), 1, "{heard}");
    assert!(!stage.facts().contains("You have mail"));
}
