//! Requests from the control inbox: what each one means in the state that it meets (runner-behaviour 6, run-directory
//! 3.4, with the fixes of product 5).

use super::clock::now;
use super::complain::complain;
use super::dispatch::Engine;
use crate::agents::Receipt;
use crate::run::{
    ControlSource, EndingCause, STOPPED, SteerMode, SteerRequest, SteerTarget, Steerable, StepId, StepPhase,
    TargetState, What,
};
use crate::rundir::{About, ControlRequest, InboxReader, OwnRequest, OwnWhat, Steer, capability};

/// How often the inbox is emptied at the end of a run.
const LAST_LOOKS: usize = 10;

/// A message that is not settled for all its targets yet; the state keeps only its preview.
pub(super) struct Held {
    id: String,
    mode: SteerMode,
    message: String,
    targets: Vec<StepId>,
}

impl Engine {
    /// Takes everything that lies in the inbox. What a stop asks for is done before anything else is looked at.
    pub(super) fn read_inbox(&mut self, inbox: &mut InboxReader) {
        let urgent = inbox.take_urgent();
        if !urgent.is_empty() {
            urgent.into_iter().for_each(|request| self.take(request));
            self.perform_due();
        }
        inbox.take_rest().into_iter().for_each(|request| self.take(request));
    }

    /// Takes one request.
    pub(super) fn take(&mut self, request: ControlRequest) {
        match request {
            ControlRequest::Stop { source } => {
                if !self.recorder.state().stopped {
                    self.recorder.record(What::RunStopped { message: STOPPED.to_owned(), source: Some(source) });
                }
            }
            ControlRequest::TimeOut { source } => self.time_out_run(Some(source)),
            ControlRequest::Interrupt { source } => {
                if !self.recorder.state().is_ending() {
                    self.recorder.record(What::RunInterrupted { source: Some(source) });
                }
            }
            ControlRequest::StopStep { step, source, file } => self.stop_step(step, source, file),
            ControlRequest::Steer(steer) => self.steer(steer),
            ControlRequest::Own(own) => self.own(own),
            ControlRequest::Supervisor(request) => self.supervisor_request(request),
            // A child that we talk to over its protocol has no word of its own in this file: it is the one that we
            // wrote for others to read.
            ControlRequest::Capability { step, .. }
                if self.active.get_mut(&step).is_some_and(|a| a.talk().is_some()) => {}
            ControlRequest::Capability { step, steerable } => {
                self.recorder.record(What::Capability { step, steerable });
            }
            ControlRequest::Ack(ack) => self.steer_moved(ack.step, &ack.id, ack.state, ack.message),
            ControlRequest::Unannounced { what, about, source } => {
                let asked = |id: &str| {
                    let steps = &self.recorder.state().steps;
                    steps.iter().find(|step| step.questions.iter().any(|q| q.id == id)).map(|step| step.id)
                };
                let step = match about {
                    About::Run => None,
                    About::Step(step) => Some(step),
                    About::Question(id) => asked(&id),
                };
                self.recorder.record(What::ControlUnannounced { step, what, source });
            }
            ControlRequest::Rejected { file, reason } => {
                self.recorder.record(What::ControlRejected { file, reason, set_aside: true });
            }
        }
    }

    fn own(&mut self, own: OwnRequest) {
        let words = own.what.words();
        match own.what {
            OwnWhat::Kill => self.kill(&own.source),
            OwnWhat::Retract { request } => self.retract(&own.id, words, &request),
            OwnWhat::Budget { key, value } => self.change_budget(&own.id, own.step, &key, &value, own.source),
            OwnWhat::Acknowledge { attention } => self.take_note(&own.id, words, &attention, own.source),
            OwnWhat::Answer { request, choice, choices, text } => {
                let said = (choice.as_deref(), choices.as_slice(), text.as_deref());
                self.answer_question(&own.id, words, &request, said, own.source);
            }
        }
    }

    /// Takes back a message where nobody has taken it yet, and answers.
    fn retract(&mut self, id: &str, words: &str, request: &str) {
        let waiting: Vec<StepId> = self
            .held
            .iter()
            .filter(|h| h.id == request)
            .flat_map(|h| h.targets.iter().copied())
            .filter(|step| self.target_state(request, *step) == Some(TargetState::Scheduled))
            .collect();
        self.answer_own(id, words, waiting.is_empty().then(|| "the message was taken already".to_owned()));
        for step in waiting {
            self.steer_moved(step, request, TargetState::Failed, Some("taken back".to_owned()));
        }
        self.forget_closed();
    }

