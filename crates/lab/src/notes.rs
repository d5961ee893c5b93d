//! Notes for the person who runs tests, and skipping tests on machines that lack a requirement.

use std::io::Write;

/// Print text in a test program without the test harness, at once.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Report why a test cannot run here, so that it returns. In CI (`PH_CI`) the test fails instead.
pub fn skip_or_fail(reason: &str) {
    assert!(
        std::env::var_os("PH_CI").is_none(),
        "cannot be skipped in CI: {reason}"
    );
    // Written past the test harness, which hides the output of passing tests.
    let _ = writeln!(std::io::stderr().lock(), "skipped: {reason}");
}
