//! Input to changes of the fleet's picture and to effects. Pure but for one look at whether a typed folder is there.

use std::path::{Path, PathBuf};

use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::keys::{self, Act};
use super::model::{FleetUi, Over, runs};
use super::start::{Ask, StartDialog, Wish};
use super::view::help_end;
use crate::deck::model::Notice;
use crate::deck::update::NOTICE_FOR;
use crate::listing::{Group, Row, Show, Sort, View, has_words, waiting};
use crate::run::Timestamp;
use crate::text::SafeText;

/// What the fleet wants done that it does not do itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Open(PathBuf),
    Replay(PathBuf),
    Agents(PathBuf),
    Start(Wish),
    Copy(PathBuf),
    Repaint,
    Suspend,
    Quit,
}

/// What an update looks at beside the picture.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The list.
    pub(super) rows: &'a [Row<'a>],
    /// Where a run is started when the person says nothing.
    pub(super) folder: &'a Path,
    /// What a tilde means.
    pub(super) home: Option<&'a Path>,
    pub(super) now: Timestamp,
}

pub(super) fn say(ui: &mut FleetUi, now: Timestamp, bad: bool, text: &str) {
    ui.notice = Some(Notice { text: SafeText::line(text), bad, until: now + NOTICE_FOR });
}

pub(super) fn update(ui: &mut FleetUi, cx: Context<'_>, input: &Input) -> Option<Effect> {
    match input {
        Input::Key(key) if matches!(key.kind, KeyEventKind::Press | KeyEventKind::Repeat) => {
            ui.touched = true;
            on_key(ui, cx, *key)
        }
        Input::Paste(text) => {
            match &mut ui.over {
                Some(Over::Start(dialog)) => dialog.paste(text),
                Some(Over::Words) => ui.view.words.push_str(SafeText::line(text).as_str()),
                Some(Over::Search(words)) => words.push_str(SafeText::line(text).as_str()),
                Some(Over::Help(_)) | None => {}
            }
            None
        }
        _ => None,
    }
}

fn on_key(ui: &mut FleetUi, cx: Context<'_>, key: KeyEvent) -> Option<Effect> {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    match ui.over.take() {
        None => keys::lookup(key).and_then(|act| perform(ui, cx, act)),
        Some(Over::Help(top)) => {
            ui.over = match key.code {
                KeyCode::Char('j') | KeyCode::Down => Some(Over::Help((top + 1).min(help_end(ui.size)))),
                KeyCode::Char('k') | KeyCode::Up => Some(Over::Help(top.saturating_sub(1))),
                _ => None,
            };
            None
        }
        Some(Over::Words) => {
            match key.code {
                KeyCode::Enter => return None,
                KeyCode::Esc => {
                    ui.view.words.clear();
                    return None;
                }
                _ => typed(&mut ui.view.words, key, ctrl),
            }
            ui.over = Some(Over::Words);
            None
        }
        Some(Over::Search(mut words)) => {
            match key.code {
                KeyCode::Esc => return None,
                KeyCode::Enter => {
                    if !words.trim().is_empty() {
                        ui.search = words;
                    }
                    find(ui, cx, false);
                    return None;
                }
                _ => typed(&mut words, key, ctrl),
            }
            ui.over = Some(Over::Search(words));
            None
        }
        Some(Over::Start(mut dialog)) => match dialog.on_key(key, cx.home) {
            Ask::Close => None,
            Ask::Nothing => {
                ui.over = Some(Over::Start(dialog));
                None
            }
            Ask::Agents(folder) => {
                ui.over = Some(Over::Start(dialog));
                Some(Effect::Agents(folder))
            }
            // It goes once the run has begun.
            Ask::Start(wish) => {
                ui.over = Some(Over::Start(dialog));
                Some(Effect::Start(wish))
            }
        },
    }
}

fn typed(line: &mut String, key: KeyEvent, ctrl: bool) {
    match key.code {
        KeyCode::Char('u') if ctrl => line.clear(),
        KeyCode::Char(c) if !ctrl => line.push(c),
        KeyCode::Backspace => drop(line.pop()),
        _ => {}
    }
}

fn perform(ui: &mut FleetUi, cx: Context<'_>, act: Act) -> Option<Effect> {
    let page = isize::try_from(ui.size.1 / 2).unwrap_or(10).max(1);
    ui.settle(cx.rows);
    match act {
        Act::Open => return open(ui, cx),
        Act::Replay => return replay(ui, cx),
        Act::Start => {
            ui.over = Some(Over::Start(Box::new(StartDialog::new(cx.folder))));
            return Some(Effect::Agents(cx.folder.to_owned()));
        }
        Act::NextNeed => {
            let waiting: Vec<&Path> = waiting(runs(cx.rows)).into_iter().map(|run| run.dir().path()).collect();
            if !ui.jump(cx.rows, false, |run| waiting.contains(&run.dir().path())) {
                say(ui, cx.now, false, "nobody here needs you");
            }
        }
        Act::Group => ui.view.group = Group::next(ui.view.group),
        Act::Sort => ui.view.sort = Sort::next(ui.view.sort),
        Act::Show => ui.view.show = Show::next(ui.view.show),
        Act::Words => ui.over = Some(Over::Words),
        Act::Search => ui.over = Some(Over::Search(String::new())),
        Act::SearchNext => find(ui, cx, false),
        Act::SearchPrevious => find(ui, cx, true),
        Act::Down => ui.move_by(cx.rows, 1),
        Act::Up => ui.move_by(cx.rows, -1),
        Act::First => ui.move_by(cx.rows, isize::MIN),
        Act::Last => ui.move_by(cx.rows, isize::MAX),
        Act::PageDown => ui.move_by(cx.rows, page),
        Act::PageUp => ui.move_by(cx.rows, -page),
        Act::Back => {
            if !ui.view.words.is_empty() {
                ui.view.words.clear();
            } else {
                ui.view.show = View::default().show;
            }
            ui.notice = None;
        }
        Act::Copy => return ui.selected.clone().map(Effect::Copy),
        Act::Repaint => return Some(Effect::Repaint),
        Act::Help => ui.over = Some(Over::Help(0)),
        Act::Suspend => return Some(Effect::Suspend),
        Act::Quit => return Some(Effect::Quit),
    }
    None
}

fn open(ui: &mut FleetUi, cx: Context<'_>) -> Option<Effect> {
    match runs(cx.rows).nth(ui.place) {
        None => {
            say(ui, cx.now, true, "there is no run to open");
            None
        }
        Some(run) => Some(Effect::Open(run.dir().path().to_owned())),
    }
}

fn replay(ui: &mut FleetUi, cx: Context<'_>) -> Option<Effect> {
    let why = match runs(cx.rows).nth(ui.place) {
        None => "there is no run to play",
        Some(run) if run.state().is_none() => "this run cannot be read",
        Some(run) if run.is_living() => "the run is not over yet; enter shows it",
        Some(run) => return Some(Effect::Replay(run.dir().path().to_owned())),
    };
    say(ui, cx.now, true, why);
    None
}

fn find(ui: &mut FleetUi, cx: Context<'_>, back: bool) {
    if ui.search.trim().is_empty() {
        return say(ui, cx.now, true, "/ begins a search");
    }
    let words = ui.search.clone();
    if !ui.jump(cx.rows, back, |run| has_words(run, &words)) {
        say(ui, cx.now, true, &format!("no run has {words}"));
    }
}
