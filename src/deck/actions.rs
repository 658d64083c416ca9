//! The one table of actions. The footer, the help, the palette and the check for conflicts read it; keys are looked up
//! in it. An action says here when it is possible, so that no key is ever silent without a reason.

use crossterm::event::KeyCode;

use super::keymap::{Key, ch, code, ctrl};
use super::model::{Tab, UiState, ViewMode};
use super::{allowed, answer_dialog, attention, budget_dialog, compose, history, left, rows};
use crate::run::replay::Step;
use crate::run::{RunMode, RunState, SteerRequest, StepId, StepPhase, TargetState, resume_line};
use crate::text::SafeText;

/// Everything that a key can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Action {
    Down,
    Up,
    Left,
    Right,
    First,
    Last,
    HalfDown,
    HalfUp,
    PageDown,
    PageUp,
    Zoom,
    Inside,
    Open,
    Back,
    NextPane,
    View,
    Tab(Tab),
    PreviousStep,
    NextStep,
    Follow,
    Freeze,
    Wrap,
    Fold,
    Reveal,
    Filter,
    Search,
    SearchNext,
    SearchPrevious,
    Steer,
    SteerAll,
    Interrupt,
    StopStep,
    StopRun,
    Raise,
    Answer,
    TakeBack,
    Retry,
    Replay,
    Slower,
    Faster,
    Seek(Step),
    SkipIdle,
    NextAttention,
    Acknowledge,
    Why,
    Copy,
    CopySession,
    Pager,
    Editor,
    Shell,
    Mouse,
    Repaint,
    Palette,
    Help,
    Suspend,
    Quit,
}

/// Where the help lists an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Moving about.
    Move,
    /// What is shown.
    Look,
    /// What reaches the run.
    Control,
    /// Playing it again.
    Replay,
    /// The deck itself.
    Deck,
}

impl Section {
    /// All of them in the order of the help.
    pub const ALL: [Self; 5] = [Self::Control, Self::Look, Self::Replay, Self::Move, Self::Deck];

    /// Its heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Look => "look",
            Self::Control => "control",
            Self::Replay => "replay",
            Self::Deck => "deck",
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What it does.
    pub action: Action,
    /// Its name in the palette.
    pub name: &'static str,
    /// The word in the footer.
    pub short: &'static str,
    /// The sentence in the help.
    pub help: &'static str,
    /// The keys, the best one first.
    pub keys: &'static [Key],
    /// Where the help lists it.
    pub section: Section,
    /// Whether it asks before it acts.
    pub confirms: bool,
}

macro_rules! actions {
    ($($action:expr, $name:literal, $short:literal, [$($key:expr),*], $section:ident, $confirms:literal, $help:literal;)*) => {
        &[$(Row {
            action: $action, name: $name, short: $short, keys: &[$($key),*], section: Section::$section,
            confirms: $confirms, help: $help,
        }),*]
    };
}

