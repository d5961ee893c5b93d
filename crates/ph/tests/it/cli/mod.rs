//! The command line: help, settings, colour, finding the home, and the demo.

mod colour;
mod demo;
mod help;
mod mistakes;
mod settings;
mod trust;
