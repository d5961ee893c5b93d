//! Hooks in a JSON file with `hooks` by event: the settings of Claude Code, Codex and Gemini CLI.

use super::json::{self, Item, Layout};
use super::{HookState, HookedEvent, is_ours};
use serde_json::{Value, json};

const HOOKS: &str = "hooks";

/// Return the entry for ph's hook.
fn entry(command: &str, event: &HookedEvent) -> Value {
    let hook = json!({"type": "command", "command": command});
    match event.matcher {
        Some(matcher) => json!({"matcher": matcher, HOOKS: [hook]}),
        None => json!({HOOKS: [hook]}),
    }
}

/// The members of the settings and of their `hooks`.
struct ParsedSettings {
    whole: std::ops::Range<usize>,
    members: Vec<Item>,
    hooks: Option<(usize, Vec<Item>)>,
}

fn read(text: &str) -> Result<ParsedSettings, String> {
    if serde_json::from_str::<Value>(text).is_err() {
        return Err("it is not JSON, or has comments".to_owned());
    }
    let start = text.find('{').unwrap_or(0);
    let end = text.rfind('}').map_or(text.len(), |at| at + 1);
    let whole = start..end;
    let members = json::object(text, &whole).ok_or("it is not an object")?;
    let is_hooks = |item: &Item| item.key.as_deref() == Some(HOOKS);
    if members.iter().filter(|item| is_hooks(item)).count() > 1 {
        return Err("it has 'hooks' twice".to_owned());
    }
    let hooks = members.iter().position(is_hooks).map(|at| {
        let hooks = json::object(text, &members[at].value);
        hooks
            .map(|hooks| (at, hooks))
            .ok_or("its 'hooks' is not an object")
    });
    let hooks = hooks.transpose()?;
    Ok(ParsedSettings {
        whole,
        members,
        hooks,
    })
}

/// Return the commands in one entry of an event.
fn commands(text: &str, entry: &Item) -> Vec<String> {
    let entry: Value = serde_json::from_str(&text[entry.value.clone()]).unwrap_or_default();
    let hooks = entry.get(HOOKS).and_then(Value::as_array);
    let hooks = hooks.into_iter().flatten();
    let command = |hook: &Value| Some(hook.get("command")?.as_str()?.to_owned());
    hooks.filter_map(command).collect()
}

/// An installed hook: its event, its index in the event's list, and its command.
struct InstalledHook {
    event: String,
    at: usize,
    command: String,
}

fn ours(harness: &str, text: &str, read: &ParsedSettings) -> Vec<InstalledHook> {
    let events = read.hooks.iter().flat_map(|(_, events)| events);
    let mut found = Vec::new();
    for event in events {
        let entries = json::list(text, &event.value).unwrap_or_default();
        for (at, entry) in entries.iter().enumerate() {
            // An entry with several commands belongs to the person.
            if let [only] = &commands(text, entry)[..]
                && is_ours(only, harness)
            {
                found.push(InstalledHook {
                    event: event.key.clone().unwrap_or_default(),
                    at,
                    command: only.clone(),
                });
            }
        }
    }
    found
}

pub(super) fn state(
    harness: &str,
    text: Option<&str>,
    events: &[HookedEvent],
    command: Option<&str>,
) -> Result<HookState, String> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Ok(HookState::Not);
    };
    let ours = ours(harness, text, &read(text)?);
    let has = |event: &&HookedEvent| ours.iter().any(|own| own.event == event.name);
    let many = events.iter().filter(has).count();
    let is_wanted = |own: &InstalledHook| events.iter().any(|event| own.event == event.name);
    let is_current = |own: &InstalledHook| {
        command.is_none_or(|command| command == own.command) && is_wanted(own)
    };
    Ok(match many {
        _ if ours.is_empty() => HookState::Not,
        many if many < events.len() => HookState::Partly,
        _ if ours.len() > events.len() || !ours.iter().all(is_current) => HookState::Outdated,
        _ => HookState::Installed,
    })
}

/// Return the installed command, if any.
pub(super) fn command(harness: &str, text: &str) -> Result<Option<String>, String> {
    let mut ours = ours(harness, text, &read(text)?);
    Ok(ours.pop().map(|own| own.command))
}

pub(super) fn installed(
    harness: &str,
    text: Option<&str>,
    events: &[HookedEvent],
    command: &str,
) -> Result<String, String> {
    let text = text.filter(|text| !text.trim().is_empty());
    let Some(text) = text else {
        let mut text = "{}".to_owned();
        for event in events {
            text = with_event(&text, event, command, &Layout::usual())?;
        }
        return Ok(text + "\n");
    };
    let layout = Layout::of(text);
    // Replace installed entries in place, and remove duplicates.
    let mut text = without(harness, text, |all, n| {
        let event = &all[n].event;
        let is_twin = all[..n].iter().any(|other| other.event == *event);
        is_twin || !events.iter().any(|wanted| wanted.name == event)
    })?;
    for event in events {
        let known = ours(harness, &text, &read(&text)?);
        let own = known.iter().find(|own| own.event == event.name);
        text = match own {
            Some(own) => replaced(&text, own, &entry(command, event), &layout)?,
            None => with_event(&text, event, command, &layout)?,
        };
    }
    Ok(text)
}

