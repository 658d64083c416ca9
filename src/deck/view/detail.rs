//! The facts of a step above its output: state, tools, use, errors. As rows, so that the layout knows how many there
//! are before anything is drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::calls::{ended_pieces, open_pieces};
use super::meters::{
    is_warned, marked, meter_left, meter_style, meter_warning, metric_name, percent, share_style, window_text,
};
use super::paint::{Piece, bar, piece, put, put_cut, row};
use super::secrets::wrapped;
use super::{Scene, elapsed, lost_because};
use crate::deck::attention::{Attention, needs_person, needy_call, outlook};
use crate::deck::left::processes;
use crate::deck::model::UiState;
use crate::run::{
    Amount, Level, Limit, Metric, Notice, Reason, RunnerKind, Steerable, StepPhase, StepState, budget, cause,
    resume_command,
};
use crate::text::{SafeText, UNKNOWN, clock, cost, count, or_unknown, width};

/// One row of facts.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// State, agent, model, pid.
    State,
    /// The command line of a plain command.
    Command,
    /// An open tool call, by its place.
    Open(usize),
    /// It waits to try its provider again.
    Retry,
    /// A run that was started in it and goes on.
    Inner,
    /// Turns, tokens, money.
    Usage,
    /// How full the context window is.
    Window,
    /// Time used of the limit.
    Time,
    /// A limit with what was used of it.
    Meter(Metric),
    /// More open calls than there are rows.
    MoreOpen(usize),
    /// It is good to know.
    Note(usize),
    /// Why it needs a person.
    Attention,
    /// A further row of what it asks, by its place.
    Asked(usize),
    /// A line of its error.
    Error(SafeText),
    /// Why it is lost.
    Lost,
    /// A process of it that lives on, by its place among them.
    Left(usize),
    /// More of them than there are rows.
    MoreLeft(usize),
    /// What became of the newest message to it.
    Steering,
    /// It cannot be steered, and why.
    Deaf,
    /// How its agent goes on with its session by itself.
    Session(String),
    /// What its agent said that this version does not know.
    Unknown(String),
    /// A call that ended, by its place from the end.
    Ended(usize),
    /// A line of its newest message.
    Message(SafeText),
    /// Nothing.
    Gap,
}

/// Open calls that have a row of their own, and processes that live on.
const OPEN_ROWS: usize = 4;

/// The facts of a step, in the order of their rows, for a pane of this many cells; `left` of its processes live on.
#[must_use]
pub fn facts(step: &StepState, left: usize, width: usize, reveal: bool) -> Vec<Fact> {
    let mut rows = vec![Fact::State];
    if matches!(step.runner, RunnerKind::ExternalCli { .. }) {
        rows.push(Fact::Command);
    }
    if let Some(error) = &step.error {
        let lines =
            SafeText::block(&cause(error)).into_iter().flat_map(|l| wrapped(&l, width.saturating_sub(11), reveal));
        rows.extend(lines.take(3).map(Fact::Error));
    }
    if step.phase == StepPhase::Lost && step.error.is_none() {
        rows.push(Fact::Lost);
    }
    rows.extend((0..left.min(OPEN_ROWS)).map(Fact::Left));
    if left > OPEN_ROWS {
        rows.push(Fact::MoreLeft(left - OPEN_ROWS));
    }
    if let Some(attention) = needs_person(step) {
        rows.push(Fact::Attention);
        rows.extend((1..asked(&attention, width, reveal).len()).map(Fact::Asked));
    }
    // What is told of a step that goes on is not true any more of one that is lost.
    let goes_on = step.phase == StepPhase::Running;
    let quiet =
        |n: &Notice| goes_on && n.is_open() && n.level() != Level::Needs && n.condition.reason != Reason::Retrying;
    rows.extend(
        (0..step.attention.len()).filter(|i| step.attention.get(*i).is_some_and(quiet)).take(2).map(Fact::Note),
    );
    if step.phase == StepPhase::Running {
        // The call that it needs somebody for was told with the reason.
        let told = needy_call(step).map(|call| call.seq);
        let shown = step.open.iter().enumerate().take(OPEN_ROWS).filter(|(_, call)| Some(call.seq) != told);
        rows.extend(shown.map(|(at, _)| Fact::Open(at)));
        if step.open.len() > OPEN_ROWS {
            rows.push(Fact::MoreOpen(step.open.len() - OPEN_ROWS));
        }
        if step.retrying.is_some() {
            rows.push(Fact::Retry);
        }
        if step.waits_for().is_some() {
            rows.push(Fact::Inner);
        }
    }
    let plain = matches!(step.runner, RunnerKind::ExternalCli { .. });
    if step.phase != StepPhase::Pending && !plain {
        rows.push(Fact::Usage);
    }
    if step.window.share().is_some() {
        rows.push(Fact::Window);
    }
    if step.timeout_ms.is_some() && !step.phase.is_terminal() {
        rows.push(Fact::Time);
    }
    let limited = |metric: &Metric| budget::limit(&step.limits, *metric) != Limit::default();
    rows.extend(Metric::ALL.into_iter().filter(limited).map(Fact::Meter));
    if matches!(step.steerable, Steerable::No(_)) && step.phase == StepPhase::Running && !plain {
        rows.push(Fact::Deaf);
    }
    if !step.steering.recent.is_empty() {
        rows.push(Fact::Steering);
    }
    rows.extend(step.unknown.told().map(Fact::Unknown));
    if step.phase != StepPhase::Pending {
        rows.extend(resume_command(step).map(Fact::Session));
    }
    let ended = step.recent_tools.len().min(3);
    if ended > 0 {
        rows.push(Fact::Gap);
        rows.extend((0..ended).rev().map(Fact::Ended));
    }
    if let Some(message) = &step.last_message {
        let lines = SafeText::block(message).into_iter().filter(|l| !l.is_empty());
        let lines: Vec<SafeText> = lines.flat_map(|l| wrapped(&l, width.saturating_sub(4), reveal)).take(3).collect();
        if !lines.is_empty() {
            rows.push(Fact::Gap);
            rows.extend(lines.into_iter().map(Fact::Message));
        }
    }
    rows
}

