//! A call of the program's hook in the model: it is given mail, passes it on or dies, and says so
//! or cannot. What it was given counts as seen from then on, because nobody can take it back.

use super::harness::{self, HOOK};
use super::law::{Checked, Law};
use super::session::{Session, World};
use crate::driver::{HookCall, HookMail, Input};
use crate::id::MessageId;

#[derive(Debug)]
pub(super) struct Hooked {
    offer: u64,
    pub(super) ids: Vec<MessageId>,
    /// It has died with the text.
    is_dead: bool,
    /// The session has stopped waiting for it.
    pub(super) is_given_up: bool,
}

impl Session {
    /// The program calls its hook.
    pub(super) fn call_hook(&mut self, world: &mut World<'_>) -> Checked {
        if self.ended.is_some() || !self.agent.is_alive {
            return Ok(());
        }
        self.hook_calls += 1;
        let report = harness::manifest(self.agent.nature()).hook.read(HOOK, "{}");
        let input = Input::HookCalled {
            call: HookCall(self.hook_calls),
            report: Box::new(report),
            takes_mail: true,
        };
        self.tell(input, world)?;
        self.proceed(world)
    }

    /// Those that have something die with it; the others have nothing to lose.
    pub(super) fn kill_hooks(&mut self) {
        for hook in &mut self.hooks {
            hook.is_dead = true;
        }
    }

    /// A hook is given what was recorded for it.
    pub(super) fn give(&mut self, mail: &HookMail, world: &mut World<'_>) -> Checked {
        let mut ids = Vec::new();
        for (letter, _) in &mail.letters {
            let id = letter.message.id;
            ids.push(id);
            let is_open = world.oracle.ledger.is_open(id);
            Law::NothingDoubled.holds(is_open, || "a hook is given what is not on record")?;
            world.oracle.ledger.expose(id, letter.is_repeat())?;
        }
        self.hooks.push(Hooked {
            offer: mail.offer,
            ids,
            is_dead: false,
            is_given_up: false,
        });
        Ok(())
    }

    pub(super) fn go_on_with_hook(&mut self, n: usize, world: &mut World<'_>) -> Checked {
        let hook = self.hooks.remove(n);
        let input = match hook.is_dead {
            true => Input::HookGone(hook.offer),
            false => {
                for id in &hook.ids {
                    world.oracle.ledger.complete(*id);
                }
                Input::HookPassedOn(hook.offer)
            }
        };
        self.report(input, world)
    }
}
