//! The simulated HTTP API of the program. A request is sent, carried out by the program, and
//! answered. Each step can be late, the answer can be lost, and the program can end in between.

use crate::driver::{Input, TurnContent, TurnMessage};
use crate::id::MessageId;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::script::ApiBehaviour;
use crate::sim::session::actions::clock;
use crate::sim::session::{Session, World, turn_entry};
use crate::sim::world::hook_calls::WrittenText;
use crate::sim::world::terminal::TurnNo;
use crate::turn;

/// Mail in a request.
#[derive(Debug, Clone)]
pub(crate) struct PutMail {
    offer: u64,
    conversation: String,
    text: TurnNo,
    /// The messages, each with the number of its offer.
    messages: Vec<(MessageId, u32)>,
}

#[derive(Debug, Clone)]
pub(crate) enum ApiRequest {
    Check { offer: u64, conversation: String },
    Put(PutMail),
    Interrupt { conversation: String },
    Continue { conversation: String },
}

#[derive(Debug, Clone)]
enum Progress {
    Sent,
    /// The program has handled the request, and its answer is on the way.
    Handled(Input),
    /// The session has this result, and has not reported it to the driver.
    Answered(Input),
}

#[derive(Debug)]
struct Call {
    request: ApiRequest,
    progress: Progress,
}

/// The requests that are under way.
#[derive(Debug, Default)]
pub(crate) struct ApiCalls {
    calls: Vec<Call>,
    /// Offers for which the API was found to be the agent's own.
    confirmed: Vec<u64>,
}

impl ApiCalls {
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether a message is on its way to the API.
    pub(crate) fn has(&self, id: MessageId) -> bool {
        let is_put = |call: &Call| match &call.request {
            ApiRequest::Put(mail) => mail.messages.iter().any(|(other, _)| *other == id),
            ApiRequest::Check { .. }
            | ApiRequest::Interrupt { .. }
            | ApiRequest::Continue { .. } => false,
        };
        self.calls.iter().any(is_put)
    }
}

impl Session {
    /// Send a request to the API.
    pub(crate) fn call_api(&mut self, request: ApiRequest) {
        self.api.calls.push(Call {
            request,
            progress: Progress::Sent,
        });
    }

    /// Send mail to the API. From now on, the agent may see it.
    pub(crate) fn put_mail(
        &mut self,
        offer: u64,
        messages: Vec<TurnMessage>,
        conversation: String,
        world: &mut World<'_>,
    ) -> Checked {
        let is_checked = self.api.confirmed.contains(&offer);
        Law::OnlyRecognised.holds(
            is_checked,
            || "mail is sent to an API that was not found to be the agent's own",
        )?;
        let states = TurnContent::Messages(messages).messages();
        let entries: Vec<_> = states.iter().map(turn_entry).collect();
        let text = turn::text(&entries);
        world.oracle.check_put(offer, &states, &text)?;
        let ids: Vec<_> = states.iter().map(|state| state.message.id).collect();
        let numbered = |id: &MessageId| (*id, world.oracle.ledger.offer_number(*id));
        let request = ApiRequest::Put(PutMail {
            offer,
            conversation,
            text: world.turns.len(),
            messages: ids.iter().map(numbered).collect(),
        });
        world.turns.push(WrittenText {
            text,
            ids,
            is_written: true,
        });
        self.call_api(request);
        Ok(())
    }

    /// Take the next step of a request.
    pub(crate) fn step_api(&mut self, n: usize, world: &mut World<'_>) -> Checked {
        let Call { request, progress } = self.api.calls.remove(n);
        let progress = match progress {
            Progress::Sent => {
                let result = self.handle_request(&request, world);
                let now = clock(world.now.mono);
                world
                    .trace
                    .note(|| format!("  {now} the API handles {request:?}: {result:?}"));
                Progress::Handled(result)
            }
            // The program ended before its answer was read.
            Progress::Handled(Input::ApiAccepted(offer)) if !self.program.is_alive => {
                Progress::Answered(Input::ApiSilent(offer))
            }
            Progress::Handled(result) => Progress::Answered(result),
            Progress::Answered(result) => return self.report(result, world),
        };
        self.api.calls.push(Call { request, progress });
        Ok(())
    }

