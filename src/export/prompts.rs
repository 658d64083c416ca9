//! Leaving out what agents were told where a log repeats it: pi-subagents begins each with the task (real-pi.md), and
//! our own runner notes each message to an agent.

use std::collections::BTreeMap;

use super::NO_PROMPT;
use crate::run::{StepId, Stream};
use crate::rundir::{LogLine, RunDir, heard};
use crate::text::StyledLine;

/// How our own runner begins the line of a message to an agent; more lines of it follow in the same stream.
const HEARD: &str = "» ";

/// What agents were told, by step: each message as the lines that it is shown as, without empty ones.
#[derive(Debug, Default)]
pub(super) struct Prompts(BTreeMap<StepId, Vec<Vec<String>>>);

impl Prompts {
    /// All of a run, of its events and of what else is known of its tasks.
    pub(super) fn of<'t>(dir: &RunDir, tasks: impl Iterator<Item = (StepId, &'t str)>) -> Self {
        let mut prompts = Self::default();
        for (step, texts) in heard::messages(dir) {
            texts.iter().for_each(|text| prompts.add(step, text));
        }
        tasks.for_each(|(step, task)| prompts.add(step, task));
        prompts
    }

    fn add(&mut self, step: StepId, text: &str) {
        // As a line of a log is, so that both are cleaned and cut alike.
        let lines = text.lines().map(|line| plain(&StyledLine::parse(line.as_bytes())));
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        if !lines.is_empty() {
            self.0.entry(step).or_default().push(lines);
        }
    }

    /// Puts a word in the place of each message. `cut` says that lines before these are missing, so that the first ones may
    /// be the end of one.
    pub(super) fn leave_out(&self, step: StepId, lines: &mut Vec<(StyledLine, LogLine)>, cut: bool) {
        let texts: Vec<String> = lines.iter().map(|(line, _)| plain(line)).collect();
        let known = self.0.get(&step).map(Vec::as_slice).unwrap_or_default();
        let mut at = 0;
        let mut kept = Vec::with_capacity(lines.len());
        let mut given = std::mem::take(lines).into_iter();
        while let Some(text) = texts.get(at) {
            let own = || {
                let own = |line: &&(StyledLine, LogLine)| line.1.stream == Stream::Own;
                let first = given.as_slice().first().filter(own)?;
                let rest = given.as_slice().iter().take_while(own).count();
                plain(&first.0).starts_with(HEARD).then_some(rest)
            };
            let told = (!text.is_empty()).then(|| {
                let rest = texts.get(at..).unwrap_or_default();
                known.iter().filter_map(|message| length(rest, message, cut && at == 0)).max()
            });
            match told.flatten().or_else(own) {
                Some(many) => {
                    if let Some((_, line)) = given.next() {
                        kept.push((StyledLine::parse(NO_PROMPT.as_bytes()), line));
                    }
                    given.by_ref().take(many.saturating_sub(1)).for_each(drop);
                    at += many.max(1);
                }
                None => {
                    kept.extend(given.next());
                    at += 1;
                }
            }
        }
        *lines = kept;
    }
}

fn plain(line: &StyledLine) -> String {
    let text: String = line.runs.iter().map(|run| run.text.as_str()).collect();
    text.trim_end().to_owned()
}

/// How many of these lines are a message; with `end` also the end of one.
fn length(lines: &[String], message: &[String], end: bool) -> Option<usize> {
    let whole = |message: &[String]| {
        let mut rest = lines.iter().enumerate().filter(|(_, line)| !line.is_empty());
        let mut last = 0;
        for wanted in message {
            let (at, line) = rest.next()?;
            if line != wanted {
                return None;
            }
            last = at + 1;
        }
        Some(last)
    };
    let from = if end { message.len().saturating_sub(1) } else { 0 };
    (0..=from).find_map(|first| whole(message.get(first..).filter(|part| !part.is_empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(prompts: &[&str], lines: &[(Stream, &str)], cut: bool) -> Vec<String> {
        let mut all = Prompts::default();
        prompts.iter().for_each(|text| all.add(StepId(0), text));
        let line = |(stream, text): &(Stream, &str)| {
            let (bytes, at) = (Vec::new(), None);
            let log = LogLine { start: 0, end: 0, bytes, stream: *stream, at, attempt: 1, cut: false, complete: true };
            (StyledLine::parse(text.as_bytes()), log)
        };
        let mut given = lines.iter().map(line).collect();
        all.leave_out(StepId(0), &mut given, cut);
        given.iter().map(|(line, _)| plain(line)).collect()
    }

    #[test]
    fn a_word_stands_in_the_place_of_each_message_and_nothing_else_is_touched() {
        use Stream::{Err, Out, Own};
        let task = "Task: do this\n\nand   that\tof \u{1b}[1mit\u{1b}[0m\n";
        let log = [(Out, "Task: do this"), (Out, "and   that\tof \u{1b}[1mit"), (Out, "I do this"), (Err, "")];
        assert_eq!(left(&[task], &log, false), [NO_PROMPT, "I do this", ""]);
        // One that only begins like it was said by the agent.
        let log = [(Out, "Task: do this"), (Out, "is what I was told"), (Out, "Task: do this")];
        assert_eq!(left(&[task], &log, false), ["Task: do this", "is what I was told", "Task: do this"]);
        // The end of one, where the log is shown from its middle on.
        let log = [(Out, "three"), (Out, "four"), (Out, "four")];
        assert_eq!(left(&["one\ntwo\nthree\nfour"], &log, true), [NO_PROMPT, "four"]);
        assert_eq!(left(&["one\ntwo\nthree\nfour"], &log, false), ["three", "four", "four"]);
        // The longest of several that begin alike.
        assert_eq!(
            left(&["go on", "go on\nwith it"], &[(Out, "go on"), (Out, "with it"), (Out, "yes")], false),
            [NO_PROMPT, "yes"]
        );
        // What our own runner notes of a message, with its further lines; other notes stay.
        let log = [(Out, "a"), (Own, "» look\u{20}there"), (Own, "and here"), (Out, "b"), (Own, "model error: x")];
        assert_eq!(left(&[], &log, false), ["a", NO_PROMPT, "b", "model error: x"]);
        assert_eq!(left(&[], &[(Out, "» said by itself"), (Out, "")], false), ["» said by itself", ""]);
        assert_eq!(left(&[""], &[], true), Vec::<String>::new());
    }
}