/// Why a step needs a person, in as many rows as a question takes, behind the last of which the time stands: who is to
/// decide on something has to see what it is. It says when more is missing.
fn asked(attention: &Attention, width: usize, reveal: bool) -> Vec<SafeText> {
    let reason = SafeText::line(&attention.reason);
    if !attention.asks() || reason.width() + LABEL + TIME <= width {
        return vec![reason];
    }
    let room = width.saturating_sub(LABEL).max(10);
    let mut rows = wrapped(&reason, room, reveal);
    if rows.len() > ASKED_ROWS {
        rows.truncate(ASKED_ROWS);
        let last = rows.pop().map(|row| SafeText::line(&format!("{row}…")).truncate(room.saturating_sub(TIME)));
        rows.extend(last);
    }
    // The time may need a row of its own.
    if rows.last().is_some_and(|row| row.width() + TIME > room) {
        rows.push(SafeText::default());
    }
    rows
}

/// Rows that a question takes at most.
const ASKED_ROWS: usize = 3;
/// Cells of the name of a fact.
const LABEL: usize = 10;
/// Cells of the time that a question is open, or is still open for.
const TIME: usize = 20;

/// Draws one fact into its row.
pub fn fact(buf: &mut Buffer, area: Rect, dy: u16, fact: &Fact, step: &StepState, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let label = |buf: &mut Buffer, name: &str| put(buf, area, 0, dy, &format!("{name:<9}"), theme.dim());
    match fact {
        Fact::State => state_row(buf, area, dy, step, scene, ui),
        Fact::Command => {
            if let RunnerKind::ExternalCli { command, args } = &step.runner {
                label(buf, "runs");
                let text = SafeText::line(&format!("{command} {}", args.join(" ")));
                put_cut(buf, area, 10, dy, &text, area.width, theme.plain());
            }
        }
        Fact::Attention => {
            if let Some(attention) = needs_person(step) {
                label(buf, if scene.is_gone() { "needed" } else { "needs you" });
                let clock = attention.clock(scene.now);
                // How long there is still time is never cut.
                let room = area.width.saturating_sub(11 + u16::try_from(width(&clock)).unwrap_or(0));
                let rows = asked(&attention, usize::from(area.width), ui.reveal);
                if let [first, _, ..] = rows.as_slice() {
                    put_cut(buf, area, 10, dy, first, area.width, theme.bold());
                    return;
                }
                let dx = put_cut(buf, area, 10, dy, &SafeText::line(&attention.reason), room, theme.bold());
                let dx = put(buf, area, dx + 1, dy, &clock, theme.bold());
                let next = outlook(step).map(|next| SafeText::line(&format!("({next})")));
                let next = next.filter(|next| next.width() < usize::from(area.width.saturating_sub(dx)));
                if let Some(next) = next {
                    put(buf, area, dx + 1, dy, next.as_str(), theme.dim());
                }
            }
        }
        Fact::Asked(at) => {
            if let Some(attention) = needs_person(step) {
                let rows = asked(&attention, usize::from(area.width), ui.reveal);
                let text = rows.get(*at).cloned().unwrap_or_default();
                let dx = put_cut(buf, area, 10, dy, &text, area.width, theme.bold());
                if at + 1 == rows.len() {
                    let dx = dx + u16::from(!text.as_str().is_empty());
                    put(buf, area, dx, dy, &attention.clock(scene.now), theme.bold());
                }
            }
        }
        Fact::Open(at) => {
            if let Some(call) = step.open.get(*at) {
                label(buf, if *at == 0 { "tool" } else { "" });
                let (left, right) = open_pieces(call, usize::from(area.width.saturating_sub(10)), step, scene);
                row(buf, Rect { x: area.x + 10, width: area.width.saturating_sub(10), ..area }, dy, left, right);
            }
        }
        Fact::MoreOpen(more) => {
            put(buf, area, 10, dy, &format!("and {} open", many(*more as u64, "more call")), theme.dim());
        }
        Fact::Note(at) => {
            if let Some(notice) = step.attention.get(*at) {
                label(buf, "note");
                let condition = &notice.condition;
                // Its words are of the moment at which it was told.
                let text = match (condition.reason, condition.threshold) {
                    (Reason::TimeThreshold, Some(Amount::Millis(ms))) => {
                        let (ran, told) = (scene.now.since(condition.since), std::time::Duration::from_millis(ms));
                        SafeText::line(&format!("has run {}, longer than {}", clock(ran), clock(told)))
                    }
                    _ => SafeText::line(&condition.evidence),
                };
                put_cut(buf, area, 10, dy, &text, area.width, theme.dim());
            }
        }
        Fact::Meter(metric) => {
            let meters = budget::meters(scene.state, step, scene.now);
            if let Some(meter) = meters.iter().find(|m| m.metric == *metric) {
                label(buf, metric_name(*metric));
                let share = meter.used.map(|_| meter.share());
                let style = if step.phase.is_terminal() { theme.dim() } else { meter_style(meter, scene) };
                let dx = limit_row(buf, area, dy, &marked(meter), share, style, scene);
                let left = meter_left(meter).filter(|_| !scene.rests(step)).unwrap_or_default();
                let dx = put(buf, area, dx, dy, &left, theme.dim());
                let dx = if left.is_empty() { dx } else { dx + 2 };
                // Where it was warned is told where there is room, and that it was everywhere.
                let warned = is_warned(meter).then(|| "warned".to_owned());
                if let Some(warning) = meter_warning(meter).filter(|_| area.width >= ROOMY).or(warned) {
                    put(buf, area, dx, dy, &warning, theme.dim());
                }
            }
        }
        Fact::Retry => {
            label(buf, "retrying");
            let text = SafeText::line(&retry_text(step, scene));
            put_cut(buf, area, 10, dy, &text, area.width, theme.bad());
        }
        Fact::Inner => {
            label(buf, "waits for");
            let more = step.inner.len().saturating_sub(1);
            let more = if more == 0 { String::new() } else { format!(", and {more} more") };
            if let Some(run) = step.waits_for() {
                let does = if run.needs.is_some() { "needs you" } else { "goes on" };
                let text = SafeText::line(&format!("its inner run {}, which {does}{more}", run.title));
                put_cut(buf, area, 10, dy, &text, area.width, theme.plain());
            }
        }
        Fact::Usage => {
            label(buf, "used");
            let pieces = usage(step, theme.plain());
            row(buf, Rect { x: area.x + 10, width: area.width.saturating_sub(10), ..area }, dy, pieces, Vec::new());
        }
        Fact::Window => {
            if let Some((text, share)) = window_text(step) {
                label(buf, "context");
                let style = if step.phase.is_terminal() { theme.dim() } else { share_style(share, scene) };
                let dx = limit_row(buf, area, dy, &text, Some(share), style, scene);
                put(buf, area, dx, dy, &percent(share), theme.dim());
            }
        }
        Fact::Time => {
            if let (Some(limit), Some(used)) = (step.timeout_ms, step.elapsed(scene.now)) {
                let limit = std::time::Duration::from_millis(limit);
                let share = used.as_secs_f64() / limit.as_secs_f64().max(0.001);
                label(buf, "time");
                let text = format!("{} of {}", clock(used), clock(limit));
                let dx = limit_row(buf, area, dy, &text, Some(share), share_style(share, scene), scene);
                let left = limit.saturating_sub(used);
                if !scene.rests(step) {
                    put(buf, area, dx, dy, &format!("{} left", clock(left)), theme.dim());
                }
            }
        }
        Fact::Error(line) => {
            // What somebody asked for is no error.
            let asked = matches!(step.phase, StepPhase::Stopped | StepPhase::Paused);
            label(buf, if asked { "why" } else { "error" });
            put(buf, area, 10, dy, line.as_str(), if asked { theme.plain() } else { theme.bad() });
        }
        Fact::Lost => {
            label(buf, "error");
            put_cut(buf, area, 10, dy, &why_lost(scene), area.width.saturating_sub(10), theme.bad());
        }
        Fact::Left(at) => {
            if let Some(left) = ui.left.iter().filter(|left| left.step == step.id).nth(*at) {
                label(buf, if *at == 0 { "lives on" } else { "" });
                let text = SafeText::line(&format!("pid {}  {}", left.pid, left.command));
                put_cut(buf, area, 10, dy, &text, area.width.saturating_sub(10), theme.bold());
            }
        }
        Fact::MoreLeft(more) => {
            put(buf, area, 10, dy, &format!("and {} more", processes(*more)), theme.dim());
        }
        Fact::Deaf => {
            if let Steerable::No(why) = &step.steerable {
                label(buf, "steering");
                put_cut(buf, area, 10, dy, &SafeText::line(&format!("no: {why}")), area.width, theme.dim());
            }
        }
        Fact::Steering => {
            if let Some(request) = step.steering.recent.last() {
                label(buf, "steered");
                let state = request.targets.iter().find(|t| t.step == step.id).map_or("written", |t| t.state.as_str());
                let dx = put(buf, area, 10, dy, state, theme.bold());
                let text = SafeText::line(&request.preview);
                put_cut(buf, area, dx + 2, dy, &text, area.width, theme.plain());
            }
        }
        Fact::Session(command) => {
            label(buf, "session");
            put_cut(buf, area, 10, dy, &SafeText::line(command), area.width, theme.dim());
        }
        Fact::Unknown(told) => {
            label(buf, "unknown");
            put_cut(buf, area, 10, dy, &SafeText::line(told), area.width, theme.dim());
        }
        Fact::Ended(from_end) => {
            if let Some(call) = step.recent_tools.iter().rev().nth(*from_end) {
                let (left, right) = ended_pieces(call, usize::from(area.width), scene);
                row(buf, area, dy, left, right);
            }
        }
        Fact::Message(line) => {
            put(buf, area, 0, dy, "│", theme.accent());
            put(buf, area, 2, dy, line.as_str(), theme.plain());
        }
        Fact::Gap => {}
    }
}