    /// Let the program carry out a request. Return the result for the session.
    fn handle_request(&mut self, request: &ApiRequest, world: &mut World<'_>) -> Input {
        let behaviour = match self.program.is_alive {
            true => world.api,
            false => ApiBehaviour::IsDown,
        };
        match request {
            ApiRequest::Check {
                offer,
                conversation,
            } => match self.check_conversation(conversation, behaviour) {
                Ok(()) => {
                    self.api.confirmed.push(*offer);
                    Input::ApiConfirmed(*offer)
                }
                Err(why) => refused(*offer, Vec::new(), why),
            },
            ApiRequest::Put(mail) => self.handle_mail(mail, behaviour, world),
            ApiRequest::Interrupt { conversation } => {
                let is_carried_out = self.carries_out(conversation, behaviour);
                if is_carried_out {
                    self.program.abort(world.now.mono);
                }
                match is_carried_out && behaviour == ApiBehaviour::Answers {
                    true => Input::ApiDone,
                    false => refused(0, Vec::new(), "it did not interrupt the agent"),
                }
            }
            ApiRequest::Continue { conversation } => {
                let is_carried_out = self.carries_out(conversation, behaviour);
                let stranded = self.program.stranded().count();
                if is_carried_out && stranded > 0 {
                    world
                        .trace
                        .note(|| format!("  the agent continues with {stranded} queued prompts"));
                    self.program.continue_queue(world.now.mono);
                }
                match is_carried_out && behaviour == ApiBehaviour::Answers {
                    true => Input::ApiDone,
                    false => Input::ApiNotContinued {
                        why: "it did not answer".to_owned(),
                    },
                }
            }
        }
    }

    /// Check that the terminal shows this conversation.
    fn check_conversation(
        &self,
        conversation: &str,
        behaviour: ApiBehaviour,
    ) -> Result<(), &'static str> {
        match behaviour {
            ApiBehaviour::IsDown => Err("cannot connect"),
            ApiBehaviour::ShowsAnother => Err("the terminal shows another conversation"),
            ApiBehaviour::Answers
            | ApiBehaviour::Refuses
            | ApiBehaviour::LosesAnswers
            | ApiBehaviour::LosesRequests => match conversation == self.conversation {
                true => Ok(()),
                false => Err("the terminal shows another conversation"),
            },
        }
    }

    /// Whether the program carries out a request that follows a check.
    fn carries_out(&self, conversation: &str, behaviour: ApiBehaviour) -> bool {
        let is_checked = self.check_conversation(conversation, behaviour).is_ok();
        is_checked
            && match behaviour {
                ApiBehaviour::Answers | ApiBehaviour::LosesAnswers => true,
                ApiBehaviour::IsDown
                | ApiBehaviour::ShowsAnother
                | ApiBehaviour::Refuses
                | ApiBehaviour::LosesRequests => false,
            }
    }

    fn handle_mail(
        &mut self,
        mail: &PutMail,
        behaviour: ApiBehaviour,
        world: &mut World<'_>,
    ) -> Input {
        let behaviour = match mail.conversation == self.conversation {
            true => behaviour,
            false => ApiBehaviour::Refuses,
        };
        let ledger = &mut world.oracle.ledger;
        match behaviour {
            // The API knows the conversation, whatever the terminal shows.
            ApiBehaviour::Answers | ApiBehaviour::ShowsAnother | ApiBehaviour::LosesAnswers => {
                self.program.take_prompt(world.now.mono, mail.text);
                for (id, offer) in &mail.messages {
                    ledger.note_complete_offer(*id, *offer);
                }
            }
            ApiBehaviour::IsDown | ApiBehaviour::Refuses => {
                for (id, offer) in &mail.messages {
                    ledger.note_not_shown(*id, *offer);
                }
            }
            ApiBehaviour::LosesRequests => {}
        }
        match behaviour {
            ApiBehaviour::Answers | ApiBehaviour::ShowsAnother => Input::ApiAccepted(mail.offer),
            ApiBehaviour::LosesAnswers | ApiBehaviour::LosesRequests => {
                Input::ApiSilent(mail.offer)
            }
            ApiBehaviour::IsDown | ApiBehaviour::Refuses => {
                let ids = mail.messages.iter().map(|(id, _)| *id).collect();
                refused(mail.offer, ids, "it refused a message with status 404")
            }
        }
    }
}

fn refused(offer: u64, ids: Vec<MessageId>, why: &str) -> Input {
    let why = why.to_owned();
    Input::ApiRefused { offer, ids, why }
}
