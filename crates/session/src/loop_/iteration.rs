//! One iteration: the prompt composed, its start recorded, the agent run to its end, and that
//! recorded with what it means.

use super::agent::{Agent, Call, PROMPT};
use super::io::{Halt, News, Pump, Said, Stopped};
use super::json_output::Reader;
use super::plan;
use super::prompt::{self, Prompt, Stories};
use super::runner::{Runner, Step};
use crate::harness::{Catalogue, StatusRows};
use crate::host::launch_files::{LaunchContext, PreparedLaunch};
use crate::routes::hook_env;
use posthaste_core::build::completion::Detector;
use posthaste_core::build::{Failure, LoopEnding, LoopOrder, LoopState, Outcome, Proof, Settings};
use posthaste_core::harness::{Headless, Manifest, Output, PromptWay};
use posthaste_core::{AgentName, MessageId, Priority, offer, text};
use posthaste_store::live::place::{Launch, Place};
use posthaste_store::operation::{MarkUncertain, OpenOffers, RecordDelivery};
use posthaste_store::report::{Report, Result};
use posthaste_store::times;
use posthaste_store::{Home, Journal, Operation};
use posthaste_wire::time;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How an offer by a loop's prompt is called in receipts.
const ROUTE: &str = "prompt";
const WRITTEN: &str = "it stood in the prompt, all of which was written to the agent";

/// What an agent is started with.
struct Ready {
    harness: Manifest,
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    /// Its files stand for as long as this is kept.
    _outfit: Option<PreparedLaunch>,
}

impl Runner {
    pub(super) fn iterate(&mut self, state: &LoopState) -> Result<Step> {
        let stories = Stories::of(state);
        if stories.are_complete() {
            let how = LoopEnding::Complete(Proof::Stories);
            self.order(LoopOrder::End { how })?;
            return Ok(Step::On);
        }
        let now = times::now();
        let room = room(&self.home, &state.settings);
        let of = (state, &stories);
        let composed = prompt::compose(&self.home, &mut self.journal, of, now, room);
        let started = match &composed {
            Ok(prompt) => LoopOrder::StartIteration {
                story: prompt.story.clone(),
                task: prompt.task.clone(),
                prompts: prompt.injected.clone(),
            },
            Err(_) => LoopOrder::StartIteration {
                story: None,
                task: None,
                prompts: Vec::new(),
            },
        };
        self.order(started)?;
        self.announce(state, &stories)?;
        let began = Instant::now();
        let attempt = match composed {
            Ok(prompt) => self.attempt(state, &prompt)?,
            Err(report) => Some(Attempt::not_started(&report)),
        };
        let Some(attempt) = attempt else {
            return Ok(Step::Over);
        };
        self.close(state, attempt, began.elapsed())?;
        Ok(Step::On)
    }

    /// Says what begins.
    fn announce(&mut self, state: &LoopState, stories: &Stories) -> Result<()> {
        self.said = None;
        let counts = self.journal.task_counts(&self.agent)?;
        let number = match state.last_allowed() {
            0 => format!("iteration {}", state.number),
            last => format!("iteration {} of {last}", state.number),
        };
        let elapsed = time::length(times::now().duration_since(state.began_at));
        let open = self.state()?.open;
        let started = open.as_ref().map(|open| &open.started);
        let doing = started.and_then(|started| started.story.as_ref().or(started.task.as_ref()));
        let mut line = format!(
            "{number}, {elapsed} since the start, tasks {} done, {} open",
            counts.completed,
            counts.open()
        );
        if let Some(doing) = doing {
            line.push_str(&format!(", now {}", text::one_line(doing, 60)));
        }
        self.face.line(&line);
        self.face.title(&format!("{}: {number}", self.agent));
        if let Stories::Broken(why) = stories {
            self.face.line(why);
        }
        Ok(())
    }

