//! The tabs of a zoomed step that are read from their beginning: limits and use, and what changed.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::detail::{marked, meter_left, meter_style, meter_warning, metric_name, percent, share_style, window_text};
use super::paint::{Piece, bar, piece, row};
use super::{Scene, ticker, took};
use crate::deck::history::Entry;
use crate::deck::model::{Tab, UiState};
use crate::deck::window::Windows;
use crate::run::{Meter, Metric, StepState, cause};
use crate::text::{SafeText, UNKNOWN, clock, cost, count, grouped, or_unknown};

/// Draws one of the tabs that are read from their beginning.
pub(super) fn draw(buf: &mut Buffer, area: Rect, step: &StepState, scene: &Scene<'_>, ui: &UiState, windows: &Windows) {
    let tab = ui.tab(step.id);
    let lines = lines(tab, step, scene, windows, usize::from(area.width));
    let back = ui.pane(step.id).back.get(&tab).copied().unwrap_or(0);
    let start = back.min(lines.len().saturating_sub(usize::from(area.height)));
    for ((left, right), dy) in lines.into_iter().skip(start).zip(0_u16..area.height) {
        row(buf, area, dy, left, right);
    }
}

/// Keeps what was scrolled within what there is, so that the way back begins where one is.
pub(super) fn limit(ui: &mut UiState, area: Rect, step: &StepState, scene: &Scene<'_>, windows: &Windows) {
    let tab = ui.tab(step.id);
    if ui.pane(step.id).back.get(&tab).is_none_or(|back| *back == 0) {
        return;
    }
    let lines = lines(tab, step, scene, windows, usize::from(area.width)).len();
    let most = lines.saturating_sub(usize::from(area.height));
    let back = ui.pane_mut(step.id).back.entry(tab).or_default();
    *back = (*back).min(most);
}

type Line = (Vec<Piece>, Vec<Piece>);

fn lines(tab: Tab, step: &StepState, scene: &Scene<'_>, windows: &Windows, width: usize) -> Vec<Line> {
    match tab {
        Tab::Budget => budget(step, scene, width),
        Tab::Changes => changes(step, scene, windows),
        _ => Vec::new(),
    }
}

/// The lines of one of these tabs as text.
pub(super) fn text(tab: Tab, step: &StepState, scene: &Scene<'_>, windows: &Windows, width: usize) -> Vec<SafeText> {
    let of = |pieces: &[Piece]| pieces.iter().map(Piece::spaced).collect::<String>();
    let lines = lines(tab, step, scene, windows, width).into_iter();
    lines
        .map(|(left, right)| {
            let gap = if right.is_empty() { "" } else { "  " };
            SafeText::line(format!("{}{gap}{}", of(&left), of(&right)).trim_end())
        })
        .collect()
}

fn note(text: &str, style: Style) -> Line {
    (vec![piece(text, style)], Vec::new())
}

fn budget(step: &StepState, scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let theme = scene.theme;
    let line = |name: &str, value: String| -> Line {
        (vec![piece(format!("{name:<12}"), theme.dim()), piece(value, theme.plain())], Vec::new())
    };
    let most = if width >= 110 { width.saturating_sub(62).min(60) } else { width.saturating_sub(30).min(24) };
    let cells = u16::try_from(most.max(6)).unwrap_or(24);
    // Digits, bar, estimate and warning of all rows stand below each other.
    let limited = |name: &str,
                   digits: String,
                   share: Option<f64>,
                   style: Style,
                   left: Option<String>,
                   warning: Option<String>|
     -> Line {
        let mut row = line(name, format!("{digits:<16}"));
        let style = if step.phase.is_terminal() { theme.dim() } else { style };
        let bar = share.map_or_else(|| " ".repeat(usize::from(cells)), |share| bar(share, cells));
        row.0.push(piece(bar, style).gap(1));
        row.0.push(piece(format!("{:<13}", left.unwrap_or_default()), theme.dim()).rank(2).gap(2));
        row.0.extend(warning.map(|text| piece(text, theme.dim()).rank(1).gap(1)));
        row
    };
    let of_meter = |name: &str, meter: &Meter| -> Line {
        let style = meter_style(meter, scene);
        limited(name, marked(meter), meter.used.map(|_| meter.share()), style, meter_left(meter), meter_warning(meter))
    };
    let mut out = Vec::new();
    let used = took(step, scene.now);
    match (used, step.timeout_ms) {
        (Some(used), Some(limit)) => {
            let limit = std::time::Duration::from_millis(limit);
            let share = used.as_secs_f64() / limit.as_secs_f64().max(0.001);
            let style = share_style(share, scene);
            let left = (!step.phase.is_terminal()).then(|| format!("{} left", clock(limit.saturating_sub(used))));
            out.push(limited("time", format!("{} of {}", clock(used), clock(limit)), Some(share), style, left, None));
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
    let kinds = [
        ("in", tokens.input),
        ("out", tokens.output),
        ("cache read", tokens.cache_read),
        ("written", tokens.cache_write),
    ];
    let kinds = kinds.map(|(name, n)| format!("{name} {}", known(n))).join("   ");
    out.push((vec![piece(format!("            {kinds}"), theme.dim())], Vec::new()));
    let told = or_unknown(step.cost.map(|c| format!("{}  reported by the agent", cost(c.0))));
    out.push(metered("cost", Metric::Cost, told));
    match (window_text(step), step.window.used) {
        (Some((digits, share)), _) => {
            out.push(limited("context", digits, Some(share), share_style(share, scene), Some(percent(share)), None));
        }
        (None, Some(used)) => out.push(line("context", format!("{}  of a window whose size is not told", count(used)))),
        (None, None) => {}
    }
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
            let text = entry.text.to_string();
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
                (Some(false), Some(error)) => {
                    format!("failed: {}", SafeText::line(cause(error).lines().next().unwrap_or_default()))
                }
                (Some(false), None) => "failed".to_owned(),
                (None, _) => "runs".to_owned(),
            };
            out.push(line(&format!("{n}"), format!("{model}  {end}")));
        }
    }
    out
}

