//! What only the person's eyes need: selection, scroll, tabs, overlays, drafts. Nothing in here is a fact about the
//! run, and nothing in here reads a clock or a file.

use std::collections::{BTreeMap, BTreeSet};

use ratatui_textarea::{TextArea, WrapMode};

pub use super::effect::{Fate, Sent, UiEffect};
use super::entries::Sieve;
use super::feed::InnerRun;
use super::keymap::Keymap;
use super::left::Left;
use super::overlay::is_past;
pub use super::overlay::{AnswerDialog, BudgetDialog, Composer, Danger, Overlay, Question};
use super::replay::Replay;
use super::rows;
use super::sheet::{Lines, Needle};
use crate::run::{RunState, SteerMode, StepId, Stream, Timestamp};
use crate::text::SafeText;

/// Everything that is remembered between two frames.
#[derive(Clone, Debug, Default)]
pub struct UiState {
    /// The selected step. It is an id and not a row, so that it survives whatever happens to the rows.
    pub selected: StepId,
    /// How steps are laid out.
    pub mode: ViewMode,
    /// One step has the whole screen.
    pub zoom: bool,
    /// Which pane the movement keys move.
    pub focus: Focus,
    /// Tab, scroll and follow of each step.
    pub panes: BTreeMap<StepId, PaneState>,
    /// What lies above, the topmost last.
    pub overlays: Vec<Overlay>,
    /// Messages that were begun, by the step they were begun for.
    pub drafts: BTreeMap<StepId, Draft>,
    /// The picture stands still since.
    pub frozen: Option<Timestamp>,
    /// So many steps have come to need a person since then.
    pub missed: usize,
    /// The key that must be pressed again.
    pub armed: Option<Question>,
    /// What happened to the newest key that could not do what it was asked, or did it out of sight.
    pub notice: Option<Notice>,
    /// Requests written by this deck, newest last, with the moment.
    pub sent: Vec<Sent>,
    /// Requests that were withdrawn here, by their ids.
    pub withdrawn: BTreeSet<String>,
    /// Steps whose attention was acknowledged here, with the cause that was.
    pub acknowledged: BTreeMap<StepId, String>,
    /// How far the ticker is scrolled back, in lines.
    pub ticker_back: usize,
    /// Long lines are wrapped.
    pub wrap: bool,
    /// Lines that say the same are folded into one.
    pub fold: bool,
    /// What looks like a key is shown; else there is a mask over it.
    pub reveal: bool,
    /// Lines that steps printed since they were last looked at, as far as they were counted. A step that printed once
    /// while nobody looked stays here, so that its tab keeps its width.
    pub unread: BTreeMap<StepId, u64>,
    /// Groups of which the list shows one row, by their logical steps.
    pub folded: BTreeSet<usize>,
    /// Steps whose sub-agents have no lines.
    pub folded_agents: BTreeSet<StepId>,
    /// Only steps with these words are listed.
    pub filter: Option<String>,
    /// What is looked for, and in which direction.
    pub search: Option<Search>,
    /// What was looked for so far, the newest last.
    pub searched: Vec<String>,
    /// How far a search that goes on has come, in per cent of the log. Taking it away ends the search.
    pub searching: Option<u8>,
    /// The person has gone elsewhere since that search began: what it finds is kept, and moves nobody.
    pub away: bool,
    /// How much of what happened was read, in per cent, while there is more.
    pub reading: Option<u8>,
    /// Where the keys go among entries that were not read yet.
    pub above: Option<Above>,
    /// The mouse is ours.
    pub mouse: bool,
    /// Whose the steps were that everything here is kept by.
    pub agents: super::shifted::Agents,
    /// When the last key came.
    pub typed: Option<Timestamp>,
    /// Leave as soon as the run is over: the person chose to stop everything.
    pub leave_when_over: bool,
    /// The size of the terminal.
    pub size: (u16, u16),
    /// Which key means what.
    pub keymap: Keymap,
    /// What is true of all steps together, kept by the loop for each state; `None` is found out when it is needed.
    pub known: Option<std::sync::Arc<super::sums::Sums>>,
    /// A run can be started that goes on with the session of a step of this one.
    pub can_go_on: bool,
    /// A run can be started that does again what failed in this one.
    pub can_retry: bool,
    /// From which place on the pages of the grid are counted, since it was opened.
    pub grid_from: Option<usize>,
    /// The line of a tab that the keys are at stands for nothing that could be opened; as of the last picture.
    pub opens_nothing: bool,
    /// The processes that live on of this run, which nobody supervises any more.
    pub left: Vec<Left>,
    /// They can be ended from here.
    pub can_end_left: bool,
    /// They are being ended.
    pub ending_left: bool,
    /// One level above this deck there is the fleet, or the run that this one was started in.
    pub from_fleet: bool,
    /// The runs that were started in this one.
    pub inside: Vec<InnerRun>,
    /// The run is over and plays again.
    pub replay: Option<Replay>,
}

