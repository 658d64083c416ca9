//! What a step and those around it said and did, in order: messages, calls and what calls gave. Only previews; the
//! records have everything and are read when somebody looks.

use crate::run::{AgentEvent, MessageRole, RunState, StepId, StepPhase, Timestamp, ToolCall, ToolOutcome, broken_off};
use crate::text::SafeText;

/// Lines that are kept of a message or a result.
const LINES: usize = 12;
/// Cells that are kept of a line.
const CELLS: usize = 400;

/// One thing of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Its number among all that the step said; later ones are larger.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// Where its record begins in the event log, where that is known.
    pub place: Option<u64>,
    /// What.
    pub what: SaidWhat,
}

/// What was said or done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaidWhat {
    /// A message.
    Message {
        /// Somebody said it to the model.
        told: bool,
        /// Its first lines.
        text: Vec<SafeText>,
        /// It ended with an error that nobody asked for.
        error: Option<SafeText>,
    },
    /// A call began.
    Call {
        /// The agent's id of it.
        id: Option<String>,
        /// The tool.
        tool: SafeText,
        /// Its arguments in a line.
        args: SafeText,
    },
    /// A call ended.
    Result {
        /// The agent's id of it.
        id: Option<String>,
        /// The tool, where the agent repeats it.
        tool: SafeText,
        /// How.
        outcome: ToolOutcome,
        /// The first lines of what it gave.
        text: Vec<SafeText>,
        /// The arguments of the call in a line, where it gave nothing that tells which one it was.
        of: Option<SafeText>,
    },
}

/// The call that an end is of.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments in a line.
    pub args: &'a str,
}

impl<'a> Called<'a> {
    /// The call of a step that this event ended, as far as the run still knows it; asked for where [`is_nameless`] is.
    #[must_use]
    pub fn of(state: &'a RunState, step: StepId, at: Timestamp, event: &AgentEvent) -> Option<Self> {
        let AgentEvent::ToolEnded { call, tool, .. } = event else { return None };
        let same = |ended: &&ToolCall| {
            ended.call == *call
                && tool.as_ref().is_none_or(|tool| ended.tool == *tool)
                // A status may be a millisecond off.
                && ended.ended_at.millis().abs_diff(at.millis()) <= 1
        };
        let ended = state.step(step)?.recent_tools.iter().rev().find(same)?;
        Some(Self { tool: &ended.tool, args: &ended.args })
    }

    /// The call that began under the id of this end and has not ended, among what was said before it.
    #[must_use]
    pub fn among(said: impl DoubleEndedIterator<Item = &'a Said>, event: &AgentEvent) -> Option<Self> {
        let AgentEvent::ToolEnded { call: Some(of), .. } = event else { return None };
        let newest = said.rev().find_map(|said| match &said.what {
            SaidWhat::Call { id: Some(id), tool, args } if id == of => {
                Some(Some(Self { tool: tool.as_str(), args: args.as_str() }))
            }
            SaidWhat::Result { id: Some(id), .. } if id == of => Some(None),
            _ => None,
        });
        newest.flatten()
    }
}

/// Whether an event is the end of a call that does not tell by itself which call it was: it gave nothing, or names no tool.
#[must_use]
pub fn is_nameless(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::ToolEnded { tool, preview, .. } if tool.is_none() || !has_text(preview))
}

impl Said {
    /// About how many bytes it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let lines =
            |text: &[SafeText]| text.iter().map(|line| line.as_str().len() + size_of::<SafeText>()).sum::<usize>();
        let texts: usize = match &self.what {
            SaidWhat::Message { text, error, .. } => {
                lines(text) + error.as_ref().map_or(0, |error| error.as_str().len())
            }
            SaidWhat::Call { tool, args, .. } => tool.as_str().len() + args.as_str().len(),
            SaidWhat::Result { tool, text, of, .. } => {
                tool.as_str().len() + lines(text) + of.as_ref().map_or(0, |of| of.as_str().len())
            }
        };
        texts + size_of::<Self>()
    }
}

impl SaidWhat {
    /// Whether something went wrong.
    #[must_use]
    pub const fn is_bad(&self) -> bool {
        match self {
            Self::Message { error, .. } => error.is_some(),
            Self::Call { .. } => false,
            Self::Result { outcome, .. } => !matches!(outcome, ToolOutcome::Ok),
        }
    }

    /// Says of the end of a call which one it was, where nothing else tells.
    #[must_use]
    pub fn naming(mut self, called: Option<Called<'_>>) -> Self {
        if let (Self::Result { tool, text, of, .. }, Some(called)) = (&mut self, called) {
            *tool = SafeText::line(called.tool).truncate(40);
            *of = text.is_empty().then(|| SafeText::line(called.args).truncate(CELLS));
        }
        self
    }

    /// Whether it is a message.
    #[must_use]
    pub const fn is_message(&self) -> bool {
        matches!(self, Self::Message { .. })
    }
}

/// What an event of an agent says in its transcript.
#[must_use]
pub fn said(state: &RunState, step: StepId, event: &AgentEvent) -> Option<SaidWhat> {
    match event {
        AgentEvent::ToolStarted { call, tool, args, .. } => Some(SaidWhat::Call {
            id: call.clone(),
            tool: SafeText::line(tool).truncate(40),
            args: SafeText::line(args).truncate(CELLS),
        }),
        AgentEvent::ToolEnded { call, tool, outcome, preview } => Some(SaidWhat::Result {
            id: call.clone(),
            tool: SafeText::line(tool.as_deref().unwrap_or("tool")).truncate(40),
            outcome: *outcome,
            text: first_lines(preview),
            of: None,
        }),
        AgentEvent::Message { role, preview, error, stop, .. } => {
            let told = match role {
                MessageRole::Assistant => false,
                MessageRole::User => true,
                // What a call gave is told by its end.
                _ => return None,
            };
            // The plan has the prompt itself.
            let text = if preview.trim() == REDACTED { Vec::new() } else { first_lines(preview) };
            let error = error.as_deref().filter(|error| !(asked(state, step) && broken_off(*stop, error)));
            let error = error.map(|error| SafeText::line(error).truncate(CELLS));
            (!text.is_empty() || error.is_some() || !told).then_some(SaidWhat::Message { told, text, error })
        }
        _ => None,
    }
}

/// Whether somebody asked the step to end: what it breaks off then is no error.
#[must_use]
pub fn asked(state: &RunState, step: StepId) -> bool {
    let ends =
        |s: &crate::run::StepState| s.ending.is_some() || matches!(s.phase, StepPhase::Paused | StepPhase::Stopped);
    state.step(step).is_some_and(ends)
}

/// What runners write where a prompt was (run-directory 2.5).
pub const REDACTED: &str = "[prompt redacted]";

/// Whether there is anything to be seen of a text.
#[must_use]
pub fn has_text(text: &str) -> bool {
    text.lines().any(|line| !SafeText::line(line).is_empty())
}

fn first_lines(text: &str) -> Vec<SafeText> {
    let lines = SafeText::block(text).into_iter().skip_while(SafeText::is_empty);
    lines.take(LINES).map(|line| line.truncate(CELLS)).collect()
}
