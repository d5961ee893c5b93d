//! Hook calls of the simulated program: when it has started, at a prompt, and when it becomes idle.
//!
//! The calls arrive late, twice, in any order, or in the next session. Misleading calls come from a
//! side session, or contain a text that only looks like a message's header. The oracle knows which
//! messages the program received; delivery knows only these calls.
//!
//! The program starts a side session during its work and ends it with its own, so no side session
//! is heard before the program.

use crate::driver::{HookCall, Input};
use crate::harness::Report;
use crate::id::MessageId;
use crate::name::AgentName;
use crate::post::Draft;
use crate::sim::oracle::law::Checked;
use crate::sim::run::{Simulation, nth};
use crate::sim::script::ProgramProfile;
use crate::sim::session::Session;
use crate::sim::world::manifest;
use crate::sim::world::terminal::TurnNo;
use crate::sim::world::transcript::{Row, TRANSCRIPT_PATH};
use uuid::Uuid;

/// The id of a side session.
pub(crate) const SIDE_SESSION: &str = "side";

/// An event of the program that its hooks report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookEvent {
    Started,
    /// A prompt was submitted with these turns, each whole or in part, and this many keys of a
    /// person.
    Submitted {
        turns: Vec<(TurnNo, bool)>,
        typed: u32,
    },
    /// The model received these turns, each whole or in part.
    Given {
        turns: Vec<(TurnNo, bool)>,
    },
    /// A person has taken these turns back from the queue. No hook reports that, but the transcript
    /// does.
    TakenBack {
        turns: Vec<(TurnNo, bool)>,
    },
    Idle,
}

/// A hook call that has not arrived yet. It reaches the session that runs then.
#[derive(Debug, Clone)]
pub(crate) struct PendingHookCall {
    event: &'static str,
    /// The run whose program made the call.
    run: Uuid,
    session: String,
    prompt: Option<String>,
}

impl PendingHookCall {
    /// Whether the session takes the call as a sign of work.
    fn says_working(&self, profile: ProgramProfile) -> bool {
        let is_given = self.event == manifest::PROMPT_GIVEN;
        self.event == manifest::PROMPT_SUBMITTED || (is_given && profile.has_api)
    }

    /// Whether the call names the transcript.
    fn names_transcript(&self, profile: ProgramProfile) -> bool {
        let is_time = !profile.names_transcript_late || self.event == manifest::PROMPT_SUBMITTED;
        profile.transcript_proves && is_time && self.session != SIDE_SESSION
    }
}

/// A text that was written to the terminal.
#[derive(Debug, Clone, Default)]
pub(crate) struct WrittenText {
    pub(crate) ids: Vec<MessageId>,
    pub(crate) text: String,
    /// Whether the session has written all of the text.
    pub(crate) is_written: bool,
}

impl WrittenText {
    /// Return the whole text, or the half that the program has of it.
    pub(crate) fn part(&self, is_whole: bool) -> &str {
        let half = self.text.len() / 2;
        match is_whole {
            true => &self.text,
            false => &self.text[..self.text.floor_char_boundary(half)],
        }
    }

    /// Return the messages that a reader of this part has received. If the text was written whole
    /// and the program lost its end, only the headers in the part count.
    pub(crate) fn received(&self, is_whole: bool) -> impl Iterator<Item = MessageId> {
        let part = self.part(is_whole);
        let is_in = move |id: &&MessageId| is_whole || part.contains(&format!("id: {}", id.id8()));
        let is_written = self.is_written;
        self.ids
            .iter()
            .filter(move |_| is_whole || is_written)
            .filter(is_in)
            .copied()
    }
}

/// Return the id of the conversation that a new program begins.
pub(crate) fn first_conversation(run: Uuid) -> String {
    format!("run-{run}")
}

fn header(from: &AgentName, id: MessageId) -> String {
    format!("[ph message from: {from} id: {}] look", id.id8())
}