/// A place among the entries of a step's tab before those that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Above {
    /// The step.
    pub step: StepId,
    /// The tab.
    pub tab: Tab,
    /// The number of the first one that was kept then.
    pub first: u64,
    /// How many entries behind that; all are negative.
    pub by: isize,
}

impl Above {
    /// Whether that is before everything, however much there is.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.by < isize::MIN / 2
    }
}

/// How steps are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewMode {
    /// A list with a detail.
    #[default]
    List,
    /// As many panes as fit.
    Grid,
    /// One step with a bar of tabs.
    Tabs,
    /// Which step waits for which.
    Flow,
}

/// What is looked for in a tab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The text.
    pub needle: String,
    /// Towards the start of the log, or the first of what is listed.
    pub back: bool,
    /// In this tab of all steps, the selected one first.
    pub everywhere: bool,
    /// Of which tab everything below tells.
    pub tab: Tab,
    /// Where the newest match is, by step and position: one of the log, the number of an entry, the place of a line.
    pub found: Option<(StepId, u64)>,
    /// How many matches there are as far as the search has come; `None` before it began.
    pub count: Option<Count>,
}

/// The number of the match that is shown, and of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Of which step.
    pub step: StepId,
    /// The one that is shown, from 1; 0 while that is not known.
    pub nth: u64,
    /// All up to where it was looked through.
    pub total: u64,
    /// Up to there, as a position.
    pub upto: u64,
}

/// Which pane the movement keys move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// The list of steps.
    #[default]
    Steps,
    /// The output of the selected step.
    Output,
    /// What just happened.
    Ticker,
}

/// The tabs of a zoomed step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tab {
    /// What the child printed.
    #[default]
    Output,
    /// Its tool calls.
    Tools,
    /// What was said.
    Transcript,
    /// Limits and use.
    Budget,
    /// Paths that its tools worked on.
    Changes,
    /// What happened.
    Events,
}

impl Tab {
    /// All of them in the order of their keys.
    pub const ALL: [Self; 6] = [Self::Output, Self::Tools, Self::Transcript, Self::Budget, Self::Changes, Self::Events];

    /// The name on the tab.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Tools => "tools",
            Self::Transcript => "transcript",
            Self::Budget => "budget",
            Self::Changes => "changes",
            Self::Events => "events",
        }
    }
}

/// What is remembered of one step's pane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PaneState {
    /// The tab that is shown.
    pub tab: Tab,
    /// Where the output stands.
    pub output: Position,
    /// The one stream of it that is shown; `Out` stands for all that is not of standard error.
    pub only: Option<Stream>,
    /// Scrolling that was asked for and not yet carried out: only the log knows how far a row is.
    pub asked: Vec<Scroll>,
    /// Where the tabs that are read from their beginning are looked at.
    pub lines: BTreeMap<Tab, Lines>,
    /// The entry that the keys are at on tabs that list entries; without one they follow the newest.
    pub cursor: BTreeMap<Tab, u64>,
    /// Which entries such tabs list.
    pub sieve: BTreeMap<Tab, Sieve>,
}

