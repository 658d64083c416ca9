//! The pane of one step: facts where there is room, then what it printed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::detail::{self, Fact};
use super::layout::{Shape, above_log, inside, log_area};
use super::paint::{Edge, Piece, frame, piece, put, put_cut, row};
use super::secrets::wrapped;
use super::{Scene, at_end, brief, elapsed, entries, group, marks, queued, sections};
use crate::deck::actions::{Action, NARROW};
use crate::deck::entries::lists;
use crate::deck::model::{Anchor, Focus, Position, Tab, UiState};
use crate::deck::rows;
use crate::deck::window::{ERR_MARK, OWN_MARK, Row, Window, Windows};
use crate::run::{StepPhase, StepState, Stream};
use crate::text::{SafeText, bytes, clock, grouped};

/// Draws a pane.
pub(super) fn pane(
    buf: &mut Buffer,
    area: Rect,
    shape: Shape,
    step: &StepState,
    scene: &Scene<'_>,
    ui: &UiState,
    windows: &Windows,
) {
    if area.is_empty() {
        return;
    }
    let theme = scene.theme;
    let empty = Window::default();
    let window = windows.logs.get(&step.id).unwrap_or(&empty);
    let tab = if shape == Shape::Zoom { ui.tab(step.id) } else { Tab::Output };
    let head = group::head(shape, area, step, ui, scene.state);
    let active = match shape {
        Shape::Grid => step.id == ui.selected,
        Shape::Zoom | Shape::Tabs => false,
        _ => ui.focus == Focus::Output,
    };
    if shape != Shape::Narrow {
        let left = match shape {
            Shape::Zoom => vec![piece(tab.name(), theme.bold())],
            // Where no list says it, the title tells how the step stands and who works on it.
            Shape::Grid | Shape::Tabs | Shape::Flow => {
                let face = super::face(step, scene, ui);
                let agent = (step.agent != step.title()).then(|| SafeText::line(&step.agent));
                let model = step.model.as_deref().map(SafeText::line);
                let mut out = vec![
                    piece(format!("{} {}", step.id, SafeText::line(step.title()).truncate(24)), theme.bold()),
                    piece(format!("{} {}", face.glyph, face.word), face.style).gap(1),
                ];
                if step.attempt() > 1 {
                    out.push(piece(format!("attempt {}", step.attempt()), theme.bold()).rank(4).gap(2));
                }
                out.extend(agent.map(|text| piece(text.to_string(), theme.dim()).rank(2).gap(2)));
                out.extend(model.map(|text| piece(text.to_string(), theme.dim()).rank(3).gap(2)));
                out
            }
            _ => {
                let name = match rows::folded(ui, scene.state, step).filter(|_| head.is_some()) {
                    Some(folded) => group::title(folded, scene.state),
                    None => format!("{} {}", step.id, SafeText::line(step.title()).truncate(40)),
                };
                vec![piece(name, theme.bold())]
            }
        };
        let right = if shape == Shape::Grid && ui.pane(step.id).output == Position::Follow {
            vec![piece(elapsed(step, scene), theme.bold())]
        } else if tab == Tab::Output {
            whereabouts(step, ui, window, scene)
        } else if lists(tab) {
            entries::whereabouts(step, scene, ui)
        } else {
            sections::whereabouts(section_area(shape, area), step, scene, ui, windows)
        };
        frame(buf, area, theme, Edge::focused(active), left, right);
    } else if area.y > 0 && (active || ui.pane(step.id).output != Position::Follow) {
        // Without a frame the rule above says who has the movement keys, and that the end of the output is elsewhere.
        let rule = Rect { y: area.y - 1, width: area.width.saturating_sub(2), height: 1, ..area };
        if active {
            put(
                buf,
                rule,
                1,
                0,
                &format!("›{} {} ", step.id, SafeText::line(step.title()).truncate(12)),
                theme.select(),
            );
        }
        let (_, start) = row(buf, rule, 0, Vec::new(), whereabouts(step, ui, window, scene));
        put(buf, rule, start.saturating_sub(1), 0, " ", theme.plain());
        put(buf, Rect { width: area.width, ..rule }, rule.width, 0, " ", theme.plain());
    }
    if tab != Tab::Output {
        let inner = section_area(shape, area);
        if lists(tab) {
            entries::draw(buf, inner, step, scene, ui, windows);
        } else {
            sections::draw(buf, inner, step, scene, ui, windows);
        }
        return;
    }
    let log = log_area(shape, area, step, ui, scene.state);
    let inner = inside(shape, area);
    let above = Rect { x: log.x, width: log.width, y: inner.y, height: log.y.saturating_sub(inner.y) };
    match (shape, &head) {
        (_, Some(head)) => head.draw(buf, inner, shape, scene, ui),
        (Shape::Wide, None) => {
            let facts = detail::facts(step, ui.left_of(step.id), usize::from(log.width), ui.reveal);
            let rows = above_log(shape, Rect { width: log.width, ..inner }, step, ui).saturating_sub(1);
            for (fact, dy) in facts.iter().take(usize::from(rows)).zip(0_u16..) {
                detail::fact(buf, above, dy, fact, step, scene, ui);
            }
            // The last fact of a list that was cut may be a gap; a rule says that the output begins.
            if *facts.first().unwrap_or(&Fact::Gap) != Fact::Gap {
                put(buf, above, 0, rows, &"─".repeat(usize::from(above.width)), theme.dim());
            }
        }
        (Shape::Stacked | Shape::Grid | Shape::Tabs | Shape::Flow, None) => brief::line(buf, above, 0, step, scene, ui),
        _ => {}
    }
    log_rows(buf, log, step, window, scene, ui);
    if let Some(needle) = ui.needle() {
        marks::in_log(buf, log, &needle, window, scene);
    }
    if step.phase.is_terminal() && shape != Shape::Narrow {
        // Directly below the last row.
        let rows = u16::try_from(window.rows.len()).unwrap_or(u16::MAX).clamp(1, log.height.max(1));
        let at = Rect { y: (log.y + rows).min(log.bottom()), height: 1, ..log };
        let text = SafeText::line(&format!("── {}", brief::epitaph(step, window.len)));
        let style = theme.face(scene.state.face(step)).style;
        let dx = put_cut(buf, at, 0, 0, &text, at.width, style) + 1;
        put(buf, at, dx, 0, &"─".repeat(usize::from(at.width.saturating_sub(dx))), theme.dim());
        let below = Rect { y: at.y + 1, height: inner.bottom().saturating_sub(at.y + 1), ..log };
        task(buf, below, step, scene);
    }
}

