//! The events of a run in words. They are kept only for a run that is printed.

#[derive(Debug, Default)]
pub(super) struct Trace(Option<Vec<String>>);

impl Trace {
    pub(super) fn kept() -> Self {
        Self(Some(Vec::new()))
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(what());
        }
    }

    /// Whether somebody will read it.
    pub(super) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn text(&self) -> String {
        self.0.as_deref().unwrap_or_default().join("\n")
    }
}
