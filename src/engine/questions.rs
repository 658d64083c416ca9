//! Questions of agents: what is answered at once by the plan or because nobody attends the run, what waits for a person,
//! and how an answer reaches its agent (product 5).

use std::time::Duration;

use super::clock::now;
use super::complain::complain;
use super::dispatch::Engine;
use crate::plan::Runner;
use crate::run::{
    Answer, AnsweredBy, Asking, ControlSource, OnPermission, Permission, Question, Ruling, StepId, StepState,
    Timestamp, ToolRule, What, ruling,
};
use crate::rundir::supervisor::{self, SupervisorRequest};

/// What a child is told whose supervisor does not answer.
const NO_REPLY: &str = "The supervisor does not answer. Decide yourself, or end with what you would need to know.";

/// A question that waits for its answer.
pub(super) struct Waiting {
    /// Its name in the run.
    id: String,
    step: StepId,
    /// With what an answer has to repeat.
    asking: Asking,
}

/// The questions of a run.
#[derive(Default)]
pub(super) struct Questions {
    waiting: Vec<Waiting>,
    /// How many there were.
    count: u64,
    /// What becomes of those that no rule decides.
    pub on: OnPermission,
}

impl Questions {
    pub(super) fn new(on: OnPermission) -> Self {
        Self { on, ..Self::default() }
    }
}

impl Engine {
    /// An agent asks something.
    pub(super) fn asked(&mut self, step: StepId, asking: Asking, at: Timestamp) {
        let again = |w: &Waiting| w.step == step && w.asking.id == asking.id && w.asking.by_file == asking.by_file;
        if self.questions.waiting.iter().any(again) {
            return;
        }
        let Some(state) = self.recorder.state().step(step) else { return };
        // Nobody is asked for what is being ended, nor for more than anybody can answer.
        let pointless = state.ending.is_some() || state.phase != crate::run::StepPhase::Running;
        if pointless || state.questions.len() >= StepState::KEPT_SIGNS {
            self.send_answer(step, &asking, &Answer::Dismiss);
            return;
        }
        let (permission, rules, patience) = self.terms(step);
        self.questions.count += 1;
        let id = format!("q{}", self.questions.count);
        match ruling(&asking, permission, &rules, self.questions.on) {
            Ruling::Answer(answer, by) => {
                self.send_answer(step, &asking, &answer);
                self.answered(step, id, &asking, answer, by, None);
            }
            Ruling::Ask => {
                self.ask(step, id, asking, at, patience);
            }
            Ruling::Fail => {
                self.ask(step, id.clone(), asking.clone(), at, None);
                self.answered(step, id, &asking, Answer::Dismiss, AnsweredBy::Nobody, None);
                let reason = Some(format!("step {} asks, and nobody can be asked in this run", step.number()));
                let source = ControlSource { via: "headless".to_owned(), reason, ..ControlSource::default() };
                if !self.recorder.state().is_ending() {
                    self.recorder.record(What::RunInterrupted { source: Some(source) });
                }
            }
        }
    }

    /// What the plan says of the questions of a step: what it may do, its rules, and how long one waits.
    fn terms(&self, step: StepId) -> (Permission, Vec<ToolRule>, Option<Duration>) {
        match self.plan.flat().nth(step.flat()) {
            Some(planned) => {
                let (permission, rules) = match &planned.runner {
                    Runner::Agent(agent) => (agent.kind.permission, agent.rules.clone()),
                    Runner::Pi { .. } | Runner::Demo { .. } | Runner::ExternalCli { .. } => (Permission::Ask, vec![]),
                };
                (permission, rules, planned.question_timeout)
            }
            None => (Permission::Ask, Vec::new(), None),
        }
    }

    fn ask(&mut self, step: StepId, id: String, asking: Asking, at: Timestamp, patience: Option<Duration>) {
        let own = asking.within_ms.map(Duration::from_millis);
        let until = [patience, own].into_iter().flatten().min().map(|wait| at + wait);
        let kept = Asking { repeat: None, within_ms: None, ..asking.clone() };
        let question = Box::new(Question { id: id.clone(), asking: kept, asked_at: at, until });
        self.recorder.record(What::QuestionAsked { step, question });
        self.questions.waiting.push(Waiting { id, step, asking });
    }

    /// Records how a question ended, and tells it in the step's log.
    fn answered(
        &mut self,
        step: StepId,
        id: String,
        asking: &Asking,
        answer: Answer,
        by: AnsweredBy,
        source: Option<ControlSource>,
    ) {
        let what =
            What::QuestionAnswered { step, id, text: asking.text.clone(), answer: answer.recorded(), by, source };
        let told = crate::run::words::told(&what);
        self.recorder.record(what);
        if let (Some(active), Some(told)) = (self.active.get(&step), told)
            && let Err(error) =
                active.tell_log(told.text.trim_start_matches(['▲', '»', '·', ' ']).replace('\n', " ").as_str())
        {
            self.recorder.record(What::LogFailed { step, error: error.to_string() });
        }
    }

