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
    let mut dialog = AnswerDialog { step, question, index: None, ticked, top: 0, text, wrong: None, shown: false };
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
            if let Some(line) = lines.iter().find(|line| line.key == Some(c)).filter(|_| dialog.shown) {
                return vec![answer(dialog, line.answer.clone())];
            }
        }
        _ => {}
    }
    Vec::new()
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
    if !dialog.shown {
        return Vec::new();
    }
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
mod tests {
    use super::*;
    use crate::deck::view::tests::Stage;
    use crate::run::{Asking, Choice, QuestionKind, Timestamp};

    fn asks(stage: &mut Stage, step: usize, id: &str, asking: Asking, at: i64) {
        let question = Question { id: id.into(), asking, asked_at: Timestamp::from_millis(at), until: None };
        stage.feed.state.steps[step].questions.push(question);
    }

    fn permission() -> Asking {
        Asking { text: "May it use Bash? make".into(), ..Asking::default() }
    }

    fn choices(free: bool) -> Asking {
        let choice = |id: &str| Choice { id: id.into(), ..Choice::default() };
        Asking { kind: QuestionKind::Choice, choices: vec![choice("Red"), choice("Blue")], free, ..Asking::default() }
    }

    /// The effects of keys typed by a person who looks at each frame.
    fn keys(stage: &mut Stage, keys: &[KeyCode]) -> Vec<UiEffect> {
        keys.iter()
            .flat_map(|key| {
                stage.ui.drawn();
                stage.key(*key)
            })
            .collect()
    }

