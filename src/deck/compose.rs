//! The composer: a message to running steps. Its text is kept for the step it was begun for until it is sent or
//! discarded.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::actions::{self, Action};
use super::allowed::{can_go_on, can_steer, is_foreign};
use super::model::{Composer, Draft, Fate, Overlay, UiEffect, UiState};
use super::update::{Context, say};
use crate::run::{RunState, SteerMode, SteerRequest, StepId, StepPhase, TargetState};
use crate::text::{SafeText, typed};

/// The steps that can be given a message now, in their order.
#[must_use]
pub fn candidates(state: &RunState) -> Vec<StepId> {
    state.steps.iter().filter(|s| s.phase == StepPhase::Running && can_steer(s).is_ok()).map(|s| s.id).collect()
}

/// Opens the composer for the selected step, or for all that run; also when nothing can be sent, for the reason
/// `refused`: a message that is typed at once must not be taken for keys, and its draft stays.
pub fn open(ui: &mut UiState, cx: Context<'_>, all: bool, refused: Option<&str>) {
    let home = ui.selected;
    let targets = if all { candidates(cx.state).into_iter().collect() } else { [home].into_iter().collect() };
    ui.drafts.entry(home).or_default();
    let goes_on = !all && refused.is_none() && cx.state.step(home).is_some_and(|s| can_go_on(cx.state, s).is_ok());
    let refused = refused.map(SafeText::line);
    // What a key before this one came to is not about the message.
    ui.notice = None;
    ui.overlays.push(Overlay::Composer(Composer { home, targets, goes_on, refused }));
}

/// Why the message cannot be sent as things are now, where it was opened for a step that takes none.
fn still_refused(ui: &UiState, cx: Context<'_>, composer: &Composer) -> Option<String> {
    composer.refused.as_ref()?;
    let action = if composer.targets.contains(&ui.selected) { Action::Steer } else { Action::SteerAll };
    actions::possible(action, ui, cx.situation()).err()
}

/// The newest message that can still be withdrawn: nobody took it, or a runner of ours holds it for a step that has not
/// begun. The id of its request.
#[must_use]
pub fn withdrawable(state: &RunState, ui: &UiState) -> Option<String> {
    let known = |id: &str| state.steering.recent.iter().any(|r| r.id == id);
    // What was refused waits nowhere.
    let newest = ui.sent.iter().rev().find(|s| s.what == "steer");
    let written = newest.filter(|s| !matches!(s.fate, Fate::Refused(_))).and_then(|s| s.id.clone());
    if let Some(id) = written.filter(|id| !known(id) && !ui.withdrawn.contains(id)) {
        return Some(id);
    }
    // Only runners of ours give back what they hold for a step that waits.
    if is_foreign(state) {
        return None;
    }
    let held = |r: &&SteerRequest| r.targets.iter().any(|t| t.state == TargetState::Scheduled);
    let waits = state.steering.recent.iter().rev().filter(held).map(|r| r.id.clone());
    waits.into_iter().find(|id| !ui.withdrawn.contains(id))
}

/// Puts pasted text into the message as one edit.
pub fn paste(ui: &mut UiState, text: &str) {
    let Some(Overlay::Composer(composer)) = ui.overlays.last() else { return };
    ui.drafts.entry(composer.home).or_default().text.insert_str(typed(text));
}

