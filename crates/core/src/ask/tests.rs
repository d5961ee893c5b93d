//! Tests of the rules of asks.

use super::*;
use crate::fact::{Event, Fact};
use crate::mail::tests::{message, name, with_steps};
use crate::receipt::Step::{self, *};
use jiff::Timestamp;

pub(crate) fn option(key: &str, label: &str, meaning: Meaning) -> AskOption {
    AskOption {
        key: key.to_owned(),
        label: label.to_owned(),
        meaning,
    }
}

/// Return a request of a shell command.
pub(crate) fn permission(run: u128) -> AskOpened {
    let text = "Bash command\n  cargo test\nDo you want to proceed?".to_owned();
    let options = vec![
        option("1", "Yes", Meaning::Allow),
        option("2", "Yes, and always allow", Meaning::AllowAlways),
        option("3", "No", Meaning::Deny),
    ];
    AskOpened {
        run: Uuid::from_u128(run),
        kind: AskKind::Permission,
        summary: "Bash command: cargo test".to_owned(),
        fingerprint: fingerprint(&text, &options),
        text,
        is_partial: false,
        options,
    }
}

pub(crate) fn every_fact() -> Vec<AskFact> {
    let closed = |how| AskClosed {
        ask: AskId(Uuid::from_u128(4)),
        how,
        by: Some(name("human")),
        via: Some("telegram".to_owned()),
        choice: Some("No".to_owned()),
        evidence: Some("the dialog closed".to_owned()),
    };
    vec![
        AskFact::Opened(permission(1)),
        AskFact::Opened(AskOpened {
            is_partial: true,
            options: Vec::new(),
            kind: AskKind::Question,
            ..permission(1)
        }),
        AskFact::Seen(AskSeen {
            what: Uuid::from_u128(5),
            by: name("human"),
        }),
        AskFact::Closed(closed(AskEnd::Answered)),
        AskFact::Closed(closed(AskEnd::Withdrawn)),
        AskFact::Closed(AskClosed {
            by: None,
            via: None,
            choice: None,
            evidence: None,
            ..closed(AskEnd::Superseded)
        }),
    ]
}

fn fact(id: u128, event: Event) -> Fact {
    Fact {
        id: Uuid::from_u128(id),
        at: Timestamp::from_second(1_000).unwrap(),
        agent: name("bob"),
        event,
    }
}

fn opened(id: u128, run: u128) -> AskState {
    let fact = fact(id, Event::Ask(AskFact::Opened(permission(run))));
    AskState::opened_by(&fact).unwrap()
}

fn answer(ask: &AskState) -> AskAnswer {
    AskAnswer {
        ask: ask.id,
        fingerprint: ask.opened.fingerprint.clone(),
        key: "1".to_owned(),
        choice: "Yes".to_owned(),
        via: "ph answer".to_owned(),
    }
}

/// Return the ask with an answer from alice, which is message 9.
fn claimed(ask: &AskState) -> AskState {
    let mut envelope = message(9, "alice", "bob").envelope;
    envelope.answers = Some(Box::new(answer(ask)));
    let mut ask = ask.clone();
    ask.apply(&fact(9, Event::Message(envelope)));
    ask
}

#[test]
fn the_first_answer_wins() {
    let ask = claimed(&opened(1, 1));
    let check = |steps: &[Step], want: Result<(), AskRefusal>| {
        let rival = with_steps(&message(9, "alice", "bob"), steps);
        assert_eq!(
            accept(&answer(&ask), Some(&ask), Some(&rival)),
            want,
            "{steps:?}"
        );
    };
    let too_late = || {
        Err(AskRefusal::TooLate {
            by: name("alice"),
            via: "ph answer".to_owned(),
            choice: "Yes".to_owned(),
            at: Timestamp::from_second(1_000).unwrap(),
        })
    };
    check(&[], too_late());
    check(&[Offering], too_late());
    check(&[Offering, Offered, Accepted], too_late());
    // It may have been applied.
    check(&[Offering, Uncertain], too_late());
    // It was not applied, and the question is still open.
    check(&[Offering, Failed], Ok(()));
    check(&[Cancelled], Ok(()));
}

