//! A minimal server: a session whose state never changes.

use super::{at, id, message_state, session, status};
use crate::ask::Outcome;
use crate::method::{
    self, Call, Checkpointing, Injected, InteractiveMode, Killed, Marked, Method, MethodResult,
    Noted, Nudged, Paused, ScreenText, Sent, Stopping, Subscribed, Written,
};
use crate::rpc::{self, ClientLine, Request};
use crate::topic::Topics;
use crate::{Detail, Message, Why, plain};
use posthaste_core::Step;

#[derive(Default)]
pub(super) struct Server {
    pub(super) topics: Topics,
    interactive: bool,
}

impl Server {
    /// Return the reply to one line, if any.
    pub(super) fn reply_to(&mut self, line: &[u8]) -> Option<String> {
        let back = match rpc::read(line) {
            ClientLine::Blank => None,
            ClientLine::One(request) => self.answer(request),
            ClientLine::Batch(requests) => {
                let replies: Vec<_> = requests
                    .into_iter()
                    .filter_map(|request| self.answer(request))
                    .collect();
                rpc::batch(&replies)
            }
            ClientLine::Plain(Ok(_)) => Some(plain::Reply::ok().line()),
            ClientLine::Plain(Err(refusal)) => Some(plain::Reply::from(refusal).line()),
        };
        back.map(|line| String::from_utf8(line).unwrap())
    }

    fn answer(&mut self, request: Request) -> Option<Vec<u8>> {
        let outcome = request.call.and_then(|call| self.carry_out(call));
        rpc::respond(request.id.as_ref(), &outcome)
    }

    fn carry_out(&mut self, call: Call) -> MethodResult {
        let message_state = message_state(&[Step::Offering, Step::Offered]);
        let message = Message::new(&message_state, "hi".to_owned(), at(9));
        match call {
            Call::GetStatus(_) => method::GetStatus::answer(&status()),
            Call::Stop(_) => method::Stop::answer(&Stopping::StopRequested),
            Call::Checkpoint(_) => method::Checkpoint::answer(&Checkpointing::CheckpointRequested),
            Call::InjectPrompt(call) => method::InjectPrompt::answer(&Injected::PromptInjected {
                prompt: call.prompt.0,
            }),
            Call::SetInteractiveMode(call) => {
                self.interactive = call.enabled.0;
                method::SetInteractiveMode::answer(&InteractiveMode {
                    interactive_mode: call.enabled.0,
                })
            }
            Call::WritePty(_) if self.interactive => method::WritePty::answer(&Written::Forwarded),
            Call::WritePty(_) => method::WritePty::answer(&Written::not_interactive()),
            Call::Subscribe(call) => {
                self.topics.subscribe(&call.events.0);
                method::Subscribe::answer(&self.subscribed())
            }
            Call::Unsubscribe(call) => {
                self.topics.unsubscribe(&call.events.0);
                method::Unsubscribe::answer(&self.subscribed())
            }
            Call::Send(_) => method::Send::answer(&Sent {
                message,
                is_new: true,
                unfiled: None,
            }),
            Call::Show(_) => {
                let file = Some("/m/bob/1.md".to_owned());
                method::Show::answer(&Detail::new(&message_state, "hi".to_owned(), file, at(9)))
            }
            Call::Why(_) => method::Why::answer(&Why::new(&message_state, at(9))),
            Call::Inbox(call) => {
                method::Inbox::answer(&if call.all { vec![message] } else { vec![] })
            }
            Call::Asks(_) => method::Asks::answer(&vec![]),
            Call::Answer(_) => method::Answer::answer(&Outcome::Changed { now: None }),
            Call::MarkRead(_) => method::MarkRead::answer(&Marked { marked: vec![id()] }),
            Call::Nudge(call) if call.text.0 == "now" => method::Nudge::answer(&Nudged::Nudged),
            Call::Nudge(_) => method::Nudge::answer(&Nudged::Held {
                reason: "a draft".to_owned(),
            }),
            Call::Pause(_) => method::Pause::answer(&Paused {
                paused: true,
                reason: None,
            }),
            Call::Resume(_) => method::Resume::answer(&Paused {
                paused: false,
                reason: None,
            }),
            Call::Session(_) => method::Session::answer(&session()),
            Call::Peek(_) => method::Peek::answer(&ScreenText {
                lines: vec!["$ ".to_owned()],
                cols: 80,
                rows: 24,
                title: None,
            }),
            Call::CheckMail(_) => method::CheckMail::answer(&Noted::Noted),
            Call::HookEvent(hook) => method::HookEvent::answer(&match hook.takes_context {
                true => method::Hooked {
                    output: Some("hi".to_owned()),
                    offer: Some(3),
                    ..method::Hooked::noted()
                },
                false => method::Hooked::noted(),
            }),
            Call::HookTaken(_) => method::HookTaken::answer(&Noted::Noted),
            Call::Kill(_) => method::Kill::answer(&Killed::Killed),
        }
    }

    fn subscribed(&self) -> Subscribed {
        Subscribed {
            subscribed: self.topics.list(),
        }
    }
}