fn with_event(
    text: &str,
    event: &HookedEvent,
    command: &str,
    layout: &Layout,
) -> Result<String, String> {
    let (entry, event) = (&entry(command, event), event.name);
    let ParsedSettings {
        whole,
        members,
        hooks,
    } = read(text)?;
    let Some((at, events)) = hooks else {
        let hooks = json!({event: [entry]});
        let new = (Some(HOOKS), &hooks);
        return Ok(json::add(text, &whole, &members, new, (layout, 1)));
    };
    let own = |item: &&Item| item.key.as_deref() == Some(event);
    let Some(list) = events.iter().find(own) else {
        let entries = json!([entry]);
        let new = (Some(event), &entries);
        let span = &members[at].value;
        return Ok(json::add(text, span, &events, new, (layout, 2)));
    };
    let entries = json::list(text, &list.value).ok_or("the hooks of an event are not a list")?;
    let new = (None, entry);
    Ok(json::add(text, &list.value, &entries, new, (layout, 3)))
}

/// Replace an installed hook, unless it is equal.
fn replaced(
    text: &str,
    own: &InstalledHook,
    entry: &Value,
    layout: &Layout,
) -> Result<String, String> {
    let read = read(text)?;
    let events = read.hooks.iter().flat_map(|(_, events)| events);
    let mut lists = events.filter(|item| item.key.as_ref() == Some(&own.event));
    let entries = lists.next().and_then(|item| json::list(text, &item.value));
    let Some(item) = entries.as_ref().and_then(|entries| entries.get(own.at)) else {
        return Ok(text.to_owned());
    };
    let known: Value = serde_json::from_str(&text[item.value.clone()]).unwrap_or_default();
    if known == *entry {
        return Ok(text.to_owned());
    }
    Ok(json::replace(text, &item.value, entry, (layout, 3)))
}

/// Remove the installed hooks, and lists and objects that are empty without them.
pub(super) fn removed(harness: &str, text: &str) -> Result<String, String> {
    without(harness, text, |_, _| true)
}

/// Remove the installed hooks that `unwanted` selects by index.
fn without(
    harness: &str,
    text: &str,
    is_unwanted: impl Fn(&[InstalledHook], usize) -> bool,
) -> Result<String, String> {
    let mut text = text.to_owned();
    loop {
        let read = read(&text)?;
        let all = ours(harness, &text, &read);
        let unwanted = (0..all.len()).find(|n| is_unwanted(&all, *n));
        let Some(InstalledHook { event, at, .. }) = unwanted.map(|n| &all[n]) else {
            return Ok(text);
        };
        let at = *at;
        let Some((place, events)) = &read.hooks else {
            return Ok(text);
        };
        let own = events
            .iter()
            .position(|item| item.key.as_ref() == Some(event));
        let Some(own) = own else {
            return Ok(text);
        };
        let list = &events[own].value;
        let entries = json::list(&text, list).unwrap_or_default();
        let hooks = &read.members[*place].value;
        text = match (entries.len(), events.len()) {
            (1, 1) => json::remove(&text, &read.whole, &read.members, *place),
            (1, _) => json::remove(&text, hooks, events, own),
            (_, _) => json::remove(&text, list, &entries, at),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &[HookedEvent] = &[
        HookedEvent {
            name: "UserPromptSubmit",
            matcher: None,
        },
        HookedEvent {
            name: "Stop",
            matcher: None,
        },
    ];

    fn put(text: Option<&str>, command: &str) -> Result<String, String> {
        installed("claude", text, EVENTS, command)
    }

    #[test]
    fn an_installed_hook_is_found_and_can_be_removed() {
        let texts = [
            "{}\n",
            "{\"a\":1}",
            "{\n    \"b\": [ 1,2 ],\n    \"a\": {\"x\": \"\\u00e9\"}\n}\n",
            "{\"hooks\": {}}",
            "{\n\t\"hooks\": {\n\t\t\"Stop\": []\n\t},\n\t\"z\": 0\n}",
            "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}],\"X\":[]}}",
            "{\r\n  \"hooks\": {\r\n    \"PreToolUse\": [{\"hooks\": []}]\r\n  }\r\n}\r\n",
        ];
        for text in texts {
            let new = put(Some(text), "/bin/ph hook claude").unwrap();
            let before: Value = serde_json::from_str(text).unwrap();
            let after: Value = serde_json::from_str(&new).unwrap();
            assert_ne!(before, after);
            let state = |command| state("claude", Some(&new), EVENTS, Some(command)).unwrap();
            assert_eq!(state("/bin/ph hook claude"), HookState::Installed, "{new}");
            assert_eq!(state("/bin/ph hook claude --agent a"), HookState::Outdated);
            // Installing again changes nothing, and another command replaces the old one.
            assert_eq!(put(Some(&new), "/bin/ph hook claude").unwrap(), new);
            let other = put(Some(&new), "ph hook claude").unwrap();
            assert_eq!(other.len(), new.len() - 2 * "/bin/".len());
            let gone = removed("claude", &new).unwrap();
            let gone: Value = serde_json::from_str(&gone).unwrap();
            let is_void = |value: &Value| {
                let hooks = value.get(HOOKS).and_then(Value::as_object);
                hooks.is_none_or(|hooks| hooks.values().all(|v| v == &json!([])))
            };
            assert!(gone == before || is_void(&gone), "{gone}");
        }
    }

    #[test]
    fn invalid_settings_are_refused() {
        for text in [
            "// a comment\n{}",
            "{\"a\": 1,}",
            "[]",
            "7",
            "{\"hooks\": []}",
            "{\"hooks\": {}, \"hooks\": {}}",
            "{\"hooks\": {\"Stop\": {}}}",
            "\u{feff}{}",
        ] {
            assert!(put(Some(text), "ph hook claude").is_err(), "{text}");
        }
    }
}
