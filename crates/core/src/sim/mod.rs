//! The simulation: the session driver with a simulated program, a person and a failing disk, driven
//! by a seed. All laws are checked after every step.
//!
//! A seed makes a [`script::Script`]; [`run_script`] plays it; [`oracle`] judges. A failing seed is
//! printed with the shortest script that breaks the same law, and the command that repeats it. To
//! add something that can happen, add a line to the script and its arm in [`run_script`]. [`faults`]
//! checks the laws.

mod faults;
mod oracle;
mod run;
mod script;
mod session;
mod tests;
mod world;
