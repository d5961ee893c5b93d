//! Names of keys, such as `ctrl+c`, `esc esc` and `enter`, and the bytes that they send. Manifests
//! can send no other bytes to a terminal.

use serde::{Deserialize, Serialize};

const MAX_KEYS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Keys {
    said: String,
    bytes: Vec<u8>,
}

impl Keys {
    pub fn enter() -> Self {
        Self {
            said: "enter".to_owned(),
            bytes: b"\r".to_vec(),
        }
    }

    pub fn ctrl_c() -> Self {
        Self {
            said: "ctrl+c".to_owned(),
            bytes: vec![0x03],
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Display for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.said)
    }
}

impl TryFrom<String> for Keys {
    type Error = String;

    fn try_from(said: String) -> Result<Self, String> {
        let names: Vec<&str> = said.split_whitespace().collect();
        if names.is_empty() || names.len() > MAX_KEYS {
            return Err(format!(
                "between 1 and {MAX_KEYS} keys, separated by spaces"
            ));
        }
        let mut bytes = Vec::new();
        for name in names {
            let key = key(&name.to_ascii_lowercase()).ok_or_else(|| {
                let name: String = name.chars().filter(|c| !c.is_control()).take(20).collect();
                format!("unknown key '{name}'; keys are named like ctrl+c, alt+b, esc, enter, tab, up, f1 or y")
            })?;
            bytes.extend(key);
        }
        Ok(Self { said, bytes })
    }
}

impl From<Keys> for String {
    fn from(keys: Keys) -> Self {
        keys.said
    }
}

fn key(name: &str) -> Option<Vec<u8>> {
    if let Some(letter) = name.strip_prefix("ctrl+") {
        return control(letter).map(|byte| vec![byte]);
    }
    if let Some(rest) = name.strip_prefix("alt+") {
        let mut bytes = vec![0x1b];
        bytes.extend(plain(rest)?);
        return Some(bytes);
    }
    let named: &[u8] = match name {
        "enter" => b"\r",
        "newline" => b"\n",
        "esc" => b"\x1b",
        "tab" => b"\t",
        "shift+tab" => b"\x1b[Z",
        "space" => b" ",
        "backspace" => b"\x7f",
        "delete" => b"\x1b[3~",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "pageup" => b"\x1b[5~",
        "pagedown" => b"\x1b[6~",
        "f1" => b"\x1bOP",
        "f2" => b"\x1bOQ",
        "f3" => b"\x1bOR",
        "f4" => b"\x1bOS",
        other => return plain(other),
    };
    Some(named.to_vec())
}

/// Return the bytes of a key that sends its own character.
fn plain(name: &str) -> Option<Vec<u8>> {
    match name.as_bytes() {
        [byte] if byte.is_ascii_graphic() => Some(vec![*byte]),
        _ => None,
    }
}

fn control(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [byte @ b'a'..=b'z'] => Some(byte - b'a' + 1),
        [byte @ b'[' | byte @ b'\\' | byte @ b']' | byte @ b'^' | byte @ b'_'] => Some(byte & 0x1f),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_names() {
        let check = |said: &str, want: &[u8]| {
            let keys = Keys::try_from(said.to_owned()).unwrap();
            assert_eq!(keys.bytes(), want, "{said}");
            assert_eq!(Keys::try_from(String::from(keys.clone())).unwrap(), keys);
        };
        check("ctrl+c", b"\x03");
        check("Ctrl+C", b"\x03");
        check("ctrl+\\", b"\x1c");
        check("esc esc", b"\x1b\x1b");
        check("alt+b", b"\x1bb");
        check("y enter", b"y\r");
        check("up shift+tab f1", b"\x1b[A\x1b[Z\x1bOP");
        assert_eq!(Keys::try_from("enter".to_owned()).unwrap(), Keys::enter());
        assert_eq!(Keys::try_from("ctrl+c".to_owned()).unwrap(), Keys::ctrl_c());
        let refused = [
            "",
            "  ",
            "ctrl+",
            "ctrl+1",
            "hyper+x",
            "\u{1b}",
            "yes",
            "a b c d e f g h i",
        ];
        for bad in refused {
            Keys::try_from(bad.to_owned()).unwrap_err();
        }
    }
}
