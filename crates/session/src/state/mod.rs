//! The owner of a session's state: the agent's activity, the delivery of its mail, and the right to type.
//!
//! Other tasks send it requests and reports, which it handles one at a time. It never receives terminal
//! bytes. The core's session driver decides; tasks perform the driver's actions.

pub(crate) mod actions;
mod driver;
mod end;
mod journal_view;
mod published_state;
mod requests;

use crate::Shared;
use crate::host::log;
use crate::host::program_io::Observers;
use crate::pty::keyboard::Lease;
use crate::pty::viewer::ViewerId;
use crate::routes::transcript::Transcripts;
use actions::task_queue::TaskQueue;
use actions::tasks;
use driver::Driver;
use driver::typing_and_output::OutputTimes;
use end::{EndRequest, Signals};
use journal_view::JournalReader;
pub(crate) use journal_view::loop_view::LoopView;
use journal_view::loop_view::LoopWatch;
use posthaste_core::Conversation;
use posthaste_core::delivery::{DeliveryConfig, Reach};
use posthaste_core::driver::{DriverConfig, Input, KeyboardUser, RunIdentity};
use posthaste_core::harness::Manifest;
use posthaste_store::bell::{self, Watch};
use posthaste_store::files;
use posthaste_store::live::SessionRecord;
use published_state::PublishedState;
pub(crate) use requests::StateRequest;
use requests::pending_replies::PendingReplies;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{info, warn};

/// Parts from which the state is made.
pub(crate) struct Setup {
    pub(crate) shared: Rc<Shared>,
    pub(crate) record: SessionRecord,
    pub(crate) harness: Arc<Manifest>,
    /// Whether the session has given the program hooks, or the program's own settings contain them.
    pub(crate) has_hooks: bool,
    /// How long the session continues after its home is gone.
    pub(crate) without_home: Duration,
    /// The conversation that the program was told to resume.
    pub(crate) resumed: Option<Conversation>,
    pub(crate) observers: Observers,
    pub(crate) publishers: Publishers,
}

/// Senders of the values in [`crate::Watches`] that the state decides.
pub(crate) struct Publishers {
    pub(crate) taken: watch::Sender<Option<ViewerId>>,
    pub(crate) interactive: watch::Sender<bool>,
    pub(crate) notice: watch::Sender<String>,
}

/// Leases of the keyboard that the driver holds.
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
    reader: JournalReader,
    tasks: TaskQueue,
    leases: Leases,
    replies: PendingReplies,
    transcripts: Transcripts,
    loop_watch: LoopWatch,
    published: PublishedState,
    end: EndRequest,
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
            reader: JournalReader::new(),
            tasks: TaskQueue::new(),
            leases: Leases::default(),
            replies: PendingReplies::default(),
            transcripts: Transcripts::default(),
            loop_watch: LoopWatch::default(),
            published: PublishedState::new(posthaste_store::times::now()),
            end: EndRequest::new(setup.without_home),
            setup,
        }
    }

    /// Run until the program has ended and its last output was read. Return its exit status.
    pub(crate) async fn run(
        mut self,
        requests: &mut mpsc::Receiver<StateRequest>,
        child: &mut Child,
        drained: oneshot::Receiver<()>,
    ) -> std::io::Result<ExitStatus> {
        let _watch = watch_bell(&self.setup.shared);
        let mail = self.setup.shared.wakeups.mail.clone();
        let bell = self.setup.shared.wakeups.bell.clone();
        let mut end_signals = Signals::listen();
        let mut tick = tokio::time::interval(bell::BELL_CHECK_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let output = self.setup.observers.output.clone();
        let mut typing = self.setup.observers.typing.clone();
        let mut screen = self.setup.observers.screen.clone();
        self.first_read().await;
        let status = loop {
            self.update();
            let wakeup = self.wakeup();
            tokio::select! {
                biased;
                status = child.wait() => break status,
                Some(report) = self.tasks.next() => self.apply_report(report),
                Some(view) = self.reader.next() => self.apply_read(view),
                () = mail.notified() => {
                    let head = self.setup.shared.journal.head();
                    self.feed(Input::JournalChanged { head });
                },
                () = bell.notified() => {
                    self.tasks.spawn(tasks::look_up_head(self.setup.shared.clone()));
                },
                // `update` passes keys and output to the driver.
                Ok(()) = typing.changed() => {}
                () = output.next() => {}
                Ok(()) = screen.changed() => {
                    let sighting = screen.borrow_and_update().clone();
                    self.feed(Input::ScreenChanged(sighting));
                }
                () = end_signals.next() => {
                    info!(target: log::SESSION, "a signal requests the end of the session");
                    self.request_end();
                }
                _ = tick.tick() => self.feed(Input::PeriodicCheck),
                // Requests come last, so that many requests do not delay anything else.
                Some(request) = requests.recv() => self.handle(request),
                () = tokio::time::sleep_until(wakeup.unwrap_or_else(Instant::now).into()), if wakeup.is_some() => {}
            }
        };
        self.finish(&status, drained, requests).await;
        status
    }

    /// Return the next time at which something is due.
    fn wakeup(&self) -> Option<Instant> {
        // The wall clock may step, so check again after a while.
        let driver = self.driver.next_timeout();
        let driver = driver.map(|at| at.min(Instant::now() + bell::BELL_CHECK_INTERVAL));
        driver.into_iter().chain(self.end.next_timeout()).min()
    }

    /// Do what is due, perform the driver's actions, and publish changes.
    fn update(&mut self) {
        self.end_if_due();
        self.catch_up();
        self.perform_actions();
        self.publish_changes();
        self.driver.log_holds();
        let delivery = self.driver.delivery();
        let instant = |mono| self.driver.instant(mono);
        let output = delivery.output_matters_from().map(instant);
        let due = delivery.next_wakeup().map(instant);
        let heeds_keys = !delivery.is_at_rest();
        self.setup.observers.output.wake_on(output, heeds_keys, due);
    }

    /// Perform every action that the driver requests.
    fn perform_actions(&mut self) {
        while let Some(action) = self.driver.poll_action() {
            self.perform(action);
        }
    }

    /// Tell the driver about keys and output since the last input, with the times at which they came.
    fn catch_up(&mut self) {
        let typing = *self.setup.observers.typing.borrow();
        let program_output = &self.setup.observers.output;
        let output = OutputTimes {
            in_time: program_output.last_before_deadline(),
            last: program_output.last_at(),
        };
        self.driver.catch_up(typing, output);
        let paste = Input::PasteMode(program_output.wants_paste());
        self.driver.feed_as_of(Instant::now(), paste);
    }

    /// Pass an input to the driver.
    fn feed(&mut self, input: Input) {
        self.catch_up();
        self.driver.feed_as_of(Instant::now(), input);
    }
}

/// Have the journal's bell wake the session.
fn watch_bell(shared: &Shared) -> Option<Watch> {
    let bell = shared.wakeups.bell.clone();
    let watch = Watch::on(&shared.home, Some(&shared.agent), move || bell.notify_one());
    let unwatched = |error: &_| {
        warn!(
            target: log::DELIVERY,
            "cannot watch the journal's bell, so only periodic checks find new mail: {error}"
        );
    };
    watch.inspect_err(unwatched).ok()
}
