//! Runs one iteration: composes the prompt, records the start, runs the agent, and records the
//! outcome.

use super::agent::{Agent, AgentStart, PROMPT_PLACEHOLDER};
use super::io::{AgentIo, RunEnd, RunEvent, RunnerReply, StopReason};
use super::json_output::JsonRenderer;
use super::plan;
use super::prompt::{self, ComposedPrompt, Stories};
use super::runner::Runner;
use crate::harness::{Catalogue, StatusRows};
use crate::host::ending;
use crate::host::launch_files::{LaunchContext, PreparedLaunch};
use crate::routes::hook_env;
use posthaste_core::harness::{Headless, Manifest, Output, PromptWay};
use posthaste_core::loop_::completion::Detector;
use posthaste_core::loop_::{
    CompletionProof, IterationFailure, IterationOutcome, LoopEnding, LoopOrder, LoopState, Settings,
};
use posthaste_core::session::Ending;
use posthaste_core::{AgentName, MessageId, Priority, offer, text};
use posthaste_store::live::{Launch, SessionDir};
use posthaste_store::operation::{MarkUncertain, OpenOffers, RecordDelivery};
use posthaste_store::report::{Report, Result};
use posthaste_store::times;
use posthaste_store::{Home, Journal, Operation};
use posthaste_wire::time;
use std::ops::ControlFlow;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The route of receipts for mail in a prompt.
const PROMPT_ROUTE: &str = "prompt";
const PROMPT_WRITTEN_EVIDENCE: &str = "in a prompt that was written completely to the agent";

/// The agent's command, variables and files.
struct PreparedAgent {
    harness: Manifest,
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    /// Deletes the launch files when it is dropped.
    _launch: Option<PreparedLaunch>,
}

impl Runner {
    /// Run one iteration. Break if the session is gone.
    pub(super) fn iterate(&mut self, state: &LoopState) -> Result<ControlFlow<()>> {
        let stories = Stories::of(state);
        if stories.are_complete() {
            let how = LoopEnding::Complete(CompletionProof::Stories);
            self.order(LoopOrder::End { how })?;
            return Ok(ControlFlow::Continue(()));
        }
        let now = times::now();
        let max_bytes = max_prompt_bytes(&self.home, &state.settings);
        let of = (state, &stories);
        let composed = prompt::compose(&self.home, &mut self.journal, of, now, max_bytes);
        let prompt = composed.as_ref().ok();
        self.order(LoopOrder::StartIteration {
            story: prompt.and_then(|prompt| prompt.story.clone()),
            task: prompt.and_then(|prompt| prompt.task.clone()),
            prompts: prompt.map_or_else(Vec::new, |prompt| prompt.injected.clone()),
        })?;
        self.announce(state, &stories)?;
        let began = Instant::now();
        let attempt = match composed {
            Ok(prompt) => self.attempt(state, &prompt)?,
            Err(report) => Some(Attempt::not_started(&report)),
        };
        let Some(attempt) = attempt else {
            return Ok(ControlFlow::Break(()));
        };
        self.close(state, attempt, began.elapsed())?;
        Ok(ControlFlow::Continue(()))
    }

    /// Print the start of the iteration.
    fn announce(&mut self, state: &LoopState, stories: &Stories) -> Result<()> {
        self.last_line = None;
        let counts = self.journal.task_counts(&self.agent)?;
        let number = match state.last_allowed() {
            0 => format!("iteration {}", state.number),
            last => format!("iteration {} of {last}", state.number),
        };
        let elapsed = time::length(times::now().duration_since(state.began_at));
        let open = self.state()?.open;
        let started = open.as_ref().map(|open| &open.started);
        let subject = started.and_then(|started| started.story.as_ref().or(started.task.as_ref()));
        let mut line = format!(
            "{number}, {elapsed} since the start, tasks {} done, {} open",
            counts.completed,
            counts.open()
        );
        if let Some(subject) = subject {
            line.push_str(&format!(", now {}", text::one_line(subject, 60)));
        }
        self.terminal.print_line(&line);
        self.terminal
            .set_title(&format!("{}: {number}", self.agent));
        if let Stories::Invalid(why) = stories {
            self.terminal.print_line(why);
        }
        Ok(())
    }

