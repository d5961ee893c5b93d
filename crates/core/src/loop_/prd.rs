//! Parser for prd.json, the stories of a loop. The agent edits the file, and the loop never writes
//! it. Errors name their position; unknown fields are ignored.

use crate::text;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object with userStories")]
pub struct Prd {
    #[serde(default)]
    pub project: Option<String>,
    #[serde(default)]
    pub branch_name: Option<String>,
    #[serde(rename = "userStories")]
    pub stories: Vec<Story>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a story")]
pub struct Story {
    #[serde(deserialize_with = "label")]
    pub id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub title: String,
    #[serde(
        rename = "acceptanceCriteria",
        default,
        deserialize_with = "or_default"
    )]
    pub criteria: Vec<Criterion>,
    /// The lowest number comes first; a story without one comes last.
    #[serde(default)]
    pub priority: Option<f64>,
    #[serde(default, deserialize_with = "or_default")]
    pub passes: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub notes: String,
}

/// A condition for a story to pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Criterion {
    pub description: String,
    pub passes: bool,
}

/// Why a prd.json is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct PrdError {
    pub line: usize,
    pub column: usize,
    pub why: String,
}

impl Prd {
    pub fn parse(json: &str) -> Result<Self, PrdError> {
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        serde_json::from_str(json).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let why = error.to_string();
            let place = format!(" at line {line} column {column}");
            let why = why.strip_suffix(&place).unwrap_or(&why);
            PrdError {
                line,
                column,
                why: text::one_line(why, 200),
            }
        })
    }

    /// Return the current story: the first of those with the lowest priority number that do not
    /// pass.
    pub fn current(&self) -> Option<&Story> {
        let rank = |story: &Story| story.priority.unwrap_or(f64::INFINITY);
        let open = self.stories.iter().filter(|story| !story.passes);
        // `min_by` returns the first of equals.
        open.min_by(|a, b| rank(a).total_cmp(&rank(b)))
    }

    /// Return the number of stories that pass.
    pub fn done(&self) -> usize {
        self.stories.iter().filter(|story| story.passes).count()
    }

    pub fn total(&self) -> usize {
        self.stories.len()
    }

    /// Whether all stories pass. A list without stories is not complete.
    pub fn is_complete(&self) -> bool {
        !self.stories.is_empty() && self.current().is_none()
    }
}

/// Read null as a missing value.
fn or_default<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// Parse an id, which some files have as a number.
fn label<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    struct Label;
    impl Visitor<'_> for Label {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an id")
        }

        fn visit_str<E>(self, id: &str) -> Result<String, E> {
            Ok(id.to_owned())
        }

        fn visit_u64<E>(self, id: u64) -> Result<String, E> {
            Ok(id.to_string())
        }
    }
    let id = input.deserialize_any(Label)?;
    if text::one_line(&id, 1).is_empty() {
        return Err(D::Error::custom("a story needs an id"));
    }
    Ok(id)
}

