//! Children that misbehave: whatever they print, the adapter stays in step and the judgement is right.

use std::process::{Command, Stdio};

use subdeck::agents::pi::PiAdapter;
use subdeck::agents::{Adapter, Framer, Sink};
use subdeck::run::{AgentEvent, Evidence, ExitInfo, StepPhase, Stream, judge};

#[derive(Default)]
struct Seen {
    unparsed: usize,
    unknown: Vec<String>,
    records: Vec<Vec<u8>>,
    log: String,
}

impl Sink for Seen {
    fn event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Unparsed { .. } => self.unparsed += 1,
            AgentEvent::Unknown { kind } => self.unknown.push(kind),
            _ => {}
        }
    }
    fn keep_line(&mut self) {}
    fn record(&mut self, json: &[u8]) {
        self.records.push(json.to_vec());
    }
    fn text(&mut self, _stream: Stream, text: &str) {
        self.log.push_str(text);
    }
}

fn run(args: &[&str]) -> (Seen, StepPhase, i32, Option<String>) {
    use std::os::unix::process::ExitStatusExt;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bin/agent.sh");
    let output = Command::new("sh").arg(script).args(args).stdin(Stdio::null()).output().expect("sh runs");
    let (mut seen, mut adapter, mut framer) = (Seen::default(), PiAdapter::new(), Framer::new());
    for chunk in output.stdout.chunks(65_536) {
        framer.push(chunk, |line| adapter.line(&line, &mut seen));
    }
    framer.finish(|line| adapter.line(&line, &mut seen));
    adapter.flush(&mut seen);
    let judged = judge(&Evidence {
        report: &adapter.report(),
        exit: ExitInfo { code: output.status.code(), signal: output.status.signal() },
        spawn_error: None,
        ending: None,
        stderr_tail: &String::from_utf8_lossy(&output.stderr),
    });
    (seen, judged.outcome.phase, judged.outcome.exit_code, judged.outcome.error)
}

/// Mode, how many lines of text it prints, and what it comes to.
type Row = (&'static [&'static str], usize, StepPhase, i32, Option<&'static str>);

#[test]
fn whatever_they_print() {
    let killed = "Subagent process terminated by signal SIGKILL.";
    let cut = "the agent produced no output and ended without saying that it was done";
    let table: &[Row] = &[
        (&["ok"], 0, StepPhase::Complete, 0, None),
        (&["no-newline"], 0, StepPhase::Complete, 0, None),
        (&["crlf"], 0, StepPhase::Complete, 0, None),
        (&["bytes"], 2, StepPhase::Complete, 0, None),
        (&["escapes"], 1, StepPhase::Complete, 0, None),
        (&["long-line"], 0, StepPhase::Complete, 0, None),
        (&["flood", "1000"], 1000, StepPhase::Complete, 0, None),
        (&["stderr", "50"], 0, StepPhase::Complete, 0, None),
        // The line that was cut is text.
        (&["cut"], 1, StepPhase::Failed, 1, Some(cut)),
        (&["fail", "9"], 0, StepPhase::Failed, 9, Some("something is wrong")),
        (&["kill", "KILL"], 0, StepPhase::Failed, 1, Some(killed)),
        (&["rpc"], 0, StepPhase::Failed, 1, Some(cut)),
    ];
    for (args, texts, phase, code, error) in table {
        let (seen, found, exit_code, found_error) = run(args);
        assert_eq!(seen.unparsed, *texts, "{args:?}");
        assert_eq!((found, exit_code, found_error.as_deref()), (phase.clone(), *code, *error), "{args:?}");
        if *phase == StepPhase::Complete {
            assert!(seen.log.contains("fine\n"), "{args:?}: {}", seen.log);
        }
        assert!(seen.records.iter().all(|record| record.len() < 10_000), "{args:?}");
        let unknown: &[String] = if args == &["long-line"] { &["image".to_owned()] } else { &[] };
        assert_eq!(seen.unknown, unknown, "{args:?}");
    }
}
