//! Command lines that resume a conversation.

use serde::{Deserialize, Serialize};

/// Placeholder for the conversation's id in the arguments.
const CONVERSATION_PLACEHOLDER: &str = "{conversation}";
/// Maximum length of a conversation id, in bytes.
const MAX_ID_BYTES: usize = 128;

/// How a program is told to resume a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resume {
    /// Arguments after the command; `{conversation}` is replaced by the id.
    pub args: Vec<String>,
    /// The program's own flags that choose a conversation. They are dropped.
    pub drop: Vec<String>,
    /// The program's flags that take a prompt. They are dropped.
    pub prompts: Vec<String>,
    /// The program's flags that take the next word as their value.
    pub values: Vec<String>,
    /// The program's flags that take all words up to the next flag.
    pub lists: Vec<String>,
    /// Whether positional arguments are kept. Otherwise they are a prompt or a subcommand, and are
    /// dropped.
    pub keeps_words: bool,
}

/// Arguments that resume a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResumeArgs {
    pub args: Vec<String>,
    /// The person's dropped words that choose a conversation, without their values.
    pub dropped_choices: Vec<String>,
    /// Whether a prompt was dropped.
    pub drops_prompt: bool,
}

impl Resume {
    /// Return the arguments that resume `conversation`, including the flags that a person gave the
    /// program, or `None` if the conversation's id is invalid.
    pub fn args(&self, said: &[String], conversation: &str) -> Option<ResumeArgs> {
        if !is_plain(conversation) {
            return None;
        }
        let mut resumed = ResumeArgs {
            args: self
                .args
                .iter()
                .map(|arg| arg.replace(CONVERSATION_PLACEHOLDER, conversation))
                .collect(),
            ..ResumeArgs::default()
        };
        let mut words = said.iter().peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                resumed.drops_prompt |= words.next().is_some();
                break;
            }
            let name = word.split('=').next().unwrap_or_default().to_owned();
            let is_flag = word.starts_with('-');
            let is_bare = *word == name;
            let most = match (self.values.contains(&name), self.lists.contains(&name)) {
                _ if !is_bare => 0,
                (true, _) => 1,
                (false, true) => usize::MAX,
                (false, false) => 0,
            };
            let mut kept = vec![word.clone()];
            while kept.len() <= most
                && let Some(value) = words.next_if(|next| !next.starts_with('-'))
            {
                kept.push(value.clone());
            }
            if self.prompts.contains(&name) {
                resumed.drops_prompt = true;
            } else if self.drop.contains(&name) {
                resumed.dropped_choices.push(name);
            } else if is_flag || self.keeps_words {
                resumed.args.extend(kept);
            } else if self.args.contains(word) {
                // The program's own subcommand, such as Codex's 'resume', and the id after it.
                words.next_if(|next| !next.starts_with('-'));
                resumed.dropped_choices.push(name);
            } else {
                resumed.drops_prompt = true;
            }
        }
        Some(resumed)
    }

    /// Return why this section is invalid, if it is.
    pub(in crate::harness) fn fault(&self) -> Option<&'static str> {
        let has_id = self
            .args
            .iter()
            .any(|arg| arg.contains(CONVERSATION_PLACEHOLDER));
        let is_flag = |word: &String| word.starts_with('-') && !word.contains('=');
        if !has_id {
            Some("'args' must contain {conversation}")
        } else if !self
            .drop
            .iter()
            .chain(&self.prompts)
            .chain(&self.values)
            .chain(&self.lists)
            .all(is_flag)
        {
            Some("'drop', 'prompts', 'values' and 'lists' may contain only flags, such as --resume")
        } else {
            None
        }
    }
}

/// Whether an untrusted id is safe as a command-line argument.
fn is_plain(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_ID_BYTES).contains(&id.len()) && !id.starts_with('-') && id.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_prompt_and_the_choice_of_a_conversation_are_dropped() {
        let resume = Resume {
            args: words("--resume {conversation}"),
            drop: words("--resume -r --continue -c --session-id"),
            prompts: words("-i"),
            values: words("--model -m --session-id --debug"),
            lists: words("--add-dir"),
            keeps_words: false,
        };
        let check = |said: &str, want: &str| {
            let resumed = resume.args(&words(said), "abc-1").unwrap();
            assert_eq!(resumed.args, words(want), "{said}");
        };
        check("", "--resume abc-1");
        check("--model opus", "--resume abc-1 --model opus");
        check("-m opus hello", "--resume abc-1 -m opus");
        check("--model=opus hello", "--resume abc-1 --model=opus");
        check("--continue --verbose", "--resume abc-1 --verbose");
        check("-r old --verbose", "--resume abc-1 --verbose");
        check("--resume=old", "--resume abc-1");
        check("--session-id x --verbose", "--resume abc-1 --verbose");
        check("--verbose -- --model x", "--resume abc-1 --verbose");
        check("fix --verbose it", "--resume abc-1 --verbose");
        check("--add-dir a b -m x", "--resume abc-1 --add-dir a b -m x");
        check("--add-dir=a b", "--resume abc-1 --add-dir=a");
        check("--debug -m x hello", "--resume abc-1 --debug -m x");
        check("--session-id --verbose", "--resume abc-1 --verbose");
    }

    #[test]
    fn positional_arguments_can_be_kept() {
        let resume = Resume {
            args: words("-s {conversation}"),
            prompts: words("--prompt"),
            values: words("--prompt"),
            keeps_words: true,
            ..Resume::default()
        };
        let resumed = resume.args(&words("some/dir --prompt hello"), "ses_1");
        let resumed = resumed.expect("a safe id");
        assert_eq!(resumed.args, words("-s ses_1 some/dir"));
        assert!(resumed.drops_prompt);
    }

    #[test]
    fn a_dropped_prompt_and_a_dropped_choice_are_distinguished() {
        let claude = Resume {
            args: words("--resume {conversation}"),
            drop: words("--resume -r --continue"),
            prompts: words("-i"),
            values: words("--resume -r -i --model"),
            ..Resume::default()
        };
        let codex = Resume {
            args: words("resume {conversation}"),
            drop: words("--last"),
            ..Resume::default()
        };
        let check = |resume: &Resume, said: &str, choices: &str, drops_prompt: bool| {
            let resumed = resume.args(&words(said), "abc-1").unwrap();
            assert_eq!(resumed.dropped_choices, words(choices), "{said}");
            assert_eq!(resumed.drops_prompt, drops_prompt, "{said}");
        };
        check(&claude, "", "", false);
        check(&claude, "--model opus", "", false);
        check(&claude, "--model opus hello", "", true);
        check(&claude, "--continue", "--continue", false);
        check(&claude, "--resume old", "--resume", false);
        check(&claude, "--resume=old", "--resume", false);
        check(&claude, "-r old hello", "-r", true);
        check(&claude, "-i hello", "", true);
        check(&claude, "-- hello", "", true);
        check(&claude, "--", "", false);
        check(&codex, "resume --last", "resume --last", false);
        check(&codex, "resume abc-0", "resume", false);
        check(&codex, "resume abc-0 hello", "resume", true);
        check(&codex, "hello", "", true);
    }

    #[test]
    fn only_a_safe_id_is_resumed() {
        let resume = Resume {
            args: words("-s {conversation}"),
            ..Resume::default()
        };
        assert!(resume.args(&[], "ses_1").is_some());
        for bad in ["", "--help", "a b", "a/b", "$(x)", &"x".repeat(129)] {
            assert_eq!(resume.args(&[], bad), None, "{bad}");
        }
    }
}
