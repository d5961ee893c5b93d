//! The command line itself: help, settings, colour, the home that it finds, and the demo.

mod colour;
mod demo;
mod help;
mod settings;
mod slips;
mod trust;