impl<'de> Deserialize<'de> for Criterion {
    /// Parse an object, or the plain description of older files.
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            description: String,
            #[serde(default, deserialize_with = "or_default")]
            passes: bool,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Criterion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an acceptance criterion")
            }

            fn visit_str<E>(self, description: &str) -> Result<Criterion, E> {
                Ok(Criterion {
                    description: description.to_owned(),
                    passes: false,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Criterion, A::Error> {
                let object = Object::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Criterion {
                    description: object.description,
                    passes: object.passes,
                })
            }
        }
        input.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{
  "schemaVersion": "2.1",
  "project": "MyApp",
  "branchName": "ralph/priority",
  "autoMerge": false,
  "userStories": [
    {"id": "US-002", "title": "Show it", "description": "As a user …",
     "acceptanceCriteria": [{"description": "a badge", "passes": true, "by": 1}, "typecheck passes"],
     "priority": 2, "passes": false, "notes": "x"},
    {"id": "US-001", "title": "Keep it", "acceptanceCriteria": [], "priority": 1, "passes": true, "notes": ""},
    {"id": 3, "priority": null, "passes": null, "notes": null, "acceptanceCriteria": null}
  ]
}"#;

    fn stories(list: &str) -> Prd {
        Prd::parse(&format!(r#"{{"userStories": [{list}]}}"#)).unwrap()
    }

    #[test]
    fn a_file_of_the_original_is_parsed() {
        let prd = Prd::parse(WHOLE).unwrap();
        assert_eq!(prd.project.as_deref(), Some("MyApp"));
        assert_eq!(prd.branch_name.as_deref(), Some("ralph/priority"));
        assert_eq!((prd.done(), prd.total()), (1, 3));
        let current = prd.current().unwrap();
        assert_eq!(
            (current.id.as_str(), current.title.as_str()),
            ("US-002", "Show it")
        );
        let met: Vec<_> = current.criteria.iter().map(|c| c.passes).collect();
        assert_eq!(met, [true, false]);
        assert_eq!(current.criteria[1].description, "typecheck passes");
        assert_eq!(prd.stories[2].id, "3");
        assert!(!prd.is_complete());
        let marked = format!("\u{feff}{WHOLE}");
        assert_eq!(Prd::parse(&marked).as_ref(), Ok(&prd));
    }

    #[test]
    fn the_open_story_with_the_lowest_number_is_current() {
        let check = |list: &str, want: Option<&str>| {
            let prd = stories(list);
            assert_eq!(prd.current().map(|story| story.id.as_str()), want, "{list}");
        };
        check("", None);
        check(
            r#"{"id":"a","priority":2},{"id":"b","priority":1}"#,
            Some("b"),
        );
        check(
            r#"{"id":"a","priority":2},{"id":"b","priority":1,"passes":true}"#,
            Some("a"),
        );
        check(
            r#"{"id":"a","priority":1},{"id":"b","priority":1}"#,
            Some("a"),
        );
        check(r#"{"id":"a"},{"id":"b","priority":1e9}"#, Some("b"));
        check(
            r#"{"id":"a","priority":0.5},{"id":"b","priority":-1}"#,
            Some("b"),
        );
        check(r#"{"id":"a","passes":true}"#, None);
    }

    #[test]
    fn a_list_without_stories_is_not_complete() {
        let check = |list: &str, want: bool| {
            assert_eq!(stories(list).is_complete(), want, "{list}");
        };
        check("", false);
        check(r#"{"id":"a","passes":true}"#, true);
        check(r#"{"id":"a","passes":true},{"id":"b"}"#, false);
        // The story's own field decides, not its criteria.
        check(
            r#"{"id":"a","passes":true,"acceptanceCriteria":["x"]}"#,
            true,
        );
    }

    #[test]
    fn an_error_names_its_position() {
        let check = |json: &str, line: usize, column: usize, why: &str| {
            let error = Prd::parse(json).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{error}");
            assert!(error.why.contains(why), "{error}");
            assert!(!error.why.contains("at line"), "{error}");
        };
        check("", 1, 0, "EOF");
        check("{}", 1, 2, "missing field `userStories`");
        check("[]", 1, 2, "expected an object with userStories");
        check("7", 1, 1, "expected an object with userStories");
        check("{\"userStories\": [7]}", 1, 18, "expected a story");
        check("{\"userStories\": [\n  {,}]}", 2, 4, "key must be a string");
        check("{\"userStories\": 5}", 1, 17, "expected a sequence");
        check("{\"userStories\": [{}]}", 1, 19, "missing field `id`");
        check(
            "{\"userStories\": [{\"id\":\" \"}]}",
            1,
            27,
            "a story needs an id",
        );
        check(
            "{\"userStories\": [\n{\"id\":\"a\",\n\"passes\":\"yes\"}]}",
            3,
            14,
            "expected a boolean",
        );
        check(
            "{\"userStories\": [{\"id\":\"a\",\"acceptanceCriteria\":[7]}]}",
            1,
            50,
            "an acceptance criterion",
        );
        check("{\"userStories\": []} x", 1, 21, "trailing");
        let deep = "[".repeat(100_000);
        let deep = Prd::parse(&format!("{{\"userStories\": [{{\"x\": {deep}"));
        assert!(deep.unwrap_err().why.contains("EOF"));
        let hostile = Prd::parse("{\"userStories\": [{\"id\":\"a\",\"id\":\"\\u001b[2J\"}]}");
        assert!(!hostile.unwrap_err().to_string().contains('\u{1b}'));
    }

    proptest::proptest! {
        #[test]
        fn no_text_causes_a_panic(json in "[\\[\\]{}\",:0-9a-z\\n]{0,60}") {
            if let Ok(prd) = Prd::parse(&json) {
                proptest::prop_assert!(prd.done() <= prd.total());
            }
        }
    }
}