/// Why a step is lost, with the time from which on nobody supervised it.
fn why_lost(scene: &Scene<'_>) -> SafeText {
    let state = scene.state;
    let since = state.last_update.map(|at| format!(" since {}", scene.time_of_day(at))).unwrap_or_default();
    match state.lost.as_deref() {
        Some(told) if lost_because(told) != told => SafeText::line(&format!("{told}{since}")),
        Some(told) => SafeText::line(told),
        None if state.is_over() => SafeText::line("the run ended and nothing tells how this step did"),
        None => SafeText::line("what became of it is not known"),
    }
}

fn state_row(buf: &mut Buffer, area: Rect, dy: u16, step: &StepState, scene: &Scene<'_>, ui: &UiState) {
    let theme = scene.theme;
    let face = super::face(step, scene, ui);
    let mut left = vec![piece(format!("{} {}", face.glyph, face.word), face.style)];
    left.push(piece(SafeText::line(&step.agent).to_string(), theme.plain()).gap(2));
    left.push(piece(runner(step), theme.dim()).rank(3).gap(2));
    if let Some(model) = &step.model {
        left.push(piece(SafeText::line(model).to_string(), theme.plain()).rank(4).gap(2));
    }
    if step.attempt() > 1 {
        left.push(piece(format!("attempt {}", step.attempt()), theme.bold()).rank(5).gap(2));
    }
    if let Some(pid) = step.pid.filter(|_| step.phase == StepPhase::Running) {
        left.push(piece(format!("pid {pid}"), theme.dim()).rank(2).gap(2));
    }
    let clock = vec![piece(elapsed(step, scene), theme.bold())];
    row(buf, area, dy, left, clock);
}

