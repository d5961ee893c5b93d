//! What an agent is doing, and on what evidence. Live state: none of it is a fact.

use crate::moment::Moment;
use crate::session::Ending;
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// Not yet ready to be written to.
    Starting,
    Idle,
    Working,
    /// A question stands open that a person should answer.
    Blocked(String),
    Exited,
}

impl Activity {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Blocked(_) => "blocked",
            Self::Exited => "exited",
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An activity, since when, and what shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub activity: Activity,
    pub since: Moment,
    pub evidence: String,
    /// When that was said, where it is somebody's word and not what is seen now.
    pub heard: Option<Moment>,
}

impl Judgement {
    /// The evidence as it is told at a time.
    pub fn told(&self, now: Moment) -> String {
        let Some(heard) = self.heard else {
            return self.evidence.clone();
        };
        let ago = match now.mono.saturating_sub(heard.mono).as_secs() {
            0 => "just now".to_owned(),
            seconds @ 1..120 => format!("{seconds} s ago"),
            seconds @ 120..7_200 => format!("{} m ago", seconds / 60),
            seconds => format!("{} h ago", seconds / 3_600),
        };
        format!("{} {ago}", self.evidence)
    }
}

/// After so long without output it is idle.
pub const SILENCE: Duration = Duration::from_secs(2);
/// A program that says nothing at all when it starts (`cat`) is given this long to do so.
const SILENT_START: Duration = Duration::from_secs(5);
/// Output without a pause since its start is work by then, and no longer starting.
const LONG_START: Duration = Duration::from_secs(30);

/// Judges a program of which nothing is known but when it writes to its terminal. It never sees
/// a question, so it never says `blocked`.
#[derive(Debug, Clone)]
pub struct Generic {
    judgement: Judgement,
    begun: Duration,
    heard: bool,
    quiet_since: Duration,
    silence: Duration,
    /// Whether it is starting until [`Self::ready`] says otherwise, however quiet it is.
    awaits_sign: bool,
}

impl Generic {
    /// For a program that was started just now.
    pub fn new(now: Moment) -> Self {
        Self::with(now, SILENCE)
    }

    /// The same with another silence.
    pub fn with(now: Moment, silence: Duration) -> Self {
        Self {
            judgement: Judgement {
                activity: Activity::Starting,
                since: now,
                evidence: "it was started and has shown nothing yet".to_owned(),
                heard: None,
            },
            begun: now.mono,
            heard: false,
            quiet_since: now.mono,
            silence,
            awaits_sign: false,
        }
    }

    /// It shows by a sign when it can be written to.
    pub fn awaiting_a_sign(mut self) -> Self {
        self.awaits_sign = true;
        let evidence = "it was started, and the sign that it is ready has not been seen";
        self.judgement.evidence = evidence.to_owned();
        self
    }

    /// The sign is there.
    pub fn ready(&mut self, now: Moment) {
        if self.awaits_sign && self.judgement.activity == Activity::Starting {
            let evidence = "the sign that it is ready was seen".to_owned();
            self.judge(now, Activity::Idle, evidence);
        }
    }

    /// What ends its start.
    pub fn release(&self) -> String {
        if self.awaits_sign {
            "the sign that it is ready is seen".to_owned()
        } else {
            let silence = in_words(self.silence);
            match self.heard {
                true => format!(
                    "it is quiet for {silence}, or has gone on for {} s without a pause",
                    LONG_START.as_secs()
                ),
                false => format!(
                    "it shows something and is quiet for {silence}, or shows nothing for {}",
                    in_words(self.silence())
                ),
            }
        }
    }

    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// It wrote something.
    pub fn output(&mut self, now: Moment) {
        if !self.heard && !self.awaits_sign && self.judgement.activity == Activity::Starting {
            let evidence = "it was started and has not been quiet since";
            self.judgement.evidence = evidence.to_owned();
        }
        self.heard = true;
        self.quiet_since = now.mono;
        match self.judgement.activity {
            Activity::Starting if self.awaits_sign => {}
            Activity::Starting if now.mono.saturating_sub(self.begun) >= LONG_START => {
                let evidence = format!("output for {} s without a pause", LONG_START.as_secs());
                self.judge(now, Activity::Working, evidence);
            }
            Activity::Idle => self.judge(now, Activity::Working, "output".to_owned()),
            Activity::Starting | Activity::Working | Activity::Blocked(_) | Activity::Exited => {}
        }
    }

