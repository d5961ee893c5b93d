//! Decides the model's reply by keywords in the user's newest text.
//!
//! Pure: a plan names delays and content, and neither waits nor sends.

use super::request::{Author, ModelRequest};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Duration;

/// Delay between the words of a slow reply.
pub(super) const WORD_DELAY: Duration = Duration::from_millis(250);
/// Limit for every delay.
pub(super) const MAX_DELAY_SECONDS: f64 = 600.0;
const MAX_LINES: usize = 10_000;
/// Maximum length of the part of a tool's result that is repeated.
const MAX_RESULT_CHARS: usize = 300;

/// Codex's tool that runs code.
const CODE_TOOL: &str = "exec";
const TITLE: &str = "Lab title";
/// Prefix of the lab's unique names.
const NAME_PREFIX: &str = "lab-";
const DEFAULT_TEXT: &str = "ACK from the lab's model.";

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// Delay before the first byte.
    pub(super) hang: Duration,
    /// File to wait for before that delay.
    pub(super) until: Option<PathBuf>,
    /// Duration for which words are sent before the text.
    pub(super) slow: Duration,
    /// HTTP error in place of a reply.
    pub(super) http: Option<u16>,
    pub(super) text: String,
    pub(super) call: Option<Call>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    /// An object; for a tool that runs code, a string.
    pub(super) arguments: Value,
}

impl Call {
    /// Return the call as code if Codex lets its model call tools only from code.
    fn through_code(self, tools: &[String]) -> Self {
        let has = |name: &str| tools.iter().any(|tool| tool == name);
        if has(&self.tool) || !has(CODE_TOOL) {
            return self;
        }
        let code = format!("text(await tools.{}({}))", self.tool, self.arguments);
        Self {
            tool: CODE_TOOL.to_owned(),
            arguments: json!(code),
        }
    }
}

impl Plan {
    fn with_text(text: impl Into<String>) -> Self {
        Self {
            hang: Duration::ZERO,
            until: None,
            slow: Duration::ZERO,
            http: None,
            text: text.into(),
            call: None,
        }
    }

    /// Return the pieces of the text, each with the delay before it.
    pub(super) fn words(&self) -> Vec<(Duration, String)> {
        let mut words = Vec::new();
        let mut spent = Duration::ZERO;
        while spent < self.slow {
            words.push((WORD_DELAY, format!("word{} ", words.len())));
            spent += WORD_DELAY;
        }
        words.push((WORD_DELAY, self.text.clone()));
        words[0].0 = Duration::ZERO;
        words
    }

    /// Return the whole text at once.
    pub(super) fn whole(&self) -> String {
        self.words().into_iter().map(|(_, word)| word).collect()
    }
}

/// Return the plan for a request. An invalid keyword is reported in the reply, where a test sees
/// it.
pub(super) fn plan(asked: &ModelRequest) -> Plan {
    if !asked.fields.is_empty() {
        return Plan::with_text(form(&asked.fields, &title(asked)));
    }
    if !asked.is_turn() {
        return Plan::with_text(title(asked));
    }
    let prompt = asked.prompt().unwrap_or_default();
    let mut plan = obey(&prompt, &asked.tools).unwrap_or_else(|wrong| {
        Plan::with_text(format!("The lab's model does not understand {wrong}"))
    });
    if let Some(result) = asked.result()
        && plan.text == DEFAULT_TEXT
        && plan.call.is_none()
    {
        let result: String = result.chars().take(MAX_RESULT_CHARS).collect();
        plan.text = format!("TOOL RESULT: {result}");
    }
    plan
}

