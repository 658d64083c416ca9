//! Lines that an agent prints outside its protocol.

use super::Sink;
use super::pi::args::tail as tail_of;
use super::pi::line_of;
use crate::run::{AgentEvent, Report, Stream};

/// How much of the end of standard output outside the protocol is kept, in bytes (runner-behaviour 1.5).
const RAW_TAIL: usize = 128 * 1024;

/// Takes such a line into the report, the output log and the event log. The log stands at the beginning of a line.
pub(super) fn line(report: &mut Report, text: &str, complete: bool, sink: &mut dyn Sink) {
    sink.text(Stream::Out, text);
    if complete {
        sink.text(Stream::Out, "\n");
    }
    let tail = &mut report.raw_tail;
    tail.push_str(text);
    tail.push('\n');
    if tail.len() > RAW_TAIL * 2 {
        *tail = tail_of(tail, RAW_TAIL).to_owned();
    }
    let record = serde_json::json!({"type": "subagent.child.stdout", "line": text});
    sink.record(line_of(record).as_bytes());
    sink.event(AgentEvent::Unparsed { stream: Stream::Out });
}

/// A copy of a report with no more of such lines than is kept.
pub(super) fn bounded(report: &Report) -> Report {
    let mut report = report.clone();
    report.raw_tail = tail_of(&report.raw_tail, RAW_TAIL).to_owned();
    report
}
