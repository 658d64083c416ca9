//! What needs a person: which step, why, by which rule, and the evidence.

use super::model::UiState;
use crate::run::{Amount, Level, Notice, OpenCall, Reason, RunState, StepId, StepPhase, StepState, Timestamp};
use crate::text::{SafeText, clock, grouped};

/// Why a step needs a person, if it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Which step.
    pub step: StepId,
    /// What it is about, so that what was taken note of here is known again. Another time of the same is another one.
    pub cause: String,
    /// The runner's notice, where there is one.
    pub notice: Option<String>,
    /// What is wrong, in a few words.
    pub reason: String,
    /// The same in the fewest, where those are fewer.
    pub brief: Option<String>,
    /// The rule that says so.
    pub rule: &'static str,
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
    /// Until when an answer is waited for, where there is an end of it.
    pub until: Option<Timestamp>,
}

/// What is wrong with a step that shows no sign of life, in the words of every place that tells it.
pub const SILENT: &str = "no activity";

/// In fewer cells the time is told in fewer words.
const NARROW: usize = 40;

/// Cells that are left of a name before the reason beside it is cut.
const NAME: usize = 12;

impl Attention {
    /// How long there is still time, or for how long it has been so.
    #[must_use]
    pub fn clock(&self, now: Timestamp) -> String {
        match (self.until, self.since) {
            // Behind a question, of which this is no part.
            (Some(until), _) => format!("(refused in {})", clock(until.since(now))),
            (None, Some(since)) if self.asks() => format!("asked {} ago", clock(now.since(since))),
            (None, Some(since)) => clock(now.since(since)),
            (None, None) => String::new(),
        }
    }

    /// Whether it is a question.
    #[must_use]
    pub fn asks(&self) -> bool {
        [Reason::Question, Reason::SupervisorRequest].iter().any(|reason| reason.as_str() == self.rule)
    }

    /// Who needs somebody and for what, in so many cells: what a tool was called with goes first, then the end of the
    /// name, then the end of the reason. How long it has been so, or there is still time, is never cut.
    #[must_use]
    pub fn line(&self, number: &str, name: &str, cells: usize, now: Timestamp) -> SafeText {
        let clock = self.clock(now);
        let narrow = cells < NARROW;
        let clock = clock.strip_suffix(" ago").filter(|_| narrow).unwrap_or(&clock);
        let tail = if clock.is_empty() { 0 } else { clock.len() + 1 };
        let room = cells.saturating_sub(tail);
        let brief = self.brief.as_deref().unwrap_or(&self.reason);
        let name = SafeText::line(name);
        let short = name.truncate(NAME);
        let way = |name: Option<&SafeText>, what: &str| {
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            SafeText::line(&format!("{number}{name}: {what}"))
        };
        let ways = [(Some(&name), self.reason.as_str()), (Some(&name), brief), (Some(&short), brief), (None, brief)];
        let fits = ways.into_iter().map(|(name, what)| way(name, what)).find(|way| way.width() <= room);
        let told = match fits {
            Some(way) => way,
            // Less than this says nothing.
            None if room < 4 => SafeText::default(),
            // Of a question the beginning is worth more than who asks.
            None => way(Some(&short).filter(|_| !self.asks()), brief).truncate(room),
        };
        SafeText::line(format!("{told} {clock}").trim())
    }
}

/// The steps that need a person and were not acknowledged, the most urgent first.
#[must_use]
pub fn attention(state: &RunState, ui: &UiState) -> Vec<Attention> {
    let mut found: Vec<(u8, Attention)> = ui
        .sums(state)
        .needy
        .iter()
        .filter_map(|id| state.step(*id))
        .filter_map(|step| Some((urgency(step), needs_person(step)?)))
        .filter(|(_, a)| ui.acknowledged.get(&a.step).is_none_or(|cause| *cause != a.cause))
        .collect();
    found.sort_by_key(|(urgency, a)| (*urgency, a.since, a.step));
    found.into_iter().map(|(_, a)| a).collect()
}

/// How many steps need a person for something that an older picture of the run does not show, and that nobody took
/// note of.
#[must_use]
pub fn since_then(state: &RunState, then: &RunState, ui: &UiState) -> usize {
    let cause = |step: &StepState| needs_person(step).map(|a| a.cause);
    let is_new = |step: &&StepState| {
        let now = cause(step);
        now.is_some() && now != then.step(step.id).and_then(cause) && now.as_ref() != ui.acknowledged.get(&step.id)
    };
    state.steps.iter().filter(is_new).count()
}

/// What the line about those who need a person speaks of, and the keys that take note of it: the selected step when it
/// needs one, so that every key is about the same step, and else the most urgent.
#[must_use]
pub fn foremost<'a>(waiting: &'a [Attention], ui: &UiState) -> Option<&'a Attention> {
    waiting.iter().find(|a| a.step == ui.selected).or_else(|| waiting.first())
}

