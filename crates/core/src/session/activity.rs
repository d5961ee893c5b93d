//! An agent's activity and the evidence for it. Live state: none of it is recorded as a fact.

use crate::moment::Moment;
use crate::session::Ending;
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// Not yet ready for input.
    Starting,
    Idle,
    Working,
    /// A question for a person is open.
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

/// An activity with its start and evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub activity: Activity,
    pub since: Moment,
    pub evidence: String,
    /// Time of the report, if the evidence is a report and not an observation.
    pub heard: Option<Moment>,
}

impl Judgement {
    /// Describe the evidence as of `now`.
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

/// Silence after which a program counts as idle.
pub const DEFAULT_SILENCE: Duration = Duration::from_secs(2);
/// Time after which a program without any output (`cat`) counts as started.
const SILENT_START_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a program with continuous output counts as started.
const CONTINUOUS_START_TIMEOUT: Duration = Duration::from_secs(30);

/// Judges a program only by the times of its output. It recognizes no questions, so it never
/// reports `blocked`.
#[derive(Debug, Clone)]
pub struct OutputJudge {
    judgement: Judgement,
    begun: Duration,
    has_output: bool,
    quiet_since: Duration,
    silence: Duration,
    /// Whether the program counts as starting until [`Self::ready`] is called.
    awaits_sign: bool,
}

impl OutputJudge {
    /// For a program that was started at `now`.
    pub fn new(now: Moment) -> Self {
        Self::with(now, DEFAULT_SILENCE)
    }

    /// Like [`Self::new`], with another silence.
    pub fn with(now: Moment, silence: Duration) -> Self {
        Self {
            judgement: Judgement {
                activity: Activity::Starting,
                since: now,
                evidence: "it was started and has written nothing yet".to_owned(),
                heard: None,
            },
            begun: now.mono,
            has_output: false,
            quiet_since: now.mono,
            silence,
            awaits_sign: false,
        }
    }

    /// Stay in `starting` until [`Self::ready`] is called.
    pub fn awaiting_a_sign(mut self) -> Self {
        self.awaits_sign = true;
        let evidence =
            "it was started, and the pattern that shows that it is ready has not appeared";
        self.judgement.evidence = evidence.to_owned();
        self
    }

    /// The pattern that shows readiness appeared.
    pub fn ready(&mut self, now: Moment) {
        if self.awaits_sign && self.judgement.activity == Activity::Starting {
            let evidence = "the pattern that shows that it is ready appeared".to_owned();
            self.judge(now, Activity::Idle, evidence);
        }
    }

    /// Describe the condition that ends the start.
    pub fn release(&self) -> String {
        if self.awaits_sign {
            "the pattern that shows that it is ready appears".to_owned()
        } else {
            let silence = format_duration(self.silence);
            match self.has_output {
                true => format!(
                    "it is quiet for {silence}, or writes for {} s without a pause",
                    CONTINUOUS_START_TIMEOUT.as_secs()
                ),
                false => format!(
                    "it writes something and is quiet for {silence}, or writes nothing for {}",
                    format_duration(self.silence())
                ),
            }
        }
    }

    pub fn judgement(&self) -> &Judgement {
        &self.judgement
    }

    /// The program wrote output.
    pub fn output(&mut self, now: Moment) {
        if !self.has_output && !self.awaits_sign && self.judgement.activity == Activity::Starting {
            let evidence = "it was started and has written without a pause since";
            self.judgement.evidence = evidence.to_owned();
        }
        self.has_output = true;
        self.quiet_since = now.mono;
        match self.judgement.activity {
            Activity::Starting if self.awaits_sign => {}
            Activity::Starting
                if now.mono.saturating_sub(self.begun) >= CONTINUOUS_START_TIMEOUT =>
            {
                let evidence = format!(
                    "output for {} s without a pause",
                    CONTINUOUS_START_TIMEOUT.as_secs()
                );
                self.judge(now, Activity::Working, evidence);
            }
            Activity::Idle => self.judge(now, Activity::Working, "output".to_owned()),
            Activity::Starting | Activity::Working | Activity::Blocked(_) | Activity::Exited => {}
        }
    }

    /// Return the time from which output can change the activity; earlier output only delays the
    /// silence.
    pub fn heeds_output_from(&self) -> Option<Duration> {
        match self.judgement.activity {
            Activity::Working => None,
            Activity::Starting if self.has_output && self.awaits_sign => None,
            Activity::Starting if self.has_output => Some(self.begun + CONTINUOUS_START_TIMEOUT),
            Activity::Starting | Activity::Idle | Activity::Blocked(_) | Activity::Exited => {
                Some(Duration::ZERO)
            }
        }
    }

    /// The program was given input: it counts as working until there is other evidence.
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

    /// Reevaluate the activity at `now`.
    pub fn tick(&mut self, now: Moment) {
        if self.next_wakeup().is_some_and(|due| due <= now.mono) {
            let evidence = format!("no output for {}", format_duration(self.silence()));
            self.judge(now, Activity::Idle, evidence);
        }
    }

    /// Return the monotonic time at which [`Self::tick`] can change the activity.
    pub fn next_wakeup(&self) -> Option<Duration> {
        match self.judgement.activity {
            Activity::Starting if self.awaits_sign => None,
            Activity::Starting | Activity::Working => Some(self.quiet_since + self.silence()),
            Activity::Idle | Activity::Blocked(_) | Activity::Exited => None,
        }
    }

    fn silence(&self) -> Duration {
        match self.judgement.activity {
            Activity::Starting if !self.has_output => SILENT_START_TIMEOUT.max(self.silence),
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

/// Format a duration for display: `2 s`, `300 ms`.
fn format_duration(length: Duration) -> String {
    match length.as_millis() {
        millis if millis % 1_000 == 0 => format!("{} s", millis / 1_000),
        millis => format!("{millis} ms"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use jiff::{SignedDuration, Timestamp};

    /// Return the moment `millis` ms after the origin of both clocks.
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
    fn the_release_of_a_start_names_its_conditions() {
        let mut judge = OutputJudge::new(ms(0));
        let silent = "it writes something and is quiet for 2 s, or writes nothing for 5 s";
        assert_eq!(judge.release(), silent);
        judge.output(ms(1_000));
        let loud = "it is quiet for 2 s, or writes for 30 s without a pause";
        assert_eq!(judge.release(), loud);
        let sign = OutputJudge::new(ms(0)).awaiting_a_sign();
        assert_eq!(
            sign.release(),
            "the pattern that shows that it is ready appears"
        );
    }

    #[test]
    fn silence_is_idle_and_output_is_work() {
        use Happens::{Exit, Given, Output, Tick};
        let check = |events: &[(u64, Happens)], want: &str, next: Option<u64>| {
            let mut judge = OutputJudge::new(ms(0));
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
        let silent = "starting: it was started and has written nothing yet";
        check(&[], silent, Some(5_000));
        check(&[(4_999, Tick)], silent, Some(5_000));
        let starting = "starting: it was started and has written without a pause since";
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
        // Continuous output counts as work after a while.
        let endless: Vec<_> = (0..=30).map(|s| (s * 1_000, Output)).collect();
        check(&endless[..30], starting, Some(31_000));
        check(
            &endless,
            "working: output for 30 s without a pause",
            Some(32_000),
        );
    }

    #[test]
    fn a_report_is_described_with_its_age() {
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
    fn a_clock_step_does_not_disturb_a_silence() {
        let mut judge = OutputJudge::new(ms(0));
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