fn obey(prompt: &str, tools: &[String]) -> Result<Plan, String> {
    // The rest of the line belongs to the tool: a subagent's prompt may have keywords of its own.
    if let Some(call) = rest_of_line(prompt, "tool=") {
        let own = prompt.split("tool=").next().unwrap_or_default();
        let mut plan = obey(own, tools)?;
        let call = tool(call).ok_or(format!("tool={call}"))?;
        plan.call = Some(call.through_code(tools));
        return Ok(plan);
    }
    let mut plan = Plan::with_text(DEFAULT_TEXT);
    if let Some(seconds) = keyword(prompt, "hang=") {
        plan.hang = time(seconds).ok_or(format!("hang={seconds}"))?;
    }
    plan.until = keyword(prompt, "until=").map(PathBuf::from);
    if let Some(seconds) = keyword(prompt, "slow=") {
        plan.slow = time(seconds).ok_or(format!("slow={seconds}"))?;
    }
    if let Some(code) = keyword(prompt, "http=") {
        let status = code.parse().ok().filter(|code| (400..600).contains(code));
        plan.http = Some(status.ok_or(format!("http={code}"))?);
    }
    if let Some(count) = keyword(prompt, "lines=") {
        let lines = count.parse().ok().filter(|lines| *lines <= MAX_LINES);
        let lines = lines.ok_or(format!("lines={count}"))?;
        let lines: Vec<String> = (0..lines)
            .map(|i| format!("line {i} of the reply"))
            .collect();
        plan.text = lines.join("\n");
    }
    if let Some(text) = rest_of_line(prompt, "reply=") {
        text.clone_into(&mut plan.text);
    }
    if let Some(path) = keyword(prompt, "Read ").filter(|path| path.starts_with('/')) {
        plan.call = Some(reading(path, tools).ok_or(format!("Read {path}: no tool for it"))?);
    }
    for (key, run) in [("bash=", Run::Plainly), ("ask=", Run::Asking)] {
        if let Some(command) = rest_of_line(prompt, key) {
            let call = shell(command, run, tools);
            plan.call = Some(call.ok_or(format!("{key}: no shell among the tools"))?);
        }
    }
    Ok(plan)
}

/// Return the word after a key that itself begins a word.
fn keyword<'a>(prompt: &'a str, key: &str) -> Option<&'a str> {
    rest_of_line(prompt, key).map(|rest| rest.split_whitespace().next().unwrap_or_default())
}

fn rest_of_line<'a>(prompt: &'a str, key: &str) -> Option<&'a str> {
    let begins = |at: &usize| {
        prompt[..*at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace)
    };
    let at = prompt.match_indices(key).map(|(at, _)| at).find(begins)?;
    prompt[at + key.len()..]
        .lines()
        .next()
        .map(str::trim)
        .or(Some(""))
}

fn time(seconds: &str) -> Option<Duration> {
    let seconds: f64 = seconds.parse().ok()?;
    (0.0..=MAX_DELAY_SECONDS)
        .contains(&seconds)
        .then(|| Duration::from_secs_f64(seconds))
}

/// Parse `NAME:{json}`; the name may contain colons.
fn tool(call: &str) -> Option<Call> {
    let (tool, arguments) = call.split_once(":{")?;
    let arguments = serde_json::from_str(&format!("{{{arguments}")).ok()?;
    Some(Call {
        tool: tool.to_owned(),
        arguments,
    })
}

/// Whether a command runs in the sandbox. An agent without a sandbox always asks.
#[derive(Debug, Clone, Copy)]
enum Run {
    /// Run in the sandbox.
    Plainly,
    /// Run outside, for which the agent asks its user.
    Asking,
}

/// Return the call of an agent's shell tool; each agent has its own name and arguments for it.
fn shell(command: &str, run: Run, tools: &[String]) -> Option<Call> {
    let described = || json!({"command": command, "description": "lab command"});
    let sandboxed = match run {
        Run::Plainly => json!({"cmd": command}),
        Run::Asking => json!({
            "cmd": command, "sandbox_permissions": "require_escalated",
            "justification": "the lab wants it",
        }),
    };
    let shells = [
        ("Bash", described()),
        ("exec_command", sandboxed),
        ("shell_command", json!({"command": command})),
        ("shell", json!({"command": ["bash", "-lc", command]})),
        ("bash", described()),
        ("run_shell_command", described()),
    ];
    let has = |name: &str| tools.iter().any(|tool| tool == name);
    let known = shells
        .into_iter()
        .find(|(name, _)| has(name) || (*name == "exec_command" && has(CODE_TOOL)));
    known.map(|(name, arguments)| {
        let tool = name.to_owned();
        Call { tool, arguments }.through_code(tools)
    })
}

