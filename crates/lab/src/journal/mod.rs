//! Journals in tests: temporary homes, short constructors of what is stored, and checks of the
//! views.

mod agree;
mod home;
mod samples;

pub use agree::{assert_intact, assert_views_agree, moments, records};
pub use home::TempHome;
pub use samples::{at, denied, draft, id, name, order, post, started, stored, text_of};
