//! The tabs of a zoomed step that are read from their beginning: limits and use, and what changed.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::meters::{marked, meter_left, meter_style, meter_warning, metric_name, percent, share_style, window_text};
use super::paint::{Piece, bar, piece, put, put_cut, row};
use super::{Scene, marks, output, ticker, took};
use crate::deck::changes::{Diff, Opens};
use crate::deck::entries::Earlier;
use crate::deck::history::Entry;
use crate::deck::model::{Tab, UiState};
use crate::deck::sheet::Lines;
use crate::deck::window::Windows;
use crate::run::{Meter, Metric, StepState, cause};
use crate::text::{SafeText, UNKNOWN, clock, cost, count, grouped, or_unknown};

/// Cells at the left for the mark of the line that the keys are at.
const MARK: u16 = 2;

/// A line: what stands at its left and right end, and what it stands for.
struct Line {
    left: Vec<Piece>,
    right: Vec<Piece>,
    opens: Opens,
}

impl Line {
    const fn new(left: Vec<Piece>, right: Vec<Piece>) -> Self {
        Self { left, right, opens: Opens::Nothing }
    }

    fn opens(mut self, what: Opens) -> Self {
        self.opens = what;
        self
    }
}

/// What such a tab shows: lines of ours, and below them those of a difference. Of a long one only what is visible is laid
/// out.
struct Sheet<'a> {
    head: Vec<Line>,
    diff: Option<&'a Diff>,
}

impl Sheet<'_> {
    fn len(&self) -> usize {
        self.head.len() + self.diff.map_or(0, |diff| diff.lines.len())
    }

    /// The line of the difference that stands at a place of the sheet.
    fn in_diff(&self, at: usize) -> Option<(&Diff, usize)> {
        Some((self.diff?, at.checked_sub(self.head.len())?))
    }

    fn opens(&self, at: usize) -> Opens {
        if let Some(line) = self.head.get(at) {
            return line.opens.clone();
        }
        let file = self.in_diff(at).and_then(|(diff, at)| diff.file_at(at));
        file.map_or(Opens::Nothing, |file| Opens::File(file.path.clone()))
    }

    fn draw(&self, buf: &mut Buffer, area: Rect, dy: u16, at: usize, scene: &Scene<'_>) {
        if let Some(line) = self.head.get(at) {
            row(buf, area, dy, line.left.clone(), line.right.clone());
        } else if let Some(line) = self.in_diff(at).and_then(|(diff, at)| diff.lines.get(at)) {
            put_cut(buf, area, 0, dy, line, area.width, difference(line, scene));
        }
    }
}

/// How a line of a difference looks.
pub(super) fn difference(line: &SafeText, scene: &Scene<'_>) -> Style {
    let theme = scene.theme;
    match line.as_str().as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => theme.bold(),
        [b'+', ..] => theme.good(),
        [b'-', ..] => theme.bad(),
        [b'@', ..] => theme.accent(),
        _ => theme.plain(),
    }
}

/// Draws one of the tabs that are read from their beginning.
pub(super) fn draw(buf: &mut Buffer, area: Rect, step: &StepState, scene: &Scene<'_>, ui: &UiState, windows: &Windows) {
    let tab = ui.tab(step.id);
    let inner = Rect { x: area.x + MARK, width: area.width.saturating_sub(MARK), ..area };
    let sheet = sheet(tab, step, scene, windows, usize::from(inner.width));
    let Lines { at, top } = lines_of(step, ui);
    let needle = ui.needle();
    let found = ui.match_in(step.id, tab).and_then(|line| usize::try_from(line).ok());
    for (line, dy) in (top..sheet.len()).zip(0_u16..area.height) {
        if line == at {
            put(buf, area, 0, dy, "›", scene.theme.select());
        }
        sheet.draw(buf, inner, dy, line, scene);
        if let Some(needle) = &needle {
            let row = Rect { y: inner.y + dy, height: 1, ..inner };
            marks::matches(buf, row, needle, found == Some(line) && line == at, scene);
        }
    }
}