    /// Hands an answer over. Returns whether the agent still waited for it.
    fn send_answer(&mut self, step: StepId, asking: &Asking, answer: &Answer) -> bool {
        let Some(active) = self.active.get_mut(&step) else { return false };
        if asking.by_file {
            let message = match answer {
                Answer::Deny(Some(why)) => why.clone(),
                answer => answer.words().unwrap_or_else(|| NO_REPLY.to_owned()),
            };
            return match supervisor::reply(self.home.way(), &asking.id, &message, now()) {
                Ok(()) => true,
                Err(error) => {
                    complain("runner", &format_args!("cannot reply to step {}: {error}", step.number()));
                    false
                }
            };
        }
        let bytes = active.talk().and_then(|talk| talk.reply(asking, answer));
        let sent = bytes.is_some_and(|bytes| bytes.is_empty() || active.send(bytes));
        self.settle_given_up(step);
        sent
    }

    /// Somebody answers a question; `id` is that of the request.
    pub(super) fn answer_question(
        &mut self,
        id: &str,
        words: &str,
        question: &str,
        said: (Option<&str>, &[String], Option<&str>),
        source: ControlSource,
    ) {
        let refused = self.try_answer(question, said, source).err();
        self.answer_own(id, words, refused);
    }

    fn try_answer(
        &mut self,
        question: &str,
        (choice, choices, text): (Option<&str>, &[String], Option<&str>),
        source: ControlSource,
    ) -> Result<(), String> {
        let gone = || format!("the question {question} is not open: it was answered, or its agent waits no more");
        let at = self.questions.waiting.iter().position(|w| w.id == question).ok_or_else(gone)?;
        let Some(waiting) = self.questions.waiting.get(at) else { return Err(gone()) };
        let answer = waiting.asking.given(choice, choices, text)?;
        let Waiting { id, step, asking } = self.questions.waiting.remove(at);
        if self.send_answer(step, &asking, &answer) {
            self.answered(step, id, &asking, answer, AnsweredBy::Person, Some(source));
            return Ok(());
        }
        self.answered(step, id, &asking, Answer::Dismiss, AnsweredBy::Gone, None);
        Err("its agent does not wait for an answer any more".to_owned())
    }

    /// The time for an answer is over.
    pub(super) fn expire_question(&mut self, step: StepId, id: &str) {
        let Some(at) = self.questions.waiting.iter().position(|w| w.id == id) else {
            // Only a fault could bring this about; what is recorded as open is closed all the same.
            let (answer, by) = (Answer::Dismiss, AnsweredBy::Gone);
            return self.answered(step, id.to_owned(), &Asking::default(), answer, by, None);
        };
        let Waiting { id, step, asking } = self.questions.waiting.remove(at);
        let answer = if asking.takes_yes() { Answer::Deny(None) } else { Answer::Dismiss };
        self.send_answer(step, &asking, &answer);
        self.answered(step, id, &asking, answer, AnsweredBy::Timeout, None);
    }

    /// The agent waits no more with what it was told to break off.
    pub(super) fn settle_given_up(&mut self, step: StepId) {
        let gone = self.active.get_mut(&step).and_then(|a| a.talk()).map(|t| t.given_up()).unwrap_or_default();
        if !gone.is_empty() {
            self.questions_gone(step, |asking| !asking.by_file && gone.contains(&asking.id));
        }
    }

    /// These questions of a step will not be answered any more.
    pub(super) fn questions_gone(&mut self, step: StepId, which: impl Fn(&Asking) -> bool) {
        let all = std::mem::take(&mut self.questions.waiting);
        let (over, open) = all.into_iter().partition(|w| w.step == step && which(&w.asking));
        self.questions.waiting = open;
        let over: Vec<Waiting> = over;
        for Waiting { id, step, asking } in over {
            // What the run paused for is told already.
            let open = self.recorder.state().step(step).is_some_and(|s| s.questions.iter().any(|q| q.id == id));
            if open {
                self.answered(step, id, &asking, Answer::Dismiss, AnsweredBy::Gone, None);
            }
        }
    }

    /// A child says something to its supervisor.
    pub(super) fn supervisor_request(&mut self, request: SupervisorRequest) {
        let SupervisorRequest { id, step, message, waits, until, call } = request;
        let running = self.active.contains_key(&step);
        let pi = self.plan.flat().nth(step.flat());
        let pi = pi.is_some_and(|s| matches!(s.runner, Runner::Pi { .. } | Runner::Demo { .. }));
        if !running || !pi {
            let reason = format!("step {} has no child that could have asked", step.number());
            return self.recorder.record(What::ControlRejected { file: id, reason, set_aside: false });
        }
        if !waits {
            let told =
                self.active.get(&step).map(|active| active.tell_log(&format!("tells its supervisor: {message}")));
            if let Some(Err(error)) = told {
                self.recorder.record(What::LogFailed { step, error: error.to_string() });
            }
            return;
        }
        let at = now();
        let asking = Asking {
            id,
            kind: crate::run::QuestionKind::Text,
            text: message,
            call,
            within_ms: until.map(|until| u64::try_from(until.since(at).as_millis()).unwrap_or(u64::MAX)),
            by_file: true,
            ..Asking::default()
        };
        self.asked(step, asking.bounded(), at);
    }
}