/// What the step was asked, where that is known and some of it fits, with a blank row above it.
fn task(buf: &mut Buffer, area: Rect, step: &StepState, scene: &Scene<'_>) {
    if scene.facts_of != Some(step.id) || scene.facts.task.is_empty() || area.height < 3 {
        return;
    }
    put(buf, area, 0, 1, "task", scene.theme.accent());
    let room = usize::from(area.width.saturating_sub(2));
    let lines = scene.facts.task.iter().flat_map(|line| wrapped(line, room, scene.reveal));
    for (line, dy) in lines.take(usize::from(area.height)).zip(2_u16..) {
        put(buf, area, 2, dy, line.as_str(), scene.theme.plain());
    }
}

/// Where a tab other than the output is drawn in its pane.
pub(super) fn section_area(shape: Shape, pane: Rect) -> Rect {
    let inner = inside(shape, pane);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// How many matches a tab has and which of them was gone to, for the frame; `len` is where it ends.
pub(super) fn matches(step: &StepState, tab: Tab, len: u64, ui: &UiState, scene: &Scene<'_>) -> Vec<Piece> {
    let theme = scene.theme;
    let Some(count) = ui.matches_in(step.id, tab) else { return Vec::new() };
    // What came since, or was not looked through yet, is not counted.
    let more = if len > count.upto { "+" } else { "" };
    let (text, style) = match (count.nth, count.total) {
        (_, 0) if ui.searching.is_some() || lists(tab) && !more.is_empty() => return Vec::new(),
        (_, 0) => (format!("nothing found{more}"), theme.bad()),
        (0, total) => (format!("{}{more} found", grouped(total)), theme.accent()),
        (nth, total) => (format!("match {}/{}{more}", grouped(nth), grouped(total)), theme.accent()),
    };
    sought(ui, scene).into_iter().chain([piece(text, style).rank(6).gap(2)]).collect()
}

/// What is looked for, where there is room to say so.
pub(super) fn sought(ui: &UiState, scene: &Scene<'_>) -> Option<Piece> {
    let search = ui.search.as_ref()?;
    let text = format!("\"{}\"", SafeText::line(&search.needle).truncate(24));
    Some(piece(text, scene.theme.dim()).rank(1).gap(2))
}

/// Where the pane stands in its log, for the frame.
fn whereabouts(step: &StepState, ui: &UiState, window: &Window, scene: &Scene<'_>) -> Vec<Piece> {
    let theme = scene.theme;
    let follows = ui.pane(step.id).output == Position::Follow;
    let mut out = Vec::new();
    if let Some(only) = ui.panes.get(&step.id).and_then(|pane| pane.only) {
        let text = if only == Stream::Err { "stderr only" } else { "without stderr" };
        out.push(piece(text, theme.accent()).rank(6));
    }
    if !ui.wrap {
        out.push(piece("not wrapped", theme.dim()).rank(2));
    }
    if !ui.fold {
        out.push(piece("not folded", theme.dim()).rank(2).gap(2));
    }
    out.extend(matches(step, Tab::Output, window.len, ui, scene));
    if follows {
        let word = match &step.phase {
            // What is shown then is what it will be asked.
            StepPhase::Pending => "",
            phase if phase.is_terminal() => "end",
            _ => at_end(scene, ui),
        };
        out.push(piece(word, theme.dim()).gap(2));
    } else {
        // What is on the screen is not new to who looks at it.
        if window.behind > 0 && !window.at_end {
            let much = match window.new_lines {
                // As the tabs have it.
                Some(lines) if ui.size.0 < NARROW => lines.to_string(),
                Some(lines) => detail::many(lines as u64, "line"),
                None => bytes(window.behind),
            };
            out.push(piece(format!("+{much} new"), theme.accent()).rank(7).gap(2));
        }
        let begins = window.rows.first().is_some_and(|row| row.anchor == Anchor::default());
        let place = match window.line {
            // Of what is seen whole there is nothing to be told.
            _ if begins && window.at_end => None,
            Some((line, lines)) => Some(format!("line {} of {}", grouped(line), grouped(lines))),
            None => Some(format!("{}%", window.percent)),
        };
        out.extend(place.map(|place| piece(place, theme.plain()).gap(2)));
        out.push(piece(format!("{} follow", ui.keymap.hint(Action::Follow)), theme.bold()).rank(5).gap(2));
    }
    out
}

fn log_rows(buf: &mut Buffer, area: Rect, step: &StepState, window: &Window, scene: &Scene<'_>, ui: &UiState) {
    if window.rows.is_empty() {
        return nothing(buf, area, step, window, scene, ui);
    }
    for (row, dy) in window.rows.iter().zip(0_u16..).take(usize::from(area.height)) {
        log_row(buf, area, dy, row, scene);
    }
}

/// What stands where a step printed nothing: why, and what it is to do.
fn nothing(buf: &mut Buffer, area: Rect, step: &StepState, window: &Window, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let text = match &step.phase {
        _ if window.untimed => "its log tells no times: what it had printed by then is not known".to_owned(),
        StepPhase::Pending => queued::in_words(scene.state, &ui.sums(scene.state), step),
        StepPhase::Running => match step.started_at {
            Some(at) => format!("no output yet, started {} ago", clock(scene.now.since(at))),
            None => "no output yet".to_owned(),
        },
        // Who said something or used a tool has printed something.
        _ if step.last_message.is_some() || step.tool_count > 0 => "nothing of its output was kept".to_owned(),
        _ => "it printed nothing".to_owned(),
    };
    put_cut(buf, area, 0, 0, &SafeText::line(&text), area.width, theme.dim());
    // Of a step that is over it stands below the sentence about its end.
    if !step.phase.is_terminal() {
        task(buf, Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }, step, scene);
    }
}

