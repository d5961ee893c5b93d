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

use super::dispatch::Sink;
use super::door::Calling;
use super::errands::{self, Report};
use super::handing::Giving;
use super::keyboard::{Lease, Typed, Typing};
use super::place::Record;
use super::program::ProgramFiles;
use super::pulse::Pulse;
use super::transcript::Transcripts;
use super::viewer::ViewerId;
use super::{Shared, log};
use decisions::HoldLog;
use end::{Ending, Signals};
use homeless::Homeless;
use look::{Looking, View};
pub(crate) use looped::LoopView;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::{Answerable, Decision, Desk, Event, Manner, Reach};
use posthaste_core::harness::{Manifest, Sighting};
use posthaste_core::moment::Moment;
use posthaste_core::turn::Input;
use posthaste_core::{Conversation, Letter, Timestamp};
use posthaste_store::bell::{self, Watch};
use posthaste_store::{Error, files};
use posthaste_wire::{self as wire, Run, method, plain};
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{info, warn};

/// How often the journal is looked at while there is much mail.
const LOOK: Duration = Duration::from_millis(20);
/// A bell that rings so soon after a look began is that of what the look was for: our own commits
/// ring it too, and would each cost another look.
const MOMENT: Duration = Duration::from_millis(5);
/// How long unread input is looked at often; after that it is looked at now and then.
const SOON: Duration = Duration::from_secs(1);
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
    /// What stands against a line that is no message, now that the keyboard is its own and this
    /// is seen.
    Nudgeable {
        seen: Option<Sighting>,
        asked: Asked,
        tell: Tell<Option<Bar>>,
    },
    /// Whether an answer would reach a question of the program.
    Answerable(Tell<Answerable>),
    /// A viewer wants the keyboard to itself.
    Take(ViewerId),
    Release(ViewerId),
}

/// What is asked about a line that is no message.
pub(crate) enum Asked {
    /// Before it is typed: why it may not be.
    Rules(String),
    /// Before its Enter: why the screen does not show this line alone in the input box.
    Enter(String),
}

/// Reason why a nudge line must not be typed or submitted.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) reason: String,
    /// The reason may pass within moments, so retrying makes sense.
    pub(crate) passes: bool,
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

