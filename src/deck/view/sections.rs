//! The tabs of a zoomed step beside its output. What they show is in the state and in the newest events; older events
//! are in the run's event log.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::detail::{self, meter_left, meter_style, meter_text, meter_warning, metric_name};
use super::paint::{Piece, bar, piece, row};
use super::{Scene, ticker, took};
use crate::deck::history::{Entry, History, Tone};
use crate::deck::model::{Tab, UiState};
use crate::run::{Meter, Metric, StepState};
use crate::text::{SafeText, UNKNOWN, clock, cost, count, grouped, or_unknown};

/// Draws one of the tabs.
pub(super) fn draw(buf: &mut Buffer, area: Rect, tab: Tab, step: &StepState, scene: &Scene<'_>, ui: &UiState) {
    if area.is_empty() {
        return;
    }
    let back = ui.pane(step.id).back.get(&tab).copied().unwrap_or(0);
    match tab {
        Tab::Output => {}
        Tab::Tools => tools(buf, area, step, scene, back),
        Tab::Transcript => rows(buf, area, &transcript(step, scene, usize::from(area.width)), back, true),
        Tab::Budget => rows(buf, area, &budget(step, scene, usize::from(area.width)), back, false),
        Tab::Changes => rows(buf, area, &changes(step, scene), back, false),
        Tab::Events => rows(buf, area, &events(step, scene), back, true),
    }
}

type Line = (Vec<Piece>, Vec<Piece>);

/// Draws lines; `from_end` shows the end of a list that is longer than the area.
fn rows(buf: &mut Buffer, area: Rect, lines: &[Line], back: usize, from_end: bool) {
    let height = usize::from(area.height);
    let hidden = lines.len().saturating_sub(height);
    let back = back.min(hidden);
    let start = if from_end { hidden - back } else { back };
    for ((left, right), dy) in lines.iter().skip(start).take(height).zip(0_u16..) {
        row(buf, area, dy, left.clone(), right.clone());
    }
}

fn tools(buf: &mut Buffer, area: Rect, step: &StepState, scene: &Scene<'_>, back: usize) {
    let theme = scene.theme;
    if step.open.is_empty() && step.recent_tools.is_empty() {
        return rows(buf, area, &[note("no tool was used yet", theme.dim())], 0, false);
    }
    let total = step.recent_tools.len() + step.open.len();
    let height = usize::from(area.height);
    let hidden = total.saturating_sub(height);
    let start = hidden - back.min(hidden);
    let kept = step.recent_tools.len();
    for (at, dy) in (start..total).take(height).zip(0_u16..) {
        if let Some(call) = step.recent_tools.get(at) {
            let time = scene.time_of_day(call.started_at.unwrap_or(call.ended_at));
            let dx = super::paint::put(buf, area, 0, dy, &time, theme.dim());
            detail::ended_call(buf, area, dx + 2, dy, call, scene);
        } else if let Some(call) = step.open.get(at - kept) {
            let dx = super::paint::put(buf, area, 0, dy, &scene.time_of_day(call.started_at), theme.dim());
            super::paint::put(buf, area, dx + 2, dy, "●", theme.accent());
            detail::open_call(buf, area, dx + 4, dy, call, step, scene);
        }
    }
}

fn note(text: &str, style: Style) -> Line {
    (vec![piece(text, style)], Vec::new())
}

