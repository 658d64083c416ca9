//! The dialog that answers a question of an agent: what can be answered, and what its keys mean. Nothing is answered that
//! was not on the screen, and no paste is an answer before it was read over.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent};

use super::actions::Action;
use super::keymap::Key;
use super::model::{AnswerDialog, Overlay, UiEffect, UiState};
use super::update::{Context, say};
use super::view;
use crate::run::{Answer, Question, RunState, StepId};
use crate::text::SafeText;

/// One line of the dialog that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The key that answers with it at once, where there is one; it only goes to it where words can be typed too.
    pub key: Option<char>,
    /// What it says; text from outside.
    pub text: String,
    /// The answer.
    pub answer: Answer,
}

/// The question that is answered next: of the selected step, else of the step that asked first.
#[must_use]
pub fn next(ui: &UiState, state: &RunState) -> Option<(StepId, String)> {
    let oldest = |step: &crate::run::StepState| {
        step.questions.iter().min_by_key(|q| q.asked_at).map(|q| (q.asked_at, step.id, q.id.clone()))
    };
    let own = state.step(ui.selected).and_then(oldest);
    let found = own.or_else(|| state.steps.iter().filter_map(oldest).min());
    found.map(|(_, step, id)| (step, id))
}

/// Opens the dialog for a question.
pub fn open(ui: &mut UiState, state: &RunState, step: StepId, question: String) {
    // What is answered is looked at too.
    ui.selected = step;
    let (ticked, text) = (BTreeSet::new(), String::new());
    let mut dialog = AnswerDialog { step, question, index: None, ticked, top: 0, text, wrong: None, shown: None };
    // Where there are choices beside words of one's own, one of them is meant until words are typed. A permission has
    // keys of its own and none that is given by default.
    let chooses = |asked: &Question| (asked.asking.takes_text() || asked.asking.many) && !lines(asked).is_empty();
    dialog.index = self::question(state, &dialog).is_some_and(chooses).then_some(0);
    ui.overlays.push(Overlay::Answer(dialog));
}

/// The question of a dialog, while it is open.
#[must_use]
pub fn question<'s>(state: &'s RunState, dialog: &AnswerDialog) -> Option<&'s Question> {
    state.step(dialog.step)?.questions.iter().find(|question| question.id == dialog.question)
}

/// What can be chosen: the agent's own choices, and yes and no where it has none. The keys of yes and no are those of the
/// choices that mean it for this once.
#[must_use]
pub fn lines(question: &Question) -> Vec<Line> {
    let asking = &question.asking;
    let mut lines = Vec::new();
    if asking.takes_yes() && asking.choices.is_empty() {
        for (key, text, answer) in [('y', "allow", Answer::Allow), ('n', "deny", Answer::Deny(None))] {
            lines.push(Line { key: Some(key), text: text.to_owned(), answer });
        }
    }
    let plain = |kind: &str| asking.choices.iter().position(|choice| choice.kind == kind);
    let (yes, no) = (plain("allow_once"), plain("reject_once"));
    for (choice, n) in asking.choices.iter().zip(1_u32..) {
        let at = Some(lines.len());
        let key = if at == yes && !asking.takes_text() {
            Some('y')
        } else if at == no && !asking.takes_text() {
            Some('n')
        } else {
            char::from_digit(n, 10).filter(|_| n < 10)
        };
        let answer = Answer::Choose(choice.id.clone());
        lines.push(Line { key, text: choice.shown().to_owned(), answer });
    }
    lines
}

/// What the keys that answer do now: enter only where it answers, and else the keys of the choices that have letters.
#[must_use]
pub fn does(question: &Question, dialog: &AnswerDialog) -> Vec<(String, String)> {
    let words = question.asking.takes_text() || question.asking.many;
    if words || dialog.index.is_some() {
        return vec![("enter".to_owned(), if words { "send" } else { "answer" }.to_owned())];
    }
    let lines = lines(question);
    let own = [('y', "allow"), ('n', "deny")];
    let mut out: Vec<_> = own
        .into_iter()
        .filter(|(key, _)| lines.iter().any(|line| line.key == Some(*key)))
        .map(|(key, word)| (key.to_string(), word.to_owned()))
        .collect();
    let digits = lines.iter().filter_map(|line| line.key).filter(char::is_ascii_digit);
    if let (Some(first), Some(last)) = (digits.clone().min(), digits.max()) {
        out.push((if first == last { first.to_string() } else { format!("{first}-{last}") }, "answer".to_owned()));
    }
    out
}

