//! The owner of a session's state: what the agent does, what holds its mail, and who may type.
//!
//! Everything else asks it or tells it, one thing at a time. It sees no terminal bytes; it decides
//! by the core's rules and has others act.

mod act;
mod decisions;
mod end;
mod grant;
mod hand;
mod homeless;
mod look;
mod looped;
mod requests;

use super::dispatch::Sink;
use super::errands::{self, Report};
use super::keyboard::{Lease, Typing};
use super::place::Record;
use super::program::ProgramFiles;
use super::pulse::Pulse;
use super::transcript::Transcripts;
use super::viewer::ViewerId;
use super::{Shared, log};
use decisions::{DecisionLog, Holds};
use end::{Ending, Signals};
use hand::OpenHookCall;
use homeless::Homeless;
use look::View;
pub(crate) use looped::LoopView;
use requests::PendingReplies;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::{Desk, Manner, Reach};
use posthaste_core::driver::{Input, KeyboardUser, RunIdentity, SessionDriver, Start};
use posthaste_core::harness::{Manifest, Sighting};
use posthaste_core::moment::Moment;
use posthaste_core::turn;
use posthaste_core::{Conversation, Letter, Timestamp};
use posthaste_store::bell::{self, Watch};
use posthaste_store::{Error, files};
use posthaste_wire::{self as wire, Run, method, plain};
use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{info, warn};

/// How many reports may wait; whoever comes when it is full waits for room.
const REPORTS: usize = 16;

pub(crate) type Tell<T> = Box<dyn FnOnce(T)>;

/// What others want of the session.
pub(crate) enum Wish {
    Status {
        recent: Vec<String>,
        sink: Sink,
    },
    /// How the loop stands, before somebody asks.
    Loop(LoopView),
    Session(Tell<wire::Session>),
    /// The same in the original's words.
    Agent(Tell<plain::AgentInfo>),
    /// A hook of the agent's has something to say.
    Hook {
        hook: method::HookEvent,
        tell: Tell<method::Hooked>,
    },
    /// A hook has passed on what it was given.
    Taken(u64),
    /// A hook has gone, and did not say so.
    Dropped(u64),
    Why {
        letter: Box<Letter>,
        sink: Sink,
    },
    Stop(Sink),
    Kill(Sink),
    Checkpoint(Sink),
    Pause {
        on: bool,
        sink: Sink,
    },
    Interactive {
        enabled: bool,
        sink: Sink,
    },
    Nudge {
        text: String,
        /// When whoever waits for it asked.
        asked_at: Option<Timestamp>,
        sink: Sink,
    },
    /// Whether an answer would reach the question that was open at this time. Told why not.
    CheckAnswer {
        asked_at: Timestamp,
        tell: Tell<Option<String>>,
    },
    /// A viewer wants the keyboard to itself.
    Take(ViewerId),
    Release(ViewerId),
}

impl std::fmt::Debug for Wish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wish")
    }
}

/// What a clerk begins with.
pub(crate) struct Outset {
    pub(crate) shared: Rc<Shared>,
    pub(crate) record: Record,
    pub(crate) pulse: Rc<Pulse>,
    pub(crate) harness: Arc<Manifest>,
    /// Whether the program was started with our hooks, or has them in its own settings.
    pub(crate) has_hooks: bool,
    pub(crate) sighted: watch::Receiver<Sighting>,
    pub(crate) drafted: watch::Receiver<Typing>,
    pub(crate) files: Rc<ProgramFiles>,
    pub(crate) taken: watch::Sender<Option<ViewerId>>,
    pub(crate) interactive: watch::Sender<bool>,
    pub(crate) notice: watch::Sender<String>,
    /// How long it goes on once its home is gone.
    pub(crate) without_home: Duration,
    /// The conversation that the program was told to resume.
    pub(crate) resumed: Option<Conversation>,
}

/// The keyboard, for as long as the driver keeps it.
#[derive(Debug, Default)]
struct Leases {
    turn: Option<Lease>,
    nudge: Option<Lease>,
}

impl Leases {
    fn of(&mut self, user: KeyboardUser) -> &mut Option<Lease> {
        match user {
            KeyboardUser::Turn => &mut self.turn,
            KeyboardUser::Nudge => &mut self.nudge,
        }
    }
}