/// Whether there is a step to jump to: another one than the selected.
#[must_use]
pub fn leads(waiting: &[Attention], ui: &UiState) -> bool {
    waiting.iter().any(|a| a.step != ui.selected)
}

/// The step whose rule and evidence are asked for: the selected one when it needs a person, noted or not, and else the one
/// that the line speaks of.
#[must_use]
pub fn asked(state: &RunState, ui: &UiState) -> Option<StepId> {
    let own = state.step(ui.selected).and_then(needs_person).map(|own| own.step);
    own.or_else(|| foremost(&attention(state, ui), ui).map(|first| first.step))
}

/// Whether somebody took note of all that a step needs a person for.
#[must_use]
pub fn is_seen(step: &StepState, ui: &UiState) -> bool {
    let noted = |a: &Attention| ui.acknowledged.get(&step.id).is_some_and(|cause| *cause == a.cause);
    needs_person(step).is_none_or(|a| noted(&a))
}

/// Somebody waits for an answer, something hangs, something else.
fn urgency(step: &StepState) -> u8 {
    match loudest(step).map(|n| n.condition.reason) {
        Some(crate::run::Reason::Question | crate::run::Reason::SupervisorRequest) => 0,
        Some(_) => 1,
        None => 2,
    }
}

/// The notice that a person is to be told first.
fn loudest(step: &StepState) -> Option<&Notice> {
    let open = step.attention.iter().filter(|n| n.is_open() && n.level() == Level::Needs && !step.is_void(n));
    open.min_by_key(|n| (n.condition.reason, n.condition.since))
}

/// Why this step needs a person.
#[must_use]
pub fn needs_person(step: &StepState) -> Option<Attention> {
    let attention = |rule: &'static str, reason: String, since| {
        let cause = reason.clone();
        Some(Attention { step: step.id, cause, notice: None, reason, brief: None, rule, since, until: None })
    };
    if !step.survivors.is_empty() {
        let pids: Vec<String> = step.survivors.iter().map(u32::to_string).collect();
        return attention("survivors", format!("processes would not die: {}", pids.join(" ")), step.ended_at);
    }
    if step.phase != StepPhase::Running {
        return None;
    }
    if !step.held_by.is_empty() {
        let pids: Vec<String> = step.held_by.iter().map(u32::to_string).collect();
        return attention("output_held", format!("output held open by pid {}", pids.join(" ")), step.last_activity);
    }
    if let Some(notice) = loudest(step) {
        let condition = &notice.condition;
        return Some(Attention {
            step: step.id,
            cause: format!("{} {}", notice.id, notice.times),
            notice: Some(notice.id.clone()),
            reason: in_short(step, notice),
            brief: open_call(step, notice).map(|call| format!("{} open", call.tool)),
            rule: condition.reason.as_str(),
            since: Some(since(step, notice)),
            until: step.questions.iter().filter_map(|question| question.until).min().filter(|_| asks(notice)),
        });
    }
    // Of the runs inside a foreign runner knows nothing.
    if let Some((asks, (_, since))) = step.waits_for().and_then(|run| run.asks().zip(run.needs.as_ref()))
        && step.attention.iter().all(|n| n.condition.reason != Reason::InnerRun)
    {
        return attention("inner_run", format!("its inner run {asks}"), Some(*since));
    }
    // A foreign status says that something is wrong, not what.
    if step.attention.is_empty() && !step.is_excused() && step.activity.as_deref() == Some("needs_attention") {
        let Some(call) = step.current_call() else {
            return attention("needs_attention", SILENT.to_owned(), step.last_activity);
        };
        let found = attention("needs_attention", format!("{} {} open", call.tool, call.args), Some(call.started_at));
        return found.map(|found| Attention { brief: Some(format!("{} open", call.tool)), ..found });
    }
    None
}

/// Since when it is so. A foreign notice tells when it was raised; what is silent is so since its last sign.
fn since(step: &StepState, notice: &Notice) -> Timestamp {
    let since = notice.condition.since;
    let silent = step.last_activity.filter(|_| notice.condition.reason == Reason::Idle);
    silent.map_or(since, |at| at.min(since))
}

/// Whether somebody waits for an answer.
fn asks(notice: &Notice) -> bool {
    notice.condition.reason == Reason::Question
}

/// The open call that a notice is about.
fn open_call<'s>(step: &'s StepState, notice: &Notice) -> Option<&'s OpenCall> {
    let condition = &notice.condition;
    let number: u64 = condition.subject.parse().ok().filter(|_| condition.reason == Reason::ToolOpen)?;
    step.open.iter().find(|call| call.seq == number)
}

/// The open call for which a step needs a person first.
#[must_use]
pub fn needy_call(step: &StepState) -> Option<&OpenCall> {
    open_call(step, loudest(step)?)
}

/// Since when a step is silent for which it needs a person.
#[must_use]
pub fn silent(step: &StepState) -> Option<Timestamp> {
    let notice = loudest(step).filter(|notice| notice.condition.reason == Reason::Idle)?;
    Some(since(step, notice))
}

