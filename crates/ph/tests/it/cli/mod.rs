//! The command line: help, settings, colour, finding the home, and the demo.

mod checkout;
mod colour;
mod demo;
mod help;
mod mistakes;
mod neighbour;
mod settings;
mod trust;
