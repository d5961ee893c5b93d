//! The command line itself: help, settings, colour, the home that it finds, and the demo.

mod checkout;
mod colour;
mod demo;
mod help;
mod neighbour;
mod settings;
mod slips;
mod trust;