impl Simulation {
    /// Collect the hook calls that the program has made since the last step.
    pub(crate) fn collect_calls(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        let calls = std::mem::take(&mut session.program.calls);
        let times = if session.program.repeats_hook_calls() {
            2
        } else {
            1
        };
        for call in &calls {
            let row = match call {
                HookEvent::Given { turns } => {
                    for id in Session::received(turns, &self.turns) {
                        self.oracle.ledger.note_received(id);
                    }
                    Row::of(turns, &self.turns)
                }
                HookEvent::TakenBack { turns } => {
                    let row = Row::of(turns, &self.turns).withdrawn();
                    self.trace
                        .note(|| format!("  a person takes back {:?}", row.messages));
                    row
                }
                HookEvent::Started | HookEvent::Submitted { .. } | HookEvent::Idle => continue,
            };
            if self.profile.transcript_proves {
                session.unwritten_rows.push_back(row);
            }
        }
        let (run, session) = (session.run, session.conversation.clone());
        for call in calls.iter().filter(|_| self.profile.hooks_report) {
            let (event, prompt) = match call {
                HookEvent::Started => (manifest::SESSION_STARTED, None),
                HookEvent::Idle => (manifest::TURN_ENDED, None),
                HookEvent::TakenBack { .. } => continue,
                HookEvent::Given { .. } if !self.profile.queues_prompts => continue,
                HookEvent::Given { turns } => (manifest::PROMPT_GIVEN, Some(self.prompt(turns))),
                HookEvent::Submitted { turns, typed } => {
                    let typed = "x".repeat(*typed as usize);
                    (
                        manifest::PROMPT_SUBMITTED,
                        Some(self.prompt(turns) + &typed),
                    )
                }
            };
            let call = PendingHookCall {
                event,
                run,
                session: session.clone(),
                prompt,
            };
            self.calls.extend(std::iter::repeat_n(call, times));
        }
    }

    /// Return the text of a prompt with these turns.
    fn prompt(&self, turns: &[(TurnNo, bool)]) -> String {
        let part = |(turn, is_whole): &(TurnNo, bool)| self.turns[*turn].part(*is_whole);
        let parts: Vec<_> = turns.iter().map(part).collect();
        parts.join(if self.profile.has_api { "\n" } else { "" })
    }

    /// Call a hook that proves nothing: of a side session, or with a false header.
    pub(crate) fn call_misleading_hook(&mut self, n: u8) {
        let Some(session) = self.session.as_ref().filter(|s| s.has_hook_report) else {
            return;
        };
        let is_ours = |draft: &&Draft| draft.to == self.agent;
        let ours: Vec<_> = self.drafts.iter().filter(is_ours).collect();
        let Some(draft) = nth(&ours, n / 4) else {
            return;
        };
        let unknown = MessageId(Uuid::from_u128(u128::from(n) << 120 | 1 << 119));
        let right = header(&draft.from, draft.id);
        let (whose, prompt) = match n % 4 {
            0 => (SIDE_SESSION.to_owned(), right),
            1 => (session.conversation.clone(), header(&draft.from, unknown)),
            2 => (session.conversation.clone(), header(&draft.to, draft.id)),
            _ => (session.conversation.clone(), format!("it said {right}")),
        };
        self.calls.push(PendingHookCall {
            event: manifest::PROMPT_SUBMITTED,
            run: session.run,
            session: whose,
            prompt: Some(prompt),
        });
    }

    /// Deliver one hook call.
    pub(crate) fn deliver_hook_call(&mut self, n: usize) -> Checked {
        let call = self.calls.remove(n);
        let profile = self.profile;
        match self.session() {
            // The program that started the side session has ended, and another runs.
            Some((session, _)) if call.session == SIDE_SESSION && !session.has_hook_report => {
                Ok(())
            }
            // A session ignores hook calls that name an earlier run.
            Some((session, _))
                if (profile.resumes_conversation || profile.has_api) && call.run != session.run =>
            {
                Ok(())
            }
            Some((session, mut world)) if !session.is_ending() => {
                let is_own = call.session == session.conversation;
                session.has_hook_report |= is_own;
                session.is_transcript_named |= is_own && call.names_transcript(profile);
                session.hook_calls += 1;
                let input = Input::HookCalled {
                    call: HookCall(session.hook_calls),
                    report: call.read(profile),
                    takes_mail: false,
                };
                session.tell(input, &mut world)?;
                if call.says_working(profile) {
                    session.program.report_idle_again(world.now.mono);
                }
                session.perform_actions(&mut world)
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl PendingHookCall {
    fn read(&self, profile: ProgramProfile) -> Box<Report> {
        let transcript = self.names_transcript(profile).then_some(TRANSCRIPT_PATH);
        let payload = serde_json::json!({"session_id": self.session, "prompt": self.prompt,
            "transcript_path": transcript});
        let hooks = &manifest::manifest(profile).hook;
        Box::new(hooks.read(self.event, &payload.to_string()))
    }
}

impl Session {
    /// Return the messages of these turns that the program received.
    pub(crate) fn received(turns: &[(TurnNo, bool)], all: &[WrittenText]) -> Vec<MessageId> {
        let received = |(turn, is_whole): &(TurnNo, bool)| all[*turn].received(*is_whole);
        turns.iter().flat_map(received).collect()
    }
}
