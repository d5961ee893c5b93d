//! `ph run` and `ph attach` in real terminals with real sessions: the screen, the keys, and the
//! keyboard's owner.

#![cfg(target_os = "linux")] // Reads processes from /proc.

use crate::common::stage::{Stage, until_so};
use crate::common::{path_text, skip};
use alacritty_terminal::term::TermMode;
use posthaste_lab::pty::{Size, Terminal};
use rustix::process::Signal;
use std::path::Path;

const DETACH: &str = "\x1cd";
const TAKE: &str = "\x1ct";
const SMALL: Size = Size { cols: 60, rows: 15 };
const LARGE: Size = Size {
    cols: 100,
    rows: 30,
};

/// Detach with the detach key.
fn detach(mut terminal: Terminal) {
    terminal.type_keys(DETACH);
    assert!(terminal.wait_exit().success());
    assert!(terminal.is_sane());
}

/// Wait until a terminal shows the same as the session's own screen.
fn same_as_peek(stage: &Stage, name: &str, terminal: &mut Terminal) {
    let mut want = Vec::new();
    until_so("the same screen", || {
        want = stage.peek(name).lines().map(str::to_owned).collect();
        want.resize(terminal.screen().len(), String::new());
        let trimmed: Vec<_> = want.iter().map(|line| line.trim_end()).collect();
        terminal.wait_until("anything", |_| true);
        terminal.screen() == trimmed
    });
}

#[test]
fn keys_reach_the_program_and_its_screen_is_shown() {
    let stage = Stage::new();
    let mut first = stage.terminal("run --name bot -- cat", Size::USUAL);
    first.wait_until("the session", |_| stage.run("status bot").code == 0);
    first.type_keys("hello\r");
    first.wait_for("an echo and an answer", |s| s[..2] == ["hello", "hello"]);
    first.type_keys(DETACH);
    first.wait_for_text("detached from bot");
    assert!(first.wait_exit().success());
    let mut second = stage.terminal("attach bot", Size::USUAL);
    second.wait_for("the same screen", |s| s[..2] == ["hello", "hello"]);
    let mut third = stage.terminal("attach bot", Size::USUAL);
    third.wait_for("the same screen", |s| s[..2] == ["hello", "hello"]);
    third.type_keys("both\r");
    for terminal in [&mut second, &mut third] {
        terminal.wait_for("both", |s| s[2..4] == ["both", "both"]);
    }
    third.hang_up();
    second.type_keys("on\r");
    second.wait_for("more", |s| s[4..6] == ["on", "on"]);
    second.type_keys("\x04");
    second.wait_for_text("bot ended: exit 0");
    assert!(second.wait_exit().success());
    assert!(second.is_sane());
}

#[test]
fn the_output_of_a_program_that_exits_at_once_is_shown() {
    let stage = Stage::new();
    for n in 0..10 {
        let line = format!("run --name bot-{n} -- sh -c 'echo last words; exit 3'");
        let mut terminal = stage.terminal(&line, Size::USUAL);
        assert!(terminal.wait_exit().success(), "{:?}", terminal.screen());
        terminal.wait_for_text(&format!("bot-{n} ended: exit 3"));
        let seen = [terminal.scrollback(), terminal.screen()].concat();
        assert!(seen.iter().any(|line| line == "last words"), "{seen:?}");
    }
}