    /// Ends everything without grace.
    pub(super) fn kill(&mut self, source: &ControlSource) {
        self.take(ControlRequest::Stop { source: source.clone() });
        let steps: Vec<StepId> = self.active.keys().copied().collect();
        for step in steps {
            let (cause, message) = (EndingCause::Kill, STOPPED.to_owned());
            self.recorder.record(What::StepEnding { step, cause, message, source: Some(source.clone()) });
        }
    }

    fn stop_step(&mut self, step: StepId, source: ControlSource, file: String) {
        let phase = self.recorder.state().step(step).map(|s| s.phase.clone());
        let refused =
            |reason: &str| What::ControlRejected { file, reason: format!("step {step} {reason}"), set_aside: false };
        let told = match phase {
            Some(StepPhase::Running) => {
                let (cause, message) = (EndingCause::StepStop, STOPPED.to_owned());
                What::StepEnding { step, cause, message, source: Some(source) }
            }
            Some(StepPhase::Pending) => {
                // It never ran, so there is nothing to end: it is stopped on the spot.
                let (cause, message) = (EndingCause::StepStop, STOPPED.to_owned());
                self.recorder.record(What::StepEnding { step, cause, message, source: Some(source) });
                let outcome = crate::run::StepOutcome {
                    phase: StepPhase::Stopped,
                    exit_code: 1,
                    error: Some(STOPPED.to_owned()),
                    stopped: true,
                    ..Default::default()
                };
                What::StepEnded { step, outcome: Box::new(outcome) }
            }
            Some(phase) => refused(&format!("is {}", phase.as_str())),
            None => refused("does not exist"),
        };
        self.recorder.record(told);
    }

    /// Decides for each target where the message goes, and sends it on its way.
    fn steer(&mut self, steer: Steer) {
        let state = self.recorder.state();
        let preview = steer.preview();
        let steps: Vec<StepId> = steer.targets.unwrap_or_else(|| {
            let running: Vec<_> = state.steps.iter().filter(|s| s.phase == StepPhase::Running).map(|s| s.id).collect();
            // Without a running child the message waits for the step that starts next.
            let next = state.steps.iter().find(|s| s.phase == StepPhase::Pending).map(|s| s.id);
            if running.is_empty() { next.into_iter().collect() } else { running }
        });
        let first: Vec<_> = steps.iter().map(|step| (*step, self.first_state(*step))).collect();
        let at = now();
        let targets = first.iter().map(|(step, state)| {
            let failed = state.as_ref().err();
            let state = state.as_ref().copied().unwrap_or(TargetState::Failed);
            SteerTarget {
                step: *step,
                state,
                routed_at: (state == TargetState::Routed).then_some(at),
                delivered_at: None,
                failed_at: failed.map(|_| at),
                reason: failed.cloned(),
            }
        });
        let request = SteerRequest {
            id: steer.id.clone(),
            requested_at: at,
            source: steer.source.map(|s| s.via),
            mode: steer.mode,
            preview,
            message: String::new(),
            targets: targets.collect(),
        };
        self.recorder.record(What::SteerRequested(Box::new(request)));
        self.held.push(Held { id: steer.id.clone(), mode: steer.mode, message: steer.message, targets: steps });
        for (step, state) in first {
            // The request says it already; readers of the event log look for a record of each target too.
            let (to, detail) = match state {
                Ok(to) => (to, None),
                Err(reason) => (TargetState::Failed, Some(reason)),
            };
            self.recorder.record(What::SteerMoved { id: steer.id.clone(), step, to, detail });
            if to == TargetState::Routed {
                self.route(step, &steer.id);
            }
        }
        self.forget_closed();
    }

    fn target_state(&self, id: &str, step: StepId) -> Option<TargetState> {
        self.recorder.state().steering.target(id, step).map(|t| t.state)
    }

    /// Where a new request is for a target, or why it fails at once.
    fn first_state(&self, step: StepId) -> Result<TargetState, String> {
        let state = self.recorder.state();
        if state.is_ending() || state.ended_at.is_some() {
            let word = if state.stopped { "stopped" } else { state.phase.as_str() };
            return Err(format!("run became {word} before steering request was consumed"));
        }
        let Some(target) = state.step(step) else { return Err("child index out of range".to_owned()) };
        match &target.phase {
            StepPhase::Pending => {
                if let Steerable::No(reason) = &target.steerable {
                    return Err(deaf(reason));
                }
                Ok(TargetState::Scheduled)
            }
            StepPhase::Running => match &target.steerable {
                Steerable::No(reason) => Err(deaf(reason)),
                _ if target.ending.is_some() => Err("the child is being ended".to_owned()),
                _ => Ok(TargetState::Routed),
            },
            phase => Err(format!("child is {}", phase.as_str())),
        }
    }