#[test]
fn an_answer_needs_the_open_question_that_was_shown() {
    let ask = opened(1, 1);
    let good = answer(&ask);
    assert_eq!(accept(&good, Some(&ask), None), Ok(()));
    assert_eq!(accept(&good, None, None), Err(AskRefusal::Unknown));
    let other = AskAnswer {
        fingerprint: fingerprint("rm -r /", &[]),
        ..good.clone()
    };
    assert_eq!(accept(&other, Some(&ask), None), Err(AskRefusal::Changed));
    for reason in [
        CloseReason::Superseded,
        CloseReason::Withdrawn {
            evidence: "gone".to_owned(),
        },
    ] {
        let mut closed = ask.clone();
        closed.apply(&fact(2, close(&ask, &reason).unwrap()));
        assert_eq!(accept(&good, Some(&closed), None), Err(AskRefusal::Changed));
        assert_eq!(close(&closed, &reason), None, "an ask closes once");
    }
    let mut closed = ask.clone();
    closed.apply(&fact(
        2,
        close(&ask, &CloseReason::AnsweredInTerminal).unwrap(),
    ));
    let refusal = accept(&good, Some(&closed), None).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "'' by human via the terminal came first"
    );
}

#[test]
fn a_new_question_closes_the_one_before() {
    let known = [opened(1, 1), opened(2, 7)];
    let events = open(permission(7), &known);
    let ends = events.iter().filter_map(|event| match event {
        Event::Ask(AskFact::Closed(closed)) => Some((closed.ask.0.as_u128(), closed.how)),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    assert_eq!(ends, [(1, AskEnd::Withdrawn), (2, AskEnd::Superseded)]);
}

#[test]
fn the_end_of_a_run_closes_its_asks() {
    let check = |steps: &[Step], how: AskEnd, evidence: &str| {
        let known = [claimed(&opened(1, 1)), opened(2, 2)];
        let rival = with_steps(&message(9, "alice", "bob"), steps);
        let events: Vec<_> = end_run(Uuid::from_u128(1), &known, |_| Some(rival.clone())).collect();
        let [Event::Ask(AskFact::Closed(closed))] = events.as_slice() else {
            panic!("{events:?}");
        };
        assert_eq!(closed.how, how);
        assert!(
            closed.evidence.as_ref().unwrap().contains(evidence),
            "{closed:?}"
        );
    };
    check(&[Offering, Offered, Accepted], AskEnd::Answered, "receipt");
    check(&[Offering], AskEnd::Withdrawn, "before its effect was seen");
    check(&[], AskEnd::Withdrawn, "the session ended");
    check(&[Offering, Failed], AskEnd::Withdrawn, "the session ended");
}

#[test]
fn a_word_chooses_an_option() {
    let ask = permission(1);
    let check = |ask: &AskOpened, word: &str, want: Result<&str, ChoiceError>| {
        let found = ask.choose(word);
        let label = found.map(|choice| match choice {
            Choice::Option(option) => option.label.clone(),
            Choice::DenyWith(option, text) => format!("{} + {text}", option.label),
        });
        assert_eq!(label, want.map(str::to_owned), "{word}");
    };
    check(&ask, "allow", Ok("Yes"));
    check(&ask, " always ", Ok("Yes, and always allow"));
    check(&ask, "deny", Ok("No"));
    check(&ask, "2", Ok("Yes, and always allow"));
    check(&ask, "not like this", Ok("No + not like this"));
    check(&ask, "4", Err(ChoiceError::NoSuchKey));
    check(&ask, "y", Err(ChoiceError::NoSuchKey));
    let partial = AskOpened {
        is_partial: true,
        ..ask.clone()
    };
    check(&partial, "allow", Err(ChoiceError::Partial));
    check(&partial, "2", Err(ChoiceError::Partial));
    check(&partial, "deny", Ok("No"));
    let mut two = ask.clone();
    two.options[1].meaning = Meaning::Allow;
    check(&two, "allow", Err(ChoiceError::SeveralMeanings("allow")));
    check(&two, "always", Err(ChoiceError::NoMeaning("always")));
    let none = AskOpened {
        options: Vec::new(),
        ..ask
    };
    check(&none, "deny", Err(ChoiceError::NoOptions));
}

#[test]
fn a_fingerprint_covers_text_and_options_and_no_wrapping() {
    let ask = permission(1);
    let of = |text: &str, options: &[AskOption]| fingerprint(text, options);
    let wrapped = ask.text.replace(' ', "\n   ");
    assert_eq!(of(&wrapped, &ask.options), ask.fingerprint);
    assert_ne!(of("rm", &ask.options), ask.fingerprint);
    assert_ne!(of(&ask.text, &ask.options[..2]), ask.fingerprint);
    let mut options = ask.options.clone();
    options[0].meaning = Meaning::AllowAlways;
    assert_ne!(of(&ask.text, &options), ask.fingerprint);
}