pub(crate) struct Clerk {
    outset: Outset,
    shared: Rc<Shared>,
    driver: SessionDriver,
    /// What the driver decides, on its way to the log.
    decisions: DecisionLog,
    begun: Instant,
    view: View,
    /// Whether the journal is being read.
    is_reading: bool,
    /// Why the last read failed, which is logged once.
    trouble: Option<String>,
    leases: Leases,
    /// Requests whose reply the driver decides.
    replies: PendingReplies,
    /// Hook calls that wait for their answer, by number.
    hook_calls: BTreeMap<u64, OpenHookCall>,
    hook_call_count: u64,
    transcripts: Transcripts,
    holds: Holds,
    /// How many tasks are under way that will report.
    tasks: usize,
    reports: mpsc::Sender<Report>,
    reported: mpsc::Receiver<Report>,
    views: mpsc::Sender<Result<View, Error>>,
    viewed: mpsc::Receiver<Result<View, Error>>,
    run: Run,
    /// Of a loop: what listeners were told last.
    looped: Option<wire::LoopStatus>,
    /// The fact as of which that is at least.
    loop_seq: u64,
    is_checkpoint_asked: bool,
    ending: Option<Ending>,
    homeless: Homeless,
    /// What listeners were told last.
    told: (Activity, bool),
    updated_at: Timestamp,
    /// The last output and the last keys that the driver has been told of.
    heard_at: Option<Instant>,
    strokes: u64,
}

impl Clerk {
    pub(crate) fn new(outset: Outset) -> Self {
        let begun = Instant::now();
        let now = Moment {
            wall: crate::times::now(),
            mono: Duration::ZERO,
        };
        let shared = outset.shared.clone();
        let manner = Manner {
            harness: outset.harness.clone(),
            path_bytes: files::longest_path(&shared.home, &shared.agent),
            reach: match shared.is_loop {
                true => Reach::Prompt,
                false => Reach::Terminal,
            },
            has_hooks: outset.has_hooks,
        };
        let record = &outset.record;
        let start = Start {
            manner,
            run: RunIdentity {
                run: record.run,
                harness: record.launch.harness.clone(),
                cwd: record.launch.cwd.to_string_lossy().into_owned(),
            },
            resumed: outset.resumed.clone(),
        };
        let (reports, reported) = mpsc::channel(REPORTS);
        let (views, viewed) = mpsc::channel(1);
        Self {
            shared,
            driver: SessionDriver::new(start, now),
            decisions: DecisionLog::new(outset.harness.clone()),
            begun,
            view: View::default(),
            is_reading: false,
            trouble: None,
            leases: Leases::default(),
            replies: PendingReplies::default(),
            hook_calls: BTreeMap::new(),
            hook_call_count: 0,
            transcripts: Transcripts::default(),
            holds: Holds::default(),
            tasks: 0,
            reports,
            reported,
            views,
            viewed,
            run: Run::Running,
            looped: None,
            loop_seq: 0,
            is_checkpoint_asked: false,
            ending: None,
            homeless: Homeless::new(outset.without_home),
            told: (Activity::Starting, false),
            updated_at: now.wall,
            heard_at: None,
            strokes: 0,
            outset,
        }
    }

    /// What is put before the agent, and when.
    fn delivery(&self) -> &Desk {
        self.driver.delivery()
    }

    fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    /// A time of this session's.
    fn moment(&self, at: Instant) -> Moment {
        let wall = crate::times::now();
        Moment {
            wall: wall.checked_sub(at.elapsed()).unwrap_or(wall),
            mono: at.saturating_duration_since(self.begun),
        }
    }

