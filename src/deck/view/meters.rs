//! What was used of a limit, in words, and how near it is.

use ratatui::style::Style;

use super::Scene;
use crate::run::{Meter, Metric, StepState, Used};
use crate::text::{cost, count, or_unknown};

/// What stands in the context window of how much, and the share of it.
pub(super) fn window_text(step: &StepState) -> Option<(String, f64)> {
    let share = step.window.share()?;
    let high = if share >= HIGH { " !" } else { "" };
    Some((format!("{} of {}{high}", count(step.window.used?), count(step.window.size?)), share))
}

/// A share in digits; nearly everything is not everything.
pub(super) fn percent(share: f64) -> String {
    // `as` saturates.
    match share {
        little if little > 0.0 && little < 0.005 => "<1%".to_owned(),
        part if part < 1.0 => format!("{}%", ((part * 100.0).round() as u64).min(99)),
        all => format!("{}%", (all * 100.0) as u64),
    }
}

/// From this share of a limit on it is told that it is near.
pub(super) const HIGH: f64 = 0.8;

/// The style of what was used of a limit.
pub(super) fn share_style(share: f64, scene: &Scene<'_>) -> Style {
    if share >= HIGH { scene.theme.bad() } else { scene.theme.accent() }
}

/// What people call it.
pub(super) const fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Turns => "turns",
        Metric::ToolCalls => "calls",
        Metric::Tokens => "tokens",
        Metric::Cost => "cost",
    }
}

/// Used of limit, in digits.
pub(super) fn meter_text(meter: &Meter) -> String {
    let amount = |n: f64| match meter.metric {
        Metric::Cost => cost(n),
        // `as` saturates.
        Metric::Tokens => count(n as u64),
        Metric::Turns | Metric::ToolCalls => crate::text::grouped(n as u64),
    };
    let limit = meter.hard.or(meter.soft).unwrap_or_default();
    let used = meter.used.map(|used| used.told(amount));
    format!("{} of {}", or_unknown(used), amount(limit))
}

/// The same, with a mark where it is high, so that nobody needs the colour.
pub(super) fn marked(meter: &Meter) -> String {
    format!("{}{}", meter_text(meter), if meter_is_high(meter) { " !" } else { "" })
}

/// Where the warning is, for a row with room.
pub(super) fn meter_warning(meter: &Meter) -> Option<String> {
    let soft = meter.soft.filter(|_| meter.hard.is_some())?;
    let at = meter_text(&Meter { used: Some(Used::all(soft)), ..*meter });
    let word = if meter.used.is_some_and(|used| used.amount >= soft) { "warned" } else { "warning" };
    at.split(" of ").next().map(|soft| format!("{word} at {soft}"))
}

pub(super) fn meter_style(meter: &Meter, scene: &Scene<'_>) -> Style {
    if meter_is_high(meter) { scene.theme.bad() } else { scene.theme.accent() }
}

/// Whether the warning was reached.
pub(super) fn is_warned(meter: &Meter) -> bool {
    meter.soft.zip(meter.used).is_some_and(|(soft, used)| used.amount >= soft)
}

/// Whether the warning was reached, or nearly the limit.
pub(super) fn meter_is_high(meter: &Meter) -> bool {
    is_warned(meter) || meter.share() >= HIGH
}

/// An estimate of when the limit comes.
pub(super) fn meter_left(meter: &Meter) -> Option<String> {
    meter.left.filter(|_| meter.share() < 1.0).map(|left| format!("~{} left", rough(left)))
}

/// A time as precise as an estimate is.
fn rough(left: std::time::Duration) -> String {
    match left.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", (seconds + 30) / 60),
        seconds @ 3_600..172_800 => format!("{}h", (seconds + 1_800) / 3_600),
        seconds => format!("{}d", (seconds + 43_200) / 86_400),
    }
}