    /// Run the agent. Return `None` if the session is gone.
    fn attempt(&mut self, state: &LoopState, prompt: &ComposedPrompt) -> Result<Option<Attempt>> {
        let prepared = match prepare(self, state) {
            Ok(prepared) => prepared,
            Err(report) => return Ok(Some(Attempt::not_started(&report))),
        };
        let offered = self.offer(prompt)?;
        let start = AgentStart {
            home: &self.home,
            name: &self.agent,
            harness: &prepared.harness,
            program: &prepared.program,
            args: &prepared.args,
            env: prepared.env.clone(),
            cwd: &self.record.launch.cwd,
            size: self.terminal.size(),
        };
        let mut agent = match Agent::start(&start, &prompt.text) {
            Ok(agent) => agent,
            Err(report) => {
                let reason = "the agent could not be started".to_owned();
                self.withdraw(offered, reason)?;
                return Ok(Some(Attempt::not_started(&report)));
            }
        };
        let mut detector = Detector::new(&prompt.text);
        detector.set_interactive(state.is_interactive);
        let mut mail = PromptMail {
            journal: &mut self.journal,
            agent: &self.agent,
            known: &prompt.known,
            offered,
            is_prompt_written: false,
        };
        if agent.prompt_pipe().is_none() {
            mail.prompt_written();
        }
        let idle_timeout = match state.settings.policy.idle_ms {
            0 => None,
            idle => Some(Duration::from_millis(idle)),
        };
        let mut io = AgentIo {
            wakeups: &mut self.wakeups,
            terminal: &mut self.terminal,
            detector: &mut detector,
            renderer: prepared.renderer(),
            idle_timeout,
        };
        let end = io.run(&mut agent, |event| mail.on_event(event));
        if !matches!(end, RunEnd::Exited(_)) {
            agent.end();
        }
        mail.agent_ended();
        let is_unread = !mail.is_prompt_written;
        drop(agent);
        self.terminal.reset();
        let outcome = self.outcome(state, end, detector.finish())?;
        Ok(outcome.map(|outcome| Attempt { outcome, is_unread }))
    }

    fn outcome(
        &mut self,
        state: &LoopState,
        end: RunEnd,
        has_token: bool,
    ) -> Result<Option<IterationOutcome>> {
        let idle = Duration::from_millis(state.settings.policy.idle_ms);
        let how = match end {
            RunEnd::Stopped(StopReason::SessionGone) => return Ok(None),
            RunEnd::Stopped(StopReason::Interrupt) => {
                return Ok(Some(IterationOutcome::Interrupted));
            }
            RunEnd::Stopped(StopReason::EndRequested) => {
                return Ok(Some(IterationOutcome::Stopped));
            }
            RunEnd::Idle => Err(IterationFailure::Idle(idle.as_secs())),
            RunEnd::Exited(status) => check_exit(&status),
        };
        // The completion tool and the prd count even if the agent failed. The token counts only
        // if the agent exited with status 0.
        let now = self.state()?;
        if now.is_interactive {
            // A call of the completion tool counts once this mode is off.
            return Ok(Some(how.map_or_else(IterationOutcome::Failed, |()| {
                IterationOutcome::Ended
            })));
        }
        if let Some(proof) = now.complete {
            return Ok(Some(IterationOutcome::Completed(proof)));
        }
        if Stories::of(state).are_complete() {
            return Ok(Some(IterationOutcome::Completed(CompletionProof::Stories)));
        }
        Ok(Some(match how {
            Ok(()) if has_token => IterationOutcome::Completed(CompletionProof::Token),
            Ok(()) => IterationOutcome::Ended,
            Err(failure) => IterationOutcome::Failed(failure),
        }))
    }