/// How its child is run, in a word.
#[must_use]
pub fn runner(step: &StepState) -> String {
    match &step.runner {
        RunnerKind::Pi => "pi".to_owned(),
        RunnerKind::PiJson => "pi, one prompt".to_owned(),
        RunnerKind::Demo => "demo".to_owned(),
        RunnerKind::Agent(agent) => agent.told(),
        RunnerKind::ExternalCli { command, .. } => {
            let name = command.rsplit('/').next().unwrap_or(command);
            SafeText::line(name).to_string()
        }
        RunnerKind::ExternalJob { provider } => format!("job of {}", SafeText::line(provider)),
        RunnerKind::Other(word) => SafeText::line(word).to_string(),
    }
}

/// What a step used, for a line of this style. What has a limit of its own row is told there.
fn usage(step: &StepState, style: Style) -> Vec<Piece> {
    let mut out = Vec::new();
    let tokens = step.tokens;
    if step.turn_count > 0 {
        out.push(piece(many(step.turn_count, "turn"), style).rank(5).gap(3));
    }
    if step.tool_count > 0 {
        out.push(piece(many(step.tool_count, "call"), style).rank(4).gap(3));
    }
    if tokens.is_zero() {
        out.push(piece(format!("{UNKNOWN} tok"), style).rank(6).gap(3));
    } else {
        let text = format!("in {}  out {}", count(tokens.input), count(tokens.output));
        out.push(piece(text, style).rank(6).gap(3));
        if tokens.cache_read > 0 {
            out.push(piece(format!("cache {}", count(tokens.cache_read)), style).rank(2).gap(2));
        }
    }
    out.push(piece(told_cost(step), style).rank(7).gap(3));
    out
}