    /// Serves until the program has ended and its last output is read; gives back how it ended.
    pub(crate) async fn run(
        mut self,
        wishes: &mut mpsc::Receiver<Wish>,
        child: &mut Child,
        drained: oneshot::Receiver<()>,
    ) -> std::io::Result<ExitStatus> {
        let mail = self.shared.mail.clone();
        let ring = self.shared.ring.clone();
        let _watch = Watch::on(&self.shared.home, Some(&self.shared.agent), move || {
            ring.notify_one();
        })
        .inspect_err(|error| {
            warn!(target: log::DELIVERY, "mail is looked for by the clock alone: {error}");
        });
        let bell = self.shared.ring.clone();
        let mut asked_to_end = Signals::listen();
        let mut tick = tokio::time::interval(bell::TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let pulse = self.outset.pulse.clone();
        let mut drafted = self.outset.drafted.clone();
        let mut sighted = self.outset.sighted.clone();
        self.first_read().await;
        let status = loop {
            self.proceed();
            let wakeup = self.wakeup();
            tokio::select! {
                biased;
                status = child.wait() => break status,
                Some(report) = self.reported.recv() => self.hear(report),
                Some(view) = self.viewed.recv() => self.see(view),
                () = mail.notified() => {
                    let head = self.shared.books.head();
                    self.tell(Input::JournalChanged { head });
                },
                () = bell.notified() => {
                    self.send(errands::look_up_head(self.shared.clone()));
                },
                // What they are about is looked up before anything else is told.
                Ok(()) = drafted.changed() => {}
                () = pulse.next() => {}
                Ok(()) = sighted.changed() => {
                    let sighting = sighted.borrow_and_update().clone();
                    self.tell(Input::ScreenChanged(sighting));
                }
                () = asked_to_end.next() => {
                    info!(target: log::SESSION, "a signal asks the session to end");
                    self.end();
                }
                _ = tick.tick() => self.tell(Input::PeriodicCheck),
                // After all else, none of which can come without end: many who ask hold up nothing.
                Some(wish) = wishes.recv() => self.grant(wish),
                () = tokio::time::sleep_until(wakeup.unwrap_or_else(far).into()), if wakeup.is_some() => {}
            }
        };
        self.finish(&status, drained, wishes).await;
        status
    }

    /// When something changes by the clock alone.
    fn wakeup(&self) -> Option<Instant> {
        let driver = self.driver.next_timeout(self.now());
        // The wall clock may step: look again now and then.
        let driver = driver.map(|at| (self.begun + at).min(Instant::now() + bell::TICK));
        let insist = match self.ending {
            Some(Ending::Asked { insist_at }) => Some(insist_at),
            Some(Ending::Insisted) | None => None,
        };
        let homeless = self.homeless.ends_at().filter(|_| self.ending.is_none());
        [driver, insist, homeless].into_iter().flatten().min()
    }

    /// Whatever the time has come for.
    fn proceed(&mut self) {
        let now = Instant::now();
        if let Some(Ending::Asked { insist_at }) = self.ending
            && insist_at <= now
        {
            self.insist();
        }
        self.end_without_home(now);
        self.tell(Input::Tick);
        // Before anything is begun in the rest that the tick may have found.
        self.reach_checkpoint();
        self.drive();
        self.tell_changes();
        self.log_holds();
        let delivery = self.delivery();
        let output = delivery.heeds_output_from().map(|from| self.begun + from);
        let due = delivery.next_wakeup().map(|at| self.begun + at);
        let heeds_keys = !delivery.is_at_rest();
        self.outset.pulse.heed(output, heeds_keys, due);
    }

    /// Perform every action that the driver wants by now.
    fn drive(&mut self) {
        loop {
            let now = self.now();
            let Some(action) = self.driver.poll_action(now, &mut self.decisions) else {
                return;
            };
            self.perform(action);
        }
    }

    /// Tell the driver what was typed and shown since the last input, as of when that was. Output that
    /// came before something was due is told first, so that no silence is seen where there was none;
    /// and keys before all output that may be their echo.
    fn catch_up(&mut self) {
        let typing = *self.outset.drafted.borrow();
        let keys = typing.last.filter(|_| self.strokes < typing.strokes);
        self.strokes = typing.strokes;
        let in_time = self.unheard(self.outset.pulse.last_until());
        if let Some(at) = in_time {
            if let Some(typed) = keys {
                self.tell_keys(typing, typed.min(at));
            }
            self.tell_output(at, at);
        }
        if let Some(typed) = keys.filter(|typed| in_time.is_none_or(|at| at < *typed)) {
            self.tell_keys(typing, typed);
        }
        if let Some(at) = self.unheard(self.outset.pulse.last()) {
            self.tell_output(at, keys.map_or(at, |typed| typed.max(at)));
        }
        let paste = self.delivery().paste();
        let paste = paste.applies(self.outset.pulse.wants_paste());
        if paste != (self.delivery().input() == turn::Input::Pasted) {
            self.tell_as_of(Instant::now(), Input::PasteMode(paste));
        }
    }

    /// Output that the driver does not know of.
    fn unheard(&self, output: Option<Instant>) -> Option<Instant> {
        output.filter(|at| self.heard_at < Some(*at))
    }

    fn tell_output(&mut self, output: Instant, as_of: Instant) {
        self.heard_at = Some(output);
        self.tell_as_of(as_of, Input::OutputSeen);
    }

    fn tell_keys(&mut self, typing: Typing, as_of: Instant) {
        let is_draft = typing.is_open;
        self.tell_as_of(as_of, Input::KeysTyped { is_draft });
    }

    fn tell(&mut self, input: Input) {
        self.catch_up();
        self.tell_as_of(Instant::now(), input);
    }

    fn tell_as_of(&mut self, at: Instant, input: Input) {
        let now = self.moment(at);
        self.driver.handle(now, input, &mut self.decisions);
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}
