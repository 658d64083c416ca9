//! The transcript of a step: what was said and done, record by record, in a file that outlives the run directory
//! (run-directory 2.9). Made of the same records as the event log, so a prompt that is not there is not here either.
//!
//! Best effort: the first failure ends it, and is told once.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::child::whole_args;
use super::json::{Json, Obj};
use super::look::Look;
use super::paths::private_dir;
use super::status::REDACTED;
use crate::run::{AgentEvent, StepId, Stream, Timestamp};

/// The most bytes of a transcript.
const MOST: u64 = 50 * 1024 * 1024;
/// The most bytes of what a tool was given or gave.
const PAYLOAD: usize = 32 * 1024;

/// What is left free for the mark at its end, in bytes.
const RESERVE: u64 = 512;
/// The records of a child that say something here.
const KINDS: [&str; 6] = [
    "message_end",
    "tool_result_end",
    "tool_execution_start",
    "tool_execution_end",
    "subagent.child.stdout",
    "subagent.child.stderr",
];

/// Whose transcript it is.
#[derive(Clone, Debug)]
pub struct Whose<'a> {
    /// The run.
    pub run: &'a str,
    /// The step.
    pub step: StepId,
    /// The agent's name.
    pub agent: &'a str,
    /// The folder that the child works in.
    pub cwd: &'a str,
}

/// A transcript that several threads add to.
#[derive(Clone, Debug)]
pub struct Transcript {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    file: Option<File>,
    size: u64,
    most: u64,
    /// The fields that every record has.
    head: Obj,
    error: Option<String>,
}

impl Transcript {
    /// Begins a transcript, in place of an earlier one, with the prompt, whose words are left out.
    #[must_use]
    pub fn begin(path: &Path, whose: &Whose<'_>, at: Timestamp) -> Self {
        Self::bounded(path, whose, at, MOST)
    }

    fn bounded(path: &Path, whose: &Whose<'_>, at: Timestamp, most: u64) -> Self {
        let opened = open(path);
        let error = opened.as_ref().err().map(|error| format!("cannot write {}: {error}", path.display()));
        let mut head = Obj::new();
        head.set("source", "async").set("runId", whose.run).set("agent", whose.agent);
        head.set("childIndex", whose.step.flat()).set("cwd", whose.cwd);
        let inner = Inner { file: opened.ok(), size: 0, most, head, error };
        let transcript = Self { inner: Arc::new(Mutex::new(inner)) };
        let mut content = Obj::new();
        content.set("type", "text").set("text", REDACTED);
        let mut message = Obj::new();
        message.set("role", "user").set("content", Json::Arr(vec![content.into()]));
        transcript.add("message", at, |record| {
            record.set("sourceEventType", "initial_prompt").set("role", "user").set("text", REDACTED);
            record.set("message", message);
        });
        transcript
    }

    /// Adds what a record of the child says, one JSON object in pi's vocabulary; most say nothing here.
    pub fn record(&self, json: &[u8], at: Timestamp) {
        // What is of no interest is known before anything is parsed: by its first bytes where the type stands first.
        let head =
            if json.starts_with(br#"{"type":""#) { json.get(..json.len().min(64)).unwrap_or(json) } else { json };
        if !KINDS.iter().any(|kind| memchr::memmem::find(head, kind.as_bytes()).is_some()) {
            return;
        }
        let Ok(Value::Object(record)) = serde_json::from_slice::<Value>(json) else { return };
        let look = Look(&record);
        match look.str("type") {
            Some(kind @ ("message_end" | "tool_result_end")) => {
                if let Some(message) = look.obj("message") {
                    self.add("message", at, |out| add_message(out, kind, message.0));
                }
            }
            Some(kind @ "tool_execution_start") => self.add("tool_start", at, |out| {
                out.set("sourceEventType", kind).opt("toolCallId", look.str("toolCallId"));
                out.set("toolName", look.str("toolName").unwrap_or_default());
                out.opt("argsPreview", preview(json).filter(|args| !args.is_empty()));
                let args = whole_args(&record).filter(|a| a.as_object().is_some_and(|a| !a.is_empty()));
                out.opt("argsPayload", args.map(|args| cut(&pretty(args)).to_owned()));
            }),
            Some(kind @ "tool_execution_end") => self.add("tool_end", at, |out| {
                out.set("sourceEventType", kind).opt("toolCallId", look.str("toolCallId"));
                out.opt("toolName", look.str("toolName")).opt("isError", look.bool("isError"));
            }),
            Some("subagent.child.stdout") => {
                self.line(Stream::Out, look.str("line").unwrap_or_default().as_bytes(), at)
            }
            Some("subagent.child.stderr") => {
                self.line(Stream::Err, look.str("line").unwrap_or_default().as_bytes(), at)
            }
            _ => {}
        }
    }

    /// Adds a line that is no record.
    pub fn line(&self, stream: Stream, line: &[u8], at: Timestamp) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\r');
        if !text.trim().is_empty() {
            let kind = if stream == Stream::Err { "stderr" } else { "stdout" };
            self.add(kind, at, |record| {
                record.set("text", cut(text));
            });
        }
    }