pub(crate) struct Clerk {
    outset: Outset,
    shared: Rc<Shared>,
    desk: Desk,
    begun: Instant,
    view: View,
    /// Whether the view is from after the last report.
    is_fresh: bool,
    /// Whether it was asked for because something is due.
    is_sure: bool,
    looking: Option<Looking>,
    /// Whether something is due, and mail that came since may go before it.
    is_wanted: bool,
    looked_at: Instant,
    /// Why the last look failed, which is said once.
    trouble: Option<String>,
    /// Whether there is a reason to look.
    is_stale: bool,
    /// Whether mail has come by this session since the last look began.
    has_mail: bool,
    lease: Option<Lease>,
    /// What is being offered, or the agent reminded of: as it was looked up before that was
    /// recorded.
    in_hand: Vec<Letter>,
    /// What waits for a hook, while the desk is asked whether it may have it.
    giving: Option<Giving>,
    /// The same for the agent's own door.
    calling: Option<Calling>,
    transcripts: Transcripts,
    holds: HoldLog,
    /// The conversation that the program is in, as it is on record.
    conversation: Option<Conversation>,
    /// How many errands are under way.
    errands: usize,
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
    /// The last output and the last keys that the desk has been told of.
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
        let (reports, reported) = mpsc::channel(REPORTS);
        let (views, viewed) = mpsc::channel(1);
        Self {
            shared,
            desk: Desk::new(manner, now),
            begun,
            view: View::default(),
            is_fresh: false,
            is_sure: false,
            looking: None,
            is_wanted: false,
            looked_at: begun,
            trouble: None,
            is_stale: true,
            has_mail: true,
            lease: None,
            in_hand: Vec::new(),
            giving: None,
            calling: None,
            transcripts: Transcripts::default(),
            holds: HoldLog::default(),
            conversation: None,
            errands: 0,
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
        self.send(errands::expire(self.shared.clone()));
        self.first_look().await;
        let status = loop {
            self.proceed();
            let wakeup = self.wakeup();
            tokio::select! {
                biased;
                status = child.wait() => break status,
                Some(report) = self.reported.recv() => self.hear(report),
                Some(view) = self.viewed.recv() => self.see(view),
                () = mail.notified() => (self.is_stale, self.has_mail) = (true, true),
                () = bell.notified() => self.is_stale = true,
                // What they are about is looked up before anything else is told.
                Ok(()) = drafted.changed() => {}
                () = pulse.next() => {}
                Ok(()) = sighted.changed() => {
                    let sighting = sighted.borrow_and_update().clone();
                    self.tell(Event::Seen(sighting));
                }
                () = asked_to_end.next() => {
                    info!(target: log::SESSION, "a signal asks the session to end");
                    self.end();
                }
                _ = tick.tick() => {
                    self.is_stale = true;
                    if self.errands == 0 {
                        self.send(errands::put_away_injected(self.shared.clone()));
                    }
                }
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
        let desk = self.desk.next_wakeup().map(|at| self.begun + at);
        let insist = match self.ending {
            Some(Ending::Asked { insist_at }) => Some(insist_at),
            Some(Ending::Insisted) | None => None,
        };
        let look = (self.is_stale && self.looking.is_none()).then(|| self.looked_at + LOOK);
        let due = self.view.pending.next.map(|at| {
            let wait = at.duration_since(crate::times::now());
            // The wall may step: look again now and then.
            let wait = Duration::try_from(wait).unwrap_or_default();
            Instant::now() + wait.clamp(Duration::from_millis(1), bell::TICK)
        });
        let input = self.desk.unread_for(self.now()).map(|unread| {
            let again = if unread < SOON { SOON / 100 } else { SOON / 4 };
            Instant::now() + again
        });
        let is_asked = self.has_more_to_type() || self.desk.awaits_reading();
        let input = input.filter(|_| is_asked);
        let forget = self
            .forgets_at()
            .map(|at| at.max(Instant::now() + SOON / 100));
        let homeless = self.homeless.ends_at().filter(|_| self.ending.is_none());
        let read = self.transcripts.next_read();
        let all = [desk, insist, look, due, input, forget, homeless, read];
        all.into_iter().flatten().min()
    }

    /// Whatever the time has come for.
    fn proceed(&mut self) {
        let now = Instant::now();
        self.catch_up();
        if self
            .desk
            .next_wakeup()
            .is_some_and(|at| self.begun + at <= now)
        {
            self.tell(Event::Tick);
        }
        if let Some(Ending::Asked { insist_at }) = self.ending
            && insist_at <= now
        {
            self.insist();
        }
        self.end_without_home(now);
        if self
            .view
            .pending
            .next
            .is_some_and(|at| at <= crate::times::now())
        {
            self.view.pending.next = None;
            self.is_stale = true;
            self.send(errands::expire(self.shared.clone()));
        }
        if self.is_stale && self.looking.is_none() && self.looked_at + LOOK <= now {
            self.look();
        }
        self.settle_resumed();
        self.read_transcripts(now);
        self.reach_checkpoint();
        self.look_at_input();
        self.forget_keys();
        self.act();
        self.tell_changes();
        self.log_holds();
        let output = self.desk.heeds_output_from().map(|from| self.begun + from);
        let due = self.desk.next_wakeup().map(|at| self.begun + at);
        let heeds_keys = !self.desk.is_at_rest();
        self.outset.pulse.heed(output, heeds_keys, due);
    }

    /// Begins with what is due. Where mail has come since it was looked up, it is looked up once
    /// more, because some of that may go before it; then it begins whatever comes meanwhile.
    fn act(&mut self) {
        let is_sure = std::mem::take(&mut self.is_sure);
        if self.is_fresh {
            let lapsed = self.desk.lapsed(self.now(), &self.view.pending.due);
            self.perform(lapsed);
        }
        let (now, pending) = (self.now(), &self.view.pending.due);
        let is_due =
            self.is_fresh && matches!(self.desk.next(now, pending), Decision::Offer { .. });
        let is_echo = !self.has_mail && self.looked_at.elapsed() < MOMENT;
        let is_recent = !self.is_stale || is_echo;
        let is_current = is_recent && self.looking.is_none();
        self.is_wanted = is_due && !is_current && !is_sure;
        if self.is_wanted {
            if self.looking.is_none() {
                self.look();
            }
        } else if is_due {
            let effects = self.desk.act(now, pending);
            self.perform(effects);
        } else if self.is_fresh && is_current {
            let effects = self.desk.remind(now, &self.view.owed);
            self.perform(effects);
        } else if let Some(look) = &mut self.looking {
            // What is due when it is done may be due for another reason than when it was begun.
            look.is_sure = false;
        }
    }

    /// Sees whether the program reads what is typed, where there is more to type or Enter seems to
    /// have no effect. Nobody tells us when it does.
    fn look_at_input(&mut self) {
        let has_more = self.has_more_to_type() && !self.desk.is_writing();
        if !has_more && !self.desk.awaits_reading() {
            return;
        }
        let is_unread = self.shared.keyboard.is_unread();
        if is_unread != self.desk.unread_for(self.now()).is_some() {
            self.tell(Event::Unread(is_unread));
        }
    }

    /// When keys that left no trace in the input box are no draft any more.
    fn forgets_at(&self) -> Option<Instant> {
        let typing = *self.outset.drafted.borrow();
        let is_void = typing.is_open && self.desk.is_field_ours();
        typing.last.filter(|_| is_void).map(|last| last + SOON)
    }

    /// Keys alone cannot tell that a person has answered a question with one of them, or cleared
    /// the line by a key that only this program knows; its screen can.
    fn forget_keys(&mut self) {
        let is_time = self.forgets_at().is_some_and(|at| at <= Instant::now());
        if is_time && !self.shared.keyboard.is_unread() {
            let times = self.outset.drafted.borrow().times;
            self.shared.keyboard.try_type_in(Typed::Forget(times));
        }
    }

    /// Whether mail waits, or the agent owes answers of which it may be reminded.
    fn has_more_to_type(&self) -> bool {
        !self.view.pending.due.is_empty() || !self.view.owed.is_empty()
    }

    /// Tells the desk what was typed and shown since it was last told something, as of when that
    /// was. Output that came before something was due is told first, so that no silence is seen
    /// where there was none; and keys before all output that may be their echo. More of either
    /// would tell the desk nothing, by its own word.
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
        let paste = self.desk.paste().applies(self.outset.pulse.wants_paste());
        if paste != (self.desk.input() == Input::Pasted) {
            self.tell_as_of(Instant::now(), Event::Paste(paste));
        }
    }

    /// Output that the desk does not know of.
    fn unheard(&self, output: Option<Instant>) -> Option<Instant> {
        output.filter(|at| self.heard_at < Some(*at))
    }

    fn tell_output(&mut self, output: Instant, as_of: Instant) {
        self.heard_at = Some(output);
        self.tell_as_of(as_of, Event::Output);
    }

    fn tell_keys(&mut self, typing: Typing, as_of: Instant) {
        let event = if typing.is_open {
            Event::Draft
        } else {
            Event::DraftGone
        };
        self.tell_as_of(as_of, event);
    }

    fn tell(&mut self, event: Event) {
        self.catch_up();
        self.tell_as_of(Instant::now(), event);
    }

    fn tell_as_of(&mut self, at: Instant, event: Event) {
        let effects = self.desk.on(self.moment(at), event);
        self.perform(effects);
        // Also where a turn has to wait: whoever is to answer a question needs the keyboard.
        if !self.desk.is_writing() {
            self.lease = None;
        }
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}
