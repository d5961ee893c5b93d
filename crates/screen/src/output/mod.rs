//! Raw output of a program on its way to the terminal model, to attached terminals and to readers.
//!
//! Cuts, filters or flattens the output. Never keeps a screen.

mod boundary;
mod drawing;
mod lines;
mod parser_input;
mod query;
pub(crate) mod query_filter;
mod split_char;

pub use boundary::Boundary;
pub use drawing::Drawing;
pub use lines::Lines;
pub(crate) use parser_input::ParserInput;
pub use query_filter::QueryFilter;
pub(crate) use split_char::SplitChar;
