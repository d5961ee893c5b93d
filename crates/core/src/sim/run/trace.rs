//! The events of a run as text, recorded only if the run is printed.

#[derive(Debug, Default)]
pub(crate) struct Trace(Option<Vec<String>>);

impl Trace {
    pub(crate) fn kept() -> Self {
        Self(Some(Vec::new()))
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(line());
        }
    }

    /// Whether events are recorded.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn text(&self) -> String {
        self.0.as_deref().unwrap_or_default().join("\n")
    }
}
