use crate::screen::{Screen, Size};
use std::time::Duration;
pub(crate) struct Recorder;
pub(crate) struct About {
    pub(crate) size: Size,
}
impl Recorder {
    pub(crate) fn output(&mut self, _: Duration, _: &[u8]) {}
    pub(crate) fn resize(&mut self, _: Duration, _: Size) {}
    pub(crate) fn flush(&mut self, _: &Screen, _: Duration) -> std::io::Result<()> {
        Ok(())
    }
}
