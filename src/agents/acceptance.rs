//! The report of its work that an agent ends its answer with, when it is asked for one (runner-behaviour 9). Owns how it
//! is found in a text and read; what it is worth is said in [`crate::run`].

use serde_json::{Map, Value};

use crate::run::{AcceptanceReport, Claim};

/// Why a text has no report that can be used.
const NONE: &str = "there is no acceptance report in the answer";

/// The report that a text holds.
///
/// # Errors
/// A sentence that says what is wrong with it, or that there is none.
pub fn report(text: &str) -> Result<AcceptanceReport, String> {
    match find(text) {
        Some(found) => read(text.get(found.body.clone()).unwrap_or_default()),
        None => Err(NONE.to_owned()),
    }
}

/// Whether a text holds a report, well made or not.
#[must_use]
pub fn holds(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), b"```acceptance").is_some() && find(text).is_some()
}

/// The text as people read it: without the report at its end.
#[must_use]
pub fn strip(text: &str) -> &str {
    match find(text) {
        Some(found) if text.get(found.whole.end..).is_some_and(|rest| rest.trim().is_empty()) => {
            text.get(..found.whole.start).unwrap_or(text).trim_end()
        }
        _ => text,
    }
}

/// Where a report stands.
struct Found {
    whole: std::ops::Range<usize>,
    body: std::ops::Range<usize>,
}

/// The newest block that says that it is one; else the newest block of JSON that looks like one; else what follows the
/// mark of older agents.
fn find(text: &str) -> Option<Found> {
    let blocks = blocks(text);
    let named = blocks.iter().rev().find(|(tag, _)| matches!(tag.as_str(), "acceptance-report" | "acceptance_report"));
    let like = |found: &Found| {
        let value = serde_json::from_str::<Value>(text.get(found.body.clone()).unwrap_or_default().trim());
        value.ok().and_then(|v| v.as_object().map(|o| looks_like_one(unwrapped(o)))).unwrap_or(false)
    };
    let json =
        || blocks.iter().rev().find(|(tag, found)| matches!(tag.as_str(), "json" | "jsonc" | "json5") && like(found));
    if let Some((_, found)) = named.or_else(json) {
        return Some(Found { whole: found.whole.clone(), body: found.body.clone() });
    }
    const MARK: &str = "ACCEPTANCE_REPORT:";
    let mark = text.rfind(MARK)?;
    let open = mark + MARK.len() + text.get(mark + MARK.len()..)?.find('{')?;
    let end = open + balanced(text.get(open..)?)?;
    Some(Found { whole: mark..end, body: open..end })
}

/// The fenced blocks of a text with their tags; the last one may have no end.
fn blocks(text: &str) -> Vec<(String, Found)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, usize, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let Some(fence) = line.find("```") else { continue };
        let alone = line.get(..fence).is_some_and(|before| before.trim().is_empty());
        let tag = line.get(fence + 3..).unwrap_or_default().trim().to_lowercase();
        match open.take() {
            Some((tag, whole, body)) if alone => blocks.push((tag, Found { whole: whole..end, body: body..start })),
            Some(still) => open = Some(still),
            // A report may begin behind the last word.
            None if alone || tag.starts_with("acceptance") => open = Some((tag, start + fence, end)),
            None => {}
        }
    }
    if let Some((tag, whole, body)) = open {
        blocks.push((tag, Found { whole: whole..text.len(), body: body..text.len() }));
    }
    blocks
}