#[test]
fn a_full_screen_fits_the_smallest_window() {
    let stage = Stage::new();
    let is_drawn = |screen: &[String], cols: usize, rows: usize| {
        let corner =
            |row: usize, col: usize| screen.get(row).and_then(|line| line.chars().nth(col));
        screen
            .iter()
            .any(|line| line.contains(&format!("{cols}x{rows}")))
            && corner(0, 0) == Some('A')
            && corner(0, cols - 1) == Some('B')
            && corner(rows - 1, 0) == Some('C')
            && corner(rows - 1, cols - 2) == Some('D')
    };
    let (_, mut usual) = stage.agent_in("bot", "--raw --full", Size::USUAL);
    usual.wait_for("the program", |s| is_drawn(s, 80, 24));
    let mut small = stage.terminal("attach bot", SMALL);
    small.wait_for("its size", |s| is_drawn(s, 60, 15));
    usual.wait_for("the other's size", |s| is_drawn(s, 60, 15));
    let mut large = stage.terminal("attach bot", LARGE);
    large.wait_for("the small one's size", |s| is_drawn(s, 60, 15));
    detach(small);
    for terminal in [&mut usual, &mut large] {
        terminal.wait_for("the usual size", |s| is_drawn(s, 80, 24));
    }
    usual.signal(Signal::KILL);
    usual.wait_exit();
    large.wait_for("all of it", |s| is_drawn(s, 100, 30));
    large.resize(Size { cols: 70, rows: 20 });
    large.wait_for("a smaller one", |s| is_drawn(s, 70, 20));
    assert!(large.mode().contains(TermMode::ALT_SCREEN));
    detach(large);
    // Without viewers, the size stays.
    let mut again = stage.terminal("attach bot", Size { cols: 70, rows: 20 });
    again.wait_for("what was there", |s| is_drawn(s, 70, 20));
    same_as_peek(&stage, "bot", &mut again);
}

#[test]
fn real_programs_are_drawn_correctly() {
    let stage = Stage::new();
    let text: String = (1..=200).map(|n| format!("line {n} ünï 漢字\n")).collect();
    let file = path_text(&stage.file("text", text));
    let check = |name: &str, command: &str, keys: &str, wants: &str| {
        if !Path::new("/usr/bin").join(name).exists() {
            return skip(&format!("{name} is not installed"));
        }
        let line = format!("run --name {name} -- {command} {file}");
        let mut first = stage.terminal(&line, Size::USUAL);
        first.wait_for_text("line 20 ünï 漢字");
        first.type_keys(keys);
        first.wait_for_text(wants);
        let mut second = stage.terminal(&format!("attach {name}"), Size::USUAL);
        second.wait_for_text(wants);
        same_as_peek(&stage, name, &mut second);
        detach(first);
        let mut third = stage.terminal(&format!("attach {name}"), LARGE);
        detach(second);
        third.wait_for_text(wants);
        same_as_peek(&stage, name, &mut third);
        stage.run(&format!("stop {name} --kill")).ok();
        third.wait_for_text(&format!("{name} ended: signal 9 (KILL)"));
        third.wait_exit();
        assert!(third.is_sane() && !third.mode().contains(TermMode::ALT_SCREEN));
    };
    check(
        "vim",
        "vim -u NONE -i NONE -N",
        "ohello vim\x1b",
        "hello vim",
    );
    check("less", "less", "50g", "line 60 ünï");
}

#[test]
fn a_read_only_viewer_types_nothing() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    let mut reader = stage.terminal("attach bot --read-only", Size::USUAL);
    reader.wait_for_text("ready");
    reader.type_keys(format!("x{TAKE}x\r"));
    detach(reader);
    let mut writer = stage.terminal("attach bot", Size::USUAL);
    writer.wait_for_text("ready");
    writer.type_keys("y\r");
    agent.until_heard("y\r");
    assert_eq!(agent.heard_text(), "y\r");
    let done = stage.run("attach bot");
    done.fails(2, "attaching needs a terminal");
}

#[test]
fn a_taken_keyboard_is_exclusive_and_holds_mail() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    let mut owner = stage.terminal("attach bot --take", Size::USUAL);
    owner.wait_for_text("ready");
    let held = stage.send("bot one");
    stage.until_rule(&held, "paused");
    let urgent = stage.send("bot --priority interrupt two");
    stage.until_rule(&urgent, "paused");
    let mut other = stage.terminal("attach bot", Size::USUAL);
    other.wait_for_text("ready");
    other.type_keys("other\r");
    detach(other);
    owner.type_keys("mine\r");
    agent.until_heard("mine\r");
    assert_eq!(agent.heard_text(), "mine\r");
    owner.type_keys(TAKE);
    for id in [&held, &urgent] {
        stage.until_receipt(id, "offered");
    }
    // Taken again, and released by the sudden death of the viewer.
    owner.type_keys(TAKE);
    until_so("a pause", || {
        let id = stage.send("bot --priority idle x");
        let is_paused = stage.rule(&id) == "paused";
        stage.run(&format!("cancel {id}"));
        is_paused
    });
    let held = stage.send("bot three");
    stage.until_rule(&held, "paused");
    // The latest request gets the keyboard.
    let mut heir = stage.terminal("attach bot --take", Size::USUAL);
    heir.wait_for_text("ready");
    heir.type_keys("heir\r");
    agent.until_heard("heir\r");
    owner.type_keys("late\r");
    detach(owner);
    stage.until_rule(&held, "paused");
    assert!(!agent.heard_text().contains("late"));
    heir.signal(Signal::KILL);
    stage.until_receipt(&held, "offered");
    assert!(!agent.heard_text().contains("other"));
}

