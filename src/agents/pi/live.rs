//! The text of a step's output log, made from what pi says: what was already written while it streamed is not written
//! again when the whole of it comes. It owns that bookkeeping and nothing else.

use std::collections::HashMap;

use super::args::tail;
use crate::agents::Sink;
use crate::run::Stream;

/// How much of a streamed text is remembered for the comparison with the whole, in bytes. Beyond it only the length
/// is compared.
const REMEMBERED: usize = 1024 * 1024;
/// How many running calls are followed; more than any agent starts at once.
const MOST_CALLS: usize = 64;
/// How much of the end of a call's output is looked for in the next report, in bytes.
const OVERLAP: usize = 512;

/// What was written so far.
#[derive(Debug, Default)]
pub(in crate::agents) struct Live {
    /// The text of the message that is being written, as it was given so far.
    message: String,
    /// Its whole length, which exceeds the remembered text only for huge messages.
    length: usize,
    /// The content block that the last piece belonged to.
    block: Option<u64>,
    /// Whether the log stands in the middle of a line.
    mid_line: bool,
    /// What was written of the output of running calls.
    calls: HashMap<String, String>,
    /// Calls whose result is written.
    written: Vec<String>,
}

impl Live {
    /// A piece of answer text.
    pub(in crate::agents) fn delta(&mut self, block: Option<u64>, text: &str, sink: &mut dyn Sink) {
        if text.is_empty() {
            return;
        }
        if self.block.is_some() && self.block != block && self.length > 0 {
            self.pass("\n", sink);
        }
        self.block = block;
        self.pass(text, sink);
    }

    fn pass(&mut self, text: &str, sink: &mut dyn Sink) {
        self.length += text.len();
        if self.message.len() < REMEMBERED {
            self.message.push_str(text);
        }
        sink.text(Stream::Out, text);
        self.mid_line = !text.ends_with('\n');
    }

    /// The message is whole: writes what the pieces did not give.
    pub(in crate::agents) fn message(&mut self, text: &str, sink: &mut dyn Sink) {
        let given = self.message.len() < REMEMBERED || self.length == self.message.len();
        let rest = if given { text.strip_prefix(self.message.as_str()) } else { text.get(self.length..) };
        match rest {
            Some(rest) if !rest.is_empty() => self.pass(rest, sink),
            Some(_) => {}
            None => {
                // The pieces were not the beginning of the message; the log has both.
                self.end_line(sink);
                self.pass(text, sink);
            }
        }
        self.end_line(sink);
        self.message_over();
    }

    /// Another message begins; what came of the last one stays as it is.
    pub(in crate::agents) fn message_over(&mut self) {
        self.message.clear();
        self.length = 0;
        self.block = None;
    }

    /// The text that came of the message that is being written, if all of it is remembered.
    pub(in crate::agents) fn streamed(&self) -> Option<&str> {
        (self.length == self.message.len() && self.length > 0).then_some(self.message.as_str())
    }

    /// A report of a running call: its output so far, or the end of it.
    pub(in crate::agents) fn progress(&mut self, call: &str, text: &str, sink: &mut dyn Sink) {
        if !self.calls.contains_key(call) && self.calls.len() >= MOST_CALLS {
            return;
        }
        // Only whole lines, so that calls that run side by side do not mix within a line.
        let Some(lines) = text.rfind('\n').and_then(|end| text.get(..=end)) else { return };
        let shown = self.calls.entry(call.to_owned()).or_default();
        if let Some(news) = news(shown, lines) {
            let news = news.to_owned();
            lines.clone_into(shown);
            self.lines(&news, sink);
        }
    }

    /// A call ended with this output.
    pub(in crate::agents) fn result(&mut self, call: Option<&str>, text: &str, sink: &mut dyn Sink) {
        if let Some(call) = call {
            if self.has_result(call) {
                return;
            }
            if self.written.len() >= MOST_CALLS {
                self.written.remove(0);
            }
            self.written.push(call.to_owned());
        }
        let shown = call.and_then(|call| self.calls.remove(call)).unwrap_or_default();
        self.lines(news(&shown, text).unwrap_or(text), sink);
    }

    /// Whether the result of this call is written.
    pub(in crate::agents) fn has_result(&self, call: &str) -> bool {
        self.written.iter().any(|known| known == call)
    }

    /// A line of our own or of the agent's, alone on its line.
    pub(in crate::agents) fn line(&mut self, stream: Stream, text: &str, sink: &mut dyn Sink) {
        self.end_line(sink);
        sink.text(stream, &format!("{text}\n"));
    }

    fn lines(&mut self, text: &str, sink: &mut dyn Sink) {
        if text.trim().is_empty() {
            return;
        }
        self.end_line(sink);
        sink.text(Stream::Out, text);
        self.mid_line = !text.ends_with('\n');
        self.end_line(sink);
    }

    pub(in crate::agents) fn end_line(&mut self, sink: &mut dyn Sink) {
        if std::mem::take(&mut self.mid_line) {
            sink.text(Stream::Out, "\n");
        }
    }
}

/// What `now` adds to `shown`; `None` when the two have nothing to do with each other. Long output is reported by its
/// end alone, so the end of what was shown is looked for in what came.
fn news<'a>(shown: &str, now: &'a str) -> Option<&'a str> {
    if let Some(rest) = now.strip_prefix(shown) {
        return Some(rest);
    }
    // The end of a call may lack the line feed that its reports had.
    if now == shown.trim_end() {
        return Some("");
    }
    let end = tail(shown, OVERLAP);
    let at = now.rfind(end)?;
    now.get(at + end.len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new() {
        let long: String = (0..2000).map(|n| format!("line {n}\n")).collect();
        let tail = &long[long.len() / 2..];
        let table = [
            ("", "a", Some("a")),
            ("a\n", "a\nb\n", Some("b\n")),
            ("a\n", "a\n", Some("")),
            ("a\nb\n\n", "a\nb", Some("")),
            ("a\nb\n", "a", None),
            ("a\nb\n", "b\nc\n", None),
            (long.as_str(), &format!("[cut]\n{tail}more\n"), Some("more\n")),
            (long.as_str(), "other", None),
        ];
        for (shown, now, expected) in table {
            assert_eq!(news(shown, now), expected);
        }
    }
}
