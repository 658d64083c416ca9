//! What Codex says before it tries its provider again.

use crate::agents::Sink;
use crate::agents::work::Work;

/// How that begins; the attempt of how many follows.
const RECONNECTING: &str = "Reconnecting... ";

/// Whether such a message says that it tries its provider again.
pub(super) fn is_one(text: &str) -> bool {
    text.starts_with(RECONNECTING)
}

/// Tells of it; `detail` is the provider's error, where it is told apart.
pub(super) fn told(work: &mut Work, text: &str, detail: Option<&str>, sink: &mut dyn Sink) {
    let (counts, rest) = text
        .strip_prefix(RECONNECTING)
        .map_or(("", text), |text| text.split_once(' ').map_or((text, ""), |(counts, rest)| (counts, rest)));
    let (attempt, max) = counts.split_once('/').unwrap_or_default();
    let rest = rest.trim().trim_start_matches('(').trim_end_matches(')');
    let reason = detail.filter(|detail| !detail.is_empty()).unwrap_or(rest);
    work.retries(attempt.parse().ok(), max.parse().ok(), if reason.is_empty() { text } else { reason }, sink);
}