    /// Runs the agent; nothing where nobody is left to record its end for.
    fn attempt(&mut self, state: &LoopState, prompt: &Prompt) -> Result<Option<Attempt>> {
        let ready = match ready(self, state) {
            Ok(ready) => ready,
            Err(report) => return Ok(Some(Attempt::not_started(&report))),
        };
        let offered = self.offer(prompt)?;
        let call = Call {
            home: &self.home,
            name: &self.agent,
            harness: &ready.harness,
            program: &ready.program,
            args: &ready.args,
            env: ready.env.clone(),
            cwd: &self.record.launch.cwd,
            size: self.face.size(),
        };
        let mut agent = match Agent::start(&call, &prompt.text) {
            Ok(agent) => agent,
            Err(report) => {
                let reason = "the agent could not be started".to_owned();
                self.withdraw(offered, reason)?;
                return Ok(Some(Attempt::not_started(&report)));
            }
        };
        let mut detector = Detector::new(&prompt.text);
        detector.set_interactive(state.is_interactive);
        let mut mail = Mail {
            journal: &mut self.journal,
            agent: &self.agent,
            known: &prompt.known,
            offered,
            is_fed: false,
        };
        if agent.feeding().is_none() {
            mail.fed();
        }
        let patience = match state.settings.policy.idle_ms {
            0 => None,
            idle => Some(Duration::from_millis(idle)),
        };
        let mut pump = Pump {
            ears: &mut self.ears,
            face: &mut self.face,
            detector: &mut detector,
            reader: ready.reader(),
            patience,
        };
        let stopped = pump.run(&mut agent, |news| mail.hear(news));
        if !matches!(stopped, Stopped::Exited(_)) {
            agent.end();
        }
        mail.cut_off();
        let is_unread = !mail.is_fed;
        drop(agent);
        self.face.wash();
        let outcome = self.outcome(state, stopped, detector.finish())?;
        Ok(outcome.map(|outcome| Attempt { outcome, is_unread }))
    }

    fn outcome(
        &mut self,
        state: &LoopState,
        stopped: Stopped,
        has_said: bool,
    ) -> Result<Option<Outcome>> {
        let idle = Duration::from_millis(state.settings.policy.idle_ms);
        let how = match stopped {
            Stopped::Halted(Halt::Orphaned) => return Ok(None),
            Stopped::Halted(Halt::Interrupted) => return Ok(Some(Outcome::Interrupted)),
            Stopped::Halted(Halt::Ended) => return Ok(Some(Outcome::Stopped)),
            Stopped::Idle => Err(Failure::Idle(idle.as_secs())),
            Stopped::Exited(status) => ended(&status),
        };
        // What the agent said by its tool, and what stands in the prd, count however it ended. The
        // token counts where it ended well: its last word before a failure is not its last.
        let now = self.state()?;
        if now.is_interactive {
            // A word that the agent has given by its tool counts once this mode is off.
            return Ok(Some(how.map_or_else(Outcome::Failed, |()| Outcome::Ended)));
        }
        if let Some(proof) = now.complete {
            return Ok(Some(Outcome::Completed(proof)));
        }
        if Stories::of(state).are_complete() {
            return Ok(Some(Outcome::Completed(Proof::Stories)));
        }
        Ok(Some(match how {
            Ok(()) if has_said => Outcome::Completed(Proof::Token),
            Ok(()) => Outcome::Ended,
            Err(failure) => Outcome::Failed(failure),
        }))
    }

    /// Records the end of an iteration, and says it.
    fn close(&mut self, state: &LoopState, attempt: Attempt, took: Duration) -> Result<()> {
        let number = state.number;
        let Attempt { outcome, is_unread } = attempt;
        let told = format!("iteration {number}: {outcome} ({} s)", took.as_secs());
        self.order(LoopOrder::EndIteration {
            number,
            outcome,
            is_unread,
        })?;
        self.face.line(&told);
        let now = self.state()?;
        if let Some(last) = &now.last {
            self.tell_failure(&now, last);
        }
        Ok(())
    }

