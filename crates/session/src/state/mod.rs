//! The owner of a session's state: what the agent does, what holds its mail, and who may type.
//!
//! Everything else asks it or tells it, one thing at a time. It sees no terminal bytes; it decides
//! by the core's rules and has others act.

pub(crate) mod actions;
mod decisions;
mod driver;
mod end;
mod feed;
mod handle;
mod hook_calls;
mod loop_view;
mod lost_home;
mod mail_reader;
mod perform;
mod published;
mod replies;
mod tasks;

use crate::Shared;
use crate::host::log;
use crate::pty::keyboard::{Lease, Typing};
use crate::pty::program::ProgramFiles;
use crate::pty::pulse::Pulse;
use crate::pty::viewer::ViewerId;
use crate::routes::transcript::Transcripts;
use crate::socket::dispatch::Sink;
use driver::Driver;
use end::{EndRequest, Signals};
use feed::OutputTimes;
pub(crate) use loop_view::LoopView;
use loop_view::LoopWatch;
use mail_reader::MailReader;
use posthaste_core::delivery::{DeliveryConfig, Reach};
use posthaste_core::driver::{DriverConfig, Input, KeyboardUser, RunIdentity};
use posthaste_core::harness::{Manifest, Sighting};
use posthaste_core::turn;
use posthaste_core::{Conversation, MessageState, Timestamp};
use posthaste_store::bell::{self, Watch};
use posthaste_store::files;
use posthaste_store::live::place::Record;
use posthaste_wire::{self as wire, method, plain};
use published::Published;
use replies::PendingReplies;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tasks::Tasks;
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{info, warn};

pub(crate) type Tell<T> = Box<dyn FnOnce(T)>;

/// What others want of the session.
pub(crate) enum StateRequest {
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
        state: Box<MessageState>,
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

impl std::fmt::Debug for StateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateRequest")
    }
}

/// What a state begins with.
pub(crate) struct Setup {
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

pub(crate) struct SessionState {
    setup: Setup,
    driver: Driver,
    mail: MailReader,
    tasks: Tasks,
    leases: Leases,
    /// Requests and hook calls whose reply the driver decides.
    replies: PendingReplies,
    transcripts: Transcripts,
    looped: LoopWatch,
    published: Published,
    is_checkpoint_asked: bool,
    ending: EndRequest,
}

impl SessionState {
    pub(crate) fn new(setup: Setup) -> Self {
        let shared = &setup.shared;
        let delivery = DeliveryConfig {
            harness: setup.harness.clone(),
            path_bytes: files::longest_path(&shared.home, &shared.agent),
            reach: match shared.is_loop {
                true => Reach::Prompt,
                false => Reach::Terminal,
            },
            has_hooks: setup.has_hooks,
        };
        let record = &setup.record;
        let start = DriverConfig {
            delivery,
            run: RunIdentity {
                run: record.run,
                harness: record.launch.harness.clone(),
                cwd: record.launch.cwd.to_string_lossy().into_owned(),
            },
            resumed: setup.resumed.clone(),
        };
        Self {
            driver: Driver::new(start),
            mail: MailReader::new(),
            tasks: Tasks::new(),
            leases: Leases::default(),
            replies: PendingReplies::default(),
            transcripts: Transcripts::default(),
            looped: LoopWatch::default(),
            published: Published::new(posthaste_store::times::now()),
            is_checkpoint_asked: false,
            ending: EndRequest::new(setup.without_home),
            setup,
        }
    }

    /// Serves until the program has ended and its last output is read; gives back how it ended.
    pub(crate) async fn run(
        mut self,
        requests: &mut mpsc::Receiver<StateRequest>,
        child: &mut Child,
        drained: oneshot::Receiver<()>,
    ) -> std::io::Result<ExitStatus> {
        let mail = self.setup.shared.mail.clone();
        let ring = self.setup.shared.ring.clone();
        let _watch = Watch::on(
            &self.setup.shared.home,
            Some(&self.setup.shared.agent),
            move || {
                ring.notify_one();
            },
        )
        .inspect_err(|error| {
            warn!(target: log::DELIVERY, "mail is looked for by the clock alone: {error}");
        });
        let bell = self.setup.shared.ring.clone();
        let mut asked_to_end = Signals::listen();
        let mut tick = tokio::time::interval(bell::TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let pulse = self.setup.pulse.clone();
        let mut drafted = self.setup.drafted.clone();
        let mut sighted = self.setup.sighted.clone();
        self.first_read().await;
        let status = loop {
            self.proceed();
            let wakeup = self.wakeup();
            tokio::select! {
                biased;
                status = child.wait() => break status,
                Some(report) = self.tasks.next() => self.hear(report),
                Some(view) = self.mail.next() => self.see(view),
                () = mail.notified() => {
                    let head = self.setup.shared.books.head();
                    self.tell(Input::JournalChanged { head });
                },
                () = bell.notified() => {
                    self.tasks.spawn(actions::look_up_head(self.setup.shared.clone()));
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
                Some(request) = requests.recv() => self.handle(request),
                () = tokio::time::sleep_until(wakeup.unwrap_or_else(far).into()), if wakeup.is_some() => {}
            }
        };
        self.finish(&status, drained, requests).await;
        status
    }

    /// When something changes by the clock alone.
    fn wakeup(&self) -> Option<Instant> {
        // The wall clock may step: look again now and then.
        let driver = self.driver.next_timeout();
        let driver = driver.map(|at| at.min(Instant::now() + bell::TICK));
        driver.into_iter().chain(self.ending.next_timeout()).min()
    }

    /// Whatever the time has come for.
    fn proceed(&mut self) {
        self.end_if_due();
        self.tell(Input::Tick);
        // Before anything is begun in the rest that the tick may have found.
        self.reach_checkpoint();
        self.drive();
        self.tell_changes();
        self.driver.log_holds();
        let delivery = self.driver.delivery();
        let instant = |mono| self.driver.instant(mono);
        let output = delivery.output_matters_from().map(instant);
        let due = delivery.next_wakeup().map(instant);
        let heeds_keys = !delivery.is_at_rest();
        self.setup.pulse.heed(output, heeds_keys, due);
    }

    /// Perform every action that the driver wants by now.
    fn drive(&mut self) {
        while let Some(action) = self.driver.poll_action() {
            self.perform(action);
        }
    }

    /// Tell the driver what was typed and shown since the last input, as of when that was.
    fn catch_up(&mut self) {
        let typing = *self.setup.drafted.borrow();
        let pulse = &self.setup.pulse;
        let output = OutputTimes {
            in_time: pulse.last_until(),
            last: pulse.last(),
        };
        self.driver.catch_up(typing, output);
        let delivery = self.driver.delivery();
        let paste = delivery.paste().applies(pulse.wants_paste());
        if paste != (delivery.input() == turn::InputMode::Pasted) {
            let now = Instant::now();
            self.driver.tell_as_of(now, Input::PasteMode(paste));
        }
    }

    fn tell(&mut self, input: Input) {
        self.catch_up();
        self.driver.tell_as_of(Instant::now(), input);
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}
