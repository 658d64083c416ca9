//! Questions of agents as the status and the event log hold them, under `subdeck` or in records of ours (run-directory
//! 3.9): `subdeck.question.asked` and `subdeck.question.answered`.

use super::json::{Json, Obj};
use super::look::Look;
use super::status;
use super::status_read as read;
use crate::run::{Answer, AnsweredBy, Asking, Choice, ControlSource, Question, QuestionKind, StepId, What};

/// An open question.
pub(super) fn question(question: &Question) -> Obj {
    let asking = &question.asking;
    let mut obj = Obj::new();
    obj.set("id", &question.id).set("askedAt", question.asked_at).opt("until", question.until);
    obj.set("kind", asking.kind.word()).set("text", &asking.text).opt("tool", asking.tool.as_ref());
    obj.opt("args", Some(&asking.args).filter(|args| !args.is_empty())).opt("call", asking.call.as_ref());
    obj.set("agentId", &asking.id).flag("many", asking.many).flag("free", asking.free).flag("byFile", asking.by_file);
    obj.opt("detail", Some(&asking.detail).filter(|detail| !detail.is_empty()));
    if !asking.choices.is_empty() {
        let choices = asking.choices.iter().map(|choice| {
            let mut obj = Obj::new();
            obj.set("id", &choice.id).opt("label", Some(&choice.label).filter(|label| !label.is_empty()));
            obj.opt("kind", Some(&choice.kind).filter(|kind| !kind.is_empty()));
            obj
        });
        obj.set("choices", choices.collect::<Json>());
    }
    obj
}

/// An open question back.
pub(super) fn read_question(look: &Look<'_>) -> Option<Question> {
    let choice = |look: Look<'_>| {
        let word = |key| look.text(key).unwrap_or_default();
        Some(Choice { id: look.text("id")?, label: word("label"), kind: word("kind") })
    };
    Some(Question {
        id: look.text("id")?,
        asked_at: look.time("askedAt")?,
        until: look.time("until"),
        asking: Asking {
            id: look.text("agentId").unwrap_or_default(),
            kind: QuestionKind::of_word(look.str("kind")?)?,
            text: look.text("text").unwrap_or_default(),
            tool: look.text("tool"),
            args: look.text("args").unwrap_or_default(),
            call: look.text("call"),
            choices: look.objs("choices").filter_map(choice).collect(),
            detail: look.text("detail").unwrap_or_default(),
            many: look.is("many"),
            free: look.is("free"),
            within_ms: None,
            by_file: look.is("byFile"),
            repeat: None,
        }
        .bounded(),
    })
}

/// The fields of the record that a question is answered.
pub(super) fn answered(
    obj: &mut Obj,
    (id, text): (&str, &str),
    answer: &Answer,
    by: AnsweredBy,
    source: Option<&ControlSource>,
) {
    obj.set("questionId", id).set("text", text).set("by", by.word());
    let mut said = Obj::new();
    said.opt("choice", answer.choice()).opt("text", answer.text());
    if !answer.choices().is_empty() {
        said.set("choices", answer.choices().iter().collect::<Json>());
    }
    obj.set("answer", said).opt("source", source.map(status::source));
}

/// The record that a question is answered.
pub(super) fn read_answered(look: &Look<'_>, step: StepId) -> Option<What> {
    let answer = look.obj("answer")?;
    Some(What::QuestionAnswered {
        step,
        id: look.text("questionId")?,
        text: look.text("text").unwrap_or_default(),
        answer: Answer::of_record(
            answer.str("choice"),
            answer.strings("choices").unwrap_or_default(),
            answer.str("text"),
        )?,
        by: AnsweredBy::of_word(look.str("by")?)?,
        source: look.obj("source").map(|source| read::source(&source)),
    })
}