/// Return the call that reads a file. Codex has no tool for that, and uses its shell.
fn reading(path: &str, tools: &[String]) -> Option<Call> {
    let readers = [
        ("Read", json!({"file_path": path})),
        ("read", json!({"filePath": path})),
        ("read_file", json!({"file_path": path})),
    ];
    let reader = readers
        .into_iter()
        .find(|(name, _)| tools.iter().any(|tool| tool == name));
    let call = reader.map(|(name, arguments)| Call {
        tool: name.to_owned(),
        arguments,
    });
    call.or_else(|| shell(&format!("cat '{path}'"), Run::Plainly, tools))
}

/// Return an id for the conversation: the first name of the lab in it, or else a hash of its text.
fn title(asked: &ModelRequest) -> String {
    let texts = asked.pieces.iter().filter(|p| p.voice == Author::User);
    let texts: Vec<&str> = texts.map(|piece| piece.text.as_str()).collect();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut words = texts.iter().flat_map(|text| text.split(|c| !is_part(c)));
    if let Some(name) = words.find(|word| word.starts_with(NAME_PREFIX)) {
        return format!("{TITLE} {name}");
    }
    let mut words = DefaultHasher::new();
    texts.hash(&mut words);
    format!("{TITLE} {:08x}", words.finish() >> 32)
}