/// The paths that tools worked on, with the tools and how often; then what git says of the folder.
fn changes(step: &StepState, scene: &Scene<'_>, windows: &Windows) -> Vec<Line> {
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
    let mut out = vec![note("paths that its tools named", theme.accent())];
    if paths.is_empty() {
        out.push(note("  none yet", theme.dim()));
    }
    // What was done stands beside the paths, below each other.
    let longest = paths.keys().map(|path| path.chars().count()).max().unwrap_or(0).min(60);
    out.extend(paths.into_iter().map(|(path, tools)| {
        let tools: Vec<String> =
            tools.into_iter().map(|(tool, n)| if n == 1 { tool } else { format!("{tool} ×{n}") }).collect();
        let mark = if step.edited.contains(&path) { "± " } else { "  " };
        let path = piece(format!("{:<1$}", format!("{mark}{path}"), longest + 2), theme.plain());
        (vec![path, piece(tools.join(" "), theme.dim()).rank(1).gap(2)], Vec::new())
    }));
    out.push(note("", theme.plain()));
    let Some(diff) = windows.diff.as_ref().filter(|d| d.step == Some(step.id)) else {
        out.push(note("git is asked what changed in the folder …", theme.dim()));
        return out;
    };
    let head = vec![piece("changes in", theme.accent()), piece(diff.folder.to_string(), theme.accent()).gap(1)];
    let mut right = vec![piece("since the last commit, of everybody", theme.dim()).rank(1)];
    right.extend(diff.at.map(|at| piece(format!("as of {}", scene.time_of_day(at)), theme.dim()).rank(2).gap(2)));
    out.push((head, right));
    if let Some(why) = &diff.problem {
        out.push(note(&format!("  {why}"), theme.dim()));
        return out;
    }
    if diff.files.is_empty() {
        out.push(note("  none", theme.dim()));
    }
    let longest = diff.files.iter().map(|file| file.path.width()).max().unwrap_or(0).min(60);
    out.extend(diff.files.iter().map(|file| {
        let path = format!("{:<longest$}", file.path.as_str());
        let mut left = vec![piece(file.state.to_string(), theme.bold()), piece(path, theme.plain()).gap(1)];
        if let (Some(added), Some(removed)) = (file.added, file.removed) {
            left.push(piece(format!("+{added}"), theme.good()).gap(2));
            left.push(piece(format!("-{removed}"), theme.bad()).gap(1));
        }
        (left, Vec::new())
    }));
    if !diff.lines.is_empty() {
        out.push(note("", theme.plain()));
    }
    out.extend(diff.lines.iter().map(|line| {
        let style = match line.as_str().as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => theme.bold(),
            [b'+', ..] => theme.good(),
            [b'-', ..] => theme.bad(),
            [b'@', ..] => theme.accent(),
            _ => theme.plain(),
        };
        note(line.as_str(), style)
    }));
    out
}