fn log_row(buf: &mut Buffer, area: Rect, dy: u16, row: &Row, scene: &Scene<'_>) {
    let theme = scene.theme;
    if let Some(again) = row.again {
        let more = if again.or_more { " or more" } else { "" };
        let text = format!("… {}{more} more times", grouped(again.times as u64));
        put(buf, area, 2, dy, &text, theme.dim());
        return;
    }
    let mut dx = 0;
    match row.stream {
        Stream::Err => dx = put(buf, area, 0, dy, ERR_MARK, theme.bad()),
        Stream::Own => {
            let text: String = row.runs.iter().map(|r| r.text.as_str()).collect();
            // One line between two parts, also where it takes several rows.
            let mark = if row.anchor.row == 0 { OWN_MARK } else { "   " };
            let text = SafeText::line(&format!("{mark}{}", text.strip_prefix(OWN_MARK).unwrap_or(&text)));
            let dx = put_cut(buf, area, 0, dy, &text, area.width, theme.halted()) + 1;
            if row.end > row.anchor.line {
                put(buf, area, dx, dy, &"─".repeat(usize::from(area.width.saturating_sub(dx))), theme.dim());
            }
            return;
        }
        Stream::Out => {}
    }
    for run in &row.runs {
        if dx >= area.width {
            break;
        }
        dx = put(buf, area, dx, dy, run.text.as_str(), theme.ansi(run.style));
    }
    let wide: usize = row.runs.iter().map(|r| r.text.width()).sum();
    if row.left > 0 && wide <= usize::from(area.width) {
        let text = format!("… {} more", bytes(row.left));
        let dx = usize::from(area.width).saturating_sub(crate::text::width(&text));
        put(buf, area, u16::try_from(dx).unwrap_or(0), dy, &text, theme.bold());
    } else if row.cut || wide > usize::from(area.width) {
        put(buf, area, area.width.saturating_sub(1), dy, "…", theme.bold());
    }
}