    /// Why the transcript breaks off; each reason once.
    #[must_use]
    pub fn take_error(&self) -> Option<String> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).error.take()
    }

    fn add(&self, kind: &str, at: Timestamp, fill: impl FnOnce(&mut Obj)) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.file.is_none() {
            return;
        }
        let mut record = inner.begin(kind, at);
        fill(&mut record);
        let mut line = record.line();
        let mut last = false;
        if inner.size + line.len() as u64 > inner.most.saturating_sub(RESERVE) {
            let most = inner.most;
            let mut record = inner.begin("truncated", at);
            record.set("maxBytes", most);
            record.set("message", format!("the transcript is kept up to {most} bytes; the rest is left out"));
            line = record.line();
            last = true;
        }
        let fits = inner.size + line.len() as u64 <= inner.most;
        let written = inner.file.as_mut().filter(|_| fits).map_or(Ok(()), |file| file.write_all(&line));
        match written {
            Ok(()) => inner.size += line.len() as u64,
            Err(error) => {
                inner.error = Some(format!("the transcript breaks off: {error}"));
                last = true;
            }
        }
        if last {
            inner.file = None;
        }
    }
}

impl Inner {
    fn begin(&self, kind: &str, at: Timestamp) -> Obj {
        let mut record = Obj::new();
        record.set("version", 1).set("recordType", kind);
        record.extend(&self.head);
        record.set("ts", at).set("timestamp", iso(at));
        record
    }
}

fn add_message(out: &mut Obj, kind: &str, message: &Map<String, Value>) {
    let look = Look(message);
    let role = look.str("role").unwrap_or_default();
    out.set("sourceEventType", kind).set("role", role);
    let text = texts(message);
    if role == "toolResult" {
        out.opt("toolCallId", look.str("toolCallId")).opt("toolName", look.str("toolName"));
        out.opt("isError", look.bool("isError"));
        let kept = cut(&text);
        out.opt("text", Some(kept).filter(|t| !t.is_empty())).flag("outputTruncated", kept.len() < text.len());
        return;
    }
    out.opt("text", Some(text).filter(|t| !t.is_empty())).opt("model", look.str("model"));
    out.opt("stopReason", look.str("stopReason")).opt("errorMessage", look.str("errorMessage"));
    out.opt("usage", look.obj("usage").map(|usage| normal_usage(&usage)));
    out.set("message", &Value::Object(message.clone()));
}

/// The text blocks of a message, with a line feed between two of them.
fn texts(message: &Map<String, Value>) -> String {
    let look = Look(message);
    if let Some(text) = look.str("content") {
        return text.to_owned();
    }
    look.objs("content").filter_map(|part| part.str("text")).collect::<Vec<_>>().join("\n")
}

fn normal_usage(usage: &Look<'_>) -> Obj {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage.count(name)).unwrap_or(0);
    let cost = usage.num("cost").or_else(|| usage.obj("cost")?.num("total")).unwrap_or(0.0);
    let mut obj = Obj::new();
    obj.set("input", count(["input", "inputTokens"])).set("output", count(["output", "outputTokens"]));
    obj.set("cacheRead", count(["cacheRead", "cacheRead"])).set("cacheWrite", count(["cacheWrite", "cacheWrite"]));
    obj.set("cost", cost);
    obj
}