/// The length of the JSON object that a text begins with.
fn balanced(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A report may stand in an object with nothing else.
fn unwrapped(object: &Map<String, Value>) -> &Map<String, Value> {
    match object.iter().next() {
        Some((key, Value::Object(inner))) if object.len() == 1 && key.to_lowercase().starts_with("acceptance") => inner,
        _ => object,
    }
}

fn looks_like_one(object: &Map<String, Value>) -> bool {
    let known = |key: &String| NAMES.iter().any(|(name, _)| *name == camel(key));
    object.keys().any(|key| camel(key) == "criteriaSatisfied") && object.keys().filter(|key| known(key)).count() > 1
}

/// The fields of a report, and what each holds.
const NAMES: [(&str, Holds); 11] = [
    ("criteriaSatisfied", Holds::Claims),
    ("changedFiles", Holds::Words),
    ("testsAddedOrUpdated", Holds::Words),
    ("commandsRun", Holds::Claims),
    ("validationOutput", Holds::Words),
    ("residualRisks", Holds::Words),
    ("noStagedFiles", Holds::Truth),
    ("diffSummary", Holds::Text),
    ("reviewFindings", Holds::Words),
    ("manualNotes", Holds::Text),
    ("notes", Holds::Text),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Claims,
    Words,
    Text,
    Truth,
}

fn read(body: &str) -> Result<AcceptanceReport, String> {
    let wrong = |what: String| format!("the acceptance report is not valid: {what}");
    let body = body.trim();
    // Some put a word in front of the object.
    let body = body.find('{').and_then(|at| body.get(at..)).unwrap_or(body);
    let body = balanced(body).and_then(|end| body.get(..end)).unwrap_or(body);
    let value: Value = serde_json::from_str(body).map_err(|error| wrong(error.to_string()))?;
    let Some(object) = value.as_object() else { return Err(wrong("it is no object".to_owned())) };
    let mut report = AcceptanceReport::default();
    let mut known = 0;
    for (key, value) in unwrapped(object) {
        let name = camel(key);
        let Some((name, holds)) = NAMES.iter().find(|(known, _)| *known == name) else {
            return Err(wrong(format!("there is no field `{key}`")));
        };
        known += 1;
        let expected = |what: &str| wrong(format!("`{name}` is not {what}"));
        match holds {
            Holds::Words => {
                report.lists.push(((*name).to_owned(), words(value).ok_or_else(|| expected("a list of texts"))?))
            }
            Holds::Truth => report.no_staged_files = Some(truth(value).ok_or_else(|| expected("true or false"))?),
            Holds::Text => {
                let text = value.as_str().ok_or_else(|| expected("a text"))?.to_owned();
                let place = if *name == "diffSummary" { &mut report.diff_summary } else { &mut report.notes };
                *place = Some(text);
            }
            Holds::Claims if *name == "criteriaSatisfied" => {
                report.criteria = claims(value, ["id", "status", "evidence"], criterion).map_err(|e| expected(&e))?;
            }
            Holds::Claims => {
                let commands = claims(value, ["command", "result", "summary"], command).map_err(|e| expected(&e))?;
                report.commands = Some(commands);
            }
        }
    }
    report.lists.sort_by_key(|(name, _)| AcceptanceReport::LISTS.iter().position(|known| known == name));
    if known == 0 { Err(wrong("it is empty".to_owned())) } else { Ok(report) }
}

/// `changed_files` and `changedFiles` are the same.
fn camel(key: &str) -> String {
    let mut parts = key.split('_');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut chars = part.chars();
        name.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        name.push_str(chars.as_str());
    }
    name
}

/// One text counts as a list of one, and an empty text in a list as nothing.
fn words(value: &Value) -> Option<Vec<String>> {
    let one = |value: &Value| value.as_str().map(|text| text.trim().to_owned());
    let words: Vec<String> = match value {
        Value::Array(items) => items.iter().map(one).collect::<Option<_>>()?,
        other => vec![one(other)?],
    };
    Some(words.into_iter().filter(|word| !word.is_empty()).collect())
}

fn truth(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| match value.as_str()?.trim().to_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    })
}

/// What a list of objects claims; one object counts as a list of one.
fn claims(
    value: &Value,
    [what, status, evidence]: [&str; 3],
    word: fn(&str) -> Option<&'static str>,
) -> Result<Vec<Claim>, String> {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        Value::Object(_) => std::slice::from_ref(value),
        _ => return Err("a list of objects".to_owned()),
    };
    let mut claims = Vec::with_capacity(items.len());
    for item in items {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default();
        let told = text(status);
        let status = word(told).ok_or_else(|| format!("right: `{told}` is no {status}"))?;
        let (what, evidence) = (text(what).to_owned(), text(evidence).to_owned());
        if evidence.is_empty() {
            return Err(format!("complete: `{what}` has nothing that shows it"));
        }
        claims.push(Claim { what, status: status.to_owned(), evidence });
    }
    Ok(claims)
}

