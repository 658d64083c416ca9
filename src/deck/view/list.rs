//! The list of steps: one row each, never re-sorted.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::detail::many;
use super::layout::{Shape, list_top};
use super::paint::{Edge, frame, piece, put, put_cut, put_line, put_right};
use super::sub_row::{self, Place};
use super::{INTERRUPTED, Scene, elapsed, last_seen, now_text, took};
use crate::deck::left::processes;
use crate::deck::model::{Focus, UiState};
use crate::deck::rows::{self, Row};
use crate::deck::sums::Sums;
use crate::run::{Group, RunState, StepFace, StepState, cost_of, or_more};
use crate::text::{SafeText, UNKNOWN, count, or_unknown, width};

/// Rows below the list for what is true of the whole run: a rule with a name, and a row each.
pub(super) const TOTALS: u16 = 5;

/// A message was begun for the step and not sent.
pub(super) const DRAFT: &str = "✎";

/// Draws the list.
pub(super) fn draw(buf: &mut Buffer, area: Rect, shape: Shape, scene: &Scene<'_>, ui: &UiState) {
    if area.is_empty() {
        return;
    }
    let theme = scene.theme;
    let state = scene.state;
    let rows = rows::listed(ui, state);
    let height = usize::from(area.height.saturating_sub(2));
    let selected = rows.place(ui.selected).unwrap_or(0);
    let top = list_top(selected, rows.len(), height);
    let found = rows::found(ui, state, rows.len());
    let told = whereabouts(ui, state.steps.len(), rows.len(), found, (top, height));
    let inner = if shape == Shape::Narrow {
        let rule = "─".repeat(usize::from(area.width));
        put(buf, area, 0, 0, &rule, theme.dim());
        put(buf, area, 0, area.height - 1, &rule, theme.dim());
        // Without a frame only what is not to be seen otherwise is told: that there is more, or why there is less.
        if ui.filter.is_some() || rows.len() > height {
            put_right(buf, area, area.width - 1, 0, &format!(" {told} "), theme.dim());
        }
        Rect { y: area.y + 1, height: area.height.saturating_sub(2), ..area }
    } else {
        let edge = Edge::focused(ui.focus == Focus::Steps);
        frame(buf, area, theme, edge, vec![piece("steps", theme.bold())], vec![piece(told, theme.dim())])
    };
    if rows.is_empty() {
        let text = if state.steps.is_empty() { "no steps yet" } else { "no step has these words" };
        put(buf, inner, 2, 0, text, theme.dim());
        return;
    }
    let lines = rows::shown(ui, &rows, top, height);
    let more = !ui.folded.is_empty() || lines.iter().any(|row| rows::hidden_agents(&lines, row.step()) > 0);
    let columns = Columns::of(scene, &ui.sums(state), inner.width, shape, more);
    for (line, dy) in lines.iter().zip(0_u16..) {
        let step = line.step();
        // What lies between the rows of a filtered list is not shown, so nothing is tied together there.
        let filtered = ui.filter.is_some();
        let folded = if filtered { None } else { rows::folded(ui, state, step) };
        let tie = match folded {
            Some(_) => "▸",
            None if filtered => " ",
            None => bracket(step, state),
        };
        if let Row::Sub(_, agent) = line {
            // What ties its step to the one below goes on beside it.
            put(buf, inner, 1, dy, if matches!(tie, "┌" | "│") { "│" } else { " " }, theme.dim());
            sub_row::draw(buf, inner, dy, columns.sub(), scene, agent);
            continue;
        }
        let hidden = rows::hidden_agents(&lines, step);
        let row = ListRow { tie, step, folded, hidden, selected: step.id == ui.selected };
        row.draw(buf, inner, dy, &columns, scene, ui);
    }
    let spare = height.saturating_sub(lines.len());
    if shape == Shape::Wide && spare >= usize::from(TOTALS) {
        let below = Rect { y: inner.bottom() - TOTALS, height: TOTALS, ..inner };
        totals(buf, below, scene, &ui.sums(state));
    }
}

/// What the list shows of what there is.
fn whereabouts(ui: &UiState, steps: usize, rows: usize, found: usize, (top, height): (usize, usize)) -> String {
    match &ui.filter {
        Some(words) if found == 0 => format!("& {}: none of {steps}", SafeText::line(words).truncate(24)),
        Some(words) => format!("& {}: {found} of {steps}", SafeText::line(words).truncate(24)),
        None if rows > height => format!("rows {}-{} of {rows}", top + 1, top + height),
        None if steps == 0 => String::new(),
        None => many(steps as u64, "step"),
    }
}

