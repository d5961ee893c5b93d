//! A simulated hook call that holds mail. The hook passes the mail on and reports that, or dies.
//! Its mail counts as seen from the start, because mail cannot be taken back from a hook.

use crate::driver::{HookCall, HookMail, Input, TurnMessage};
use crate::id::MessageId;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::session::{Session, World};
use crate::sim::world::manifest::{self, TOOL_USED};

#[derive(Debug)]
pub(crate) struct HookWithMail {
    offer: u64,
    pub(crate) ids: Vec<MessageId>,
    /// Whether the hook died before it passed the mail on.
    is_dead: bool,
    /// Whether the session has stopped waiting for the hook.
    pub(crate) is_given_up: bool,
}

impl Session {
    /// Call the hook that takes mail.
    pub(crate) fn call_hook(&mut self, world: &mut World<'_>) -> Checked {
        if self.ended.is_some() || !self.program.is_alive {
            return Ok(());
        }
        self.hook_calls += 1;
        let report = manifest::manifest(self.program.profile())
            .hook
            .read(TOOL_USED, "{}");
        let input = Input::HookCalled {
            call: HookCall(self.hook_calls),
            report: Box::new(report),
            takes_mail: true,
        };
        self.tell(input, world)?;
        self.perform_actions(world)
    }

    /// Kill every hook that holds mail. The death of a hook without mail changes nothing.
    pub(crate) fn kill_hooks(&mut self) {
        for hook in &mut self.hooks {
            hook.is_dead = true;
        }
    }

    /// Give a hook the mail that was recorded for it.
    pub(crate) fn give_mail(&mut self, mail: &HookMail, world: &mut World<'_>) -> Checked {
        let mut ids = Vec::new();
        for TurnMessage { state, .. } in &mail.messages {
            let id = state.message.id;
            ids.push(id);
            let is_open = world.oracle.ledger.is_open(id);
            Law::NothingDoubled.holds(
                is_open,
                || "a hook receives a message without a recorded offer",
            )?;
            world.oracle.ledger.note_shown(id, state.is_repeat())?;
        }
        self.hooks.push(HookWithMail {
            offer: mail.offer,
            ids,
            is_dead: false,
            is_given_up: false,
        });
        Ok(())
    }

    pub(crate) fn step_hook(&mut self, n: usize, world: &mut World<'_>) -> Checked {
        let hook = self.hooks.remove(n);
        let input = match hook.is_dead {
            true => Input::HookGone(hook.offer),
            false => {
                for id in &hook.ids {
                    world.oracle.ledger.note_complete(*id);
                }
                Input::HookPassedOn(hook.offer)
            }
        };
        self.report(input, world)
    }
}
