//! What may be answered to a question, and how it is written.

use super::*;

fn choice(id: &str, label: &str) -> Choice {
    Choice { id: id.into(), label: label.into(), kind: String::new() }
}

fn asking(kind: QuestionKind, choices: Vec<Choice>, free: bool) -> Asking {
    Asking { id: "1".into(), kind, text: "Which?".into(), choices, free, ..Asking::default() }
}

#[test]
fn what_is_typed_is_read_as_the_question_wants_it() {
    let permission = asking(QuestionKind::Permission, vec![choice("o1", "Always"), choice("no", "Never")], false);
    let confirm = asking(QuestionKind::Confirm, vec![], false);
    let choices = asking(QuestionKind::Choice, vec![choice("Red", ""), choice("b", "Blue")], false);
    let free = asking(QuestionKind::Choice, vec![choice("Red", "")], true);
    let text = asking(QuestionKind::Text, vec![], false);
    let chosen = |id: &str| Ok(Answer::Choose(id.to_owned()));
    let said = |text: &str| Ok(Answer::Text(text.to_owned()));
    let table = [
        (&permission, "Allow", Ok(Answer::Allow)),
        (&permission, " yes ", Ok(Answer::Allow)),
        (&permission, "deny", Ok(Answer::Deny(None))),
        (&permission, "1", chosen("o1")),
        (&permission, "always", chosen("o1")),
        // The agent's own id of an answer goes before a word of ours.
        (&permission, "no", chosen("no")),
        (&permission, "3", Err("it can be answered with allow, deny, 1 (Always), 2 (Never)".to_owned())),
        (&confirm, "n", Ok(Answer::Deny(None))),
        (&confirm, "maybe", Err("it can be answered with allow, deny".to_owned())),
        (&choices, "2", chosen("b")),
        (&choices, "red", chosen("Red")),
        (&choices, "blue", chosen("b")),
        (&choices, "yes", Err("it can be answered with 1 (Red), 2 (Blue)".to_owned())),
        (&free, "green", said("green")),
        (&free, "1", chosen("Red")),
        (&text, "allow", said("allow")),
        (&text, "  two words \n", said("two words")),
        (&text, "  ", Err("the answer is empty".to_owned())),
    ];
    for (asking, typed, expected) in table {
        assert_eq!(asking.typed(typed), expected, "{typed:?}");
    }
}

#[test]
fn several_choices_are_taken_where_several_may_be() {
    let one = asking(QuestionKind::Choice, vec![choice("Red", ""), choice("b", "Blue"), choice("c, d", "")], true);
    let many = Asking { many: true, ..one.clone() };
    let strict = Asking { free: false, ..many.clone() };
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let several = |of: &[&str]| Ok(Answer::Several(ids(of), None));
    let text = |text: &str| Ok(Answer::Text(text.to_owned()));
    let instead =
        Err("it can be answered with 1 (Red), 2 (Blue), 3 (c, d), several of them with commas (1,2)".to_owned());
    for (asking, typed, expected) in [
        (&many, "1,2", several(&["Red", "b"])),
        (&many, " 3 , red, 1 ", several(&["Red", "c, d"])),
        (&many, "2,2,", Ok(Answer::Choose("b".into()))),
        (&many, "c, d", Ok(Answer::Choose("c, d".into()))),
        (&many, "Red, but darker", text("Red, but darker")),
        (&strict, "Red, but darker", instead.clone()),
        (&strict, "1,9", instead),
        (&one, "1,2", text("1,2")),
    ] {
        assert_eq!(asking.typed(typed), expected, "{typed:?}");
    }
    assert!(many.typed("1,9").is_err(), "a slip and no words");
    assert!(many.typed(",").is_ok(), "words");
    let both = many.given(None, &ids(&["b", "Red"]), Some(" dark ")).unwrap();
    assert_eq!(both, Answer::Several(ids(&["Red", "b"]), Some("dark".into())));
    assert_eq!(both.words().as_deref(), Some("Red, b, dark"));
    assert!(strict.given(None, &ids(&["b"]), Some("dark")).is_err());
    assert!(many.given(None, &ids(&["b", "x"]), None).is_err());
    assert!(many.given(Some("b"), &ids(&["b"]), None).is_err());
    assert!(one.given(None, &ids(&["b"]), None).is_err());
}

#[test]
fn a_request_answers_only_what_was_asked() {
    let confirm = asking(QuestionKind::Confirm, vec![], false);
    assert_eq!(confirm.given(Some("deny"), &[], Some(" not now ")), Ok(Answer::Deny(Some("not now".into()))));
    assert_eq!(confirm.given(Some("dismiss"), &[], None), Ok(Answer::Dismiss));
    assert!(confirm.given(None, &[], Some("perhaps")).is_err());
    assert!(confirm.given(Some("o1"), &[], None).is_err());
    let text = asking(QuestionKind::Text, vec![], false);
    assert!(text.given(Some("allow"), &[], None).is_err());
    let long = "x".repeat(Answer::MOST + 1);
    assert!(text.given(None, &[], Some(&long)).unwrap_err().contains("65537 bytes"));
    assert!(text.given(None, &[], Some(&long[1..])).is_ok());
}

#[test]
fn records_say_the_same_again_but_for_long_texts() {
    let answers = [
        Answer::Allow,
        Answer::Deny(None),
        Answer::Deny(Some("w".into())),
        Answer::Dismiss,
        Answer::Text("t".into()),
        Answer::Several(vec!["a".into(), "b".into()], None),
        Answer::Several(vec!["a".into()], Some("t".into())),
    ];
    for answer in answers {
        let again = Answer::of_record(answer.choice(), answer.choices().to_vec(), answer.text());
        assert_eq!(again, Some(answer.clone()), "{answer:?}");
        assert_eq!(answer.clone().recorded(), answer);
    }
    assert_eq!(Answer::of_record(None, vec![], None), None);
    let long = Answer::Text("é".repeat(200)).recorded();
    assert_eq!(long.text().map(|t| t.chars().count()), Some(Answer::PREVIEW + 1));
    for word in QuestionKind::ALL.map(QuestionKind::word) {
        assert_eq!(QuestionKind::of_word(word).map(QuestionKind::word), Some(word));
    }
    for word in AnsweredBy::ALL.map(AnsweredBy::word) {
        assert_eq!(AnsweredBy::of_word(word).map(AnsweredBy::word), Some(word));
    }
}

#[test]
fn what_is_kept_of_a_question_has_a_bound() {
    let many = (0..100).map(|n| choice(&n.to_string(), &"x".repeat(5000))).collect();
    let asking = Asking { text: "é".repeat(5000), args: "y".repeat(5000), ..asking(QuestionKind::Choice, many, true) };
    let kept = asking.bounded();
    assert!(kept.text.len() <= AgentEvent::PREVIEW && kept.args.len() == AgentEvent::PREVIEW);
    assert_eq!((kept.choices.len(), kept.choices[0].label.len()), (Choice::MOST, AgentEvent::PREVIEW));
}