    /// Records that mail is about to be shown, as far as no prompt has had it before.
    fn offer(&mut self, prompt: &Prompt) -> Result<Vec<MessageId>> {
        if prompt.mail.is_empty() {
            return Ok(Vec::new());
        }
        let record = RecordDelivery {
            now: times::now(),
            agent: self.agent.clone(),
            ids: prompt.mail.clone(),
            said: offer::OfferReport::Offering {
                route: ROUTE.to_owned(),
                repeats: prompt.repeats.clone(),
            },
        };
        Ok(self.journal.commit(record)??.moved)
    }

    fn withdraw(&mut self, ids: Vec<MessageId>, reason: String) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let (now, agent) = (times::now(), self.agent.clone());
        let said = offer::OfferReport::Withdrawn { reason };
        self.journal.commit(RecordDelivery {
            now,
            agent,
            ids,
            said,
        })??;
        Ok(())
    }
}

/// The mail of a prompt, while its agent runs.
struct Mail<'a> {
    journal: &'a mut Journal,
    agent: &'a AgentName,
    /// What was there when the prompt was made, and ends nothing.
    known: &'a [MessageId],
    /// Those whose offer is under way.
    offered: Vec<MessageId>,
    /// Whether all of the prompt is written.
    is_fed: bool,
}

impl Mail<'_> {
    fn hear(&mut self, news: News) -> Said {
        match news {
            News::Fed => {
                self.fed();
                Said::default()
            }
            // What cannot be looked up now is looked up at the next ring, or tick.
            News::Rung => self.look().unwrap_or_default(),
        }
    }

    /// All of the prompt is written.
    fn fed(&mut self) {
        self.is_fed = true;
        let ids = std::mem::take(&mut self.offered);
        let (now, agent) = (times::now(), self.agent.clone());
        let said = offer::OfferReport::Offered {
            proof_awaited: false,
            route: ROUTE.to_owned(),
            evidence: WRITTEN.to_owned(),
        };
        self.record(&ids, |ids| RecordDelivery {
            now,
            agent,
            ids,
            said,
        });
    }

    /// The agent has ended; what it was not given whole, nobody knows.
    fn cut_off(&mut self) {
        let ids = std::mem::take(&mut self.offered);
        let (now, agent) = (times::now(), self.agent.clone());
        self.record(&ids, |ids| MarkUncertain {
            now,
            agent,
            offers: OpenOffers::These(ids),
            reason: "the agent ended before all of its prompt was written".to_owned(),
        });
    }

    /// Where it cannot be recorded the offer stays open, and the next session calls it uncertain.
    fn record<O: Operation>(
        &mut self,
        ids: &[MessageId],
        operation: impl FnOnce(Vec<MessageId>) -> O,
    ) {
        if !ids.is_empty() {
            let _ = self.journal.commit(operation(ids.to_vec()));
        }
    }

    /// Whether something has come that cannot wait, and which mode this is.
    fn look(&mut self) -> std::result::Result<Said, posthaste_store::Error> {
        let state = self.journal.loop_state(self.agent)?;
        let is_interactive = state.map(|state| state.is_interactive);
        if is_interactive == Some(true) {
            // A person types at this agent: mail waits until that is over, urgent or not.
            return Ok(Said {
                halt: None,
                is_interactive,
            });
        }
        let pending = self.journal.pending(self.agent, times::now())?;
        let is_urgent = pending.due.iter().any(|message_state| {
            let envelope = &message_state.message.envelope;
            envelope.priority == Priority::Interrupt
                && !envelope.raw
                && !self.known.contains(&message_state.message.id)
        });
        Ok(Said {
            halt: is_urgent.then_some(Halt::Interrupted),
            is_interactive,
        })
    }
}

