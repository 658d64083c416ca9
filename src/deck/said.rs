//! What a step and those around it said and did, in order: messages, calls and what calls gave. Only previews; the
//! records have everything and are read when somebody looks.

use crate::run::{AgentEvent, MessageRole, RunState, StepId, StepPhase, Timestamp, ToolOutcome, broken_off};
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
    },
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
            SaidWhat::Result { tool, text, .. } => tool.as_str().len() + lines(text),
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