fn criterion(told: &str) -> Option<&'static str> {
    Some(match plain(told).as_str() {
        "satisfied" | "met" | "complete" | "completed" | "done" | "pass" | "passed" | "success" => "satisfied",
        "notsatisfied" | "notmet" | "unmet" | "incomplete" | "fail" | "failed" => "not-satisfied",
        "notapplicable" | "na" | "skip" | "skipped" => "not-applicable",
        _ => return None,
    })
}

fn command(told: &str) -> Option<&'static str> {
    Some(match plain(told).as_str() {
        "passed" | "pass" | "success" | "successful" | "succeeded" | "ok" => "passed",
        "failed" | "fail" | "failure" | "error" => "failed",
        "notrun" | "skip" | "skipped" => "not-run",
        _ => return None,
    })
}

fn plain(told: &str) -> String {
    told.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BODY: &str = r#"{ "criteriaSatisfied": [{ "id": "c-1", "status": "Met", "evidence": "it runs" }],
        "changed_files": "src/a.rs", "commandsRun": { "command": "make", "result": "OK", "summary": "fine } {" },
        "residualRisks": [""], "noStagedFiles": "true", "notes": "that is all" }"#;

    #[test]
    fn a_report_is_found_however_it_is_marked() {
        let wrapped = format!("{{ \"acceptanceReport\": {BODY} }}");
        for text in [
            format!("Done.\n\n```acceptance-report\n{BODY}\n```\n"),
            format!("Done.\n```acceptance_report\n{BODY}"),
            format!("Done. ```acceptance-report\n{BODY}\n```"),
            format!("Done.\n```js\nlet x;\n```\n```json\n{BODY}\n```"),
            format!("Done.\n```acceptance-report\n{wrapped}\n```\n"),
            format!("Done.\nACCEPTANCE_REPORT: {BODY}\n"),
        ] {
            let report = report(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!((report.criteria[0].what.as_str(), report.criteria[0].status.as_str()), ("c-1", "satisfied"));
            let commands = report.commands.unwrap();
            assert_eq!((commands[0].what.as_str(), commands[0].status.as_str()), ("make", "passed"));
            let lists =
                [("changedFiles".to_owned(), vec!["src/a.rs".to_owned()]), ("residualRisks".to_owned(), vec![])];
            assert_eq!(report.lists, lists);
            assert_eq!((report.no_staged_files, report.notes.as_deref()), (Some(true), Some("that is all")));
            let shown = strip(&text);
            assert!(shown.starts_with("Done.") && !shown.contains("criteriaSatisfied"), "{shown}");
        }
        assert!(holds(&format!("x\n```acceptance-report\n{BODY}\n```")) && !holds("```json\n{}\n```"));
    }

    #[test]
    fn what_is_no_report_is_left_alone() {
        for text in ["", "Done.", "```json\n{ \"a\": 1 }\n```", "```json\n{ broken\n```", "ACCEPTANCE_REPORT: soon"] {
            assert_eq!(report(text).unwrap_err(), NONE, "{text}");
            assert_eq!(strip(text), text);
        }
        // More follows, so it is a part of the answer.
        let text = format!("```acceptance-report\n{BODY}\n```\nand more");
        assert_eq!(strip(&text), text);
    }

    #[test]
    fn what_is_wrong_with_a_report_is_said() {
        for (body, why) in [
            ("{", "not valid"),
            ("[]", "no object"),
            ("{}", "empty"),
            (r#"{ "changedFiles": [1] }"#, "`changedFiles` is not a list of texts"),
            (r#"{ "changedFile": [] }"#, "no field `changedFile`"),
            (r#"{ "noStagedFiles": 1 }"#, "`noStagedFiles` is not true or false"),
            (r#"{ "criteriaSatisfied": [{ "id": "c", "status": "maybe", "evidence": "x" }] }"#, "`maybe` is no status"),
            (r#"{ "criteriaSatisfied": [{ "id": "c", "status": "met" }] }"#, "`c` has nothing that shows it"),
            (r#"{ "commandsRun": "make" }"#, "`commandsRun` is not a list of objects"),
        ] {
            let error = report(&format!("```acceptance-report\n{body}\n```")).unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in r#"([a-z{}\[\]":,\\ ]|é|```|\n|acceptance-report|ACCEPTANCE_REPORT:|json)*"#) {
            let _ = report(&text);
            prop_assert!(text.starts_with(strip(&text)));
        }
    }
}
