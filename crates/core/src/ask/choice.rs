//! The words by which a person chooses an option.

use super::{AskOpened, AskOption, Meaning};

/// The meaning of a person's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice<'a> {
    Option(&'a AskOption),
    /// Deny, and tell the agent this.
    DenyWith(&'a AskOption, String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    #[error("the known keys do not fit this dialog, so it is answered by attaching")]
    NoOptions,
    #[error("no option means '{0}'")]
    NoMeaning(&'static str),
    #[error("several options mean '{0}'; choose one by its key")]
    SeveralMeanings(&'static str),
    #[error("the agent has cut the text of this question, so it is allowed only by attaching")]
    Partial,
    #[error("no option has this key, and no option denies")]
    NoSuchKey,
}

impl AskOpened {
    /// Return the option that a word names: `allow`, `always`, `deny`, or a key. Any other text denies
    /// with that text.
    pub fn choose(&self, word: &str) -> Result<Choice<'_>, ChoiceError> {
        let word = word.trim();
        if self.options.is_empty() {
            return Err(ChoiceError::NoOptions);
        }
        let option = match word {
            "allow" => self.only(Meaning::Allow)?,
            "always" => self.only(Meaning::AllowAlways)?,
            "deny" => self.first(Meaning::Deny)?,
            key => match self.options.iter().find(|option| option.key == key) {
                Some(option) => option,
                None if is_key(key) => return Err(ChoiceError::NoSuchKey),
                None => {
                    let deny = self.option(Meaning::Deny).ok_or(ChoiceError::NoSuchKey)?;
                    return Ok(Choice::DenyWith(deny, key.to_owned()));
                }
            },
        };
        let may_allow = option.meaning != Meaning::Deny;
        match self.is_partial && may_allow {
            true => Err(ChoiceError::Partial),
            false => Ok(Choice::Option(option)),
        }
    }

    fn first(&self, meaning: Meaning) -> Result<&AskOption, ChoiceError> {
        self.option(meaning)
            .ok_or(ChoiceError::NoMeaning(meaning.word()))
    }

    /// Return the only option with a meaning: a word must not choose between two permissions.
    fn only(&self, meaning: Meaning) -> Result<&AskOption, ChoiceError> {
        let option = self.first(meaning)?;
        let count = self.options.iter().filter(|o| o.meaning == meaning).count();
        match count {
            1 => Ok(option),
            _ => Err(ChoiceError::SeveralMeanings(meaning.word())),
        }
    }
}

/// Whether a word looks like a key and not like a sentence. A mistyped key must not become a text.
fn is_key(word: &str) -> bool {
    word.chars().count() <= 2
}
