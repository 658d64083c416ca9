//! The report for people: one HTML document. All of it is made here, the script only filters what is there.
//!
//! Whatever a run says passes [`Escaped`], which is the only way from a text into the document; and the document's own
//! policy lets nothing run but the one script, whose digest it names, and nothing be fetched at all.

use std::fmt::{self, Display, Formatter};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

use super::gather::{Call, OutputPart, Report};
use super::{NO_PROMPT, timeline};
use crate::deck::history::Tone;
use crate::run::{RunState, StepFace, StepId, StepState, Stream, Timestamp, ToolOutcome, cause, cost_of, or_more};
use crate::text::{SafeText, Style, bytes, clock, cost, grouped, or_unknown, redact, span};

const STYLE: &str = include_str!("../../assets/export/page.css");
const SCRIPT: &str = include_str!("../../assets/export/page.js");

/// A text as it may stand between tags and in quoted attributes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '`']) {
            let (plain, special) = rest.split_at(at);
            f.write_str(plain)?;
            let ch = special.chars().next().unwrap_or(' ');
            write!(f, "&#{};", u32::from(ch))?;
            rest = special.get(ch.len_utf8()..).unwrap_or_default();
        }
        f.write_str(rest)
    }
}

/// A text from outside: cleaned, redacted, escaped.
pub(super) fn text(text: &str) -> String {
    Escaped(&redact(SafeText::line(text).as_str())).to_string()
}

/// The whole document. `zone` is where times of day are told.
#[must_use]
pub fn html(report: &Report, prompts: bool, zone: &TimeZone) -> String {
    let digest = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    let state = &report.state;
    let name = text(state.name.as_deref().unwrap_or(state.id.as_str()));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    let view = View { report, zone, prompts };
    view.header(&mut page, &name);
    timeline::write(&mut page, report);
    view.panes(&mut page);
    view.story(&mut page);
    page.push_str("<script>");
    page.push_str(SCRIPT);
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

struct View<'a> {
    report: &'a Report,
    zone: &'a TimeZone,
    prompts: bool,
}