    /// Record and print the end of an iteration.
    fn close(&mut self, state: &LoopState, attempt: Attempt, took: Duration) -> Result<()> {
        let number = state.number;
        let Attempt { outcome, is_unread } = attempt;
        let line = format!("iteration {number}: {outcome} ({} s)", took.as_secs());
        self.order(LoopOrder::EndIteration {
            number,
            outcome,
            is_unread,
        })?;
        self.terminal.print_line(&line);
        let now = self.state()?;
        if let Some(last) = &now.last {
            self.append_failure(&now, last);
        }
        Ok(())
    }

    /// Record offers of the prompt's mail. Return the messages that were not offered before.
    fn offer(&mut self, prompt: &ComposedPrompt) -> Result<Vec<MessageId>> {
        if prompt.mail.is_empty() {
            return Ok(Vec::new());
        }
        let report = offer::OfferReport::Offering {
            route: PROMPT_ROUTE.to_owned(),
            repeats: prompt.repeats.clone(),
        };
        let record = record_delivery(&self.agent, prompt.mail.clone(), report);
        Ok(self.journal.commit(record)??.moved)
    }

    fn withdraw(&mut self, ids: Vec<MessageId>, reason: String) -> Result<()> {
        if !ids.is_empty() {
            let report = offer::OfferReport::Withdrawn { reason };
            self.journal
                .commit(record_delivery(&self.agent, ids, report))??;
        }
        Ok(())
    }
}

/// The mail of a prompt, while its agent runs.
struct PromptMail<'a> {
    journal: &'a mut Journal,
    agent: &'a AgentName,
    /// Messages that existed when the prompt was composed. They do not interrupt the agent.
    known: &'a [MessageId],
    /// Messages whose offers are open.
    offered: Vec<MessageId>,
    is_prompt_written: bool,
}