    /// From when on output would change what is judged; before that it only puts off a silence.
    pub fn heeds_output_from(&self) -> Option<Duration> {
        match self.judgement.activity {
            Activity::Working => None,
            Activity::Starting if self.heard && self.awaits_sign => None,
            Activity::Starting if self.heard => Some(self.begun + LONG_START),
            Activity::Starting | Activity::Idle | Activity::Blocked(_) | Activity::Exited => {
                Some(Duration::ZERO)
            }
        }
    }

    /// It was given something to do: it counts as working until it is shown otherwise.
    pub fn given(&mut self, now: Moment, evidence: &str) {
        self.quiet_since = now.mono;
        match self.judgement.activity {
            Activity::Idle => self.judge(now, Activity::Working, evidence.to_owned()),
            Activity::Starting | Activity::Working | Activity::Blocked(_) | Activity::Exited => {}
        }
    }

    pub fn exited(&mut self, now: Moment, how: &Ending) {
        self.judge(now, Activity::Exited, how.to_string());
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Moment) {
        if self.next_wakeup().is_some_and(|due| due <= now.mono) {
            let evidence = format!("no output for {}", in_words(self.silence()));
            self.judge(now, Activity::Idle, evidence);
        }
    }

    /// When a tick will change something, on the monotonic clock.
    pub fn next_wakeup(&self) -> Option<Duration> {
        match self.judgement.activity {
            Activity::Starting if self.awaits_sign => None,
            Activity::Starting | Activity::Working => Some(self.quiet_since + self.silence()),
            Activity::Idle | Activity::Blocked(_) | Activity::Exited => None,
        }
    }

    fn silence(&self) -> Duration {
        match self.judgement.activity {
            Activity::Starting if !self.heard => SILENT_START.max(self.silence),
            Activity::Starting
            | Activity::Idle
            | Activity::Working
            | Activity::Blocked(_)
            | Activity::Exited => self.silence,
        }
    }

    fn judge(&mut self, now: Moment, activity: Activity, evidence: String) {
        self.judgement = Judgement {
            activity,
            since: now,
            evidence,
            heard: None,
        };
    }
}

