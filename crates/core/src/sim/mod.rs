//! The simulation: the session driver with a simulated program, person and disk, under a script
//! that a seed generates. All laws are checked after every step.
//!
//! [`script`] generates and shrinks scripts, [`run`] plays them, [`session`] performs the driver's
//! actions, [`world`] has the program, terminal, journal and senders, and [`oracle`] checks the
//! laws. [`faults`] contains faults that the laws must find.
//!
//! A failing seed is printed with the shortest script that breaks the same law, and the command
//! that repeats it. A new kind of event needs a [`script::Line`] and its arm in
//! [`run::Simulation::line`].

mod faults;
mod oracle;
mod run;
mod script;
mod session;
mod tests;
mod world;