/// What is true of the whole run, where the list leaves room for it.
fn totals(buf: &mut Buffer, area: Rect, scene: &Scene<'_>, sums: &Sums) {
    let theme = scene.theme;
    let state = scene.state;
    let started = or_unknown(state.started_at.map(|at| scene.time_of_day(at)));
    let folder = if state.cwd.is_empty() { UNKNOWN } else { state.cwd.as_str() };
    let mut lines = vec![("folder", SafeText::line(folder)), ("started", SafeText::line(&started))];
    // Plain commands have no turns and no tokens.
    if !sums.plain {
        let tokens = sums.tokens;
        let used = if tokens.is_zero() {
            UNKNOWN.to_owned()
        } else {
            let more = or_more(sums.tokens_more);
            format!("in {}{more}  out {}{more}", count(tokens.input), count(tokens.output))
        };
        let (turns, calls) =
            (at_least(sums.turns, sums.turns_more, "turn"), at_least(sums.tools, sums.tools_more, "call"));
        lines.push(("work", SafeText::line(&format!("{turns}  {calls}"))));
        lines.push(("tokens", SafeText::line(&used)));
    }
    // As many rows at the bottom as there are facts.
    let high = u16::try_from(lines.len()).unwrap_or(4);
    let area = Rect { y: area.bottom().saturating_sub(high + 1), height: high + 1, ..area };
    let dx = put(buf, area, 1, 0, "── the run ", theme.dim());
    put(buf, area, dx, 0, &"─".repeat(usize::from(area.width.saturating_sub(dx + 1))), theme.dim());
    let area = Rect { y: area.y + 1, height: high, ..area };
    for ((name, value), dy) in lines.iter().zip(0_u16..area.height) {
        put(buf, area, 4, dy, name, theme.dim());
        let room = usize::from(area.width.saturating_sub(14));
        put(buf, area, 13, dy, value.truncate_start(room).as_str(), theme.dim());
    }
}

/// A number of things of which some may not be told.
fn at_least(n: u64, more: bool, what: &str) -> String {
    if more { format!("{}+ {what}s", crate::text::grouped(n)) } else { many(n, what) }
}

pub(super) struct Columns {
    number: u16,
    name: u16,
    /// 0 leaves the word of the state out.
    word: u16,
    /// 0 leaves the model out.
    model: u16,
    /// 0 leaves the cost out.
    cost: u16,
    /// Cells behind the times for what says that they are at least that; 0 where none is.
    more: u16,
}

impl Columns {
    pub(super) fn of(scene: &Scene<'_>, sums: &Sums, width: u16, shape: Shape, more: bool) -> Self {
        let steps = &scene.state.steps;
        // What a step does is worth more than the end of a long name.
        let share = usize::from(width * 3 / 10).max(14);
        // Of a folded group, and of sub-agents without lines, the row says how many more there are.
        let longest = sums.longest_title.min(share) + if more { 4 } else { 0 };
        let number = u16::try_from(steps.len().to_string().len()).unwrap_or(3);
        let word = sums.faces.iter().map(|face| last_seen(*face, scene).word.len()).max().unwrap_or(0).max(9);
        let word = if shape == Shape::Narrow { 0 } else { u16::try_from(word).unwrap_or(11) };
        let cost = if width >= 90 && sums.cost.is_some() { 7 } else { 0 };
        // A column that says something of one of many only takes room: the pane of that one says it too.
        let told = sums.models > 1 || sums.models == steps.len();
        let model = if width >= 90 && told { u16::try_from(sums.longest_model.min(16)).unwrap_or(16) } else { 0 };
        // Their digits stand below each other, with or without the sign.
        let more = u16::from(sums.faces.contains(&StepFace::Lost));
        Self { number, name: u16::try_from(longest.min(share)).unwrap_or(10), word, model, cost, more }
    }

    /// Where the parts of a sub-agent's row stand.
    pub(super) const fn sub(&self) -> Place {
        Place { name_at: 6 + self.number, name: self.name, word: self.word, more: self.more }
    }
}

