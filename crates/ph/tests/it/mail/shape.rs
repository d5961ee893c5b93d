//! The shapes that --json prints, key by key.

use crate::common::Ph;
use serde_json::Value;

/// The keys of the outermost object, or of the first in a list, in the order in which they stand.
pub(super) fn keys(json: &str) -> Vec<String> {
    struct Keys(Vec<String>);
    impl<'de> serde::Deserialize<'de> for Keys {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Reader;
            impl<'de> serde::de::Visitor<'de> for Reader {
                type Value = Keys;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<M: serde::de::MapAccess<'de>>(
                    self,
                    mut map: M,
                ) -> Result<Keys, M::Error> {
                    let mut keys = Vec::new();
                    while let Some((key, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                        keys.push(key);
                    }
                    Ok(Keys(keys))
                }
            }
            from.deserialize_map(Reader)
        }
    }
    if json.starts_with('[') {
        let all: Vec<Keys> = serde_json::from_str(json).expect("a list of objects");
        return all.into_iter().next().expect("one at least").0;
    }
    serde_json::from_str::<Keys>(json).expect("an object").0
}

#[test]
fn a_message_has_the_documented_shape() {
    const MESSAGE: [&str; 14] = [
        "id",
        "from",
        "from_evidence",
        "to",
        "subject",
        "body",
        "created_at",
        "read",
        "thread_id",
        "reply_to",
        "priority",
        "receipt",
        "reason",
        "receipts",
    ];
    let ph = Ph::new();
    let check = |line: &str, want: &[&str]| {
        let json = ph.run(line).ok();
        assert_eq!(json.matches('\n').count(), 1, "one line: {json}");
        assert_eq!(keys(&json), want, "{line}");
    };
    ph.send("bob hi");
    check("send bob hi --json", &MESSAGE);
    check("send alice,bob hi --json", &MESSAGE);
    check("message -n bob hi --json", &MESSAGE);
    check("reply {1} hi --json", &MESSAGE);
    check("inbox bob --json", &MESSAGE);
    check("inbox bob --all --json", &MESSAGE);
    check("thread {1} --json", &MESSAGE);
    check("search hi --json", &MESSAGE);
    check("read {1} --json", &MESSAGE);
    let more = [
        "key",
        "not_before",
        "expires_at",
        "deadline",
        "hops",
        "cause",
        "expects_reply",
        "reply",
        "closes",
        "file",
    ];
    check("show {1} --json", &[&MESSAGE[..], &more[..]].concat());
    check("count bob --json", &["total", "unread"]);
    check("check bob --json", &["total", "unread"]);
    check(
        "why {1} --json",
        &[
            "id", "receipt", "held", "rule", "reason", "since", "evidence", "release", "reply",
        ],
    );
    check("archive {1} --json", &["id", "outcome", "changed"]);
    for line in ["inbox nobody --json", "inbox nobody --all --json"] {
        assert_eq!(ph.run(line).ok(), "[]\n");
    }
    let shown = ph.run("show {1} --json").json();
    let receipts = shown["receipts"].as_array().unwrap();
    let states: Vec<_> = receipts
        .iter()
        .map(|r| r["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["stored", "read", "archived"]);
    assert_eq!(
        keys(&receipts[1].to_string()),
        ["at", "evidence", "route", "state"]
    );
    let raw = ph.run("show {1} --json").ok();
    assert!(
        raw.contains(r#""receipts":[{"state":"stored","at":"#),
        "{raw}"
    );
    for absent in [
        "subject",
        "reply_to",
        "reason",
        "key",
        "not_before",
        "expires_at",
    ] {
        assert_eq!(shown[absent], Value::Null, "{absent}");
    }
    assert_eq!(shown["thread_id"], shown["id"]);
}