/// What is wrong, without the time, which goes on while the notice stands still.
fn in_short(step: &StepState, notice: &Notice) -> String {
    let condition = &notice.condition;
    match condition.reason {
        Reason::ToolOpen => match open_call(step, notice) {
            Some(call) => format!("{} {} open", call.tool, call.args).replace("  ", " "),
            None => condition.evidence.clone(),
        },
        Reason::InnerRun => format!("its inner run {}", condition.evidence),
        Reason::Idle => SILENT.to_owned(),
        Reason::NoFirstEvent => "said nothing since it was started".to_owned(),
        _ => condition.evidence.clone(),
    }
}

/// What was known before a step needed a person and what comes next by itself: the threshold that was reached, and the
/// limit that ends it, where there is one. Until when an answer is waited for is told before that.
#[must_use]
pub fn outlook(step: &StepState) -> Option<String> {
    let notice = loudest(step)?;
    let time = |ms: u64| clock(std::time::Duration::from_millis(ms));
    if asks(notice) {
        let ends = step.questions.iter().any(|question| question.until.is_some());
        return (!ends).then(|| "it waits for you".to_owned());
    }
    let limit = match notice.condition.reason {
        Reason::ToolOpen => open_call(step, notice).and_then(|call| step.limits.tool_limit(&call.tool)),
        Reason::Idle => step.limits.idle_ms,
        _ => return None,
    };
    // Of a runner that tells no threshold the limits are not known either.
    if notice.condition.threshold.is_none() && limit.is_none() {
        return None;
    }
    let warned = match notice.condition.threshold {
        Some(Amount::Millis(ms)) => format!("warned {}, ", time(ms)),
        _ => String::new(),
    };
    Some(limit.map_or_else(|| format!("{warned}no limit"), |ms| format!("{warned}stopped at {}", time(ms))))
}

/// The evidence for a step's attention, line by line: of every notice, the quiet ones too.
#[must_use]
pub fn evidence(state: &RunState, step: StepId, now: Timestamp) -> Vec<(String, String)> {
    let Some(step) = state.step(step) else { return Vec::new() };
    let ago = |at: Timestamp| format!("{} ago", clock(now.since(at)));
    let mut lines = Vec::new();
    let mut notices: Vec<&Notice> = step.attention.iter().collect();
    notices.sort_by_key(|n| (std::cmp::Reverse(n.level()), n.condition.reason, n.condition.since));
    for notice in notices {
        if !lines.is_empty() {
            lines.push((String::new(), String::new()));
        }
        let condition = &notice.condition;
        let quiet = match notice.level() {
            Level::Needs => "",
            Level::Busy | Level::Note => " (good to know)",
        };
        lines.push(("rule".to_owned(), format!("{} ({}){quiet}", condition.reason.words(), condition.reason.as_str())));
        if super::allowed::is_foreign(state) {
            lines.push(("told by".to_owned(), "its own runner".to_owned()));
        } else if let Some(key) = condition.reason.key() {
            lines.push(("set by".to_owned(), format!("{key} in [attention] of the plan")));
        }
        if let Some(threshold) = condition.threshold {
            // Whoever asks is told of at once.
            let name = if condition.reason <= Reason::SupervisorRequest { "told again" } else { "threshold" };
            let after = if name == "threshold" { "" } else { "after " };
            lines.push((name.to_owned(), format!("{after}{}", measure(threshold))));
        }
        let seen = crate::run::attention::seen(state, step, condition.reason, now, clock);
        lines.push(("evidence".to_owned(), seen.unwrap_or_else(|| condition.on_clock())));
        lines.push(("for".to_owned(), clock(now.since(condition.since))));
        let times = if notice.times > 1 { format!(", {} times", notice.times) } else { String::new() };
        lines.push(("raised".to_owned(), format!("{}{times}", ago(notice.raised_at))));
        if let Some(at) = notice.acknowledged {
            lines.push(("noted".to_owned(), format!("{}; told again at the next threshold", ago(at))));
        }
    }
    if lines.is_empty() {
        let Some(attention) = needs_person(step) else { return Vec::new() };
        lines.push(("rule".to_owned(), attention.rule.to_owned()));
        lines.push(("reason".to_owned(), attention.reason));
        lines.extend(attention.since.map(|since| ("for".to_owned(), clock(now.since(since)))));
    }
    // What is true of the step is of no rule.
    lines.push((String::new(), String::new()));
    lines.extend(step.last_activity.map(|at| ("last activity".to_owned(), ago(at))));
    lines.extend(step.open.iter().map(|call| {
        let open = clock(now.since(call.started_at));
        ("open tool".to_owned(), format!("{} {}, {open}", call.tool, call.args))
    }));
    lines
}

fn measure(amount: Amount) -> String {
    match amount {
        Amount::Millis(ms) => clock(std::time::Duration::from_millis(ms)),
        Amount::Count(count) => grouped(count),
    }
}