#[test]
fn a_draft_holds_mail() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    let mut person = stage.terminal("attach bot", Size::USUAL);
    person.wait_for_text("ready");
    for (typed, end) in [("half a l", "ine\r"), ("gone", "\x15"), ("ab", "\x7f\x7f")] {
        person.type_keys(typed);
        agent.until_heard(typed);
        let ids = ["normal", "interrupt"]
            .map(|lane| stage.send(&format!("bot --priority {lane} {lane}")));
        for id in &ids {
            stage.until_rule(id, "draft");
            assert_eq!(stage.receipt(id), "stored");
        }
        let nudged = stage.run("nudge bot hi");
        assert_eq!(nudged.code, 1);
        assert!(nudged.out().contains("typed something"), "{}", nudged.out());
        person.type_keys(end);
        for id in &ids {
            stage.until_receipt(id, "offered");
        }
        let heard = agent.heard_text();
        assert!(heard.contains(&format!("{typed}{end}")), "{heard:?}");
    }
    // The draft remains after the person has detached: its text is still in the box.
    person.type_keys("left");
    agent.until_heard("left");
    detach(person);
    let id = stage.send("bot x");
    stage.until_rule(&id, "draft");
    let mut person = stage.terminal("attach bot", Size::USUAL);
    person.wait_for_text("ready");
    person.type_keys("\r");
    stage.until_receipt(&id, "offered");
}

#[test]
fn a_flood_ends_in_the_correct_screen() {
    let stage = Stage::new();
    let script =
        "read x; yes 0123456789 | head -c 30000000; echo; printf '\\033[31mTHE END\\n'; cat";
    let args = ["run", "--name", "bot", "--", "sh", "-c", script];
    let mut first = stage.terminal_of(&args, Size::USUAL);
    first.wait_until("the session", |_| stage.run("status bot").code == 0);
    let mut second = stage.terminal("attach bot", SMALL);
    second.wait_until("a screen", |t| !t.output().is_empty());
    first.type_keys("\r");
    first.wait_for_text("THE END");
    second.wait_for_text("THE END");
    same_as_peek(&stage, "bot", &mut second);
    first.type_keys("after\r");
    for terminal in [&mut first, &mut second] {
        terminal.wait_for("what comes after", |s| {
            s.iter().filter(|line| *line == "after").count() == 2
        });
    }
}

#[test]
fn unusual_output_and_modes_reach_a_later_viewer() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_shown("bot", "ready");
    let mut early = stage.terminal("attach bot", Size::USUAL);
    early.wait_for_text("ready");
    agent.say(b"bad \xff\xfe\xc3( \xf0\x9f cut\r\n\x1b[31mred\x1b[0m \x1b]0;my title\x07\x1b[");
    stage.until_shown("bot", "cut");
    agent.say(b"1;32mgreen\x1b[m tail \xe6\xbc");
    stage.until_shown("bot", "tail");
    agent.say(b"\xa2 whole\r\n");
    stage.until_shown("bot", "漢");
    early.wait_for_text("漢 whole");
    let mut late = stage.terminal("attach bot", Size::USUAL);
    late.wait_for_text("漢 whole");
    for terminal in [&mut early, &mut late] {
        same_as_peek(&stage, "bot", terminal);
    }
    assert_eq!(stage.run("peek bot --json").json()["title"], "my title");
    agent.say(b"\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b[?25l\x1b[2;5Hfull");
    let all = TermMode::ALT_SCREEN
        | TermMode::MOUSE_REPORT_CLICK
        | TermMode::SGR_MOUSE
        | TermMode::BRACKETED_PASTE
        | TermMode::APP_CURSOR;
    let has_all =
        |t: &Terminal| t.mode().contains(all) && !t.mode().contains(TermMode::SHOW_CURSOR);
    early.wait_until("the modes", has_all);
    let mut later = stage.terminal("attach bot", Size::USUAL);
    later.wait_until("the modes", has_all);
    later.wait_for("the screen", |s| s[0].is_empty() && s[1] == "    full");
    agent.say(b"\x1b[?1049l\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b[?25h");
    for terminal in [&mut early, &mut later] {
        terminal.wait_until("the end of the modes", |t| !t.mode().intersects(all));
        terminal.wait_for_text("漢 whole");
        same_as_peek(&stage, "bot", terminal);
    }
}

