//! What people are told of an error: files keep the whole of it, such as the end of standard error, in which the cause is
//! seldom the first line.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use super::STOPPED;
use crate::text::written;

/// Where a program begins to tell how it came to where it failed.
const TRACEBACK: &str = "Traceback (most recent call last):";
/// Words with which programs begin the line that says what is wrong.
const CAUSES: [&str; 5] = ["error", "fatal", "panic", "fehler", "abort"];
/// What runners write of a time that is over; the milliseconds follow (runner-behaviour 1.7).
const TIMED_OUT: &str = " timed out";

/// An error from its cause on, and with times as people write them: what a row shows of it is its first line.
///
/// Of a traceback that is the line of the exception, of a stack of frames the line above them, of other texts of several
/// lines the last one that begins like an error; of those without one the last line, unless the text is an object.
#[must_use]
pub fn cause(error: &str) -> Cow<'_, str> {
    let told = from_cause(error.trim());
    match message(told).or_else(|| in_words(told)) {
        Some(words) => Cow::Owned(words),
        None => Cow::Borrowed(told),
    }
}

fn from_cause(text: &str) -> &str {
    let lines: Vec<(usize, &str)> = lines(text).collect();
    let Some((_, first)) = lines.first().filter(|_| lines.len() > 1) else { return text };
    let from = |at: usize| text.get(at..).unwrap_or(text).trim_end();
    if let Some(at) = lines.iter().rposition(|(_, line)| line.contains(TRACEBACK)) {
        // Its frames are indented; what is not is the exception.
        let after = lines.iter().skip(at + 1);
        return after.clone().find(|(_, line)| !is_indented(line)).map_or(text, |(at, _)| from(*at));
    }
    if let Some(frame) = lines.iter().position(|(_, line)| is_indented(line) && line.trim_start().starts_with("at ")) {
        let above = lines.iter().take(frame).rev().find(|(_, line)| !is_indented(line));
        return above.map_or(text, |(at, _)| from(*at));
    }
    if let Some((at, _)) = lines.iter().rev().find(|(_, line)| is_cause(line)) {
        return from(*at);
    }
    // What a provider answered begins with what matters.
    if first.contains(['{', '[', '<']) {
        return text;
    }
    lines.last().map_or(text, |(at, _)| from(*at))
}

/// The lines that are not blank, with their places.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let place = at;
        at += line.len();
        (!line.trim().is_empty()).then_some((place, line.trim_end()))
    })
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// Whether a line begins like an error: `error: ...`, `TypeError: ...`, `cc: fatal error: ...`, `thread 'main' panicked`.
fn is_cause(line: &str) -> bool {
    let head: String = line.chars().take(60).collect::<String>().to_lowercase();
    let mut places = CAUSES.iter().filter_map(|word| Some(head.find(word)? + word.len()));
    // What follows is a sentence of its own, or the word goes on as that of an error does.
    places.any(|end| {
        let rest = head.get(end..).unwrap_or_default();
        rest.starts_with([':', '[', '!']) || rest.starts_with("ked at") || rest.starts_with(" error:")
    })
}

/// What a server says of a failure as an object, `400: {"message":"bad request", …}`, without the object around it.
fn message(text: &str) -> Option<String> {
    let (head, object) = text.split_at_checked(text.find('{')?)?;
    // Only an error that is nothing but the object and a word before it.
    let object: Value = serde_json::from_str(object).ok().filter(|_| !head.contains('\n'))?;
    let error = object.get("error").unwrap_or(&object);
    let told = error.get("message").unwrap_or(error).as_str().filter(|told| !told.trim().is_empty())?;
    Some(format!("{head}{told}"))
}

