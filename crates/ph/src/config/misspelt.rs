//! Suggestions for misspelt variables and settings.

use super::SETTINGS;
use posthaste_core::text;
use posthaste_store::report::Report;
use std::path::Path;

/// Variables of Posthaste that are not settings.
const OTHER_VARIABLES: [&str; 10] = [
    "PH_AGENT",
    "PH_HOME",
    "PH_SOCKET",
    "PH_ITERATION",
    "PH_COMPLETE",
    "PH_HOOKS",
    "PH_LOG",
    "PH_MAIL_ASKING",
    "PH_PROGRAM",
    "PH_PROVIDER_STATE",
];
/// Minimum length of a name that may differ by [`MAX_LONG_NAME_EDITS`]; a shorter one by 1.
const MIN_LONG_NAME_BYTES: usize = 12;
const MAX_LONG_NAME_EDITS: usize = 2;

/// Return one notice for each environment variable that looks like a misspelt one of Posthaste.
/// This is not an error: other programs may use the prefix `PH_`.
pub(crate) fn misspelt_variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter_map(|name| misspelt(&name)).collect()
}

fn misspelt(name: &str) -> Option<String> {
    let settings = SETTINGS.iter().map(|setting| setting.env);
    let known = settings.chain(OTHER_VARIABLES);
    // Every command runs this, so distances are computed only for unknown variables.
    if !name.starts_with("PH_") || known.clone().any(|known| known == name) {
        return None;
    }
    let distance = |known: &'static str| (strsim::osa_distance(name, known), known);
    let (edits, nearest) = known.map(distance).min()?;
    let is_long = nearest.len() >= MIN_LONG_NAME_BYTES;
    let max_edits = if is_long { MAX_LONG_NAME_EDITS } else { 1 };
    (edits <= max_edits).then(|| format!("the variable {name} is unknown; did you mean {nearest}?"))
}

/// Return the error for an unknown setting in a file.
pub(super) fn unknown_setting(key: &str, path: &Path) -> Report {
    let nearest = SETTINGS
        .iter()
        .map(|setting| (strsim::jaro_winkler(key, setting.key), setting.key))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(nearness, _)| *nearness > 0.7);
    let shown = text::one_line(key, 80);
    let report = Report::usage(format!("unknown setting {shown} in {}", path.display()));
    match nearest {
        Some((_, known)) => report.hint(format!("did you mean {known}?")),
        None => report.hint("'ph config show' lists all settings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_reported() {
        let check = |name: &str, want: Option<&str>| {
            let got = misspelt(name);
            let want =
                want.map(|want| format!("the variable {name} is unknown; did you mean {want}?"));
            assert_eq!(got, want, "{name}");
        };
        check("PH_SEND_PRIORTY", Some("PH_SEND_PRIORITY"));
        check("PH_OUTPUT_COLOUR", Some("PH_OUTPUT_COLOR"));
        check("PH_HOEM", Some("PH_HOME"));
        check("PH_SEND_PRIORITY", None);
        check("PH_MAIL_TICK", None);
        check("PH_HOME", None);
        check("PH_CODE", None);
        check("PH_BALANCE_OF_THE_POOL", None);
        check("PHP_HOME", None);
    }
}