/// The preview of a call's arguments, as the status has it.
fn preview(json: &[u8]) -> Option<String> {
    let mut said = Vec::new();
    super::child::decode_line(json, &mut said);
    said.into_iter().find_map(|event| match event {
        AgentEvent::ToolStarted { args, .. } => Some(args),
        _ => None,
    })
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn cut(text: &str) -> &str {
    crate::text::prefix(text, PAYLOAD)
}

fn iso(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.millis()).map_or_else(|_| String::new(), |t| format!("{t:.3}"))
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        private_dir(folder)?;
    }
    super::open::overwrite(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_764_000_000_020 + ms)
    }

    fn whose() -> Whose<'static> {
        Whose { run: "r", step: StepId(1), agent: "scout", cwd: "/w" }
    }

    fn records(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn each_record_says_what_happened_and_the_first_one_not_what_was_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/t.jsonl");
        std::fs::create_dir(folder.path().join("new")).unwrap();
        std::fs::write(&path, "of an earlier attempt\n").unwrap();
        let transcript = Transcript::begin(&path, &whose(), at(0));
        for (n, line) in [
            r#"{"type":"agent_start"}"#,
            r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"ls","args":{"path":"src"}}"#,
            r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"ls","isError":false}"#,
            r#"{"type":"message_end","message":{"role":"toolResult","toolCallId":"c","toolName":"ls","content":[{"type":"text","text":"a.rs"}],"isError":false}}"#,
            r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"done"}],"model":"m","stopReason":"stop","usage":{"input":1,"output":2,"cost":{"total":0.5}}}}"#,
            "not json: message_end",
        ]
        .iter()
        .enumerate()
        {
            transcript.record(line.as_bytes(), at(n as i64));
        }
        transcript.line(Stream::Err, b"oh\r", at(9));
        transcript.line(Stream::Out, b"  ", at(9));
        let all = records(&path);
        let kinds: Vec<_> = all.iter().map(|r| r["recordType"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["message", "tool_start", "tool_end", "message", "message", "stderr"]);
        assert_eq!((&all[0]["text"], &all[0]["sourceEventType"]), (&REDACTED.into(), &"initial_prompt".into()));
        for record in &all {
            let of = (&record["version"], &record["source"], &record["childIndex"], &record["cwd"]);
            assert_eq!(of, (&1.into(), &"async".into(), &1.into(), &"/w".into()));
        }
        assert_eq!(
            (&all[1]["argsPreview"], &all[1]["argsPayload"]),
            (&"src".into(), &"{\n  \"path\": \"src\"\n}".into())
        );
        assert_eq!(all[1]["timestamp"], "2025-11-24T16:00:00.021Z");
        assert_eq!((&all[3]["text"], all[3].get("message")), (&"a.rs".into(), None));
        assert_eq!((&all[4]["usage"]["cost"], &all[4]["message"]["model"]), (&0.5.into(), &"m".into()));
        assert_eq!((&all[5]["text"], transcript.take_error()), (&"oh".into(), None));
    }

    #[test]
    fn large_results_are_cut_and_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let transcript = Transcript::begin(&path, &whose(), at(0));
        let long = "é".repeat(PAYLOAD);
        let line =
            serde_json::json!({ "type": "tool_result_end", "message": { "role": "toolResult", "content": long } });
        transcript.record(line.to_string().as_bytes(), at(1));
        let record = records(&path).remove(1);
        assert_eq!((record["text"].as_str().unwrap().len(), &record["outputTruncated"]), (PAYLOAD, &true.into()));
    }

    #[test]
    fn a_full_transcript_ends_with_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let transcript = Transcript::bounded(&path, &whose(), at(0), 2000);
        for n in 0..100 {
            transcript.line(Stream::Out, format!("line {n}").as_bytes(), at(n));
        }
        let all = records(&path);
        assert!(std::fs::metadata(&path).unwrap().len() <= 2000 && all.len() > 2, "{}", all.len());
        assert_eq!(all.iter().filter(|r| r["recordType"] == "truncated").count(), 1);
        let last = all.last().unwrap();
        assert_eq!((&last["recordType"], &last["maxBytes"]), (&"truncated".into(), &2000.into()));
        assert_eq!(transcript.take_error(), None, "to be full is no error");
    }

    #[test]
    fn what_cannot_be_written_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let transcript = Transcript::begin(&folder.path().join("file/t"), &whose(), at(0));
        transcript.line(Stream::Out, b"x", at(1));
        assert!(transcript.take_error().unwrap().contains("file/t"));
        assert_eq!(transcript.take_error(), None);
        // A link may lead anywhere.
        std::os::unix::fs::symlink(folder.path().join("file"), folder.path().join("link")).unwrap();
        assert!(Transcript::begin(&folder.path().join("link"), &whose(), at(0)).take_error().is_some());
    }
}
