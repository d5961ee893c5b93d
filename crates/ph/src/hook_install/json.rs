//! Edits JSON text: finds the members of objects and the elements of lists, and adds or removes one
//! without changing any other byte.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Serializer, Value};
use std::ops::Range;

type Span = Range<usize>;

/// An element of a list or a member of an object: its name, if any, its whole span, and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) key: Option<String>,
    span: Span,
    pub(super) value: Span,
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut all = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    all.push(member);
                }
                Ok(Members(all))
            }
        }
        from.deserialize_map(All)
    }
}

/// Return the members of the object at `span`.
pub(super) fn object(text: &str, span: &Span) -> Option<Vec<Item>> {
    let Members(all) = serde_json::from_str(&text[span.clone()]).ok()?;
    let all = all.into_iter().map(|(key, raw)| (Some(key), raw));
    Some(items(text, span, all))
}

/// Return the elements of the list at `span`.
pub(super) fn list(text: &str, span: &Span) -> Option<Vec<Item>> {
    let all: Vec<&RawValue> = serde_json::from_str(&text[span.clone()]).ok()?;
    Some(items(text, span, all.into_iter().map(|raw| (None, raw))))
}

fn items<'a>(
    text: &'a str,
    span: &Span,
    all: impl Iterator<Item = (Option<String>, &'a RawValue)>,
) -> Vec<Item> {
    let mut before = span.start + text[span.clone()].find(['{', '[']).unwrap_or(0) + 1;
    let item = |(key, raw): (Option<String>, &'a RawValue)| {
        // The values borrow from `text`, so their offsets can be computed.
        let start = raw.get().as_ptr().addr() - text.as_ptr().addr();
        let value = start..start + raw.get().len();
        let is_between = |c: char| c.is_ascii_whitespace() || c == ',';
        let gap = text[before..value.start].find(|c| !is_between(c));
        let begin = before + gap.unwrap_or(value.start - before);
        before = value.end;
        Item {
            key,
            span: begin..value.end,
            value,
        }
    };
    all.map(item).collect()
}

/// The indentation and line ends of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layout {
    OneLine,
    Lines { indent: String, end: &'static str },
}

impl Layout {
    pub(super) fn of(text: &str) -> Self {
        let text = text.trim();
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let Some((_, rest)) = text.split_once('\n') else {
            return match text {
                "" | "{}" => Self::usual(),
                _ => Self::OneLine,
            };
        };
        let blank = rest.find(|c| c != ' ' && c != '\t').unwrap_or(0);
        let indent = match &rest[..blank] {
            "" => "  ",
            indent => indent,
        };
        let indent = indent.to_owned();
        Self::Lines { indent, end }
    }

    pub(super) fn usual() -> Self {
        Self::Lines {
            indent: "  ".to_owned(),
            end: "\n",
        }
    }

    /// Return a line end and the indentation of this depth.
    fn line(&self, depth: usize) -> String {
        match self {
            Self::OneLine => String::new(),
            Self::Lines { indent, end } => format!("{end}{}", indent.repeat(depth)),
        }
    }

    /// Format a value whose first line is at this depth.
    fn value(&self, value: &Value, depth: usize) -> String {
        let Self::Lines { indent, .. } = self else {
            return value.to_string();
        };
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
        let mut to = Serializer::with_formatter(&mut bytes, formatter);
        if serde::Serialize::serialize(value, &mut to).is_err() {
            return value.to_string();
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.replace('\n', &self.line(depth))
    }
}

/// Append an item to the list or object at `span`, whose items are at `depth`.
pub(super) fn add(
    text: &str,
    span: &Span,
    items: &[Item],
    (key, value): (Option<&str>, &Value),
    (layout, depth): (&Layout, usize),
) -> String {
    let key = match (key, layout) {
        (None, _) => String::new(),
        (Some(key), Layout::OneLine) => format!("{}:", Value::from(key)),
        (Some(key), Layout::Lines { .. }) => format!("{}: ", Value::from(key)),
    };
    let new = format!("{key}{}", layout.value(value, depth));
    match items.last() {
        Some(last) => {
            let at = last.span.end;
            let line = layout.line(depth);
            format!("{},{line}{new}{}", &text[..at], &text[at..])
        }
        None => {
            let (open, close) = (span.start, span.end - 1);
            let (first, last) = (layout.line(depth), layout.line(depth - 1));
            format!("{}{first}{new}{last}{}", &text[..=open], &text[close..])
        }
    }
}

/// Replace the value at `span`.
pub(super) fn replace(
    text: &str,
    span: &Span,
    value: &Value,
    (layout, depth): (&Layout, usize),
) -> String {
    let value = layout.value(value, depth);
    format!("{}{value}{}", &text[..span.start], &text[span.end..])
}

/// Remove one item from the list or object at `span`.
pub(super) fn remove(text: &str, span: &Span, items: &[Item], at: usize) -> String {
    let cut = match (at.checked_sub(1), items.get(at + 1)) {
        (Some(before), _) => items[before].span.end..items[at].span.end,
        (None, Some(next)) => items[at].span.start..next.span.start,
        // Keep nothing between the brackets.
        (None, None) => span.start + 1..span.end - 1,
    };
    format!("{}{}", &text[..cut.start], &text[cut.end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn adding_and_removing_an_item_keeps_every_other_byte() {
        let check = |text: &str, want: &str| {
            let span = 0..text.len();
            let items = object(text, &span).unwrap();
            let layout = Layout::of(text);
            let added = add(text, &span, &items, (Some("z"), &json!([1])), (&layout, 1));
            assert_eq!(added, want);
            let span = 0..added.len();
            let items = object(&added, &span).unwrap();
            assert_eq!(remove(&added, &span, &items, items.len() - 1), text);
        };
        check("{}", "{\n  \"z\": [\n    1\n  ]\n}");
        check(r#"{"a" : 1}"#, r#"{"a" : 1,"z":[1]}"#);
        check(
            "{\n\t\"a\": [ ],\n\n\t\"b\": {}\n}",
            "{\n\t\"a\": [ ],\n\n\t\"b\": {},\n\t\"z\": [\n\t\t1\n\t]\n}",
        );
        check(
            "{\r\n    \"a\": \"x,y\"\r\n}",
            "{\r\n    \"a\": \"x,y\",\r\n    \"z\": [\r\n        1\r\n    ]\r\n}",
        );
        let text = r#"{"a": [1, {"b": 2} , 3], "c": 4}"#;
        let items = object(text, &(0..text.len())).unwrap();
        let inner = items[0].value.clone();
        let elements = list(text, &inner).unwrap();
        assert_eq!(
            remove(text, &inner, &elements, 1),
            r#"{"a": [1 , 3], "c": 4}"#
        );
        assert_eq!(
            remove(text, &inner, &elements, 0),
            r#"{"a": [{"b": 2} , 3], "c": 4}"#
        );
        assert_eq!(remove(text, &(0..text.len()), &items, 0), r#"{"c": 4}"#);
    }
}