/// How long a prompt may be. A harness that is not there any more is told by who starts the agent.
fn room(home: &Home, settings: &Settings) -> usize {
    let harness =
        Catalogue::load(home, &StatusRows::new()).and_then(|known| known.take(&settings.harness));
    harness.map_or(usize::MAX, |harness| plan::room(settings, &harness))
}

/// How a run of the agent went.
struct Attempt {
    outcome: Outcome,
    /// Whether it ended before all of its prompt was written.
    is_unread: bool,
}

impl Attempt {
    fn not_started(report: &Report) -> Self {
        let hint = report.advice().map(|hint| format!(" ({hint})"));
        let why = format!("{}{}", report.message(), hint.unwrap_or_default());
        Self {
            outcome: Outcome::Failed(Failure::NotStarted(why)),
            is_unread: true,
        }
    }
}

fn ended(status: &std::io::Result<ExitStatus>) -> std::result::Result<(), Failure> {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(match (status.code(), status.signal()) {
            (Some(code), _) => Failure::Exit(code),
            (None, Some(signal)) => Failure::Signal(signal),
            (None, None) => Failure::NotStarted(status.to_string()),
        }),
        Err(error) => Err(Failure::NotStarted(error.to_string())),
    }
}

/// Everything that the agent is started with, as its harness has it today.
fn ready(runner: &Runner, state: &LoopState) -> Result<Ready> {
    let settings = &state.settings;
    let session = &runner.record.launch;
    let harness = Catalogue::load(&runner.home, &StatusRows::new())?.take(&settings.harness)?;
    plan::check(settings, &harness, &session.cwd, &session.env)?;
    let program = plan::program(settings, &harness)?.to_owned();
    let said = settings.command.get(1..).unwrap_or_default();
    let own = vec![program.clone()];
    let launch = Launch {
        command: own.into_iter().chain(said.iter().cloned()).collect(),
        ..session.clone()
    };
    let mut ready = Ready {
        args: said.to_vec(),
        env: Vec::new(),
        _outfit: None,
        program,
        harness,
    };
    // A command that says where its prompt goes knows all else too.
    let is_told = said.iter().any(|word| word == PROMPT);
    if let Some(headless) = ready.harness.headless.clone().filter(|_| !is_told) {
        ready.dress(runner, &launch, &headless, settings.model.as_deref())?;
    }
    ready.env.extend([
        ("PH_ITERATION".to_owned(), state.number.to_string()),
        // Its hooks keep still: a loop's mail is in its prompt.
        (
            hook_env::HOOKS_VARIABLE.to_owned(),
            hook_env::HOOKS_INJECTED.to_owned(),
        ),
    ]);
    Ok(ready)
}

impl Ready {
    /// What makes its output readable, where its harness says that it is not.
    fn reader(&self) -> Option<Reader> {
        let headless = self.harness.headless.as_ref()?;
        match headless.output {
            Output::Text => None,
            Output::StreamJson => Some(Reader::default()),
        }
    }

    /// Adds what the harness says of a headless start.
    fn dress(
        &mut self,
        runner: &Runner,
        launch: &Launch,
        headless: &Headless,
        model: Option<&str>,
    ) -> Result<()> {
        let place = Place::of(&runner.home, &runner.agent);
        let told = LaunchContext {
            resume: None,
            home: &runner.home,
            place: &place,
            socket: &runner.record.socket,
            launch,
            run: runner.record.run,
            http: None,
        };
        let outfit = PreparedLaunch::prepare(&told, &headless.start(model))?;
        self.args = outfit.args.clone();
        if headless.prompt == PromptWay::Argument {
            self.args.push(PROMPT.to_owned());
        }
        for (name, value) in [&outfit.env, &launch.env, &outfit.overriding_env]
            .into_iter()
            .flatten()
        {
            self.env.push((name.clone(), value.clone()));
        }
        self._outfit = Some(outfit);
        Ok(())
    }
}