/// Where a log is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// At its end, as it grows.
    #[default]
    Follow,
    /// The first visible row, and how long the log was when following ended.
    At {
        /// The row.
        top: Anchor,
        /// The length of the log in virtual bytes, to tell how much is new.
        seen: u64,
    },
}

/// One row of a log: a line by its position, and which row of the wrapped line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Anchor {
    /// The line's virtual position.
    pub line: u64,
    /// The row within the line.
    pub row: usize,
}

/// Scrolling, in units that do not depend on what is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    /// Rows; negative is up.
    Rows(i32),
    /// Half screens.
    Halves(i32),
    /// Screens.
    Pages(i32),
    /// To the first byte.
    Start,
    /// To the end, and follow.
    End,
    /// Within the line at the top, to the row that holds a position of the log.
    To(u64),
}

/// A message that is being written.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The text.
    pub text: TextArea<'static>,
    /// How it is to arrive.
    pub mode: SteerMode,
    /// It was begun in other decks: in how many, and when it was changed there last.
    pub found: Option<(usize, Timestamp)>,
}

impl Default for Draft {
    fn default() -> Self {
        let mut text = TextArea::default();
        text.set_wrap_mode(WrapMode::WordOrGlyph);
        text.set_cursor_line_style(ratatui::style::Style::new());
        Self { text, mode: SteerMode::Steer, found: None }
    }
}

impl Draft {
    /// The message as it would be sent.
    #[must_use]
    pub fn message(&self) -> String {
        self.text.lines().join("\n")
    }

    /// Whether there is anything to keep.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.text.lines().iter().all(|l| l.trim().is_empty())
    }
}

/// One line about what became of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The sentence.
    pub text: SafeText,
    /// It went wrong.
    pub bad: bool,
    /// When it may go.
    pub until: Timestamp,
}

impl UiState {
    /// A state for a terminal of this size.
    #[must_use]
    pub fn new(size: (u16, u16)) -> Self {
        Self { size, wrap: true, fold: true, ..Self::default() }
    }

    /// Whether a message was begun for a step and not sent.
    #[must_use]
    pub fn has_draft(&self, step: StepId) -> bool {
        self.drafts.get(&step).is_some_and(|draft| !draft.is_blank())
    }

    /// Where the match is in a tab of a step that was gone to last.
    #[must_use]
    pub fn match_in(&self, step: StepId, tab: Tab) -> Option<u64> {
        let (_, at) = self.search.as_ref().filter(|s| s.tab == tab)?.found.filter(|(found, _)| *found == step)?;
        Some(at)
    }

    /// How many matches there are in a tab of a step, as far as that is known.
    #[must_use]
    pub fn matches_in(&self, step: StepId, tab: Tab) -> Option<Count> {
        self.search.as_ref().filter(|s| s.tab == tab)?.count.filter(|count| count.step == step)
    }

    /// What is looked for, as it is compared.
    #[must_use]
    pub fn needle(&self) -> Option<Needle> {
        self.search.as_ref().and_then(|search| Needle::new(&search.needle))
    }

    /// Whether a search that finds something now may go there: the person is where it was begun, and does nothing else.
    #[must_use]
    pub fn may_be_led(&self) -> bool {
        !self.away && self.overlays.is_empty()
    }

    /// The tab of the selected step in which one looks for something: only a zoomed step shows another one than its output.
    #[must_use]
    pub fn searched_tab(&self) -> Tab {
        if self.zoom { self.tab(self.selected) } else { Tab::Output }
    }

    /// The pane of a step.
    pub fn pane_mut(&mut self, step: StepId) -> &mut PaneState {
        self.panes.entry(step).or_default()
    }