    fn typed(stage: &mut Stage, text: &str) -> Vec<UiEffect> {
        keys(
            stage,
            &text.chars().map(|c| if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) }).collect::<Vec<_>>(),
        )
    }

    fn answered(step: u32, question: &str, answer: Answer) -> Vec<UiEffect> {
        vec![UiEffect::Answer { step: StepId(step), question: question.into(), answer }]
    }

    #[test]
    fn a_permission_is_answered_by_a_key_or_by_a_choice() {
        let mut stage = Stage::new(120, 36);
        asks(&mut stage, 2, "q1", permission(), 5);
        assert_eq!(typed(&mut stage, "Ay"), answered(2, "q1", Answer::Allow));
        // It stays until the answer is on disk.
        assert!(matches!(stage.ui.overlays.last(), Some(Overlay::Answer(_))));
        assert_eq!(typed(&mut stage, "n"), answered(2, "q1", Answer::Deny(None)));
        assert_eq!(typed(&mut stage, "\n"), [], "nothing is chosen beforehand");
        assert_eq!(keys(&mut stage, &[KeyCode::Down, KeyCode::Enter]), answered(2, "q1", Answer::Allow));
        assert_eq!(keys(&mut stage, &[KeyCode::Down, KeyCode::Enter]), answered(2, "q1", Answer::Deny(None)));
        assert_eq!(typed(&mut stage, "xqX1"), [], "other keys do nothing");
        keys(&mut stage, &[KeyCode::Esc]);
        assert!(stage.ui.overlays.is_empty());
    }

    #[test]
    fn keys_that_came_before_the_question_was_seen_answer_nothing() {
        let mut stage = Stage::new(120, 36);
        asks(&mut stage, 2, "q1", permission(), 5);
        let breath: Vec<UiEffect> = ['A', 'y', 'n'].iter().flat_map(|c| stage.key(KeyCode::Char(*c))).collect();
        assert_eq!(breath, [], "typed in one breath");
        assert_eq!(stage.key(KeyCode::Enter), []);
        stage.ui.drawn();
        assert_eq!(stage.key(KeyCode::Char('y')), answered(2, "q1", Answer::Allow));
    }

    #[test]
    fn words_and_choices_of_the_agent() {
        let mut stage = Stage::new(120, 36);
        asks(&mut stage, 2, "q1", choices(false), 5);
        assert_eq!(typed(&mut stage, "A2"), answered(2, "q1", Answer::Choose("Blue".into())));
        stage.ui.overlays.clear();
        stage.feed.state.steps[2].questions[0].asking = choices(true);
        // One of them is meant until words are typed, which no key for a choice begins.
        for (keys, id) in [("A\n", "Red"), ("A2\n", "Blue"), ("Ajj\n", "Blue"), ("Ajk1\n", "Red")] {
            assert_eq!(typed(&mut stage, keys), answered(2, "q1", Answer::Choose(id.into())), "{keys:?}");
            stage.ui.overlays.clear();
        }
        assert_eq!(typed(&mut stage, "Areds 2j\n"), answered(2, "q1", Answer::Text("reds 2j".into())));
        assert_eq!(keys(&mut stage, &[KeyCode::Down, KeyCode::Enter]), answered(2, "q1", Answer::Choose("Red".into())));
        stage.ui.overlays.clear();
        stage.feed.state.steps[2].questions[0].asking = Asking { kind: QuestionKind::Text, ..Asking::default() };
        assert_eq!(typed(&mut stage, "A\n"), []);
        let Some(Overlay::Answer(dialog)) = stage.ui.overlays.last_mut() else { panic!("the dialog is gone") };
        assert_eq!(dialog.wrong.as_ref().unwrap().as_str(), "the answer is empty");
        paste(dialog, &stage.feed.state, "two\r\nlines\x1b[31m");
        assert_eq!(dialog.text, "two\nlines[31m");
        assert_eq!(typed(&mut stage, "\n"), answered(2, "q1", Answer::Text("two\nlines[31m".into())));
    }

    #[test]
    fn several_choices_are_ticked_and_sent_together() {
        let mut stage = Stage::new(120, 36);
        let many = |free: bool| Asking { many: true, ..choices(free) };
        let both = |text: Option<&str>| {
            answered(2, "q1", Answer::Several(vec!["Red".into(), "Blue".into()], text.map(str::to_owned)))
        };
        let one = |id: &str| answered(2, "q1", Answer::Choose(id.into()));
        for (free, keys, expected) in [
            (true, "A j \n", both(None)),
            (true, "A21\n", both(None)),
            (true, "A 2", vec![]),
            (true, "A 2 \n", one("Red")),
            (false, "A12\n", both(None)),
            (false, "Aj \n", one("Blue")),
            (true, "Ajk2\n", one("Blue")),
            (true, "A12and 1 more\n", both(Some("and 1 more"))),
            (true, "Anone of these\n", answered(2, "q1", Answer::Text("none of these".into()))),
        ] {
            asks(&mut stage, 2, "q1", many(free), 5);
            assert_eq!(typed(&mut stage, keys), expected, "{keys:?}");
            stage.ui.overlays.clear();
            stage.feed.state.steps[2].questions.clear();
        }
        asks(&mut stage, 2, "q1", many(true), 5);
        assert_eq!(typed(&mut stage, "A\n"), [], "nothing is chosen by standing on it");
        let Some(Overlay::Answer(dialog)) = stage.ui.overlays.last() else { panic!("the dialog is gone") };
        assert!(dialog.wrong.as_ref().unwrap().as_str().contains("space"));
    }

    #[test]
    fn what_is_asked_is_paged_through_and_never_beyond_its_end() {
        let mut stage = Stage::new(80, 24);
        let detail = (1..=99).map(|n| format!("+ row {n}\n")).collect();
        asks(&mut stage, 2, "q1", Asking { detail, ..permission() }, 5);
        typed(&mut stage, "A");
        let shows = |stage: &mut Stage, text: &str| stage.text().contains(text);
        assert!(shows(&mut stage, "+ row 1 ") && !shows(&mut stage, "row 99"));
        keys(&mut stage, &[KeyCode::PageDown; 50]);
        assert!(shows(&mut stage, "+ row 99") && shows(&mut stage, "y allow"));
        keys(&mut stage, &[KeyCode::PageUp]);
        assert!(!shows(&mut stage, "+ row 99"), "one key is enough to leave the end");
        keys(&mut stage, &[KeyCode::PageUp; 50]);
        assert!(shows(&mut stage, "+ row 1 "));
        assert_eq!(typed(&mut stage, "y"), answered(2, "q1", Answer::Allow));
    }

    #[test]
    fn on_the_smallest_screens_all_that_is_allowed_can_be_read() {
        let rest: String = (1..=40).map(|n| format!(" part-{n}-")).collect();
        for high in 4..=12 {
            let mut stage = Stage::new(30, high);
            asks(&mut stage, 2, "q1", Asking { text: format!("May it use Bash?{rest}"), ..Asking::default() }, 5);
            typed(&mut stage, "A");
            let mut seen = std::collections::BTreeSet::new();
            let mut look = |stage: &mut Stage| {
                let text = stage.text();
                seen.extend((1..=40).filter(|n| text.contains(&format!("part-{n}-"))));
            };
            look(&mut stage);
            for _ in 0..60 {
                keys(&mut stage, &[KeyCode::PageDown]);
                look(&mut stage);
            }
            let text = stage.text();
            let allowed = !typed(&mut stage, "y").is_empty();
            assert!(!allowed || seen.len() == 40, "30x{high}: only {seen:?} was seen\n{text}");
            assert!(allowed || text.contains("enlarge"), "30x{high}\n{text}");
            assert!(high < 8 || allowed && text.contains("pgup pgdn"), "30x{high}\n{text}");
        }
    }

    #[test]
    fn yes_and_no_are_the_choices_for_this_once() {
        let mut stage = Stage::new(120, 36);
        let choice = |id: &str, kind: &str| Choice { id: id.into(), label: id.into(), kind: kind.into() };
        let choices =
            vec![choice("always", "allow_always"), choice("once", "allow_once"), choice("not", "reject_once")];
        asks(&mut stage, 2, "q1", Asking { choices, ..permission() }, 5);
        assert_eq!(typed(&mut stage, "Ay"), answered(2, "q1", Answer::Choose("once".into())));
        assert_eq!(typed(&mut stage, "n"), answered(2, "q1", Answer::Choose("not".into())));
        assert_eq!(typed(&mut stage, "1"), answered(2, "q1", Answer::Choose("always".into())));
        assert_eq!(typed(&mut stage, "23"), []);
    }

    #[test]
    fn the_selected_step_comes_first_and_a_question_that_is_gone_is_said_to_be() {
        let mut stage = Stage::new(120, 36);
        stage.keys("A");
        assert!(stage.ui.notice.as_ref().is_some_and(|n| n.bad), "nobody asks anything");
        asks(&mut stage, 3, "q1", permission(), 9);
        asks(&mut stage, 4, "q2", permission(), 5);
        assert_eq!(next(&stage.ui, &stage.feed.state), Some((StepId(4), "q2".to_owned())));
        stage.ui.selected = StepId(3);
        assert_eq!(typed(&mut stage, "Ay"), answered(3, "q1", Answer::Allow));
        stage.feed.state.steps[3].questions.clear();
        assert_eq!(typed(&mut stage, "y"), []);
        assert!(stage.ui.overlays.is_empty() && stage.ui.notice.is_some());
    }
}
