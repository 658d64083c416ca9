//! The adapter for plain commands: every line is output, nothing is an event, and the end of the output is the result.

use super::{Adapter, Line, Sink};
use crate::run::{Report, Stream};

/// How many bytes of the end of the output are kept as the result (runner-behaviour 7.1).
pub const KEPT: usize = 64 * 1024;

/// Collects the end of a command's standard output. To be fed from [`super::Framer::for_text`].
#[derive(Debug, Default)]
pub struct TextAdapter {
    tail: Vec<u8>,
    seen: u64,
    cut: bool,
}

impl TextAdapter {
    fn keep(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > KEPT * 2 {
            let surplus = self.tail.len() - KEPT;
            self.tail.drain(..surplus);
            self.cut = true;
        }
    }

    /// The kept end, beginning at a character's start.
    fn end(&self) -> (String, bool) {
        let surplus = self.tail.len().saturating_sub(KEPT);
        let mut kept = self.tail.get(surplus..).unwrap_or_default();
        let cut = self.cut || surplus > 0;
        if cut {
            // At most three continuation bytes belong to a character whose start is gone.
            let stray = kept.iter().take(3).take_while(|b| (**b & 0xc0) == 0x80).count();
            kept = kept.get(stray..).unwrap_or_default();
        }
        (String::from_utf8_lossy(kept).into_owned(), cut)
    }
}

impl Adapter for TextAdapter {
    fn line(&mut self, line: &Line<'_>, sink: &mut dyn Sink) {
        match line {
            Line::Text { bytes, complete } => {
                self.keep(bytes);
                let mut text = String::from_utf8_lossy(bytes).into_owned();
                if *complete {
                    self.keep(b"\n");
                    text.push('\n');
                }
                sink.text(Stream::Out, &text);
            }
            Line::Oversize(long) => {
                self.seen += long.observed.saturating_sub(long.tail.len() as u64);
                self.cut = true;
                self.tail.clear();
                self.keep(long.tail);
                sink.text(Stream::Out, &String::from_utf8_lossy(long.prefix));
                sink.text(Stream::Own, &format!(" [a line of {} bytes, shortened]\n", long.observed));
                if long.complete {
                    self.keep(b"\n");
                }
            }
        }
    }

    fn report(&self) -> Report {
        let (end, cut) = self.end();
        let text = end.trim();
        let text = if cut {
            format!("[only the last {} of {} bytes of the output are here]\n{text}", end.len(), self.seen)
        } else {
            text.to_owned()
        };
        Report {
            final_text: (!text.is_empty()).then_some(text),
            plain: true,
            saw_any_event: self.seen > 0,
            ..Report::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Framer;
    use crate::run::AgentEvent;

    #[derive(Default)]
    struct Log(String);

    impl Sink for Log {
        fn event(&mut self, event: AgentEvent) {
            panic!("a plain command has no events: {event:?}");
        }
        fn keep_line(&mut self) {
            panic!("nothing to keep");
        }
        fn record(&mut self, _json: &[u8]) {
            panic!("nothing to keep");
        }
        fn text(&mut self, _stream: Stream, text: &str) {
            self.0.push_str(text);
        }
    }

    fn run(bytes: &[u8]) -> (Report, String) {
        let mut adapter = TextAdapter::default();
        let mut log = Log::default();
        let mut framer = Framer::for_text();
        for chunk in bytes.chunks(1000) {
            framer.push(chunk, |line| adapter.line(&line, &mut log));
        }
        framer.finish(|line| adapter.line(&line, &mut log));
        (adapter.report(), log.0)
    }

    #[test]
    fn short_output_is_the_result() {
        let (report, log) = run(b"\n one\n\ntwo\r\nthree");
        assert_eq!(report.final_text.as_deref(), Some("one\n\ntwo\nthree"));
        assert_eq!(log, "\n one\n\ntwo\nthree");
        assert_eq!(run(b" \n").0.final_text, None);
    }

    #[test]
    fn long_output_keeps_its_end_and_says_so() {
        // Three bytes a character and a last letter, so that the cut falls inside a character.
        let (report, _) = run(format!("{}x", "漢".repeat(100_000)).as_bytes());
        let text = report.final_text.expect("text");
        let (note, rest) = text.split_once('\n').expect("a note and the text");
        assert_eq!(note, format!("[only the last {} of 300001 bytes of the output are here]", rest.len()));
        assert!(rest.len() <= KEPT && rest.len() > KEPT - 3);
        assert_eq!(rest.trim_start_matches('漢'), "x");
    }

    #[test]
    fn a_huge_line_is_not_an_error() {
        let mut bytes = vec![b'a'; 3 << 20];
        bytes.extend_from_slice(b"\nend\n");
        let (report, log) = run(&bytes);
        let text = report.final_text.expect("text");
        assert!(text.ends_with("a\nend"), "{}", &text[text.len() - 20..]);
        assert!(text.starts_with("[only the last 65536 of 3145733 bytes"), "{}", &text[..60]);
        assert!(log.contains("[a line of 3145728 bytes, shortened]\nend\n"));
    }
}