fn transcript(step: &StepState, scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let theme = scene.theme;
    let mut out: Vec<Line> = Vec::new();
    if !scene.facts.task.is_empty() {
        out.push((vec![piece("task", theme.select())], Vec::new()));
        for line in scene.facts.task.iter().flat_map(|l| l.wrap(width.saturating_sub(2))) {
            out.push((vec![piece(format!("  {line}"), theme.plain())], Vec::new()));
        }
        out.push(note("", theme.plain()));
    }
    for entry in scene.history.of(step.id) {
        let (name, style) = match entry.tone {
            Tone::Said => ("assistant", theme.accent()),
            Tone::Told => ("told", theme.select()),
            Tone::Tool => {
                let text = entry.text.first().map(SafeText::to_string).unwrap_or_default();
                let text = SafeText::line(&text).truncate(width.saturating_sub(12)).to_string();
                out.push((
                    vec![piece(format!("  {text}"), theme.dim())],
                    vec![piece(scene.time_of_day(entry.at), theme.dim())],
                ));
                continue;
            }
            _ => continue,
        };
        out.push((vec![piece(name, style)], vec![piece(scene.time_of_day(entry.at), theme.dim())]));
        for line in entry.text.iter().flat_map(|l| l.wrap(width.saturating_sub(2))) {
            out.push((vec![piece(format!("  {line}"), theme.plain())], Vec::new()));
        }
    }
    if out.is_empty() {
        out.push(note("nothing was said yet", theme.dim()));
    }
    out
}

fn budget(step: &StepState, scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let theme = scene.theme;
    let line = |name: &str, value: String| -> Line {
        (vec![piece(format!("{name:<12}"), theme.dim()), piece(value, theme.plain())], Vec::new())
    };
    let cells = u16::try_from(width.saturating_sub(30)).unwrap_or(24).clamp(6, 24);
    // Digits, bar, estimate and warning of all rows stand below each other.
    let limited = |name: &str, digits: String, share: f64, style: Style, left: Option<String>, warning: Option<String>| -> Line {
        let mut row = line(name, format!("{digits:<16}"));
        row.0.push(piece(bar(share, cells), style).gap(1));
        row.0.push(piece(format!("{:<13}", left.unwrap_or_default()), theme.dim()).rank(2).gap(2));
        row.0.extend(warning.map(|text| piece(text.trim().to_owned(), theme.dim()).rank(1).gap(1)));
        row
    };
    let of_meter = |name: &str, meter: &Meter| -> Line {
        let style = meter_style(meter, scene);
        limited(name, meter_text(meter), meter.share(), style, meter_left(meter), meter_warning(meter))
    };
    let mut out = Vec::new();
    let used = took(step, scene.now);
    match (used, step.timeout_ms) {
        (Some(used), Some(limit)) => {
            let limit = std::time::Duration::from_millis(limit);
            let share = used.as_secs_f64() / limit.as_secs_f64().max(0.001);
            let style = if share >= 0.8 { theme.bad() } else { theme.accent() };
            let left = (!step.phase.is_terminal()).then(|| format!("{} left", clock(limit.saturating_sub(used))));
            out.push(limited("time", format!("{} of {}", clock(used), clock(limit)), share, style, left, None));
        }
        _ => out.push(line("time", or_unknown(used.map(clock)))),
    }
    let meters = crate::run::budget::meters(scene.state, step, scene.now);
    let metered = |name: &str, metric: Metric, used: String| -> Line {
        match meters.iter().find(|m| m.metric == metric) {
            Some(meter) => of_meter(name, meter),
            None => line(name, used),
        }
    };
    out.push(metered("turns", Metric::Turns, step.turn_count.to_string()));
    out.push(metered("tool calls", Metric::ToolCalls, grouped(step.tool_count)));
    let tokens = step.tokens;
    let known = |n: u64| if tokens.is_zero() { UNKNOWN.to_owned() } else { count(n) };
    out.push(metered("tokens", Metric::Tokens, known(tokens.total())));
    let kinds = [("in", tokens.input), ("out", tokens.output), ("cache read", tokens.cache_read), ("written", tokens.cache_write)];
    let kinds = kinds.map(|(name, n)| format!("{name} {}", known(n))).join("   ");
    out.push((vec![piece(format!("            {kinds}"), theme.dim())], Vec::new()));
    let told = or_unknown(step.cost.map(|c| format!("{}  reported by the agent", cost(c.0))));
    out.push(metered("cost", Metric::Cost, told));
    let whole = crate::run::budget::run_meters(scene.state, scene.now);
    if !whole.is_empty() {
        out.push(note("", theme.plain()));
        out.push(note("the whole run", theme.accent()));
        out.extend(whole.iter().map(|meter| of_meter(metric_name(meter.metric), meter)));
    }
    if !scene.facts.limits.is_empty() {
        out.push(note("", theme.plain()));
        out.push(note("limits of the plan", theme.accent()));
        out.extend(scene.facts.limits.iter().map(|(name, value)| line(name, SafeText::line(value).to_string())));
    }
    let told: Vec<&Entry> = scene.history.budget.iter().filter(|e| e.step.is_none_or(|s| s == step.id)).collect();
    if !told.is_empty() {
        out.push(note("", theme.plain()));
        out.push(note("history", theme.accent()));
        out.extend(told.into_iter().map(|entry| {
            let whose = if entry.step.is_none() { "run: " } else { "" };
            let text = entry.text.first().map(SafeText::to_string).unwrap_or_default();
            let style = ticker::tone(entry.tone, scene);
            let time = piece(format!("{:<12}", scene.time_of_day(entry.at)), theme.dim());
            (vec![time, piece(format!("{whose}{text}"), style)], Vec::new())
        }));
    }
    if step.attempts.len() > 1 {
        out.push(note("", theme.plain()));
        out.push(note("attempts", theme.accent()));
        for (n, attempt) in (1..).zip(&step.attempts) {
            let model = SafeText::line(attempt.model.as_deref().unwrap_or(UNKNOWN));
            let end = match (attempt.success, &attempt.error) {
                (Some(true), _) => "succeeded".to_owned(),
                (Some(false), Some(error)) => format!("failed: {}", SafeText::line(error)),
                (Some(false), None) => "failed".to_owned(),
                (None, _) => "runs".to_owned(),
            };
            out.push(line(&format!("{n}"), format!("{model}  {end}")));
        }
    }
    out
}

