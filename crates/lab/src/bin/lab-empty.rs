//! Does nothing: measures the cost of starting a process.

fn main() {}
