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
    /// The program's flags that take the next word as their value.
    pub values: Vec<String>,
    /// The program's flags that take all words up to the next flag.
    pub lists: Vec<String>,
    /// Whether positional arguments are kept. Otherwise they are a prompt or a subcommand, and are
    /// dropped.
    pub keeps_words: bool,
}

impl Resume {
    /// Return the arguments that resume `conversation`, including the flags that a person gave the
    /// program, or `None` if the conversation's id is invalid.
    pub fn args(&self, said: &[String], conversation: &str) -> Option<Vec<String>> {
        if !is_plain(conversation) {
            return None;
        }
        let ours = self.args.iter();
        let mut args: Vec<String> = ours
            .map(|arg| arg.replace(CONVERSATION_PLACEHOLDER, conversation))
            .collect();
        let mut words = said.iter().take_while(|word| *word != "--").peekable();
        while let Some(word) = words.next() {
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
            if (is_flag && !self.drop.contains(&name)) || (!is_flag && self.keeps_words) {
                args.extend(kept);
            }
        }
        Some(args)
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
            .chain(&self.values)
            .chain(&self.lists)
            .all(is_flag)
        {
            Some("'drop', 'values' and 'lists' may contain only flags, such as --resume")
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
            values: words("--model -m --session-id --debug"),
            lists: words("--add-dir"),
            keeps_words: false,
        };
        let check = |said: &str, want: &str| {
            let args = resume.args(&words(said), "abc-1").unwrap();
            assert_eq!(args, words(want), "{said}");
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
            drop: words("--prompt"),
            values: words("--prompt"),
            keeps_words: true,
            ..Resume::default()
        };
        let args = resume.args(&words("some/dir --prompt hello"), "ses_1");
        assert_eq!(args, Some(words("-s ses_1 some/dir")));
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