/// Takes a key while the dialog is open. It stays until the answer is on disk.
pub fn on_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent) -> Vec<UiEffect> {
    let quits = ui.keymap.lookup(key) == Some(Action::Quit) && Key::from(key).ctrl;
    let Some(Overlay::Answer(dialog)) = ui.overlays.last() else { return Vec::new() };
    let ready = ui.may_answer(dialog.shown, cx.now);
    let Some(Overlay::Answer(dialog)) = ui.overlays.last_mut() else { return Vec::new() };
    let Some(question) = question(cx.state, dialog) else {
        // It was answered elsewhere, or nobody waits any more: the key was meant for what is not there.
        ui.overlays.pop();
        say(ui, cx.now, false, "the question is not open any more");
        return Vec::new();
    };
    let ctrl = Key::from(key).ctrl;
    let lines = lines(question);
    // What a key means that goes to a choice: while words are typed it is one of them.
    let to = |c: char| lines.iter().position(|line| line.key == Some(c));
    let chooses = dialog.index.is_some() || !question.asking.takes_text();
    let words = question.asking.takes_text();
    match key.code {
        KeyCode::Esc => drop(ui.overlays.pop()),
        _ if quits => drop(ui.overlays.pop()),
        KeyCode::Char('z') if ctrl => return vec![UiEffect::Suspend],
        KeyCode::Char('l') if ctrl => return vec![UiEffect::Repaint],
        KeyCode::Down | KeyCode::Tab => {
            dialog.index = Some(dialog.index.map_or(0, |n| n + 1)).filter(|n| *n < lines.len());
        }
        KeyCode::Up | KeyCode::BackTab => {
            dialog.index = dialog.index.map_or(lines.len().checked_sub(1), |n| n.checked_sub(1));
        }
        KeyCode::Backspace => drop(dialog.text.pop()),
        KeyCode::Char('u') if ctrl => dialog.text.clear(),
        KeyCode::PageDown => {
            let (page, most) = view::answer::pages(ui.size, dialog, question, ui.reveal);
            dialog.top = dialog.top.saturating_add(page).min(most);
        }
        KeyCode::PageUp => {
            let (page, most) = view::answer::pages(ui.size, dialog, question, ui.reveal);
            dialog.top = dialog.top.min(most).saturating_sub(page);
        }
        KeyCode::Enter if !ready => {}
        KeyCode::Enter => return confirm(dialog, question, &lines),
        KeyCode::Char(' ') if !ctrl && question.asking.many && dialog.index.is_some() => {
            let at = dialog.index;
            at.into_iter().for_each(|at| tick(dialog, at));
        }
        KeyCode::Char(c) if !ctrl && question.asking.many && chooses && to(c).is_some() => {
            dialog.index = to(c);
            to(c).into_iter().for_each(|at| tick(dialog, at));
        }
        // Before the first of them, what is typed may go to a choice.
        KeyCode::Char(c) if !ctrl && words && dialog.index.is_some() && to(c).is_some() => {
            dialog.index = to(c);
        }
        KeyCode::Char(c @ ('j' | 'k')) if !ctrl && (words || question.asking.many) && dialog.index.is_some() => {
            let last = lines.len().saturating_sub(1);
            let by = if c == 'j' { 1 } else { -1 };
            dialog.index = dialog.index.map(|at| at.saturating_add_signed(by).min(last));
        }
        KeyCode::Char(c) if !ctrl && words => type_in(dialog, c),
        KeyCode::Char(c) if !ctrl => {
            if let Some(line) = lines.iter().find(|line| line.key == Some(c)).filter(|_| ready) {
                return vec![answer(dialog, line.answer.clone())];
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Goes to a choice that was clicked; where several may be chosen it is chosen, or no more. Nothing is answered by it.
pub fn click(dialog: &mut AnswerDialog, state: &RunState, at: usize) {
    let Some(question) = question(state, dialog) else { return };
    dialog.index = Some(at);
    if question.asking.many {
        tick(dialog, at);
    }
}

/// Chooses one of several, or chooses it no more.
fn tick(dialog: &mut AnswerDialog, at: usize) {
    dialog.wrong = None;
    if !dialog.ticked.remove(&at) {
        dialog.ticked.insert(at);
    }
}

/// Answers with what is chosen, else with what was typed.
fn confirm(dialog: &mut AnswerDialog, question: &Question, lines: &[Line]) -> Vec<UiEffect> {
    if question.asking.many {
        return several(dialog, question, lines);
    }
    if let Some(line) = dialog.index.and_then(|n| lines.get(n)) {
        return vec![answer(dialog, line.answer.clone())];
    }
    let typed = if question.asking.takes_text() {
        question.asking.given(None, &[], Some(&dialog.text))
    } else {
        Err("choose one of these first".to_owned())
    };
    match typed {
        Ok(said) => vec![answer(dialog, said)],
        Err(why) => {
            dialog.wrong = Some(SafeText::line(&why));
            Vec::new()
        }
    }
}

/// Answers with all that is chosen and what was typed beside it.
fn several(dialog: &mut AnswerDialog, question: &Question, lines: &[Line]) -> Vec<UiEffect> {
    let chosen = dialog.ticked.iter().filter_map(|at| lines.get(*at)?.answer.choice().map(str::to_owned));
    let chosen: Vec<String> = chosen.collect();
    let text = Some(dialog.text.as_str()).filter(|text| !text.trim().is_empty());
    let said = if chosen.is_empty() && text.is_none() {
        Err("choose with space first, as many as you like".to_owned())
    } else {
        question.asking.given(None, &chosen, text)
    };
    match said {
        Ok(said) => vec![answer(dialog, said)],
        Err(why) => {
            dialog.wrong = Some(SafeText::line(&why));
            Vec::new()
        }
    }
}

fn answer(dialog: &AnswerDialog, answer: Answer) -> UiEffect {
    UiEffect::Answer { step: dialog.step, question: dialog.question.clone(), answer }
}

fn type_in(dialog: &mut AnswerDialog, c: char) {
    if dialog.text.len() + c.len_utf8() <= Answer::MOST {
        dialog.text.push(c);
    }
    (dialog.wrong, dialog.index) = (None, None);
}

/// Puts a pasted text in, where the question takes words; it is sent by a key only.
pub fn paste(dialog: &mut AnswerDialog, state: &RunState, text: &str) {
    if question(state, dialog).is_some_and(|question| question.asking.takes_text()) {
        for c in text.replace("\r\n", "\n").chars().filter(|c| *c == '\n' || !c.is_control()) {
            type_in(dialog, c);
        }
    }
}

#[cfg(test)]
mod tests;