#[test]
fn a_query_of_the_program_is_answered_once() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_shown("bot", "ready");
    let answers = || {
        let heard = agent.heard_text();
        let count = |end: char| heard.matches(end).count();
        (count('R'), count('c'), count('n'))
    };
    let ask = "\x1b[6n\x1b[c\x1b[5n";
    agent.say(ask);
    until_so("three answers", || answers() == (1, 1, 1));
    assert!(
        agent.heard_text().contains("\x1b[2;1R"),
        "{:?}",
        agent.heard_text()
    );
    let mut watchers = [0, 1].map(|_| stage.terminal("attach bot", Size::USUAL));
    for watcher in &mut watchers {
        watcher.wait_for_text("ready");
    }
    agent.say(format!("{ask}asked"));
    for watcher in &mut watchers {
        watcher.wait_for_text("asked");
        // Replies of its terminal arrive before this key.
        watcher.type_keys("z");
    }
    until_so("all keys", || agent.heard_text().matches('z').count() == 2);
    assert_eq!(answers(), (2, 2, 2), "{:?}", agent.heard_text());
    let answered = agent.heard();
    let id = stage.send("bot x");
    // Replies are not a draft, but the two keys are.
    stage.until_rule(&id, "draft");
    watchers[0].type_keys("\r");
    stage.until_receipt(&id, "offered");
    assert!(agent.heard().starts_with(&answered));
}

#[test]
fn a_replay_only_draws() {
    let stage = Stage::new();
    let acts = [
        r"\033]52;c;Zm9v\007",
        r"\033]0;theirs\007",
        r"\033]99;;hello\033\\",
        r"\033]5522;type=write;x\033\\",
        r"\033[5i\033[4i",
        r"\033[8;5;5t",
        r"\033[?1000h\033[?2004h",
    ];
    stage.script("bot", &format!(r"printf '{}\033[1mdrawn'", acts.concat()));
    until_so("its end", || stage.status("bot")["activity"] == "exited");
    let mut terminal = stage.terminal("replay bot --speed 1000", Size::USUAL);
    terminal.wait_for_text("drawn");
    assert!(terminal.wait_exit().success());
    let output = String::from_utf8_lossy(terminal.output()).into_owned();
    assert!(output.contains("\x1b[1mdrawn"), "{output:?}");
    for left in [
        "Zm9v", "theirs", "hello", "5522", "\x1b[5i", "5;5t", "1000h",
    ] {
        assert!(!output.contains(left), "{left:?} in {output:?}");
    }
    assert!(terminal.title().is_empty());
    // An asciicast has the raw output.
    let cast = stage.run("replay bot").ok();
    assert!(cast.contains("]52;c;Zm9v"), "{cast}");
}

#[test]
fn the_program_sees_the_terminals_size() {
    let stage = Stage::new();
    let script = "while read x; do stty size; done";
    let mut terminal = stage.terminal(&format!("run --name bot -- sh -c '{script}'"), SMALL);
    terminal.wait_until("the session", |_| stage.run("status bot").code == 0);
    terminal.type_keys("\r");
    terminal.wait_for_text("15 60");
    terminal.resize(LARGE);
    until_so("the new size", || {
        terminal.type_keys("\r");
        terminal.wait_until("anything", |_| true);
        terminal.screen().iter().any(|line| line == "30 100")
    });
    let peeked = stage.run("peek bot --json").json();
    assert_eq!(
        (&peeked["cols"], &peeked["rows"]),
        (&100.into(), &30.into())
    );
}