/// The table.
pub const TABLE: &[Row] = actions![
    Action::Steer, "steer", "steer", [ch('s')], Control, false, "write to the selected step; after the run, go on with it";
    Action::SteerAll, "steer all", "steer all", [ch('S')], Control, false, "write to all running steps";
    Action::Interrupt, "interrupt", "interrupt", [ch('i')], Control, true, "pause the run; press twice within two seconds";
    Action::StopStep, "stop step", "stop", [ch('x')], Control, true, "end this step alone, or what it left in a lost run";
    Action::StopRun, "stop run", "stop run", [ch('X')], Control, true, "end the run and every child, or what lives on of a lost one";
    Action::Answer, "answer", "answer", [ch('A')], Control, false, "answer what an agent asks: a permission, a choice, a text";
    Action::Raise, "raise a budget", "raise", [ch('+')], Control, false, "change a limit of the step or of the run while it goes on";
    Action::TakeBack, "take back", "take back", [ch('u')], Control, false, "withdraw the newest message that nobody took yet";
    Action::Retry, "retry", "retry", [ch('R')], Control, true, "when the run is over: do again what failed or never ran";
    Action::NextAttention, "next attention", "jump", [ch('!')], Control, false, "the next step that needs a person";
    Action::Acknowledge, "acknowledge", "acknowledge", [ch('a')], Control, false, "seen; say so again only when the reason changes";
    Action::Why, "why", "why", [ch('w')], Control, false, "the rule and the evidence";
    Action::Zoom, "zoom", "zoom", [ch('z')], Look, false, "the selected step on the whole screen";
    Action::Open, "open", "open", [code(KeyCode::Enter)], Look, false, "zoom; there the whole call, message, record or difference";
    Action::Inside, "run inside", "inside", [ch('r')], Look, false, "the run started in the selected step; esc comes back";
    Action::View, "view", "view", [ch('v')], Look, false, "list, grid, tabs, and what waits for what";
    Action::Tab(Tab::Output), "output", "output", [ch('1')], Look, false, "what the step printed";
    Action::Tab(Tab::Tools), "tools", "tools", [ch('2')], Look, false, "its tool calls, with arguments and results";
    Action::Tab(Tab::Transcript), "transcript", "transcript", [ch('3')], Look, false, "what was said";
    Action::Tab(Tab::Budget), "budget", "budget", [ch('4')], Look, false, "limits and use";
    Action::Tab(Tab::Changes), "changes", "changes", [ch('5')], Look, false, "the paths its tools named, and what git says changed";
    Action::Tab(Tab::Events), "events", "events", [ch('6')], Look, false, "what happened to it, with the records";
    Action::Follow, "follow", "follow", [ch('f')], Look, false, "go to the end of the output and stay there";
    Action::Freeze, "freeze", "freeze", [ch(' ')], Look, false, "hold the picture, the run goes on; pause a replay";
    Action::Wrap, "wrap", "wrap", [ch('W')], Look, false, "wrap long lines or cut them";
    Action::Fold, "fold", "fold", [ch('F')], Look, false, "show lines that say the same once, or every time";
    Action::Reveal, "reveal", "reveal", [ch('M')], Look, false, "show what looks like a key, or mask it";
    Action::Filter, "filter", "filter", [ch('&')], Look, false, "only steps with these words; zoomed errors, text or stderr";
    Action::Search, "search", "find", [ch('/')], Look, false, "look for a text in the whole tab, of one step or of all";
    Action::SearchNext, "search next", "next", [ch('n')], Look, false, "the next match in the same direction";
    Action::SearchPrevious, "search previous", "previous", [ch('N')], Look, false, "the next match in the other direction";
    Action::Replay, "replay", "replay", [ch('P')], Replay, false, "play a run that is over again; there: back to how it ended";
    Action::Slower, "slower", "slower", [ch('<')], Replay, false, "half as fast, down to as fast as it happened";
    Action::Faster, "faster", "faster", [ch('>')], Replay, false, "twice as fast, up to 64 times";
    Action::Seek(Step::EventBack), "event back", "event", [ch(',')], Replay, false, "pause one event earlier";
    Action::Seek(Step::Event), "event on", "event", [ch('.')], Replay, false, "pause one event later";
    Action::Seek(Step::MarkBack), "mark back", "mark", [ch('{')], Replay, false, "to the call, need, request or end before";
    Action::Seek(Step::Mark), "mark on", "mark", [ch('}')], Replay, false, "to the next call, need, request or end";
    Action::Seek(Step::JumpBack), "jump back", "10 s", [ch('(')], Replay, false, "10 s back";
    Action::Seek(Step::Jump), "jump on", "10 s", [ch(')')], Replay, false, "10 s on";
    Action::Seek(Step::Start), "beginning", "beginning", [ch('B')], Replay, false, "to the first event";
    Action::Seek(Step::End), "ending", "ending", [ch('E')], Replay, false, "to the last event";
    Action::SkipIdle, "idle times", "idle", [ch('I')], Replay, false, "pass over times in which nothing happens, or play them";
    Action::Down, "down", "select", [ch('j'), code(KeyCode::Down)], Move, false, "next step, or a line down";
    Action::Up, "up", "select", [ch('k'), code(KeyCode::Up)], Move, false, "previous step, or a line up";
    Action::Left, "left", "fold", [code(KeyCode::Left)], Move, false, "fold sub-agents, then the group; among stages the one before";
    Action::Right, "right", "unfold", [code(KeyCode::Right)], Move, false, "unfold the group, then sub-agents; among stages the next";
    Action::First, "first", "start", [ch('g'), code(KeyCode::Home)], Move, false, "first step, or the first byte of the output";
    Action::Last, "last", "end", [ch('G'), code(KeyCode::End)], Move, false, "last step, or the end of the output";
    Action::HalfDown, "half page down", "down", [ctrl('d')], Move, false, "scroll the output half a page down";
    Action::HalfUp, "half page up", "up", [ctrl('u')], Move, false, "scroll the output half a page up";
    Action::PageDown, "page down", "down", [code(KeyCode::PageDown)], Move, false, "a page of the output down, or the next panes of a grid";
    Action::PageUp, "page up", "up", [code(KeyCode::PageUp)], Move, false, "a page of the output up, or the panes of a grid before";
    Action::PreviousStep, "previous step", "step", [ch('[')], Move, false, "previous step without leaving the zoom";
    Action::NextStep, "next step", "step", [ch(']')], Move, false, "next step without leaving the zoom";
    Action::NextPane, "next pane", "pane", [code(KeyCode::Tab)], Move, false, "give the movement keys to the next pane";
    Action::Back, "back", "back", [code(KeyCode::Esc)], Move, false, "one level back";
    Action::Copy, "copy", "copy", [ch('y')], Deck, false, "the lines in sight, or the entry at the cursor, to the clipboard";
    Action::CopySession, "copy session", "session", [ch('Y')], Deck, false, "the agent's own command that goes on with its session, to the clipboard";
    Action::Pager, "pager", "pager", [ch('o')], Deck, false, "the log of the selected step as text in $PAGER";
    Action::Editor, "editor", "edit", [ch('e')], Deck, false, "the path that the step works on in $EDITOR";
    Action::Shell, "shell", "shell", [ch('$')], Deck, false, "a shell in the step's folder; leaving it comes back here";
    Action::Mouse, "mouse", "mouse", [ch('m')], Deck, false, "take the mouse or give it back (hold shift to select text)";
    Action::Repaint, "repaint", "repaint", [ctrl('l')], Deck, false, "draw everything anew";
    Action::Palette, "commands", "commands", [ch(':')], Deck, false, "find an action by name";
    Action::Help, "help", "help", [ch('?'), code(KeyCode::F(1))], Deck, false, "these keys";
    Action::Suspend, "suspend", "suspend", [ctrl('z')], Deck, false, "suspend the deck; the run goes on";
    Action::Quit, "quit", "quit", [ch('q'), ctrl('c')], Deck, true, "leave; asks when children live";
];

