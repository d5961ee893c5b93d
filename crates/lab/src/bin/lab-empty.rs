//! Does nothing: what starting any process costs here.

fn main() {}
