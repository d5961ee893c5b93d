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
    #[error("ph knows no keys for this dialog")]
    NoOptions,
    #[error("no option means '{0}'")]
    NoMeaning(&'static str),
    #[error("several options mean '{0}'; choose one by its key")]
    SeveralMeanings(&'static str),
    #[error("the text of this question is incomplete, so it is allowed only in its terminal")]
    Partial,
    #[error("no option is called '{0}'")]
    NoSuchOption(String),
    #[error("no option denies, so no text can be sent")]
    NoDenial,
}

impl AskOpened {
    /// Return the option that a word names: `allow`, `always`, `deny`, a key or a label. A text of
    /// several words denies; a mistyped word must not.
    pub fn choose(&self, word: &str) -> Result<Choice<'_>, ChoiceError> {
        let word = word.trim();
        if self.options.is_empty() {
            return Err(ChoiceError::NoOptions);
        }
        let is_named =
            |option: &&AskOption| option.key == word || option.label.eq_ignore_ascii_case(word);
        let option = match word.to_ascii_lowercase().as_str() {
            "allow" => self.only(Meaning::Allow)?,
            "always" => self.only(Meaning::AllowAlways)?,
            "deny" => self.only(Meaning::Deny)?,
            _ => match self.options.iter().find(is_named) {
                Some(option) => option,
                None if !word.contains(char::is_whitespace) => {
                    return Err(ChoiceError::NoSuchOption(word.to_owned()));
                }
                None => {
                    let deny = self.option(Meaning::Deny).ok_or(ChoiceError::NoDenial)?;
                    return Ok(Choice::DenyWith(deny, word.to_owned()));
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
