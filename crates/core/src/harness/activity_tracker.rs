//! Weighs evidence of a program's activity: its own report beats its screen, which beats output and
//! silence. Keeps the last claim of each source; decides nothing about mail.

use crate::activity::{Activity, Judgement, OutputJudge};
use crate::harness::manifest::{Manifest, Source};
use crate::harness::screen::{Claim, Says};
use crate::moment::Moment;
use crate::session::Ending;
use std::time::Duration;

#[derive(Debug, Clone)]
struct CurrentClaim {
    claim: Claim,
    since: Moment,
    /// Time of the claim's last report.
    heard: Moment,
    /// Whether the claim predates the last input; an old idle claim says nothing about now.
    is_old: bool,
}

impl CurrentClaim {
    fn new(now: Moment, claim: Claim) -> Self {
        Self {
            claim,
            since: now,
            heard: now,
            is_old: false,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Judge {
    pace: OutputJudge,
    order: Vec<Source>,
    status: Vec<CurrentClaim>,
    /// Time of the last keys typed by anybody.
    typed: Option<Duration>,
    /// Whether the program has written anything but the echo of keys since it was idle.
    has_worked: bool,
    /// Time of the last input that starts work.
    given: Option<Duration>,
    /// Time within which the program shows that it works on its input.
    shows: Duration,
    /// Time from which a claim that still holds during output counts as new.
    renewed: Option<Duration>,
}

/// Time within which output after keys may be their echo.
const ECHO_TIMEOUT: Duration = Duration::from_millis(500);
/// Time within which output is followed by a look at the screen.
const SCREEN_POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Judge {
    /// For a program that was started at `now`.
    pub fn new(manifest: &Manifest, now: Moment) -> Self {
        let pace = OutputJudge::with(now, manifest.activity.silence.get());
        let pace = if manifest.awaits_sign() {
            pace.awaiting_a_sign()
        } else {
            pace
        };
        Self {
            pace,
            order: manifest.activity.order.clone(),
            status: Vec::new(),
            typed: None,
            has_worked: false,
            given: None,
            shows: manifest.activity.shows.get(),
            renewed: None,
        }
    }

    pub fn judgement(&self) -> Judgement {
        let paced = self.pace.judgement();
        match (&paced.activity, self.strongest()) {
            (Activity::Idle | Activity::Working | Activity::Blocked(_), Some(status)) => {
                let activity = match status.claim.says {
                    // A question is reported separately.
                    Says::Working | Says::Blocked => Activity::Working,
                    Says::Idle => Activity::Idle,
                };
                // A hook reports once; screen claims are always current.
                let heard = (status.claim.source == Source::Hook).then_some(status.heard);
                Judgement {
                    activity,
                    since: status.since,
                    evidence: status.claim.evidence.clone(),
                    heard,
                }
            }
            (Activity::Starting | Activity::Exited, _) | (_, None) => paced.clone(),
        }
    }

    /// Return the judgement from output, silence and readiness alone.
    pub fn pace(&self) -> &Judgement {
        self.pace.judgement()
    }

    pub fn is_starting(&self) -> bool {
        self.pace.judgement().activity == Activity::Starting
    }

    /// Whether better evidence than output shows that the program works.
    pub fn surely_works(&self) -> bool {
        let claim = self.strongest().map(|status| status.claim.says);
        matches!(claim, Some(Says::Working))
    }

    /// Whether any evidence but echo shows that the program works.
    pub fn may_work(&self) -> bool {
        self.has_worked || self.surely_works()
    }

    /// Keys were typed; the next output may be their echo.
    pub fn typed(&mut self, now: Moment) {
        self.typed = Some(now.mono);
    }

    /// Describe the condition that ends the start.
    pub fn release(&self) -> String {
        self.pace.release()
    }

    /// Replace all claims by those of one look at the screen. Claims of hooks are not visible and
    /// stay.
    pub fn seen(&mut self, now: Moment, claims: &[Claim]) {
        let is_there = |source| claims.iter().any(|claim| claim.source == source);
        self.status
            .retain(|old| old.claim.source == Source::Hook || is_there(old.claim.source));
        for claim in claims {
            self.claim(now, claim.clone());
        }
    }

    /// Set the claim of one source.
    pub fn claim(&mut self, now: Moment, claim: Claim) {
        let known = self
            .status
            .iter_mut()
            .find(|status| status.claim.source == claim.source);
        match known {
            Some(known) if known.claim.says == claim.says => {
                // Unchanged evidence on the screen is not new; a repeated hook event is.
                known.is_old &= claim.source != Source::Hook;
                known.claim = claim;
                known.heard = now;
            }
            Some(known) => *known = CurrentClaim::new(now, claim),
            None => self.status.push(CurrentClaim::new(now, claim)),
        }
    }

    /// Remove the claim of one source.
    pub fn forget(&mut self, source: Source) {
        self.status.retain(|old| old.claim.source != source);
    }

    /// The interrupt key was pressed. Many agents report no event then, so earlier claims of work
    /// no longer count, and the program has the time of a silence to show its activity.
    pub fn interrupted(&mut self, now: Moment) {
        let is_busy = |status: &CurrentClaim| {
            status.claim.source == Source::Hook && status.claim.says != Says::Idle
        };
        if self.status.iter().any(is_busy) {
            self.forget(Source::Hook);
            self.pace.given(now, "the interrupt key was pressed");
        }
    }

    /// The pattern that shows readiness appeared.
    pub fn ready(&mut self, now: Moment) {
        self.pace.ready(now);
    }

    pub fn output(&mut self, now: Moment) {
        self.pace.output(now);
        let is_after = |since: Option<Duration>, by| since.is_none_or(|at| at + by <= now.mono);
        self.has_worked |= is_after(self.typed, ECHO_TIMEOUT);
        // A program that writes without pause has no silence that would make it idle.
        let is_late = self.given.is_some() && is_after(self.given, self.shows);
        if is_late && self.renewed.is_none() && self.has_old() {
            self.renewed = Some(now.mono + SCREEN_POLL_INTERVAL);
        }
    }

    /// Return the time from which output can change the activity, if it can.
    pub fn heeds_output_from(&self) -> Option<Duration> {
        let echoes_until = self
            .typed
            .map_or(Duration::ZERO, |typed| typed + ECHO_TIMEOUT);
        let works = (!self.has_worked).then_some(echoes_until);
        let renews = self.has_old().then_some(Duration::ZERO);
        let all = [self.pace.heeds_output_from(), works, renews];
        all.into_iter().flatten().min()
    }

    fn has_old(&self) -> bool {
        self.status.iter().any(|status| status.is_old)
    }

    /// The program was given input: it counts as working until there is other evidence. Hook events
    /// after `from` already belong to this input.
    pub fn given(&mut self, now: Moment, from: Option<Duration>, what: &str) {
        // If claims say idle during output, the pace already says working.
        self.pace.given(now, what);
        self.typed = Some(now.mono);
        self.given = Some(now.mono);
        self.renewed = None;
        for status in &mut self.status {
            let is_since = from.is_some_and(|from| from <= status.heard.mono);
            status.is_old = status.claim.source != Source::Hook || !is_since;
        }
    }

    pub fn exited(&mut self, now: Moment, how: &Ending) {
        self.pace.exited(now, how);
    }

    pub fn tick(&mut self, now: Moment) {
        let before = self.pace.judgement().activity.clone();
        self.pace.tick(now);
        if self.renewed.is_some_and(|at| at <= now.mono) {
            self.renewed = None;
            for status in self.status.iter_mut().filter(|s| s.is_old) {
                status.is_old = false;
                status.since = now;
            }
        }
        if before != Activity::Idle && self.pace.judgement().activity == Activity::Idle {
            self.has_worked = false;
        }
        if before == Activity::Working && self.pace.judgement().activity == Activity::Idle {
            // The time for other evidence has passed.
            for status in &mut self.status {
                status.is_old = false;
            }
        }
    }

    pub fn next_wakeup(&self) -> Option<Duration> {
        self.pace
            .next_wakeup()
            .into_iter()
            .chain(self.renewed)
            .min()
    }

    /// Return the best evidence besides output, if any.
    fn strongest(&self) -> Option<&CurrentClaim> {
        let counts = |status: &&CurrentClaim| !(status.is_old && status.claim.says == Says::Idle);
        self.order.iter().find_map(|source| {
            let status = self.status.iter().filter(counts);
            status.into_iter().find(|s| s.claim.source == *source)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::tests::ms;
    use Says::{Blocked, Idle, Working};
    use Source::{Hook, Screen, Title};

    enum Happens<'a> {
        Seen(&'a [(Source, Says)]),
        Said(Source, Says),
        Output,
        Given,
        Tick,
        Ready,
    }

    fn claim(source: Source, says: Says) -> Claim {
        Claim {
            source,
            says,
            evidence: format!("{} {says:?}", source.as_str()),
        }
    }

    fn check(manifest: &Manifest, events: &[(u64, Happens<'_>)], want: &str) {
        let mut judge = Judge::new(manifest, ms(0));
        for (at, event) in events {
            let now = ms(*at);
            match event {
                Happens::Seen(seen) => {
                    let claims: Vec<_> = seen.iter().map(|(s, says)| claim(*s, *says)).collect();
                    judge.seen(now, &claims);
                }
                Happens::Said(source, says) => judge.claim(now, claim(*source, *says)),
                Happens::Output => judge.output(now),
                Happens::Given => judge.given(now, None, "a message was written to it"),
                Happens::Tick => judge.tick(now),
                Happens::Ready => judge.ready(now),
            }
        }
        let judged = judge.judgement();
        let since = judged.since.mono.as_millis();
        assert_eq!(
            format!("{} since {since}: {}", judged.activity, judged.evidence),
            want
        );
    }

    #[test]
    fn output_before_the_heeded_time_changes_nothing() {
        let mut judge = Judge::new(&Manifest::generic(), ms(0));
        let heeded = |judge: &Judge| judge.heeds_output_from().map(|from| from.as_millis());
        assert_eq!(heeded(&judge), Some(0));
        // A start ends by a silence, or after a long time.
        judge.typed(ms(50));
        judge.output(ms(100));
        assert_eq!(heeded(&judge), Some(550));
        judge.output(ms(550));
        assert_eq!(heeded(&judge), Some(30_000));
        judge.tick(ms(2_550));
        assert_eq!((judge.may_work(), heeded(&judge)), (false, Some(0)));
        // An echo.
        judge.typed(ms(3_000));
        judge.output(ms(3_001));
        assert_eq!((judge.may_work(), heeded(&judge)), (false, Some(3_500)));
        let before = judge.judgement();
        judge.output(ms(3_499));
        assert_eq!((judge.judgement(), judge.may_work()), (before, false));
        // Not an echo, and more of it.
        judge.output(ms(3_500));
        assert_eq!((judge.may_work(), heeded(&judge)), (true, None));
        judge.tick(ms(5_500));
        assert_eq!((judge.may_work(), heeded(&judge)), (false, Some(0)));
        // An old claim must outlast the output.
        judge.claim(ms(5_600), claim(Title, Idle));
        judge.given(ms(5_700), None, "a message was written to it");
        assert_eq!(heeded(&judge), Some(0));
    }

    #[test]
    fn a_lasting_idle_sign_counts_despite_constant_output() {
        let manifest = Manifest::generic();
        let ticks = |until: u64| {
            let clock = (1..)
                .map(|n| 3_000 + n * 100)
                .take_while(move |at| *at <= until);
            let mut all = vec![
                (0, Happens::Output),
                (2_000, Happens::Tick),
                (2_500, Happens::Seen(&[(Screen, Idle)])),
                (3_000, Happens::Given),
            ];
            all.extend(clock.flat_map(|at| [(at, Happens::Output), (at, Happens::Tick)]));
            all
        };
        let given = "working since 3000: a message was written to it";
        check(&manifest, &ticks(4_000), given);
        check(&manifest, &ticks(4_100), "idle since 4100: screen Idle");
        // Evidence of work at the last moment.
        let mut late = ticks(4_000);
        late.push((4_050, Happens::Seen(&[(Screen, Working)])));
        late.push((4_100, Happens::Tick));
        check(&manifest, &late, "working since 4050: screen Working");
    }

    #[test]
    fn an_echo_is_not_work() {
        let check = |events: &[(u64, &str)], want: bool| {
            let mut judge = Judge::new(&Manifest::generic(), ms(0));
            judge.output(ms(0));
            judge.tick(ms(2_000));
            for (at, event) in events {
                judge.tick(ms(*at));
                match *event {
                    "output" => judge.output(ms(*at)),
                    "typed" => judge.typed(ms(*at)),
                    "given" => judge.given(ms(*at), None, "a message was written to it"),
                    _ => {}
                }
            }
            assert_eq!(judge.may_work(), want, "{events:?}");
        };
        check(&[], false);
        check(&[(3_000, "output")], true);
        check(&[(3_000, "typed"), (3_001, "output")], false);
        check(&[(3_000, "given"), (3_499, "output")], false);
        check(&[(3_000, "given"), (3_500, "output")], true);
        check(
            &[(3_000, "output"), (3_001, "given"), (3_002, "output")],
            true,
        );
        check(&[(3_000, "output"), (5_000, "tick")], false);
    }

    #[test]
    fn the_best_evidence_decides() {
        use Happens::{Given, Output, Said, Seen, Tick};
        let generic = Manifest::generic();
        let begin = || vec![(0, Output), (2_000, Tick)];
        let also = |more: Vec<(u64, Happens<'static>)>| {
            let mut all = begin();
            all.extend(more);
            all
        };
        let check = |events: Vec<(u64, Happens<'_>)>, want| check(&generic, &events, want);
        check(begin(), "idle since 2000: no output for 2 s");
        // A title that says working beats silence.
        let busy = || (2_500, Seen(&[(Title, Working)]));
        check(also(vec![busy()]), "working since 2500: title Working");
        let silent = also(vec![busy(), (9_000, Tick)]);
        check(silent, "working since 2500: title Working");
        // A title that says idle beats output.
        let drawing = also(vec![(2_500, Seen(&[(Title, Idle)])), (3_000, Output)]);
        check(drawing, "idle since 2500: title Idle");
        const BOTH: [(Source, Says); 2] = [(Screen, Idle), (Title, Working)];
        check(
            also(vec![(2_500, Seen(&BOTH))]),
            "working since 2500: title Working",
        );
        let hook = also(vec![(2_500, Seen(&BOTH)), (2_600, Said(Hook, Idle))]);
        check(hook, "idle since 2600: hook Idle");
        // A look replaces screen claims and keeps those of hooks.
        let kept = also(vec![(2_500, Said(Hook, Idle)), (2_600, Seen(&[]))]);
        check(kept, "idle since 2500: hook Idle");
        let gone = also(vec![busy(), (2_600, Seen(&[]))]);
        check(gone, "idle since 2000: no output for 2 s");
        let asks = also(vec![(2_500, Seen(&[(Title, Blocked)]))]);
        check(asks, "working since 2500: title Blocked");
        // A title does not end the start.
        check(
            vec![(500, Seen(&[(Title, Idle)]))],
            "starting since 0: it was started and has written nothing yet",
        );
        // An idle claim from before the input does not count.
        let idle = || (2_500, Seen(&[(Title, Idle)]));
        let given = || also(vec![idle(), (3_000, Given)]);
        check(given(), "working since 3000: a message was written to it");
        let more = |event| {
            let mut all = given();
            all.push((3_100, event));
            all
        };
        check(
            more(Seen(&[(Title, Idle)])),
            "working since 3000: a message was written to it",
        );
        let mut turn = more(Seen(&[(Title, Working)]));
        turn.push((3_200, Seen(&[(Title, Idle)])));
        check(turn, "idle since 3200: title Idle");
        let mut quiet = given();
        quiet.push((5_000, Tick));
        check(quiet, "idle since 2500: title Idle");
    }

    #[test]
    fn readiness_is_awaited() {
        use Happens::{Output, Ready, Seen, Tick};
        let mut manifest = Manifest::generic();
        manifest
            .hook
            .ready
            .push("Ready".to_owned().try_into().unwrap());
        let starting = "starting since 0: it was started, and the pattern that shows that it is ready has not appeared";
        check(&manifest, &[(0, Output), (9_000, Tick)], starting);
        let endless: Vec<_> = (0..40).map(|s| (s * 1_000, Output)).collect();
        check(&manifest, &endless, starting);
        check(
            &manifest,
            &[(700, Ready)],
            "idle since 700: the pattern that shows that it is ready appeared",
        );
        let busy = [(600, Seen(&[(Title, Working)])), (700, Ready)];
        check(&manifest, &busy, "working since 600: title Working");
    }

    #[test]
    fn the_manifest_s_order_decides() {
        let mut manifest = Manifest::generic();
        manifest.activity.order = vec![Source::Screen, Source::Title];
        let seen = [(Title, Idle), (Screen, Working)];
        let events = [
            (0, Happens::Output),
            (2_000, Happens::Tick),
            (2_500, Happens::Seen(&seen)),
            (2_600, Happens::Said(Hook, Idle)),
        ];
        check(&manifest, &events, "working since 2500: screen Working");
    }
}