/// Return a JSON reply with these fields, which is enough for an agent to continue.
fn form(fields: &[String], title: &str) -> String {
    let value = |field: &str| match field {
        "next_speaker" => json!("user"),
        "title" => json!(title),
        model if model.contains("model") => json!("flash"),
        score if score.contains("score") => json!(1),
        _ => json!("x"),
    };
    let filled = fields.iter().map(|field| (field.clone(), value(field)));
    Value::Object(filled.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::request::{Author, Dialect};
    use super::*;

    fn asked(prompt: &str, tools: &[&str]) -> ModelRequest {
        let mut asked = ModelRequest {
            dialect: Dialect::Codex,
            model: "m".to_owned(),
            stream: true,
            tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            pieces: Vec::new(),
            conversation: None,
            fields: Vec::new(),
        };
        asked.say(Author::User, prompt);
        asked
    }

    #[track_caller]
    fn check(prompt: &str, want: &Plan) {
        assert_eq!(&plan(&asked(prompt, &["Read", "Bash"])), want, "{prompt}");
    }

    #[test]
    fn keywords_choose_the_answer() {
        let plain = || Plan::with_text(DEFAULT_TEXT);
        check("hello", &plain());
        check("unslow=3 is no keyword", &plain());
        let hang = Duration::from_millis(1500);
        check("please hang=1.5 now", &Plan { hang, ..plain() });
        let slow = Duration::from_secs(2);
        check("slow=2", &Plan { slow, ..plain() });
        check(
            "x http=529",
            &Plan {
                http: Some(529),
                ..plain()
            },
        );
        check(
            "lines=2",
            &Plan::with_text("line 0 of the reply\nline 1 of the reply"),
        );
        check(
            "x reply=two words \nand more",
            &Plan::with_text("two words"),
        );
        check("reply=", &Plan::with_text(""));
        let call = Some(Call {
            tool: "Bash".to_owned(),
            arguments: json!({"command": "touch a b", "description": "lab command"}),
        });
        check("run bash=touch a b\nthen stop", &Plan { call, ..plain() });
        let call = Some(Call {
            tool: "mcp__ph::send".to_owned(),
            arguments: json!({"to": {"a": "b"}}),
        });
        check(
            r#"tool=mcp__ph::send:{"to":{"a":"b"}}"#,
            &Plan { call, ..plain() },
        );
    }

    #[test]
    fn a_plan_waits_for_a_file_and_reads_one() {
        let until = Some(PathBuf::from("/tmp/go"));
        let plain = || Plan::with_text(DEFAULT_TEXT);
        check("until=/tmp/go now", &Plan { until, ..plain() });
        check("Read the file", &plain());
        let header = "[ph message from: ann id: 00000001] Read /home/x/a.md";
        let call = |tool: &str, arguments| {
            Some(Call {
                tool: tool.to_owned(),
                arguments,
            })
        };
        let read = call("Read", json!({"file_path": "/home/x/a.md"}));
        check(
            header,
            &Plan {
                call: read,
                ..plain()
            },
        );
        let gemini = plan(&asked(header, &["run_shell_command", "read_file"])).call;
        assert_eq!(
            gemini,
            call("read_file", json!({"file_path": "/home/x/a.md"}))
        );
        let codex = plan(&asked(header, &["exec_command"])).call;
        assert_eq!(
            codex,
            call("exec_command", json!({"cmd": "cat '/home/x/a.md'"}))
        );
    }

    #[test]
    fn tools_are_called_from_code_if_the_agent_wants_code() {
        let code = |code: &str| {
            Some(Call {
                tool: "exec".to_owned(),
                arguments: json!(code),
            })
        };
        let tools = ["exec", "clock::sleep"];
        let shell = plan(&asked("bash=ls", &tools)).call;
        let want = r#"text(await tools.exec_command({"cmd":"ls"}))"#;
        assert_eq!(shell, code(want));
        let asking = plan(&asked("ask=ls", &tools))
            .call
            .map(|call| call.arguments);
        assert!(asking.is_some_and(|code| code.to_string().contains("require_escalated")));
        let other = plan(&asked(r#"tool=mcp__ph__send:{"to":"a"}"#, &tools)).call;
        assert_eq!(
            other,
            code(r#"text(await tools.mcp__ph__send({"to":"a"}))"#)
        );
        let direct = plan(&asked("tool=clock::sleep:{}", &tools)).call;
        assert_eq!(
            direct.map(|call| call.tool),
            Some("clock::sleep".to_owned())
        );
    }

    #[test]
    fn an_invalid_keyword_is_reported() {
        for nonsense in [
            "slow=-1", "slow=1e9", "hang=NaN", "http=200", "lines=x", "tool=x:{", "tool=x",
        ] {
            let text = format!("The lab's model does not understand {nonsense}");
            check(nonsense, &Plan::with_text(text));
        }
        let without = plan(&asked("bash=ls", &["Read"]));
        assert!(
            without.text.ends_with("no shell among the tools"),
            "{without:?}"
        );
    }

    #[test]
    fn keywords_outside_the_conversation_are_ignored() {
        let title = |prompt: &str| plan(&asked(prompt, &[])).text;
        assert_eq!(
            title("x \"lab-old-1\" lab-new-2 hang=60"),
            "Lab title lab-old-1"
        );
        let [one, same, other] = ["hang=60", "hang=60", "hang=61"].map(title);
        assert!(one.starts_with(TITLE) && one != TITLE, "{one}");
        assert_eq!(one, same);
        assert_ne!(one, other, "two conversations");
        let mut form = asked("hang=60", &["Bash"]);
        form.fields = vec!["next_speaker".to_owned(), "reasoning".to_owned()];
        assert_eq!(
            plan(&form),
            Plan::with_text(r#"{"next_speaker":"user","reasoning":"x"}"#)
        );
    }

    #[test]
    fn a_tools_result_is_repeated() {
        let mut asked = asked("bash=ls", &["Bash"]);
        asked.say(Author::Model, "");
        asked.say(Author::Tool, "a.txt");
        assert_eq!(plan(&asked), Plan::with_text("TOOL RESULT: a.txt"));
        asked.say(Author::User, "reply=later");
        assert_eq!(plan(&asked), Plan::with_text("later"));
    }

    #[test]
    fn a_slow_reply_is_sent_in_words() {
        let mut slow = Plan::with_text("end");
        slow.slow = WORD_DELAY * 2;
        let words = [
            (Duration::ZERO, "word0 "),
            (WORD_DELAY, "word1 "),
            (WORD_DELAY, "end"),
        ];
        assert_eq!(
            slow.words(),
            words.map(|(after, word)| (after, word.to_owned()))
        );
        assert_eq!(slow.whole(), "word0 word1 end");
        assert_eq!(
            Plan::with_text("x").words(),
            [(Duration::ZERO, "x".to_owned())]
        );
    }
}