/// On a narrower screen lines are in fewer words, in cells.
pub const NARROW: u16 = 70;

/// What one does next who has read why a step needs him.
pub const FROM_WHY: [Action; 4] = [Action::Answer, Action::Acknowledge, Action::Steer, Action::StopStep];

/// The row of an action. Every action has one; the test below says so.
#[must_use]
pub fn row(action: Action) -> Option<&'static Row> {
    TABLE.iter().find(|r| r.action == action)
}

/// What decides whether an action is possible.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The run.
    pub state: &'a RunState,
    /// Why nothing may be written, if so.
    pub read_only: Option<&'a SafeText>,
}

/// Whether an action is possible now, and why not.
///
/// # Errors
/// The reason, ready to be shown.
pub fn possible(action: Action, ui: &UiState, at: Situation<'_>) -> Result<(), String> {
    possible_of(ui.selected, action, ui, at).map_err(|why| match action {
        // Of the picture that stands still it is true, of the run it is not.
        Action::Answer | Action::NextAttention | Action::Acknowledge | Action::Why if ui.missed > 0 => {
            format!("the picture stands still; {} shows who needs you now", ui.keymap.hint(Action::Freeze))
        }
        _ => why,
    })
}

/// The same of another step than the selected one.
///
/// # Errors
/// The reason, ready to be shown.
pub fn possible_of(step: StepId, action: Action, ui: &UiState, at: Situation<'_>) -> Result<(), String> {
    let step = at.state.step(step);
    let section = row(action).map(|r| r.section);
    match &ui.replay {
        Some(_) if section == Some(Section::Control) && !matches!(action, Action::NextAttention | Action::Why) => {
            let key = ui.keymap.hint(Action::Replay);
            let name = row(action).map_or("it", |row| row.name);
            return Err(match ui.size.0 < NARROW {
                true => format!("no {name} in a replay; {key} shows the run"),
                false => format!("{name} does nothing in a replay; {key} shows the run as it is"),
            });
        }
        Some(replay) if section == Some(Section::Replay) && action != Action::Replay && replay.reading.is_some() => {
            return Err("what happened is still being read".to_owned());
        }
        None if action == Action::Replay && !at.state.is_over() && at.state.lost.is_none() => {
            return Err("the run is not over yet".to_owned());
        }
        None if section == Some(Section::Replay) && action != Action::Replay => {
            let key = ui.keymap.hint(Action::Replay);
            return Err(format!("nothing is played; {key} plays a run that is over again"));
        }
        _ => {}
    }
    if row(action).is_some_and(|r| r.section == Section::Control)
        && !matches!(action, Action::NextAttention | Action::Acknowledge | Action::Why)
    {
        // A run whose runner is gone takes nothing more, but its sessions can be gone on with as those of any other.
        if action == Action::Steer
            && ui.can_go_on
            && (at.read_only.is_none() || at.state.lost.is_some())
            && step.is_some_and(|s| allowed::can_go_on(at.state, s).is_ok())
        {
            return left::in_the_way(ui);
        }
        if !ui.left.is_empty() && matches!(action, Action::StopStep | Action::StopRun) {
            return left::can_end(ui, action);
        }
        if action == Action::Retry {
            return allowed::can_retry(ui, at.state, at.read_only);
        }
        if let Some(why) = at.read_only {
            return Err(format!("read-only: {why}"));
        }
        if at.state.is_over() {
            return Err(at.state.closed());
        }
    }
    match action {
        Action::Interrupt | Action::StopRun | Action::StopStep if at.state.mode == RunMode::Workflow => {
            Err("the parent that runs this workflow takes no such request; use the parent itself".to_owned())
        }
        Action::StopStep if allowed::is_foreign(at.state) => {
            Err("this runner cannot stop a single step; only those of subdeck do".to_owned())
        }
        Action::Raise if allowed::is_foreign(at.state) => {
            Err("this runner takes no change of a limit; only those of subdeck do".to_owned())
        }
        Action::Steer => match step {
            Some(step) => {
                allowed::can_steer(step).map_err(|why| match step.session_file.is_some() || step.session_id.is_some() {
                    true if step.phase.is_terminal() && !allowed::is_foreign(at.state) => {
                        let key = ui.keymap.hint(Action::Steer);
                        format!("{why}; once the run is over too, {key} goes on with its session")
                    }
                    _ => why,
                })
            }
            None => Err("there is no step".to_owned()),
        },
        Action::SteerAll
            if !at.state.steps.iter().any(|s| s.phase == StepPhase::Running && allowed::can_steer(s).is_ok()) =>
        {
            Err("no running step can be steered".to_owned())
        }
        Action::StopStep => match step {
            Some(step) if step.phase == StepPhase::Running => Ok(()),
            Some(step) => {
                let word = step.face().word();
                Err(format!("cannot stop step {}: it is not running ({word})", step.id))
            }
            None => Err("there is no step".to_owned()),
        },
        Action::Left | Action::Right if ui.mode == ViewMode::Flow && !ui.zoom => Ok(()),
        Action::Left => match step {
            Some(step) => rows::foldable(ui, at.state, step).map(drop),
            None => Err("there is no step".to_owned()),
        },
        Action::Right => match step {
            Some(step) => rows::unfoldable(ui, at.state, step).map(drop),
            None => Err("there is no step".to_owned()),
        },
        Action::Down | Action::Up | Action::Zoom | Action::Open if at.state.steps.is_empty() => {
            Err("there is no step".to_owned())
        }
        Action::Raise => budget_dialog::possible(at.state),
        Action::Answer if answer_dialog::next(ui, at.state).is_none() => Err("no agent asks anything".to_owned()),
        Action::TakeBack if compose::withdrawable(at.state, ui).is_none() => {
            let queued = |r: &&SteerRequest| r.targets.iter().any(|t| t.state == TargetState::Queued);
            Err(match at.state.steering.recent.iter().rev().find(queued) {
                Some(request) => {
                    let id = history::short(&request.id);
                    format!("steer #{id} is with the agent already, which queued it; it cannot be taken back")
                }
                None => "no message of yours waits to be taken".to_owned(),
            })
        }
        Action::Editor => match step.map(allowed::current_path) {
            Some(Some(_)) => Ok(()),
            _ => Err("no tool of this step named a path yet".to_owned()),
        },
        Action::CopySession => match step {
            Some(step) if resume_line(step).is_some() => Ok(()),
            Some(step) => Err(format!("the agent of step {} has no command that goes on with its session", step.id)),
            None => Err("there is no step".to_owned()),
        },
        Action::Inside if ui.inside.is_empty() => Err("no run was started in this one".to_owned()),
        Action::Shell if step.is_none() => Err("there is no step".to_owned()),
        Action::Interrupt if at.state.interrupted || at.state.stopped => Err("the run is already ending".to_owned()),
        Action::StopRun if at.state.stopped => Err("the run is already stopping".to_owned()),
        Action::NextAttention | Action::Acknowledge if attention::attention(at.state, ui).is_empty() => {
            Err("nothing needs you".to_owned())
        }
        Action::NextAttention if !attention::leads(&attention::attention(at.state, ui), ui) => {
            Err("no other step needs you".to_owned())
        }
        Action::SearchNext | Action::SearchPrevious if ui.search.is_none() => Err("/ begins a search".to_owned()),
        Action::Why if attention::asked(at.state, ui).is_none() => Err("nothing needs you".to_owned()),
        _ => Ok(()),
    }
}

