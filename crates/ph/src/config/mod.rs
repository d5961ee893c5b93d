//! Settings, in layers: defaults, the user's file, the home's file, the environment, flags.
//!
//! Every setting is one row of [`SETTINGS`]. [`Layers`] collects the texts of the values and their
//! sources; [`Config::of`] is the one place that parses them.

mod harness;
mod layers;
mod mail;
mod misspelt;

pub(crate) use harness::Harnesses;
pub(crate) use layers::{Layers, SettingsFile};
pub(crate) use mail::MailStore;
pub(crate) use misspelt::misspelt_variables;

use crate::cli::times::TimeStyle;
use anstream::ColorChoice;
use posthaste_client::roster::Roster;
use posthaste_core::{Limits, Priority};
use posthaste_store::Patience;
use posthaste_store::report::Result;
use std::time::Duration;

pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// The environment variable that sets it.
    pub(crate) env: &'static str,
    pub(crate) default: &'static str,
    /// The valid values.
    pub(crate) help: &'static str,
}

macro_rules! settings {
    ($($key:literal $env:literal $default:literal $help:literal;)*) => {
        &[$(Setting { key: $key, env: $env, default: $default, help: $help }),*]
    };
}

pub(crate) const SETTINGS: &[Setting] = settings! {
    "journal.lock_timeout" "PH_JOURNAL_LOCK_TIMEOUT" "10s"
        "timeout for the journal's write lock, such as 10s";
    "mail.max_hops" "PH_MAIL_MAX_HOPS" "16"
        "maximum number of messages between agents in one chain, such as 16";
    "mail.max_rate" "PH_MAIL_MAX_RATE" "60"
        "maximum number of messages per minute from one agent to another, such as 60";
    "mail.provider" "PH_MAIL_PROVIDER" "journal"
        "journal, exec:SCRIPT, or exec with mail.script";
    "mail.script" "PH_MAIL_SCRIPT" ""
        "path of the script if mail.provider is exec";
    "mail.tick" "PH_MAIL_TICK" "5s"
        "interval at which a session asks the script for new mail, such as 5s";
    "mail.timeout" "PH_MAIL_TIMEOUT" "30s"
        "timeout of each call of the script, such as 30s";
    "output.color" "PH_OUTPUT_COLOR" "auto"
        "auto, always or never";
    "output.time" "PH_OUTPUT_TIME" "local"
        "local, utc or relative";
    "send.priority" "PH_SEND_PRIORITY" "normal"
        "interrupt, normal, idle-first or idle";
    "session.without_home" "PH_SESSION_WITHOUT_HOME" "1m"
        "time for which a session continues without its home, such as 1m";
};

/// Parsed settings.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) color: ColorChoice,
    pub(crate) time: TimeStyle,
    pub(crate) priority: Priority,
    pub(crate) patience: Patience,
    pub(crate) limits: Limits,
    /// Time for which a session continues without its home.
    pub(crate) without_home: Duration,
    pub(crate) mail: MailStore,
    pub(crate) roster: Roster,
    pub(crate) harnesses: Harnesses,
}

impl Config {
    pub(crate) fn of(layers: &Layers) -> Result<Self> {
        Ok(Self {
            color: layers.get("output.color", |text| match text {
                "auto" => Some(ColorChoice::Auto),
                "always" => Some(ColorChoice::Always),
                "never" => Some(ColorChoice::Never),
                _ => None,
            })?,
            time: layers.get("output.time", |text| match text {
                "local" => Some(TimeStyle::Local),
                "utc" => Some(TimeStyle::Utc),
                "relative" => Some(TimeStyle::Relative),
                _ => None,
            })?,
            priority: layers.get("send.priority", |text| text.parse().ok())?,
            patience: Patience(layers.duration("journal.lock_timeout")?),
            limits: Limits {
                hops: layers.get("mail.max_hops", |text| text.parse().ok())?,
                rate: layers.get("mail.max_rate", |text| text.parse().ok())?,
            },
            without_home: layers.duration("session.without_home")?,
            mail: MailStore::of(layers)?,
            roster: layers.roster.clone(),
            harnesses: layers.harnesses.clone(),
        })
    }
}
