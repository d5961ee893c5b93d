//! The plugin for OpenCode: a file that is recognised by its first line.

use super::HookState;
use serde_json::Value;

const MARK: &str = "// Posthaste: made by 'ph hooks install opencode', taken away by 'ph hooks uninstall opencode'.";

/// Return the plugin's text. The plugin appends the hook's output to the prompt.
fn text(command: &str) -> String {
    let command = Value::from(command);
    format!(
        r#"{MARK}
const command = {command};

export const Posthaste = async () => ({{
  "chat.message": async (input, output) => {{
    const part = output.parts.findLast((part) => part.type === "text");
    if (!part) return;
    try {{
      const {{ spawnSync }} = await import("node:child_process");
      const event = {{ hook_event_name: "chat.message", session_id: input.sessionID, prompt: part.text }};
      const hook = spawnSync("/bin/sh", ["-c", command], {{
        input: JSON.stringify(event),
        encoding: "utf8",
        timeout: 2000,
      }});
      if (hook.stdout) part.text += "\n\n" + hook.stdout;
    }} catch {{}}
  }},
}});
"#
    )
}

/// Return the installed command, if any.
pub(super) fn command(now: &str) -> Option<String> {
    let line = now
        .lines()
        .find_map(|line| line.strip_prefix("const command = "))?;
    serde_json::from_str(line.strip_suffix(';')?).ok()
}

pub(super) fn state(now: Option<&str>, command: Option<&str>) -> HookState {
    match (now, command) {
        (None, _) => HookState::Not,
        (Some(now), _) if !now.starts_with(MARK) => HookState::Not,
        (Some(now), Some(command)) if now != text(command) => HookState::Outdated,
        (Some(_), _) => HookState::Installed,
    }
}

pub(super) fn installed(now: Option<&str>, command: &str) -> Result<String, String> {
    if now.is_some_and(|now| !now.starts_with(MARK)) {
        return Err("it is another file".to_owned());
    }
    Ok(text(command))
}

pub(super) fn uninstalled(now: &str) -> Result<Option<String>, String> {
    if !now.starts_with(MARK) {
        return Err("it is not the installed plugin".to_owned());
    }
    Ok(None)
}
