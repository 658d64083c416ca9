//! What happens under supervision, in words: the same on every screen and in every printed line. The words hold text
//! from outside and are shown as such.

use super::{Answer, AnsweredBy, ControlSource, Level, NextAttempt, StepId, What};

/// An event of supervision in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Of which step; `None` for the run.
    pub step: Option<StepId>,
    /// It is bad, or needs somebody.
    pub loud: bool,
    /// The words, without the step.
    pub text: String,
}

/// The words of an event; `None` for events that are none of supervision or say nothing to a person.
#[must_use]
pub fn told(what: &What) -> Option<Told> {
    let (step, loud, text) = match what {
        What::AttentionRaised { step, notice } => {
            let evidence = &notice.condition.evidence;
            let again = if notice.times > 1 { ", still" } else { "" };
            let words = notice.condition.reason.words();
            match notice.level() {
                // The question itself is told already.
                Level::Needs if notice.condition.reason == super::Reason::Question && notice.times <= 1 => return None,
                Level::Needs => (Some(*step), true, format!("▲ {words}{again}: {evidence}")),
                // The retry itself is told already.
                Level::Note if notice.condition.reason == super::Reason::Retrying => return None,
                Level::Busy | Level::Note => (Some(*step), false, format!("· {words}{again}: {evidence}")),
            }
        }
        What::AttentionAcknowledged { step, id, source } => {
            let reason = super::Reason::parse(id.split(':').nth(1).unwrap_or_default());
            (Some(*step), false, format!("· noted{}: {}", by(source.as_ref()), reason.words()))
        }
        What::AttentionNoted { step, reason, message } => {
            (Some(*step), true, format!("▲ {}: {message}", reason.words()))
        }
        What::QuestionAsked { step, question } => (Some(*step), true, format!("▲ asks: {}", question.asking.text)),
        What::QuestionAnswered { step, text, answer, by: who, source, .. } => {
            let loud = matches!(who, AnsweredBy::Nobody | AnsweredBy::Timeout);
            (Some(*step), loud, answered(text, answer, *who, source.as_ref()))
        }
        What::AttemptEnded { step, error, next: NextAttempt { reason, .. }, .. } => {
            // The reason of a fallback repeats the error.
            let text = if reason.starts_with(super::retry::FALLBACK) {
                format!("✗ {reason}")
            } else {
                format!("✗ {}; {reason}", error.lines().next().unwrap_or_default())
            };
            (Some(*step), true, text)
        }
        // The notice of the step says it too, and with more.
        What::BudgetReached { step: Some(_), stage: super::Stage::Soft, .. } => return None,
        What::BudgetReached { step: None, stage: super::Stage::Soft, metric, used, .. } => {
            (None, false, format!("· a warning of the run is reached: {}", used.words(*metric)))
        }
        What::BudgetReached { step, stage: super::Stage::Deferred, metric, used, .. } => {
            (*step, true, format!("▲ over a limit, goes on until its tools have ended: {}", used.words(*metric)))
        }
        What::BudgetReached { step, stage: super::Stage::Late, message, .. } => (*step, true, format!("▲ {message}")),
        What::BudgetReached { step, stage: super::Stage::Hard, message, .. } => (*step, true, format!("$ {message}")),
        What::BudgetRaised { step, raise, source } => {
            (*step, false, format!("» limit changed{}: {raise}", by(source.as_ref())))
        }
        What::DiskSpace { free, low: true } => {
            (None, true, format!("▲ the disk is nearly full: {} left", crate::text::bytes(*free)))
        }
        What::DiskSpace { low: false, .. } => (None, false, "· the disk has room again".to_owned()),
        What::Slept { ms } => (None, false, format!("· the machine slept for {}", super::attention::seconds(*ms))),
        _ => return None,
    };
    Some(Told { step, loud, text })
}

/// How a question ended, in words.
fn answered(question: &str, answer: &Answer, who: AnsweredBy, source: Option<&ControlSource>) -> String {
    let said = match answer {
        Answer::Allow => "allowed".to_owned(),
        Answer::Deny(None) => "denied".to_owned(),
        Answer::Deny(Some(why)) => format!("denied ({why})"),
        Answer::Choose(_) | Answer::Text(_) | Answer::Several(..) => answer.words().unwrap_or_default(),
        Answer::Dismiss => "dismissed".to_owned(),
    };
    match who {
        AnsweredBy::Person => format!("» answered{}: {said}: {question}", by(source)),
        AnsweredBy::Rule => format!("· {said} by the plan: {question}"),
        AnsweredBy::Unattended => format!("· {said}, because nobody attends this run: {question}"),
        AnsweredBy::Nobody => format!("▲ nobody can be asked in this run, which pauses: {question}"),
        AnsweredBy::Timeout => format!("▲ {said}, because nobody answered in time: {question}"),
        AnsweredBy::Gone => format!("· waits no more for an answer: {question}"),
    }
}

fn by(source: Option<&ControlSource>) -> String {
    source.map(|s| format!(" by {s}")).unwrap_or_default()
}