    /// The pane of a step as it is, or as it would begin.
    #[must_use]
    pub fn pane(&self, step: StepId) -> PaneState {
        self.panes.get(&step).cloned().unwrap_or_default()
    }

    /// The tab that a step shows.
    #[must_use]
    pub fn tab(&self, step: StepId) -> Tab {
        self.panes.get(&step).map_or(Tab::Output, |p| p.tab)
    }

    /// Whether the selected step fills the screen, alone or below a bar of tabs.
    #[must_use]
    pub fn shows_one(&self) -> bool {
        self.zoom || self.mode == ViewMode::Tabs
    }

    /// Whether the movement keys move in a list that a filter leaves steps out of.
    #[must_use]
    pub fn lists_some(&self) -> bool {
        self.filter.is_some() && !self.zoom && self.focus == Focus::Steps
    }

    /// Leaves the zoom. What was shown of an output alone there ends with it: elsewhere the whole is meant.
    pub fn leave_zoom(&mut self) {
        self.zoom = false;
        for pane in self.panes.values_mut().filter(|pane| pane.only.is_some()) {
            (pane.only, pane.output) = (None, Position::Follow);
            pane.asked.clear();
        }
    }

    /// Whether anything of this run lives on that nobody supervises any more; what plays again is not what lives.
    #[must_use]
    pub fn has_left(&self) -> bool {
        !self.left.is_empty() && self.replay.is_none()
    }

    /// How many processes of a step live on.
    #[must_use]
    pub fn left_of(&self, step: StepId) -> usize {
        self.left.iter().filter(|left| left.step == step).count()
    }

    /// Moves the selection by rows, stopping at the ends.
    pub fn select_by(&mut self, state: &RunState, by: isize) {
        let rows = rows::listed(self, state);
        let at = rows.place(self.selected).unwrap_or(0);
        let to = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        if let Some(id) = rows.get(to).map(|step| step.id) {
            self.selected = id;
            // A filter keeps the selected step in the list only as long as it is that.
            rows::settle(self, state);
        }
    }

    /// Begins to show the run as it was at another moment.
    pub fn begin_replay(&mut self, replay: Replay) {
        self.replay = Some(replay);
        // What a stream alone was at a moment no mark tells.
        for pane in self.panes.values_mut().filter(|pane| pane.only.is_some()) {
            (pane.only, pane.output) = (None, Position::Follow);
        }
        // These speak of the whole logs.
        self.unread.clear();
        self.search = None;
        self.searching = None;
        self.ticker_back = 0;
    }

    /// To be called after a frame was drawn: what stands there has been seen. On a terminal without room for dialogs no
    /// question was.
    pub fn drawn(&mut self, now: Timestamp) {
        if super::view::layout::is_tiny(self.size) {
            return;
        }
        if let Some(question) = &mut self.armed {
            question.shown.get_or_insert(now);
        }
        if let Some(Overlay::Confirm { question, .. } | Overlay::Quit { question }) = self.overlays.last_mut() {
            question.shown.get_or_insert(now);
        }
        if let Some(Overlay::Answer(dialog)) = self.overlays.last_mut() {
            dialog.shown.get_or_insert(now);
        }
    }

    /// Whether a key of this moment can answer what is on the screen since `shown`: it was read, and the key is not one of
    /// many that come at once.
    #[must_use]
    pub fn may_answer(&self, shown: Option<Timestamp>, now: Timestamp) -> bool {
        shown.is_some_and(|at| is_past(at, now)) && self.typed.is_none_or(|at| is_past(at, now))
    }

    /// Keeps the selection on a step that exists, and what belongs to a step with it where steps get other places.
    pub fn settle(&mut self, state: &RunState) {
        // A replay shows moments in any order, and nothing is chosen for good there.
        if self.replay.is_none() {
            super::shifted::follow(self, state);
        }
        if state.step(self.selected).is_none()
            && let Some(first) = state.steps.first()
        {
            self.selected = first.id;
        }
    }
}
