//! The table of the steps, each with its part of the time that the run took and signs for what happened in it.

use std::collections::BTreeMap;

use super::Report;
use super::html::{class_of, text, took};
use crate::deck::history::Tone;
use crate::run::{StepId, StepState, Timestamp};
use crate::text::{clock, cost, count, or_unknown};

/// The timeline is cut into this many places; each shows the weightiest sign that falls on it, so that a step with more
/// calls than a screen has columns makes no larger document.
const PLACES: u16 = 1000;

/// What a sign stands for, the weightiest last. Each has a shape of its own, so that no colour is needed to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// A call of a tool began.
    Call,
    /// A request, an answer, what somebody was told.
    Control,
    /// A call failed, or something else went wrong.
    Bad,
}

impl Sign {
    const ALL: [Self; 3] = [Self::Call, Self::Control, Self::Bad];

    const fn class(self) -> &'static str {
        match self {
            Self::Call => "t",
            Self::Control => "c",
            Self::Bad => "c x",
        }
    }

    const fn legend(self) -> &'static str {
        match self {
            Self::Call => "a tool call begins",
            Self::Control => "a request, or what somebody was told",
            Self::Bad => "something fails or needs somebody",
        }
    }
}

/// The signs of a step by their places: what each is, when, and its words.
type Lane = BTreeMap<u16, (Sign, Timestamp, String)>;

/// From when to when the timeline goes, in milliseconds.
struct Frame {
    start: i64,
    len: i64,
}

impl Frame {
    fn of(report: &Report) -> Self {
        let state = &report.state;
        let start = state.started_at.unwrap_or_default().millis();
        let end = [state.ended_at, state.last_update].into_iter().flatten().max().unwrap_or_default().millis();
        Self { start, len: (end - start).max(1) }
    }

    /// How far a moment is along the timeline, in per cent.
    fn at(&self, moment: Timestamp) -> f64 {
        ((moment.millis() - self.start) as f64 * 100.0 / self.len as f64).clamp(0.0, 100.0)
    }

    fn place(&self, moment: Timestamp) -> u16 {
        (self.at(moment) * f64::from(PLACES) / 100.0) as u16
    }

    /// How long after the start of the run that is.
    fn after(&self, moment: Timestamp) -> String {
        clock(moment.since(Timestamp::from_millis(self.start)))
    }
}

/// Writes the table.
pub(super) fn write(page: &mut String, report: &Report) {
    let frame = Frame::of(report);
    let lanes = lanes(report, &frame);
    page.push_str("<section id=\"steps\">\n<h2>timeline</h2>\n");
    legend(page, &lanes);
    page.push_str(&format!(
        "<div class=\"wide\"><table>\n<thead><tr><th>#</th><th>step</th><th>state</th><th>took</th><th>turns</th><th>tools</th>\
         <th>tokens</th><th>cost</th><th class=\"lane\"><div class=\"ends\"><span>0:00</span><span>{}</span></div></th></tr></thead>\n<tbody>\n",
        text(&clock(Timestamp::from_millis(frame.start + frame.len).since(Timestamp::from_millis(frame.start)))),
    ));
    for step in &report.state.steps {
        row(page, report, step, &frame, lanes.get(&step.id));
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
}

fn lanes(report: &Report, frame: &Frame) -> BTreeMap<StepId, Lane> {
    let mut lanes: BTreeMap<StepId, Lane> = BTreeMap::new();
    let mut note = |step: StepId, sign: Sign, at: Timestamp, words: &str| {
        let lane = lanes.entry(step).or_default();
        let place = frame.place(at);
        if lane.get(&place).is_none_or(|(known, ..)| *known < sign) {
            lane.insert(place, (sign, at, words.to_owned()));
        }
    };
    for call in &report.calls {
        note(call.step, Sign::Call, call.started, &call.tool);
    }
    for entry in &report.story {
        let sign = match entry.tone {
            Tone::Bad => Sign::Bad,
            Tone::Control | Tone::Told => Sign::Control,
            _ => continue,
        };
        if let Some(step) = entry.step {
            note(step, sign, entry.at, entry.text.as_str());
        }
    }
    lanes
}

/// What the signs mean that are there.
fn legend(page: &mut String, lanes: &BTreeMap<StepId, Lane>) {
    let there = |sign: &Sign| lanes.values().flat_map(BTreeMap::values).any(|(known, ..)| known == sign);
    let signs: Vec<Sign> = Sign::ALL.into_iter().filter(there).collect();
    if signs.is_empty() {
        return;
    }
    page.push_str("<p class=\"legend\">");
    for sign in signs {
        page.push_str(&format!("<span><i class=\"{}\"></i> {}</span>", sign.class(), sign.legend()));
    }
    page.push_str("</p>\n");
}

fn row(page: &mut String, report: &Report, step: &StepState, frame: &Frame, lane: Option<&Lane>) {
    let state = &report.state;
    let class = class_of(state.face(step));
    let to = step.ended_at.or(state.last_update).map_or(100.0, |at| frame.at(at));
    let bar = step.started_at.map(|at| frame.at(at)).map(|from| {
        format!("<i class=\"b {class}\" style=\"left:{from:.2}%;width:{:.2}%\"></i>", (to - from).max(0.2))
    });
    let tokens = Some(step.tokens).filter(|t| !t.is_zero()).map(|t| count(t.total()));
    let model = step.model.as_deref().map(|m| format!(" <span class=\"dim\">{}</span>", text(m)));
    page.push_str(&format!(
        "<tr><td>{id}</td><td><a href=\"#s{id}\">{}</a>{}</td><td class=\"{class}\">{}</td><td>{}</td><td>{}</td><td>{}</td>\
         <td>{}</td><td>{}</td><td class=\"lane\"><div>{}",
        text(step.title()),
        model.unwrap_or_default(),
        text(state.face(step).word()),
        text(&or_unknown(took(step))),
        step.turn_count,
        step.tool_count,
        text(&or_unknown(tokens)),
        text(&or_unknown(step.cost.map(|c| cost(c.0)))),
        bar.unwrap_or_default(),
        id = step.id.number(),
    ));
    for (sign, at, words) in lane.into_iter().flat_map(BTreeMap::values) {
        page.push_str(&format!(
            "<i class=\"{}\" style=\"left:{:.2}%\" title=\"{} {}\"></i>",
            sign.class(),
            frame.at(*at),
            frame.after(*at),
            text(crate::text::prefix(words, 200)),
        ));
    }
    page.push_str("</div></td></tr>\n");
}