impl View<'_> {
    fn time(&self, at: Timestamp) -> String {
        jiff::Timestamp::from_microsecond(at.micros())
            .map(|at| at.to_zoned_datetime(self.zone.clone()).strftime("%H:%M:%S").to_string())
            .unwrap_or_default()
    }

    fn header(&self, page: &mut String, name: &str) {
        let state = &self.report.state;
        let (face, word) =
            if self.report.lost.is_some() { (StepFace::Lost, StepFace::Lost.word()) } else { state.run_face() };
        let started = state.started_at.and_then(|at| jiff::Timestamp::from_microsecond(at.micros()).ok());
        let started =
            started.map(|at| at.to_zoned_datetime(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string());
        let (ended, told) = state.progress(self.report.lost.is_some());
        let facts = [
            ("run", text(state.id.as_str())),
            ("state", format!("<b class=\"{}\">{}</b>", class_of(face), text(word))),
            ("started", text(&or_unknown(started))),
            ("took", text(&or_unknown(state.elapsed(state.last_update.unwrap_or_default()).map(span)))),
            ("steps", format!("{ended} of {} {told}", state.steps.len())),
            ("cost", text(&or_unknown(state.cost_told()))),
            ("tokens", text(&or_unknown(state.tokens_told()))),
            ("folder", text(&state.cwd)),
        ];
        let by_model = by_model(state).map(|told| ("cost by model", text(&told)));
        page.push_str(&format!("<header>\n<h1>{name}</h1>\n<dl>\n"));
        for (name, value) in facts.into_iter().chain(by_model) {
            page.push_str(&format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
        }
        page.push_str("</dl>\n");
        for (label, problem) in [("error", &state.error), ("lost", &self.report.lost)] {
            if let Some(problem) = problem {
                page.push_str(&format!("<p class=\"bad\">{label}: {}</p>\n", text(problem)));
            }
        }
        for notice in &self.report.notices {
            page.push_str(&format!("<p class=\"dim\">{}</p>\n", text(notice)));
        }
        page.push_str(
            "<p class=\"find\"><input id=\"find\" type=\"search\" placeholder=\"search everything\" aria-label=\"search\"> \
             <span id=\"found\"></span></p>\n</header>\n",
        );
    }

    /// What there is of each step: the task, the tools, the output.
    fn panes(&self, page: &mut String) {
        let mut calls: std::collections::BTreeMap<StepId, Vec<&Call>> = std::collections::BTreeMap::new();
        for call in &self.report.calls {
            calls.entry(call.step).or_default().push(call);
        }
        let state = &self.report.state;
        for (step, part) in state.steps.iter().zip(&self.report.outputs) {
            page.push_str(&format!(
                "<section class=\"pane\" id=\"s{id}\">\n<h2>{id} {} <span class=\"{}\">{}</span></h2>\n",
                text(step.title()),
                class_of(state.face(step)),
                text(state.face(step).word()),
                id = step.id.number(),
            ));
            if let Some(error) = &step.error {
                page.push_str(&format!("<p class=\"bad\">{}</p>\n", text(&cause(error))));
            }
            match self.report.tasks.get(&step.id) {
                Some(task) => {
                    page.push_str("<h3>task</h3>\n<pre class=\"task\">");
                    for line in SafeText::block(task) {
                        page.push_str(&format!("{}\n", Escaped(line.as_str())));
                    }
                    page.push_str("</pre>\n");
                }
                None if !self.prompts && step.has_task => page.push_str(&format!("<p class=\"dim\">{NO_PROMPT}</p>\n")),
                None => {}
            }
            if let Some(message) = &step.last_message {
                page.push_str("<h3>last message</h3>\n");
                for line in SafeText::block(&redact(message)) {
                    page.push_str(&format!("<div class=\"l\">{}</div>\n", Escaped(line.as_str())));
                }
            }
            self.tools(page, calls.get(&step.id).map(Vec::as_slice).unwrap_or_default());
            output(page, part);
            page.push_str("</section>\n");
        }
        if self.report.calls_left_out > 0 {
            let many = grouped(self.report.calls_left_out);
            page.push_str(&format!("<p class=\"dim\">{many} older tool calls are left out</p>\n"));
        }
    }

    fn tools(&self, page: &mut String, calls: &[&Call]) {
        if calls.is_empty() {
            return;
        }
        let many = if calls.len() == 1 { "1 tool call".to_owned() } else { format!("{} tool calls", calls.len()) };
        page.push_str(&format!("<details>\n<summary>{many}</summary>\n"));
        for call in calls {
            let took = call.ended.map(|end| span(end.since(call.started)));
            let (class, word) = match call.outcome {
                Some(ToolOutcome::Ok) => ("good", "ok"),
                Some(outcome) => ("bad", outcome.as_str()),
                None => ("dim", "open"),
            };
            page.push_str(&format!(
                "<div class=\"l\"><time>{}</time> <span class=\"{class}\">{word}</span> <b>{}</b> {} <span class=\"dim\">{}</span></div>\n",
                self.time(call.started),
                text(&call.tool),
                text(&call.args),
                text(&took.unwrap_or_default()),
            ));
            if let Some(whole) = &call.whole {
                folded(page, "arguments", whole);
            }
        }
        page.push_str("</details>\n");
    }

    fn story(&self, page: &mut String) {
        page.push_str("<section id=\"events\">\n<h2>what happened</h2>\n");
        if self.report.events_left_out > 0 {
            let many = grouped(self.report.events_left_out);
            page.push_str(&format!("<p class=\"dim\">{many} older events are left out</p>\n"));
        }
        let mut thoughts = self.report.thoughts.iter().peekable();
        for (number, entry) in self.report.story.iter().enumerate() {
            while let Some(thought) = thoughts.next_if(|thought| thought.before <= number) {
                folded(page, &format!("{} thinking", thought.step), &thought.text);
            }
            let who = entry.step.map_or_else(|| "run".to_owned(), |step| step.to_string());
            let class = match entry.tone {
                Tone::Plain | Tone::Said => "",
                Tone::Tool => "dim",
                Tone::Told | Tone::Control => "note",
                Tone::Good => "good",
                Tone::Bad => "bad",
            };
            page.push_str(&format!(
                "<div class=\"l\"><time>{}</time> <span class=\"who\">{who}</span> <span class=\"{class}\">{}</span></div>\n",
                self.time(entry.at),
                Escaped(entry.text.as_str())
            ));
        }
        thoughts.for_each(|thought| folded(page, &format!("{} thinking", thought.step), &thought.text));
        page.push_str("</section>\n");
    }
}

/// A text of several lines below its heading, which opens it. It is redacted already.
fn folded(page: &mut String, heading: &str, whole: &str) {
    let lines = SafeText::block(whole);
    let many = if lines.len() == 1 { "1 line".to_owned() } else { format!("{} lines", grouped(lines.len() as u64)) };
    page.push_str(&format!("<details class=\"whole\">\n<summary>{heading}, {many}</summary>\n"));
    for line in lines {
        page.push_str(&format!("<div class=\"l\">{}</div>\n", Escaped(line.as_str())));
    }
    page.push_str("</details>\n");
}

/// What each model cost, the dearest first, where there is more than one.
fn by_model(state: &RunState) -> Option<String> {
    let mut models: std::collections::BTreeMap<&str, Vec<&StepState>> = std::collections::BTreeMap::new();
    for step in &state.steps {
        models.entry(step.model.as_deref().unwrap_or("unknown model")).or_default().push(step);
    }
    let sums = models.into_iter().filter_map(|(model, steps)| Some((model, cost_of(steps)?)));
    let mut sums: Vec<(&str, (f64, bool))> = sums.collect();
    sums.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let told = sums.iter().map(|(model, (usd, partial))| format!("{model} {}{}", cost(*usd), or_more(*partial)));
    let told: Vec<String> = told.collect();
    (told.len() > 1).then(|| told.join(", "))
}

pub(super) fn took(step: &StepState) -> Option<String> {
    if step.carried_over {
        return Some("taken over".to_owned());
    }
    let (start, end) = step.started_at.zip(step.ended_at).filter(|_| !step.never_ran())?;
    Some(clock(end.since(start)))
}

/// The end of what a step printed, with its colours.
fn output(page: &mut String, part: &OutputPart) {
    if part.len == 0 {
        page.push_str("<p class=\"dim\">it printed nothing</p>\n");
        return;
    }
    page.push_str(&format!("<details open>\n<summary>output, {}", bytes(part.len)));
    if part.left_out > 0 {
        page.push_str(&format!(", the first {} left out", bytes(part.left_out)));
    }
    page.push_str("</summary>\n<div class=\"out\">\n");
    for (styled, line) in &part.lines {
        let class = match line.stream {
            Stream::Out => "l",
            Stream::Err => "l err",
            Stream::Own => "l own",
        };
        page.push_str(&format!("<div class=\"{class}\">"));
        for run in &styled.runs {
            let classes = classes(run.style);
            if classes.is_empty() {
                page.push_str(&Escaped(run.text.as_str()).to_string());
            } else {
                page.push_str(&format!("<span class=\"{classes}\">{}</span>", Escaped(run.text.as_str())));
            }
        }
        page.push_str(if styled.cut || line.cut { "…</div>\n" } else { "</div>\n" });
    }
    page.push_str("</div>\n</details>\n");
}

fn classes(style: Style) -> String {
    let mut out: Vec<String> = Vec::new();
    out.extend(style.fg.map(|colour| format!("f{}", colour.0 % 16)));
    out.extend(style.bg.map(|colour| format!("g{}", colour.0 % 16)));
    let flags =
        [(style.bold, "bo"), (style.dim, "di"), (style.italic, "it"), (style.underline, "un"), (style.reverse, "re")];
    out.extend(flags.into_iter().filter(|(on, _)| *on).map(|(_, name)| name.to_owned()));
    out.join(" ")
}

/// How a state looks. Its word stands beside it, so that no colour is needed to know it.
pub(super) const fn class_of(face: StepFace) -> &'static str {
    match face {
        StepFace::Succeeded => "good",
        StepFace::Failed | StepFace::TimedOut | StepFace::OverBudget | StepFace::Lost => "bad",
        StepFace::Running | StepFace::Starting | StepFace::Attention | StepFace::Stopping => "live",
        StepFace::Stopped | StepFace::Paused => "note",
        StepFace::Queued | StepFace::Skipped | StepFace::Unknown => "dim",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{CostUsd, StepPhase};

    #[test]
    fn a_model_of_which_a_step_tells_no_cost_did_cost_at_least_the_rest() {
        let step = |model: &str, usd: Option<f64>| StepState {
            model: Some(model.to_owned()),
            cost: usd.map(CostUsd),
            phase: StepPhase::Complete,
            ..StepState::default()
        };
        let steps = vec![step("small", Some(0.2)), step("large", Some(0.5)), step("small", None), step("free", None)];
        let told = by_model(&RunState { steps, ..RunState::default() });
        assert_eq!(told.as_deref(), Some("large $0.50, small $0.20+"));
    }
}