/// A step, or the group that it stands for.
pub(super) struct ListRow<'a> {
    /// What ties it to the rows above and below.
    pub tie: &'static str,
    /// The step.
    pub step: &'a StepState,
    /// The group that it stands for.
    pub folded: Option<&'a Group>,
    /// So many of its sub-agents have no line.
    pub hidden: usize,
    /// Whether the keys are at it.
    pub selected: bool,
}

impl ListRow<'_> {
    pub(super) fn draw(
        &self,
        buf: &mut Buffer,
        area: Rect,
        dy: u16,
        columns: &Columns,
        scene: &Scene<'_>,
        ui: &UiState,
    ) {
        let Self { tie, step, folded, hidden, selected } = *self;
        let members = folded.map(|group| rows::members(scene.state, group)).unwrap_or_default();
        let theme = scene.theme;
        let state = members
            .iter()
            .map(|s| scene.state.face(s))
            .max_by_key(|face| loudness(*face))
            .unwrap_or(scene.state.face(step));
        let face = if members.is_empty() { super::face(step, scene, ui) } else { last_seen(state, scene) };
        let resting = matches!(state, StepFace::Queued | StepFace::Skipped);
        let body = match (selected, resting) {
            (true, _) => theme.bold(),
            (false, true) => theme.dim(),
            _ => theme.plain(),
        };
        if selected {
            put(buf, area, 0, dy, "›", theme.select());
        }
        put(buf, area, 1, dy, tie, if folded.is_some() { theme.accent() } else { theme.dim() });
        let mut dx = 3 + columns.number;
        put_right(buf, area, dx, dy, &step.id.to_string(), if selected { theme.select() } else { theme.dim() });
        dx += 1;
        if columns.word == 0 {
            put(buf, area, dx, dy, face.glyph, face.style);
            dx += 2;
        }
        let more = match members.len() {
            0 if hidden > 0 => format!(" +{hidden}"),
            0 => String::new(),
            n => format!(" +{}", n - 1),
        };
        // How many more there are is never crowded out by a name.
        let room = columns.name.saturating_sub(u16::try_from(more.len()).unwrap_or(4));
        let after = put_line(buf, area, dx, dy, step.title(), room, body);
        let after = put(buf, area, after, dy, &more, body);
        let drafted = ui.has_draft(step.id) || members.iter().any(|member| ui.has_draft(member.id));
        if drafted {
            // Behind the longest name there is a cell before what the step does.
            put(buf, area, (after + 1).min(dx + columns.name), dy, DRAFT, theme.accent());
        }
        dx += columns.name + 2;
        if columns.word > 0 {
            let after = put(buf, area, dx, dy, face.glyph, face.style);
            put(buf, area, after, dy, " ", Style::new());
            put(buf, area, after + 1, dy, face.word, face.style);
            dx += columns.word + 4;
        }
        // Of a group the longest time and the whole cost.
        let longest = members.iter().max_by_key(|s| took(s, scene.now)).unwrap_or(step);
        let clock = elapsed(longest, scene);
        let end = area.width.saturating_sub(1 + columns.more);
        let quiet = if step.phase.is_terminal() || resting { theme.dim() } else { theme.plain() };
        let (digits, more) = clock.strip_suffix('+').map_or((clock.as_str(), ""), |digits| (digits, "+"));
        let style = if selected { theme.bold() } else { quiet };
        put_right(buf, area, end, dy, digits, style);
        put(buf, area, end, dy, more, style);
        // Beside a column of money longer times keep the gap, too.
        let least = if columns.cost > 0 { 6 } else { 5 };
        let mut room_end = end.saturating_sub(u16::try_from(digits.chars().count()).unwrap_or(8).max(least) + 1);
        if columns.cost > 0 {
            let sum = if members.is_empty() { step.cost.map(|usd| (usd.0, false)) } else { cost_of(members) };
            let cost = or_unknown(sum.map(|(usd, partial)| format!("{}{}", crate::text::cost(usd), or_more(partial))));
            put_right(buf, area, room_end, dy, &cost, quiet);
            room_end = room_end.saturating_sub(columns.cost + 1);
        }
        if columns.model > 0 {
            match step.model.as_deref() {
                Some(model) => put_line(buf, area, dx, dy, model, columns.model, theme.dim()),
                None => put(buf, area, dx, dy, UNKNOWN, theme.dim()),
            };
            dx += columns.model + 2;
        }
        let failed = matches!(state, StepFace::Failed | StepFace::TimedOut | StepFace::OverBudget | StepFace::Lost);
        let style = match state {
            StepFace::Running | StepFace::Attention | StepFace::Stopping => theme.plain(),
            _ if failed => theme.bad(),
            _ => theme.dim(),
        };
        let left = ui.left_of(step.id);
        let now = match members {
            [] if left > 0 => live_on(left, room_end.saturating_sub(dx)).into(),
            [] => now_text(scene.state, &ui.sums(scene.state), step, scene.now),
            _ => counts(members, scene, ui).into(),
        };
        let room = room_end.saturating_sub(dx);
        let path = step.current_call().filter(|_| members.is_empty()).and_then(|call| call.path.as_deref());
        let Some(path) = path else {
            // What comes next is worth more than what the sign says too.
            let fits = |text: &str| width(text) <= usize::from(room);
            let short = now.strip_prefix(INTERRUPTED).filter(|_| !fits(&now));
            let short = short.map(|next| next.strip_prefix("its ").filter(|_| !fits(next)).unwrap_or(next));
            put_line(buf, area, dx, dy, short.unwrap_or(&now), room, style);
            return;
        };
        let now = SafeText::line(&now);
        match now.as_str().split_once(path).filter(|_| now.width() > usize::from(room)) {
            // Of a path the end is kept, which is the name of the file.
            Some((before, _)) => {
                let from = put(buf, area, dx, dy, before, style);
                let rest = SafeText::line(now.as_str().get(before.len()..).unwrap_or_default());
                let rest = rest.truncate_start(usize::from(room.saturating_sub(from - dx)));
                put(buf, area, from, dy, rest.as_str(), style);
            }
            None => drop(put_cut(buf, area, dx, dy, &now, room, style)),
        }
    }
}

