//! A call of the program's hook in the model: it is given mail, passes it on or dies, and says so
//! or cannot. What it was given counts as seen from then on, because nobody can take it back.

use super::errands::letters;
use super::harness::{self, HOOK};
use super::law::{Checked, Law};
use super::session::{Session, World};
use crate::delivery::Event;
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::Letter;
use crate::offer::Said;

/// How far it has come.
#[derive(Debug)]
enum Stage {
    /// The offer is to be recorded.
    Asked,
    /// To be told to the desk.
    Said(Event),
    /// It has the text.
    Given,
    /// It has died with it.
    Dead,
}

#[derive(Debug)]
pub(super) struct Hooked {
    number: u64,
    pub(super) ids: Vec<MessageId>,
    letters: Vec<Letter>,
    stage: Stage,
    /// The session has stopped waiting for it.
    is_given_up: bool,
}

impl Session {
    /// What is in no hook's hands, of what is pending.
    pub(super) fn unhooked(&self) -> Vec<Letter> {
        let is_free = |letter: &&Letter| {
            let id = letter.message.id;
            let has_it = |hook: &Hooked| hook.ids.contains(&id) && !hook.is_given_up;
            !self.hooks.iter().any(has_it)
        };
        self.view.iter().filter(is_free).cloned().collect()
    }

    /// The session stops waiting for the hooks that have these.
    pub(super) fn give_up_hooks(&mut self, ids: &[MessageId]) {
        let has_one = |hook: &&mut Hooked| hook.ids.iter().any(|id| ids.contains(id));
        for hook in self.hooks.iter_mut().filter(has_one) {
            hook.is_given_up = true;
        }
    }

    /// The program calls its hook.
    pub(super) fn call_hook(&mut self, world: &mut World<'_>) -> Checked {
        if self.ended.is_some() || !self.agent.is_alive {
            return Ok(());
        }
        let report = harness::manifest(self.agent.nature()).hook.read(HOOK, "{}");
        self.tell(Event::Hook(Box::new(report.clone())), world)?;
        if !self.is_fresh {
            return Ok(());
        }
        if let Some(handing) = self.desk.hand(world.now, &report, &self.view) {
            self.hooks.push(Hooked {
                number: handing.number,
                letters: letters(&self.view, &handing.ids),
                ids: handing.ids,
                stage: Stage::Asked,
                is_given_up: false,
            });
            self.outdate();
        }
        Ok(())
    }

    /// Those that have something die with it; the others have nothing to lose.
    pub(super) fn kill_hooks(&mut self) {
        for hook in &mut self.hooks {
            if let Stage::Given = hook.stage {
                hook.stage = Stage::Dead;
            }
        }
    }

    /// A hook is given what was recorded for it.
    pub(super) fn give(&mut self, number: u64, world: &mut World<'_>) -> Checked {
        let Some(hook) = self.hooks.iter_mut().find(|hook| hook.number == number) else {
            return Ok(());
        };
        hook.stage = Stage::Given;
        for letter in &hook.letters {
            let id = letter.message.id;
            let is_open = world.oracle.ledger.is_open(id);
            Law::NothingDoubled.holds(is_open, || "a hook is given what is not on record")?;
            world.oracle.ledger.expose(id, letter.is_repeat())?;
        }
        Ok(())
    }

    pub(super) fn go_on_with_hook(&mut self, n: usize, world: &mut World<'_>) -> Checked {
        let mut hook = self.hooks.remove(n);
        let event = match hook.stage {
            Stage::Asked => {
                let route = Route::Hook.as_str().to_owned();
                let repeats = Letter::repeats(&hook.letters);
                let said = Said::Offering { route, repeats };
                let number = hook.number;
                let recorded = world.journal.say(world.now, &hook.ids, &said);
                let event = match recorded {
                    Ok(ids) => {
                        hook.letters
                            .retain(|letter| ids.contains(&letter.message.id));
                        hook.ids.clone_from(&ids);
                        Event::Handed { number, ids }
                    }
                    Err(_) => Event::NotHanded {
                        number,
                        ids: Vec::new(),
                        why: "the disk fails".to_owned(),
                    },
                };
                hook.stage = Stage::Said(event);
                self.hooks.push(hook);
                return Ok(());
            }
            Stage::Said(event) => {
                // Its stage is set where it is given something.
                hook.stage = Stage::Dead;
                let is_handed = matches!(event, Event::Handed { .. });
                self.hooks.push(hook);
                self.hear(event, world)?;
                let is_left = |hook: &Hooked| matches!(hook.stage, Stage::Dead) && is_handed;
                self.hooks.pop_if(|hook| is_left(hook) || !is_handed);
                return Ok(());
            }
            Stage::Given => {
                for id in &hook.ids {
                    world.oracle.ledger.complete(*id);
                }
                Event::Taken(hook.number)
            }
            Stage::Dead => Event::Dropped(hook.number),
        };
        self.hear(event, world)
    }
}
