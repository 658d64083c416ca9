//! A row of the list for a sub-agent, below the step whose agent began it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Scene;
use super::detail::many;
use super::paint::{put, put_cut, put_right};
use crate::run::{StepFace, SubAgent, ToolOutcome};
use crate::text::{SafeText, clock, count, or_unknown};

/// Where its parts stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The column of its name.
    pub name_at: u16,
    /// How wide a name may be.
    pub name: u16,
    /// How wide the word of the state may be; 0 leaves it out.
    pub word: u16,
    /// Cells behind its time.
    pub more: u16,
}

/// How a sub-agent stands.
pub(super) const fn face(agent: &SubAgent) -> StepFace {
    match agent.outcome {
        None => StepFace::Running,
        Some(ToolOutcome::Ok) => StepFace::Succeeded,
        Some(ToolOutcome::Cancelled) => StepFace::Stopped,
        Some(ToolOutcome::Lost) => StepFace::Lost,
        Some(ToolOutcome::Error | ToolOutcome::Denied) => StepFace::Failed,
    }
}

/// Draws it: what kind it is, what it does, its calls and tokens, how long.
pub(super) fn draw(buf: &mut Buffer, area: Rect, dy: u16, place: Place, scene: &Scene<'_>, agent: &SubAgent) {
    let theme = scene.theme;
    let face = theme.face(face(agent));
    let style = if agent.works() { theme.plain() } else { theme.dim() };
    let mut dx = place.name_at;
    put(buf, area, dx.saturating_sub(2), dy, "↳", theme.dim());
    if place.word == 0 {
        put(buf, area, dx, dy, face.glyph, face.style);
        dx += 2;
    }
    // It begins further right than the name of a step, and what stands behind both begins in one column.
    put_cut(buf, area, dx, dy, &SafeText::line(&agent.name), place.name.saturating_sub(1), style);
    dx += place.name;
    if place.word > 0 {
        let after = put(buf, area, dx, dy, face.glyph, face.style);
        put(buf, area, after + 1, dy, face.word, face.style);
        dx += place.word + 4;
    }
    let end = area.width.saturating_sub(1 + place.more);
    let time = clock(agent.ended_at.unwrap_or(scene.now).since(agent.started_at));
    put_right(buf, area, end, dy, &time, style);
    let mut room_end = end.saturating_sub(u16::try_from(time.chars().count()).unwrap_or(8).max(5) + 1);
    if area.width >= 60 {
        let used = format!("{} {} tok", many(agent.tool_count, "call"), or_unknown(agent.tokens.map(count)));
        put_right(buf, area, room_end, dy, &used, theme.dim());
        room_end = room_end.saturating_sub(u16::try_from(used.chars().count()).unwrap_or(12) + 1);
    }
    let now = match (&agent.tool, &agent.last_message) {
        (Some(call), _) => format!("{} {}", call.tool, call.args),
        (None, Some(said)) if !agent.works() => said.clone(),
        (None, _) => agent.about.clone(),
    };
    put_cut(buf, area, dx, dy, &SafeText::line(&now), room_end.saturating_sub(dx), style);
}