/// The rows whose name or word in the footer has the letters of the query in this order, best first.
#[must_use]
pub fn search(query: &str) -> Vec<&'static Row> {
    let of = |r: &Row| [r.name, r.short].into_iter().filter_map(|word| score(query, word)).min();
    let mut found: Vec<(usize, &Row)> = TABLE.iter().filter_map(|r| Some((of(r)?, r))).collect();
    found.sort_by_key(|(score, _)| *score);
    found.into_iter().map(|(_, r)| r).collect()
}

/// The rows that have every word in their name, their word in the footer, their help or their keys, in the order of the
/// table.
#[must_use]
pub fn matching(words: &str) -> Vec<&'static Row> {
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let has = |r: &&Row| {
        let keys: Vec<String> = r.keys.iter().map(|k| super::keymap::key_name(*k)).collect();
        let text = format!("{} {} {} {}", r.name, r.short, r.help, keys.join(" ")).to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    TABLE.iter().filter(has).collect()
}

/// How far the letters of a query lie apart in a text; `None` when they are not there in this order.
fn score(query: &str, text: &str) -> Option<usize> {
    let mut total = 0;
    let mut letters = text.chars().enumerate();
    let mut last = None;
    for wanted in query.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase) {
        let (at, _) = letters.find(|(_, c)| c.to_lowercase().eq([wanted]))?;
        total += last.map_or(at, |l: usize| (at - l - 1) * 2);
        last = Some(at);
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::deck::keymap::key_name;

    #[test]
    fn no_key_has_two_meanings_and_every_action_has_a_key() {
        let mut seen = HashSet::new();
        for row in TABLE {
            assert!(!row.keys.is_empty(), "{}", row.name);
            for key in row.keys {
                assert!(seen.insert(*key), "{} is bound twice", key_name(*key));
            }
        }
        assert_eq!(TABLE.iter().map(|r| r.name).collect::<HashSet<_>>().len(), TABLE.len());
    }

    #[test]
    fn what_ends_something_or_costs_asks_first() {
        for row in TABLE {
            let asks = matches!(
                row.action,
                Action::Interrupt | Action::StopStep | Action::StopRun | Action::Retry | Action::Quit
            );
            assert_eq!(row.confirms, asks, "{}", row.name);
        }
    }

    #[test]
    fn the_palette_finds_by_letters_in_order() {
        let names = |query: &str| search(query).iter().map(|r| r.name).collect::<Vec<_>>();
        assert_eq!(names("").len(), TABLE.len());
        assert_eq!(names("stop")[..2], ["stop step", "stop run"]);
        assert_eq!(names("strun"), ["stop run"]);
        assert!(names("qqq").is_empty());
    }

    #[test]
    fn a_read_only_deck_offers_no_control() {
        let state = RunState::default();
        let ui = UiState::default();
        let why = SafeText::line("foreign root");
        let at = Situation { state: &state, read_only: Some(&why) };
        for row in TABLE.iter().filter(|r| r.confirms && r.action != Action::Quit) {
            assert!(possible(row.action, &ui, at).unwrap_err().contains("read-only: foreign root"), "{}", row.name);
        }
        assert!(!super::super::footer::named(&ui, at).contains(&Action::Steer));
    }
}