/// A length of time as it is told: `2 s`, `300 ms`.
fn in_words(length: Duration) -> String {
    match length.as_millis() {
        millis if millis % 1_000 == 0 => format!("{} s", millis / 1_000),
        millis => format!("{millis} ms"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use jiff::{SignedDuration, Timestamp};

    /// So many milliseconds after a start, on both clocks.
    pub(crate) fn ms(millis: u64) -> Moment {
        let wall = Timestamp::from_second(1_000).unwrap();
        Moment {
            wall: wall + SignedDuration::from_millis(millis.try_into().unwrap()),
            mono: Duration::from_millis(millis),
        }
    }

    #[derive(Clone, Copy)]
    enum Happens {
        Output,
        Given,
        Tick,
        Exit,
    }

    #[test]
    fn what_ends_a_start_is_told_whole() {
        let mut judge = Generic::new(ms(0));
        let silent = "it shows something and is quiet for 2 s, or shows nothing for 5 s";
        assert_eq!(judge.release(), silent);
        judge.output(ms(1_000));
        let loud = "it is quiet for 2 s, or has gone on for 30 s without a pause";
        assert_eq!(judge.release(), loud);
        let sign = Generic::new(ms(0)).awaiting_a_sign();
        assert_eq!(sign.release(), "the sign that it is ready is seen");
    }

    #[test]
    fn silence_is_idle_and_output_is_work() {
        use Happens::{Exit, Given, Output, Tick};
        let check = |events: &[(u64, Happens)], want: &str, next: Option<u64>| {
            let mut judge = Generic::new(ms(0));
            for (at, event) in events {
                match event {
                    Output => judge.output(ms(*at)),
                    Given => judge.given(ms(*at), "a message was written to it"),
                    Tick => judge.tick(ms(*at)),
                    Exit => judge.exited(ms(*at), &Ending::Exit(0)),
                }
            }
            let said = format!(
                "{}: {}",
                judge.judgement().activity,
                judge.judgement().evidence
            );
            assert_eq!(said, want);
            assert_eq!(
                judge.next_wakeup(),
                next.map(Duration::from_millis),
                "{want}"
            );
        };
        let silent = "starting: it was started and has shown nothing yet";
        check(&[], silent, Some(5_000));
        check(&[(4_999, Tick)], silent, Some(5_000));
        let starting = "starting: it was started and has not been quiet since";
        check(&[(5_000, Tick)], "idle: no output for 5 s", None);
        check(&[(100, Output)], starting, Some(2_100));
        check(&[(100, Output), (2_099, Tick)], starting, Some(2_100));
        let ready = [(100, Output), (2_100, Tick)];
        check(&ready, "idle: no output for 2 s", None);
        let also = |more: &[(u64, Happens)]| [&ready[..], more].concat();
        check(&also(&[(3_000, Output)]), "working: output", Some(5_000));
        let longer = also(&[(3_000, Output), (4_500, Output), (5_000, Tick)]);
        check(&longer, "working: output", Some(6_500));
        let done = also(&[(3_000, Output), (5_000, Tick)]);
        check(&done, "idle: no output for 2 s", None);
        let given = "working: a message was written to it";
        check(&also(&[(3_000, Given)]), given, Some(5_000));
        check(
            &also(&[(3_000, Given), (3_500, Output)]),
            given,
            Some(5_500),
        );
        let quiet = also(&[(3_000, Given), (5_000, Tick)]);
        check(&quiet, "idle: no output for 2 s", None);
        let over = also(&[(3_000, Exit), (3_001, Output), (9_000, Tick)]);
        check(&over, "exited: exit 0", None);
        // Output that never stops is work in the end.
        let endless: Vec<_> = (0..=30).map(|s| (s * 1_000, Output)).collect();
        check(&endless[..30], starting, Some(31_000));
        check(
            &endless,
            "working: output for 30 s without a pause",
            Some(32_000),
        );
    }

    #[test]
    fn what_was_said_is_told_with_its_age() {
        let judgement = |heard| Judgement {
            activity: Activity::Idle,
            since: ms(0),
            evidence: "hook Stop".to_owned(),
            heard,
        };
        assert_eq!(judgement(None).told(ms(9_000)), "hook Stop");
        let check = |now: u64, want: &str| {
            assert_eq!(judgement(Some(ms(1_000))).told(ms(now)), want);
        };
        check(1_999, "hook Stop just now");
        check(4_000, "hook Stop 3 s ago");
        check(120_000, "hook Stop 119 s ago");
        check(121_000, "hook Stop 2 m ago");
        check(8_000_000, "hook Stop 2 h ago");
    }

    #[test]
    fn a_step_of_the_clock_disturbs_no_silence() {
        let mut judge = Generic::new(ms(0));
        judge.output(ms(0));
        let later = Moment {
            wall: ms(0).wall + SignedDuration::from_hours(1),
            mono: ms(100).mono,
        };
        judge.tick(later);
        assert_eq!(judge.judgement().activity, Activity::Starting);
        let earlier = Moment {
            wall: ms(0).wall - SignedDuration::from_hours(1),
            mono: ms(2_000).mono,
        };
        judge.tick(earlier);
        assert_eq!(judge.judgement().activity, Activity::Idle);
    }
}
