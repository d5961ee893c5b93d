//! Versions of a program: those that a manifest was tested with, and the running one.
//!
//! A version from a screen or a file is untrusted: it is only displayed and compared.

use super::Pattern;
use crate::text;
use serde::{Deserialize, Serialize};

/// The group of the banner's pattern that captures the version.
const VERSION_GROUP: &str = "version";
/// Maximum length of a version.
const VERSION_CHARS: usize = 40;

/// Tested versions of a program, and where its version is found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Version {
    /// The versions that this manifest was tested with.
    pub tested: Vec<String>,
    /// A pattern over the screen; its group `version` captures the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub banner: Option<Pattern>,
    /// The npm package that the program comes from: its `package.json` has the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// A pattern over the real path of the program; its group `version` captures the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Pattern>,
}

impl Version {
    /// Whether the manifest says anything about versions.
    pub fn is_described(&self) -> bool {
        *self != Self::default()
    }

    /// Return the version that a screen shows in the program's banner.
    pub fn on_screen(&self, rows: &[String]) -> Option<String> {
        let rows = rows.join("\n");
        readable(self.banner.as_ref()?.take(&rows, VERSION_GROUP)?)
    }

    /// Return the version in the real path of a program.
    pub fn in_path(&self, path: &str) -> Option<String> {
        readable(self.path.as_ref()?.take(path, VERSION_GROUP)?)
    }

    /// Return the tested versions unless `version` is one of them.
    pub fn tested_instead(&self, version: Option<&str>) -> &[String] {
        match version {
            Some(version) if self.is_untested(version) => &self.tested,
            Some(_) | None => &[],
        }
    }

    /// Whether the manifest was tested with other versions only. A manifest without tested versions
    /// claims nothing.
    pub fn is_untested(&self, version: &str) -> bool {
        !self.tested.is_empty() && !self.tested.iter().any(|tested| tested == version)
    }
}

/// Sanitize a version from outside; `None` if nothing is left.
pub fn readable(version: &str) -> Option<String> {
    let version = text::one_line(version, VERSION_CHARS);
    (!version.is_empty()).then_some(version)
}

/// Describe a version for a person. `tested` lists the tested versions unless this is one of them.
pub fn described(version: &str, tested: &[String]) -> String {
    match tested {
        [] => version.to_owned(),
        tested => format!("{version} (not tested; tested with {})", tested.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_shows_the_version() {
        let pattern = |text: &str| text.to_owned().try_into().unwrap();
        let version = Version {
            tested: vec!["1.0.0".to_owned(), "1.1.0".to_owned()],
            banner: Some(pattern(r"^Lab v(?<version>\S+)")),
            ..Version::default()
        };
        let check = |screen: &str, want: Option<&str>| {
            let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
            assert_eq!(version.on_screen(&rows).as_deref(), want, "{screen}");
        };
        check("hello\nLab v1.1.0 here\n> ", Some("1.1.0"));
        check("hello\n> Lab v1.1.0", None);
        check("Lab v\u{1b}\u{202e}", None);
        let long = "9".repeat(50);
        let cut = format!("{}…", &long[..40]);
        check(&format!("Lab v{long}"), Some(&cut));
        assert_eq!(Version::default().on_screen(&["Lab v1".to_owned()]), None);
    }

    #[test]
    fn a_version_is_untested_if_only_others_are_listed() {
        let check = |tested: &[&str], version: &str, want: bool| {
            let tested = tested.iter().map(ToString::to_string).collect();
            let listed = Version {
                tested,
                ..Version::default()
            };
            assert_eq!(listed.is_untested(version), want, "{listed:?} {version}");
        };
        check(&[], "1.0.0", false);
        check(&["1.0.0"], "1.0.0", false);
        check(&["1.0.0"], "1.0.1", true);
    }

    #[test]
    fn a_description_names_the_tested_versions() {
        let tested = ["1.0.0", "1.1.0"].map(str::to_owned);
        assert_eq!(described("1.1.0", &[]), "1.1.0");
        assert_eq!(
            described("1.2.0", &tested),
            "1.2.0 (not tested; tested with 1.0.0, 1.1.0)"
        );
    }
}