/// How much a state of one member matters for the row of its group.
pub(super) const fn loudness(face: StepFace) -> u8 {
    match face {
        StepFace::Succeeded => 0,
        StepFace::Skipped => 1,
        StepFace::Queued => 2,
        StepFace::Unknown => 3,
        StepFace::Paused => 4,
        StepFace::Stopped => 5,
        StepFace::Starting => 6,
        StepFace::Running => 7,
        StepFace::Lost => 8,
        StepFace::OverBudget => 9,
        StepFace::TimedOut => 10,
        StepFace::Failed => 11,
        StepFace::Stopping => 12,
        StepFace::Attention => 13,
    }
}

/// That so many processes live on, in words that fit.
fn live_on(count: usize, room: u16) -> String {
    let verb = if count == 1 { "lives" } else { "live" };
    let whole = format!("▲ {} {verb} on", processes(count));
    if whole.chars().count() <= usize::from(room) { whole } else { format!("▲ {count} {verb} on") }
}

/// How many members of a group are in which state, the loudest first.
fn counts(members: &[StepState], scene: &Scene<'_>, ui: &UiState) -> String {
    let mut faces: Vec<(u8, &str)> =
        members.iter().map(|s| scene.state.face(s)).map(|f| (loudness(f), last_seen(f, scene).word)).collect();
    faces.sort_unstable_by(|a, b| b.cmp(a));
    // Where all stand alike the row says how already.
    if let [first, .., last] = faces.as_slice()
        && first == last
        && first.0 != loudness(StepFace::Attention)
    {
        return many(members.len() as u64, "step");
    }
    // Who needs somebody is named, and what he does.
    let needs = members.iter().find(|s| scene.state.face(s) == StepFace::Attention);
    let named = needs.map(|step| {
        faces.remove(0);
        format!("{} {}: {}", step.id, step.title(), now_text(scene.state, &ui.sums(scene.state), step, scene.now))
    });
    let counted = faces.chunk_by(|a, b| a == b).filter_map(|same| Some(format!("{} {}", same.len(), same.first()?.1)));
    let told: Vec<String> = named.into_iter().chain(counted).collect();
    told.join(", ")
}

/// What ties the members of a parallel group together.
fn bracket(step: &StepState, state: &RunState) -> &'static str {
    let Some(group) = rows::group_of(state, step) else { return " " };
    let members = rows::members(state, group);
    if members.first().is_some_and(|s| s.id == step.id) {
        "┌"
    } else if members.last().is_some_and(|s| s.id == step.id) {
        "└"
    } else {
        "│"
    }
}
