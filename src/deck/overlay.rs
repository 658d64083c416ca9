//! What lies above the picture: dialogs, the composer, lists to choose from. Values; what their keys mean is `update`'s.

use std::collections::BTreeSet;
use std::time::Duration;

use super::reading::Reading;
use crate::run::{StepId, Timestamp};
use crate::text::SafeText;

/// Something above the picture.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// All keys.
    Help {
        /// First visible row.
        top: usize,
        /// The words that are looked for among them, once that was begun.
        query: Option<String>,
    },
    /// All actions by name.
    Palette {
        /// What was typed.
        query: String,
        /// The selected match.
        index: usize,
    },
    /// What is to be looked for is typed.
    Search {
        /// The text so far.
        query: String,
        /// In the output of all steps.
        everywhere: bool,
    },
    /// The words of a filter are typed; the list follows them.
    Filter,
    /// A message is written.
    Composer(Composer),
    /// Something is to be stopped.
    Confirm {
        /// What.
        what: Danger,
        /// Whether it can be answered.
        question: Question,
    },
    /// The deck is to be left while children live.
    Quit {
        /// Whether it can be answered.
        question: Question,
    },
    /// Why a step needs a person.
    Why {
        /// Which.
        step: StepId,
        /// First visible row.
        top: usize,
    },
    /// A limit is to be changed.
    Budget(BudgetDialog),
    /// An entry of a tab in full.
    Reading(Reading),
    /// A question of an agent is to be answered.
    Answer(AnswerDialog),
}

/// The dialog that answers a question of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerDialog {
    /// Whose agent asks.
    pub step: StepId,
    /// Which question, by its name in the run.
    pub question: String,
    /// Which of the answers that can be chosen, by its row; `None` for none.
    pub index: Option<usize>,
    /// Where several may be chosen: those that are, by their rows.
    pub ticked: BTreeSet<usize>,
    /// The first row of what is asked that is seen, where there is more than fits.
    pub top: usize,
    /// Words of one's own so far.
    pub text: String,
    /// What was wrong.
    pub wrong: Option<SafeText>,
    /// Since when the question is on the screen.
    pub shown: Option<Timestamp>,
}

/// The dialog that changes a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetDialog {
    /// The step that was selected.
    pub step: StepId,
    /// The limits of the whole run are meant.
    pub whole_run: bool,
    /// Which limit, by its row.
    pub index: usize,
    /// The new value so far.
    pub value: String,
    /// What was wrong with it.
    pub wrong: Option<SafeText>,
}

/// How long the keys are still before one answers what was asked, and how long a question was on the screen: nobody types
/// two keys on purpose as fast, and a paste on a terminal that does not mark pastes is faster.
pub const BREATH: Duration = Duration::from_millis(30);

/// Whether a breath was taken since a moment. A clock that was set back since holds nobody up.
#[must_use]
pub fn is_past(at: Timestamp, now: Timestamp) -> bool {
    now < at || now.since(at) >= BREATH
}

/// Something that was asked. Only what a person has seen can be answered: keys that came in the same breath as the one
/// that asked were typed before, or are a paste on a terminal that does not mark pastes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Since when it stands.
    pub since: Timestamp,
    /// Since when it is on the screen.
    pub shown: Option<Timestamp>,
}

impl Question {
    /// A question that was just put.
    #[must_use]
    pub const fn new(since: Timestamp) -> Self {
        Self { since, shown: None }
    }
}

/// What a dialog asks about before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// One step.
    Step(StepId),
    /// The whole run.
    Run,
    /// The whole run, and the deck is left when it is over.
    Everything,
    /// What lives on of a run that nobody supervises any more, or what a step left.
    Left(Option<StepId>),
    /// Nothing: what failed or never ran is to be done again, in a new run.
    Retry,
}

/// The composer: where the message goes. Its text is the draft of `home`.
#[derive(Clone, Debug)]
pub struct Composer {
    /// The step it was opened for, which keeps the draft.
    pub home: StepId,
    /// The steps that will get the message.
    pub targets: BTreeSet<StepId>,
    /// The run is over: the message begins a new one that goes on with the session of `home`.
    pub goes_on: bool,
    /// Why it cannot be sent, when that was so as it was opened. What is typed all the same is text and no key.
    pub refused: Option<SafeText>,
}