/// The paths that tools worked on, with the tools and how often.
fn changes(step: &StepState, scene: &Scene<'_>) -> Vec<Line> {
    let theme = scene.theme;
    let mut paths: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    let ended = step.recent_tools.iter().map(|c| (&c.path, &c.tool));
    let open = step.open.iter().map(|c| (&c.path, &c.tool));
    for (path, tool) in ended.chain(open) {
        if let Some(path) = path {
            let tools = paths.entry(SafeText::line(path).to_string()).or_default();
            *tools.entry(SafeText::line(tool).truncate(16).to_string()).or_default() += 1;
        }
    }
    if paths.is_empty() {
        return vec![note("no tool named a path yet", theme.dim())];
    }
    paths
        .into_iter()
        .map(|(path, tools)| {
            let tools: Vec<String> =
                tools.into_iter().map(|(tool, n)| if n == 1 { tool } else { format!("{tool} ×{n}") }).collect();
            (vec![piece(path, theme.plain())], vec![piece(tools.join(" "), theme.dim())])
        })
        .collect()
}

fn events(step: &StepState, scene: &Scene<'_>) -> Vec<Line> {
    let theme = scene.theme;
    let count = scene.history.of(step.id).count();
    let mut out: Vec<Line> = Vec::with_capacity(count + 1);
    if count == History::KEPT {
        out.push(note(&format!("older events are in the run's event log; these are the newest {count}"), theme.dim()));
    }
    out.extend(scene.history.of(step.id).map(|entry| {
        let text = entry.text.first().map(SafeText::to_string).unwrap_or_default();
        let left = vec![
            piece(format!("{}  ", scene.time_of_day(entry.at)), theme.dim()),
            piece(text, ticker::tone(entry.tone, scene)),
        ];
        (left, Vec::new())
    }));
    if out.is_empty() {
        out.push(note("nothing happened yet", theme.dim()));
    }
    out
}