/// Takes a key while the composer is open.
pub fn on_key(ui: &mut UiState, cx: Context<'_>, key: KeyEvent) -> Vec<UiEffect> {
    let Some(Overlay::Composer(composer)) = ui.overlays.last_mut() else { return Vec::new() };
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let home = composer.home;
    match key.code {
        KeyCode::Char('s') if ctrl => return send(ui, cx, "ctrl-s"),
        KeyCode::Enter if ctrl || alt => return send(ui, cx, "ctrl-enter"),
        KeyCode::Esc => {
            ui.overlays.pop();
            if ui.drafts.get(&home).is_some_and(Draft::is_blank) {
                ui.drafts.remove(&home);
            } else {
                let kept = cx.read_only.is_none();
                say(ui, cx.now, false, if kept { "draft kept" } else { "draft kept until this deck is left" });
            }
        }
        KeyCode::Char('c') if ctrl => {
            ui.overlays.pop();
            ui.drafts.remove(&home);
        }
        // A session that is gone on with has one mode and one target.
        KeyCode::Char('t') if ctrl && composer.goes_on => {}
        KeyCode::Tab if composer.goes_on => {}
        KeyCode::Char('t') if ctrl => {
            let draft = ui.drafts.entry(home).or_default();
            draft.mode = match draft.mode {
                SteerMode::Steer => SteerMode::FollowUp,
                SteerMode::FollowUp => SteerMode::Auto,
                SteerMode::Auto => SteerMode::Steer,
            };
        }
        KeyCode::Tab if composer.refused.is_some() => {
            // Nobody of a run that takes no messages is a target.
            if actions::possible(Action::SteerAll, ui, cx.situation()).is_ok()
                && let Some(Overlay::Composer(composer)) = ui.overlays.last_mut()
            {
                next_target(composer, cx.state);
                composer.refused = None;
            }
        }
        KeyCode::Tab => next_target(composer, cx.state),
        KeyCode::F(1) => ui.overlays.push(Overlay::Help { top: 0, query: None }),
        KeyCode::Char('z') if ctrl => return vec![UiEffect::Suspend],
        KeyCode::Char('l') if ctrl => return vec![UiEffect::Repaint],
        _ => {
            ui.drafts.entry(home).or_default().text.input(key);
        }
    }
    Vec::new()
}

/// One step after the other, then all of them.
fn next_target(composer: &mut Composer, state: &RunState) {
    let steps = candidates(state);
    let all = steps.len() > 1 && steps.iter().all(|s| composer.targets.contains(s));
    let next = if all || composer.targets.len() > 1 {
        steps.first().copied()
    } else {
        let current = composer.targets.first().copied();
        match steps.iter().position(|s| Some(*s) == current) {
            Some(at) => steps.get(at + 1).copied(),
            None => steps.first().copied(),
        }
    };
    match next {
        Some(step) => composer.targets = [step].into_iter().collect(),
        None if !steps.is_empty() => composer.targets = steps.into_iter().collect(),
        None => {}
    }
}

fn send(ui: &mut UiState, cx: Context<'_>, key: &'static str) -> Vec<UiEffect> {
    let Some(Overlay::Composer(composer)) = ui.overlays.last() else { return Vec::new() };
    if let Some(why) = still_refused(ui, cx, composer) {
        say(ui, cx.now, true, &why);
        return Vec::new();
    }
    let composer_goes_on = composer.goes_on;
    let (home, targets) = (composer.home, composer.targets.iter().copied().collect::<Vec<_>>());
    let draft = ui.drafts.entry(home).or_default();
    let (message, mode, blank) = (draft.message(), draft.mode, draft.is_blank());
    if blank {
        say(ui, cx.now, true, "there is nothing to send yet");
        return Vec::new();
    }
    if message.len() > SteerRequest::MAX_BYTES {
        say(ui, cx.now, true, &format!("the message is longer than {} bytes", SteerRequest::MAX_BYTES));
        return Vec::new();
    }
    if composer_goes_on {
        // The draft and the composer go only once the new run has begun.
        return vec![UiEffect::GoOn { step: home, message }];
    }
    let refusal = |id: &StepId| match cx.state.step(*id) {
        Some(step) => can_steer(step).err(),
        None => Some(format!("there is no step {id}")),
    };
    // Of several targets those that ended meanwhile are left out; the others still get it.
    let (gone, targets): (Vec<StepId>, Vec<StepId>) = targets.into_iter().partition(|id| refusal(id).is_some());
    if targets.is_empty()
        && let Some(why) = gone.iter().find_map(refusal)
    {
        say(ui, cx.now, true, &why);
        return Vec::new();
    }
    if targets.is_empty() {
        say(ui, cx.now, true, "nobody is to get it; tab changes the target");
        return Vec::new();
    }
    // The draft goes only once the request is on disk.
    ui.overlays.pop();
    vec![UiEffect::Steer { targets, mode, message, key, home }]
}