    /// Hands a message to a child.
    fn route(&mut self, step: StepId, id: &str) {
        let Some((mode, message)) = self.held.iter().find(|h| h.id == id).map(|h| (h.mode, h.message.clone())) else {
            return;
        };
        let Some(active) = self.active.get_mut(&step) else {
            let reason = "the child has ended".to_owned();
            return self.steer_moved(step, id, TargetState::Failed, Some(reason));
        };
        let sent = match active.talk().and_then(|t| t.steer(id, mode, &message)) {
            Some(bytes) => active.send(bytes),
            None => false,
        };
        self.settle_given_up(step);
        if sent {
            self.steer_moved(step, id, TargetState::Routed, None);
        } else {
            let reason = "the child takes no more messages".to_owned();
            self.steer_moved(step, id, TargetState::Failed, Some(reason));
        }
    }

    /// Says in the inbox what became of a message, in the place of a child that is talked to over its protocol: whoever
    /// looks at the files sees what a child would write there (run-directory 3.6). The runner takes it out like any other.
    pub(super) fn acknowledge(&mut self, step: StepId, receipt: &Receipt) {
        match capability::acknowledge(
            self.home.way(),
            step,
            &receipt.id,
            receipt.state,
            receipt.detail.as_deref(),
            now(),
        ) {
            Ok(()) => self.posted = true,
            Err(error) => complain("runner", &format_args!("cannot acknowledge a message: {error}")),
        }
    }

    /// Hands a step that has just started the messages that waited for it.
    pub(super) fn route_held(&mut self, step: StepId) {
        let waiting: Vec<_> = self.held.iter().filter(|h| h.targets.contains(&step)).map(|h| h.id.clone()).collect();
        for id in waiting {
            if self.target_state(&id, step) == Some(TargetState::Scheduled) {
                self.route(step, &id);
            }
        }
    }

    /// A request moved on for one target.
    pub(super) fn steer_moved(&mut self, step: StepId, id: &str, to: TargetState, detail: Option<String>) {
        let before = self.target_state(id, step);
        if before == Some(to) || before.is_some_and(|s| !s.is_open()) {
            return;
        }
        self.recorder.record(What::SteerMoved { id: id.to_owned(), step, to, detail });
    }

    /// What is still open for a step that has ended did not arrive.
    pub(super) fn fail_open_steers(&mut self, step: StepId, reason: &str) {
        let open: Vec<_> =
            self.recorder.state().steering.open_for(step).map(|(request, state)| (request.id.clone(), state)).collect();
        for (id, state) in open {
            let reason = match state {
                TargetState::Queued => "run ended before queued follow-up delivery",
                _ => reason,
            };
            self.steer_moved(step, &id, TargetState::Failed, Some(reason.to_owned()));
        }
        self.forget_closed();
    }

    /// Messages whose targets are all settled need not be kept.
    fn forget_closed(&mut self) {
        let state = self.recorder.state();
        self.held.retain(|held| {
            held.targets.iter().any(|step| state.steering.target(&held.id, *step).is_some_and(|t| t.state.is_open()))
        });
    }

    /// Closes the inbox: what comes from now on is refused by its sender; what lies there fails (run-directory 3.7).
    pub(super) fn close_inbox(&mut self, inbox: &mut InboxReader) {
        let word = crate::run::verdict(self.recorder.state()).phase.as_str().to_owned();
        self.recorder.close_inbox(&word);
        // A flood of them must not keep the run from ending; what is left then stays where it is.
        for _ in 0..LAST_LOOKS {
            for request in inbox.take() {
                if let ControlRequest::Steer(_) | ControlRequest::Rejected { .. } = request {
                    self.take(request);
                }
            }
            if !inbox.is_behind() {
                break;
            }
        }
        let steps: Vec<StepId> = self.recorder.state().steps.iter().map(|s| s.id).collect();
        for step in steps {
            self.fail_open_steers(step, "child terminated before steering delivery");
        }
    }
}

/// Why a message came to nothing that a step takes none of.
fn deaf(reason: &str) -> String {
    format!("the step takes no messages: {reason}")
}