/// What a step cost, as far as its agent tells.
pub(super) fn told_cost(step: &StepState) -> String {
    step.cost.map_or_else(|| format!("cost {UNKNOWN}"), |usd| cost(usd.0))
}

/// A number of things.
pub(super) fn many(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{} {what}s", crate::text::grouped(n)) }
}

/// From this width of a pane on there is room beside a bar for all that is to be said of a limit.
const ROOMY: u16 = 80;

/// Used of limit in digits and as a bar, which what is not known has none of; the bars of several rows begin and end in
/// the same columns. Returns where the figures beside it begin.
fn limit_row(
    buf: &mut Buffer,
    area: Rect,
    dy: u16,
    text: &str,
    share: Option<f64>,
    style: Style,
    scene: &Scene<'_>,
) -> u16 {
    let dx = put(buf, area, 10, dy, &format!("{text:<15}"), scene.theme.plain()) + 1;
    // The figures beside it keep their room.
    let beside = if area.width >= ROOMY { 30 } else { 19 };
    let cells = area.width.saturating_sub(dx + beside).min(48);
    if let Some(share) = share {
        put(buf, area, dx, dy, &bar(share, cells), style);
    }
    dx + cells + 2
}

fn retry_text(step: &StepState, scene: &Scene<'_>) -> String {
    let Some(retry) = &step.retrying else { return String::new() };
    let of = retry.max.map(|m| format!(" of {m}")).unwrap_or_default();
    let left = retry.until.map(|u| format!(" in {}", clock(u.since(scene.now)))).unwrap_or_default();
    format!("attempt {}{of}{left}: {}", or_unknown(retry.attempt.map(|a| a.to_string())), retry.reason)
}