/// Where such a tab is looked at.
pub(super) fn lines_of(step: &StepState, ui: &UiState) -> Lines {
    ui.panes.get(&step.id).and_then(|pane| pane.lines.get(&pane.tab)).copied().unwrap_or_default()
}

/// Keeps what was scrolled within what there is, with the keys in sight. Says what the line stands for that they are at.
pub(super) fn limit(ui: &mut UiState, area: Rect, step: &StepState, scene: &Scene<'_>, windows: &Windows) -> Opens {
    let tab = ui.tab(step.id);
    let sheet = sheet(tab, step, scene, windows, usize::from(area.width));
    if lines_of(step, ui) != Lines::default() {
        let lines = ui.pane_mut(step.id).lines.entry(tab).or_default();
        lines.keep_within(sheet.len(), usize::from(area.height));
    }
    sheet.opens(lines_of(step, ui).at)
}

/// What the line stands for that the keys are at.
pub(super) fn opens(step: &StepState, scene: &Scene<'_>, ui: &UiState, windows: &Windows, width: usize) -> Opens {
    sheet(ui.tab(step.id), step, scene, windows, width).opens(lines_of(step, ui).at)
}

/// Where the keys are and what there is, for the frame.
pub(super) fn whereabouts(
    area: Rect,
    step: &StepState,
    scene: &Scene<'_>,
    ui: &UiState,
    windows: &Windows,
) -> Vec<Piece> {
    let tab = ui.tab(step.id);
    let count = sheet(tab, step, scene, windows, usize::from(area.width)).len();
    let Lines { at, top } = lines_of(step, ui);
    let mut out: Vec<Piece> = output::matches(step, tab, count as u64, ui, scene);
    let below = count.saturating_sub(top + usize::from(area.height));
    if below > 0 {
        out.push(piece(format!("{} below", grouped(below as u64)), scene.theme.dim()).rank(3).gap(2));
    }
    let text = format!("line {} of {}", grouped(at.min(count.saturating_sub(1)) as u64 + 1), grouped(count as u64));
    out.push(piece(text, scene.theme.plain()).gap(2));
    out
}

fn sheet<'a>(tab: Tab, step: &StepState, scene: &Scene<'_>, windows: &'a Windows, width: usize) -> Sheet<'a> {
    match tab {
        Tab::Budget => Sheet { head: budget(step, scene, width), diff: None },
        Tab::Changes => {
            let diff = windows.diff.as_deref().filter(|d| d.step == Some(step.id));
            Sheet { head: changes(step, scene, diff), diff: diff.filter(|diff| diff.problem.is_none()) }
        }
        _ => Sheet { head: Vec::new(), diff: None },
    }
}

/// The lines of one of these tabs as text.
pub(super) fn text(tab: Tab, step: &StepState, scene: &Scene<'_>, windows: &Windows, width: usize) -> Vec<SafeText> {
    let of = |pieces: &[Piece]| pieces.iter().map(Piece::spaced).collect::<String>();
    let sheet = sheet(tab, step, scene, windows, width);
    let head = sheet.head.iter().map(|line| {
        let gap = if line.right.is_empty() { "" } else { "  " };
        SafeText::line(format!("{}{gap}{}", of(&line.left), of(&line.right)).trim_end())
    });
    head.chain(sheet.diff.into_iter().flat_map(|diff| diff.lines.iter().cloned())).collect()
}

fn note(text: &str, style: Style) -> Line {
    Line::new(vec![piece(text, style)], Vec::new())
}