/// The same with the time that is over as people write it, and of any step or run where a subagent is named, because plain
/// commands end so, too; `None` where no time is over and nobody stopped it.
fn in_words(text: &str) -> Option<String> {
    if text == STOPPED {
        return Some("Stopped by user.".to_owned());
    }
    let (who, rest) = text.split_once(TIMED_OUT)?;
    let head = if who == "Subagent" { "Timed out".to_owned() } else { format!("{who}{TIMED_OUT}") };
    Some(format!("{head}{}", in_units(rest).unwrap_or_else(|| rest.to_owned())))
}

/// What follows, with milliseconds in larger units.
fn in_units(rest: &str) -> Option<String> {
    let word = [" after ", ": no sign of life for "].into_iter().find(|word| rest.starts_with(word))?;
    let digits = rest.get(word.len()..)?.chars().take_while(char::is_ascii_digit).count();
    let (number, after) = rest.get(word.len()..)?.split_at_checked(digits)?;
    let (ms, after) = (number.parse().ok()?, after.strip_prefix("ms")?);
    Some(format!("{word}{}{after}", written(Duration::from_millis(ms))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_told_first() {
        let python = "warming up\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    go()\n  \
                      File \"a.py\", line 2, in go\n    raise ValueError(\"no\")\nValueError: no\nsecond line\n";
        let node = "/srv/a.js:1\nthrow new Error(\"no\")\n^\n\nError: no\n    at Object.<anonymous> (/srv/a.js:1:7)\n    \
                    at node:internal/main:1:1\n\nNode.js v22.1.0\n";
        let rust = "\nthread 'main' panicked at src/main.rs:2:5:\nno\nnote: run with `RUST_BACKTRACE=1`\n";
        let clap = "error: the following arguments were not provided:\n  --foo\n\nUsage: x --foo\n";
        for (text, first) in [
            ("", ""),
            ("one line", "one line"),
            (" one line\n", "one line"),
            (python, "ValueError: no"),
            (node, "Error: no"),
            (rust, "thread 'main' panicked at src/main.rs:2:5:"),
            (clap, "error: the following arguments were not provided:"),
            ("a.c:1: error: x\na.c:2: error: y\n1 error generated.\n", "a.c:2: error: y"),
            ("reading\nwriting\nsh: 1: foo: not found\n", "sh: 1: foo: not found"),
            ("400: {\n  \"message\": \"bad\"\n}", "400: bad"),
            ("{\"error\":{\"message\":\"overloaded\",\"type\":\"x\"}}", "overloaded"),
            ("429 {\"error\":\"slow down\"}", "429 slow down"),
            ("400: {\"code\":7}", "400: {\"code\":7}"),
            ("400: {\"message\":\"cut he", "400: {\"message\":\"cut he"),
            ("in {\"message\":\"a\"} of b", "in {\"message\":\"a\"} of b"),
            ("starts\nTraceback (most recent call last):\n  File", "starts"),
            ("no frames\n    at all", "no frames"),
            ("Subagent timed out after 1200000ms.", "Timed out after 20m."),
            ("Subagent timed out.", "Timed out."),
            ("Subagent stopped by user.", "Stopped by user."),
            ("Command timed out after 1500ms.", "Command timed out after 1500ms."),
            ("Command timed out: no sign of life for 90000ms.", "Command timed out: no sign of life for 90s."),
            ("Tool 'bash' timed out after 1500ms.", "Tool 'bash' timed out after 1500ms."),
            ("it timed out after all", "it timed out after all"),
        ] {
            assert_eq!(cause(text).lines().next().unwrap_or_default(), first, "{text}");
        }
        assert_eq!(cause(python), "ValueError: no\nsecond line", "what follows it stays");
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_cause_that_ends_like_it(text in "(?s)[ aE\\t\n{]*((Traceback \\(most recent call last\\):|    at |error:|é| timed out after 9ms)[ a\n]*){0,4}") {
            let told = cause(&text);
            proptest::prop_assert!(message(text.trim()).or_else(|| in_words(&text)).is_some() || text.trim().ends_with(told.as_ref()));
        }
    }
}