impl PromptMail<'_> {
    fn on_event(&mut self, event: RunEvent) -> RunnerReply {
        match event {
            RunEvent::PromptWritten => {
                self.prompt_written();
                RunnerReply::default()
            }
            // After an error, the next event checks again.
            RunEvent::JournalMayHaveChanged => self.check_journal().unwrap_or_default(),
        }
    }

    fn prompt_written(&mut self) {
        self.is_prompt_written = true;
        let ids = std::mem::take(&mut self.offered);
        let report = offer::OfferReport::Offered {
            proof_awaited: false,
            route: PROMPT_ROUTE.to_owned(),
            evidence: PROMPT_WRITTEN_EVIDENCE.to_owned(),
        };
        if !ids.is_empty() {
            self.record(record_delivery(self.agent, ids, report));
        }
    }

    /// The agent has ended. If its prompt was not written completely, it is unknown which messages
    /// it has read.
    fn agent_ended(&mut self) {
        let ids = std::mem::take(&mut self.offered);
        if !ids.is_empty() {
            self.record(MarkUncertain {
                now: times::now(),
                agent: self.agent.clone(),
                offers: OpenOffers::These(ids),
                reason: "the agent exited before its prompt was written completely".to_owned(),
            });
        }
    }

    /// Record receipts. After an error the offers stay open, and the next session marks them
    /// uncertain.
    fn record(&mut self, operation: impl Operation) {
        let _ = self.journal.commit(operation);
    }

    /// Check for urgent mail and for interactive mode.
    fn check_journal(&mut self) -> std::result::Result<RunnerReply, posthaste_store::Error> {
        let state = self.journal.loop_state(self.agent)?;
        let is_interactive = state.map(|state| state.is_interactive);
        if is_interactive == Some(true) {
            // A person uses this agent: urgent mail waits, too.
            return Ok(RunnerReply {
                stop: None,
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
        Ok(RunnerReply {
            stop: is_urgent.then_some(StopReason::Interrupt),
            is_interactive,
        })
    }
}

fn record_delivery(
    agent: &AgentName,
    ids: Vec<MessageId>,
    report: offer::OfferReport,
) -> RecordDelivery {
    RecordDelivery {
        now: times::now(),
        agent: agent.clone(),
        ids,
        report,
    }
}

/// Return the maximum size of a prompt. A missing harness is reported when the agent starts.
fn max_prompt_bytes(home: &Home, settings: &Settings) -> usize {
    let harness =
        Catalogue::load(home, &StatusRows::new()).and_then(|known| known.take(&settings.harness));
    harness.map_or(usize::MAX, |harness| {
        plan::max_prompt_bytes(settings, &harness)
    })
}

/// The result of running the agent.
struct Attempt {
    outcome: IterationOutcome,
    /// Whether the agent ended before its prompt was written completely.
    is_unread: bool,
}

impl Attempt {
    fn not_started(report: &Report) -> Self {
        let hint = report.advice().map(|hint| format!(" ({hint})"));
        let why = format!("{}{}", report.message(), hint.unwrap_or_default());
        Self {
            outcome: IterationOutcome::Failed(IterationFailure::NotStarted(why)),
            is_unread: true,
        }
    }
}

fn check_exit(status: &std::io::Result<ExitStatus>) -> std::result::Result<(), IterationFailure> {
    match ending(status) {
        Ending::Exit(0) => Ok(()),
        Ending::Exit(code) => Err(IterationFailure::Exit(code)),
        Ending::Signal(signal) => Err(IterationFailure::Signal(signal)),
        Ending::Failed(why) => Err(IterationFailure::NotStarted(why)),
        Ending::Crashed => Err(IterationFailure::CutOff),
    }
}

/// Prepare the agent's command, variables and files, by the current manifest of its harness.
fn prepare(runner: &Runner, state: &LoopState) -> Result<PreparedAgent> {
    let settings = &state.settings;
    let session = &runner.record.launch;
    let harness = Catalogue::load(&runner.home, &StatusRows::new())?.take(&settings.harness)?;
    plan::check_agent(settings, &harness, &session.cwd, &session.env)?;
    let program = plan::program(settings, &harness)?.to_owned();
    let args = settings.command.get(1..).unwrap_or_default().to_vec();
    let launch = Launch {
        command: [vec![program.clone()], args.clone()].concat(),
        ..session.clone()
    };
    // A command that contains the placeholder gets no arguments of the harness.
    let has_placeholder = args.iter().any(|word| word == PROMPT_PLACEHOLDER);
    let mut prepared = PreparedAgent {
        args,
        env: Vec::new(),
        _launch: None,
        program,
        harness,
    };
    if let Some(headless) = prepared
        .harness
        .headless
        .clone()
        .filter(|_| !has_placeholder)
    {
        prepared.apply_headless(runner, &launch, &headless, settings.model.as_deref())?;
    }
    prepared.env.extend([
        ("PH_ITERATION".to_owned(), state.number.to_string()),
        // Hooks deliver no mail: it is part of the prompt.
        (
            hook_env::HOOKS_VARIABLE.to_owned(),
            hook_env::HOOKS_INJECTED.to_owned(),
        ),
    ]);
    Ok(prepared)
}

impl PreparedAgent {
    /// Return the renderer for output in JSON.
    fn renderer(&self) -> Option<JsonRenderer> {
        let headless = self.harness.headless.as_ref()?;
        match headless.output {
            Output::Text => None,
            Output::StreamJson => Some(JsonRenderer::default()),
        }
    }

    /// Add the arguments, variables and files of the harness for a headless start.
    fn apply_headless(
        &mut self,
        runner: &Runner,
        launch: &Launch,
        headless: &Headless,
        model: Option<&str>,
    ) -> Result<()> {
        let session_dir = SessionDir::of(&runner.home, &runner.agent);
        let context = LaunchContext {
            resume: None,
            home: &runner.home,
            session_dir: &session_dir,
            socket: &runner.record.socket,
            launch,
            run: runner.record.run,
            http: None,
        };
        let prepared = PreparedLaunch::prepare(&context, &headless.start(model))?;
        self.args = prepared.args.clone();
        if headless.prompt == PromptWay::Argument {
            self.args.push(PROMPT_PLACEHOLDER.to_owned());
        }
        self.env = [&prepared.env[..], &launch.env, &prepared.overriding_env].concat();
        self._launch = Some(prepared);
        Ok(())
    }
}