fn budget(step: &StepState, scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let theme = scene.theme;
    let line = |name: &str, value: String| -> Line {
        Line::new(vec![piece(format!("{name:<12}"), theme.dim()), piece(value, theme.plain())], Vec::new())
    };
    // Where there is room for one of them only, words say more than a bar.
    let most = match width {
        110.. => width.saturating_sub(62).clamp(6, 60),
        // Beside the warning.
        60.. => width.saturating_sub(62).clamp(6, 16),
        _ => 0,
    };
    let cells = u16::try_from(most).unwrap_or(24);
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
        row.left.push(piece(bar, style).gap(1));
        row.left.push(piece(format!("{:<13}", left.unwrap_or_default()), theme.dim()).rank(2).gap(2));
        row.left.extend(warning.map(|text| piece(text, theme.dim()).rank(1).gap(1)));
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
            let left = (!scene.rests(step)).then(|| format!("{} left", clock(limit.saturating_sub(used))));
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
    out.push(metered("calls", Metric::ToolCalls, grouped(step.tool_count)));
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
    out.push(note(&format!("            {kinds}"), theme.dim()));
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
            Line::new(vec![time, piece(format!("{whose}{text}"), style)], Vec::new()).opens(Opens::Event(entry.seq))
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
fn changes(step: &StepState, scene: &Scene<'_>, diff: Option<&Diff>) -> Vec<Line> {
    let theme = scene.theme;
    let mut paths: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for (path, tool, times) in scene.entries().touched(step) {
        let tools = paths.entry(SafeText::line(path).to_string()).or_default();
        *tools.entry(SafeText::line(tool).truncate(16).to_string()).or_default() += times;
    }
    let mut head = note("paths", theme.accent());
    head.left.push(piece("that its tools named", theme.accent()).rank(2).gap(1));
    let rest = match (scene.entries().earlier(step, Tab::Tools), scene.older.reading()) {
        (Earlier::None | Earlier::Listed, _) => None,
        (Earlier::Unread, Some(done)) => Some(format!("reading earlier ones {done}%")),
        (Earlier::Unread, None) => Some("reading earlier ones".to_owned()),
        (Earlier::Unlisted, _) => Some("earlier ones are in the files only".to_owned()),
    };
    if let Some(rest) = rest {
        let kept = step.recent_tools.len() + step.open.len();
        head.left.push(piece(format!("in its newest {} calls", grouped(kept as u64)), theme.dim()).rank(1).gap(1));
        // That it is not all of them is said before anything else.
        head.right.push(piece(rest, theme.accent()).rank(3));
    }
    let mut out = vec![head];
    if paths.is_empty() {
        out.push(note("  none yet", theme.dim()));
    }
    // What was done stands beside the paths, below each other.
    let longest = paths.keys().map(|path| path.chars().count()).max().unwrap_or(0).min(60);
    out.extend(paths.into_iter().map(|(path, tools)| {
        let tools: Vec<String> =
            tools.into_iter().map(|(tool, n)| if n == 1 { tool } else { format!("{tool} ×{n}") }).collect();
        let mark = if step.edited.contains(&path) { "± " } else { "  " };
        let shown = piece(format!("{:<1$}", format!("{mark}{path}"), longest + 2), theme.plain());
        let tools = piece(tools.join(", "), theme.dim()).rank(1).gap(2);
        Line::new(vec![shown, tools], Vec::new()).opens(Opens::File(SafeText::line(&path)))
    }));
    out.push(note("", theme.plain()));
    let Some(diff) = diff else {
        out.push(note("asking git what changed in the folder …", theme.dim()));
        return out;
    };
    let head = vec![piece("changes in", theme.accent()), piece(diff.folder.to_string(), theme.accent()).gap(1)];
    let mut right = vec![piece("since the last commit, by anybody", theme.dim()).rank(1)];
    right.extend(diff.at.map(|at| piece(format!("as of {}", scene.time_of_day(at)), theme.dim()).rank(2).gap(2)));
    out.push(Line::new(head, right));
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
        // Git's mark for what it does not know yet is no word.
        let state = if file.state.as_str() == "??" { "new" } else { file.state.as_str() };
        let mut left = vec![piece(format!("{state:<3}"), theme.bold()), piece(path, theme.plain()).gap(1)];
        if let (Some(added), Some(removed)) = (file.added, file.removed) {
            left.push(piece(format!("+{added}"), theme.good()).gap(2));
            left.push(piece(format!("-{removed}"), theme.bad()).gap(1));
        }
        Line::new(left, Vec::new()).opens(Opens::File(file.path.clone()))
    }));
    if !diff.lines.is_empty() {
        out.push(note("", theme.plain()));
    }
    out
}
