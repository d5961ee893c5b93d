//! The official Python SDK as the client: what it makes of us is not our own word.

use crate::common::{Ph, skip};
use std::path::Path;
use std::process::Command;

/// A Python that has the SDK: what `PH_MCP_PYTHON` names, else the system's.
fn python() -> Option<String> {
    let python = std::env::var("PH_MCP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import mcp"]).output();
    found
        .is_ok_and(|done| done.status.success())
        .then_some(python)
}

#[test]
fn the_official_python_sdk_works() {
    let Some(python) = python() else {
        return skip(
            "there is no Python with the MCP SDK (pip install mcp; PH_MCP_PYTHON names it)",
        );
    };
    let ph = Ph::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp/independent.py");
    let done = Command::new(python)
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_ph"))
        .env("PH_HOME", ph.home())
        .env("HOME", ph.user())
        // Nothing is left beside the script.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(ph.user())
        .output()
        .expect("Python can be started");
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(done.status.success(), "{out}{err}");
    assert_eq!(out.trim(), "all as it should be", "{err}");
    let shown = ph.run("log").ok();
    for kind in ["task", "status", "note", "message", "read", "complete"] {
        assert!(shown.contains(&format!("  {kind:<9}  ")), "{kind}: {shown}");
    }
}
