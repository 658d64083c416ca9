//! How a child's end becomes the outcome of an attempt: what the agent reported, how its process ended, and what was
//! asked of it. The one rule above all: an agent that never said that it was done is never complete, whatever its
//! exit code.

use super::{Ending, EndingCause, ExitInfo, StepOutcome, StepPhase};

/// What a child's output amounts to. Adapters in [`crate::agents`] make it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The text of the last good message of the assistant, or the end of a plain command's output.
    pub final_text: Option<String>,
    /// The child is a plain command: its exit code alone decides.
    pub plain: bool,
    /// The agent said that nothing more will come.
    pub settled: bool,
    /// The last word of the model was a whole answer without tools and without an error.
    pub clean_stop: bool,
    /// The agent said that its loop ended and will not start again by itself.
    pub ended: bool,
    /// The agent was told to break off and did.
    pub aborted: bool,
    /// The error of the last message of the assistant, unless a good one came after it.
    pub assistant_error: Option<String>,
    /// The last tool error that came after the last text of the assistant, and its exit code.
    pub hidden_error: Option<(String, i32)>,
    /// The agent refused our command or broke its protocol.
    pub protocol_error: Option<String>,
    /// The end of what was printed on standard output outside the protocol.
    pub raw_tail: String,
    /// The output ended in the middle of a record.
    pub torn: bool,
    /// Whether any message, tool call or usage came (for plain commands: any output).
    pub saw_any_event: bool,
}

impl Report {
    /// Whether the agent said that it was done.
    #[must_use]
    pub const fn terminal_record_seen(&self) -> bool {
        self.settled || self.clean_stop || self.ended
    }
}

/// Everything that decides how an attempt ended.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What the output amounts to.
    pub report: &'a Report,
    /// How the process ended.
    pub exit: ExitInfo,
    /// The operating system's error, when the process could not be started.
    pub spawn_error: Option<&'a str>,
    /// Why the child was being ended, if it was.
    pub ending: Option<&'a Ending>,
    /// The end of standard error.
    pub stderr_tail: &'a str,
}

/// How an attempt ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The outcome; `output` in it is left to the caller, who knows its name.
    pub outcome: StepOutcome,
    /// The text of the attempt; never empty for a stop or a timeout.
    pub text: String,
}

/// The sentence of a stop that carries none (run-directory 3.2).
pub const STOPPED: &str = "Subagent stopped by user.";

/// Decides how an attempt ended (runner-behaviour 1.7 and 1.8, run-directory 8.3).
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let text = evidence.report.final_text.clone().unwrap_or_default();
    if let Some(ending) = evidence.ending {
        match ending.cause {
            EndingCause::RunStop | EndingCause::StepStop | EndingCause::Kill => {
                let outcome = StepOutcome {
                    phase: StepPhase::Stopped,
                    exit_code: 1,
                    error: Some(sentence(ending, STOPPED)),
                    stopped: true,
                    ..StepOutcome::default()
                };
                return or_message(outcome, text);
            }
            EndingCause::Budget | EndingCause::RunBudget => {
                return or_message(failed(1, sentence(ending, "Over budget.")), text);
            }
            EndingCause::RunTimeout | EndingCause::StepTimeout | EndingCause::ToolTimeout => {
                let outcome = StepOutcome {
                    phase: StepPhase::Failed,
                    exit_code: 1,
                    error: Some(sentence(ending, "Subagent timed out.")),
                    timed_out: true,
                    ..StepOutcome::default()
                };
                return or_message(outcome, text);
            }
            EndingCause::Interrupt => {
                let outcome = StepOutcome { phase: StepPhase::Paused, ..StepOutcome::default() };
                return Judgement { outcome, text };
            }
            EndingCause::Protocol => {
                let error = evidence.report.protocol_error.clone();
                let error = error.unwrap_or_else(|| sentence(ending, "the agent broke its protocol"));
                return Judgement { outcome: failed(1, error), text };
            }
            EndingCause::Drain => {}
        }
    }
    match failure(evidence) {
        Some((code, error)) => {
            let mut outcome = failed(code, error);
            outcome.signal = if evidence.ending.is_none() { evidence.exit.signal } else { None };
            Judgement { outcome, text }
        }
        None => {
            let outcome = StepOutcome { phase: StepPhase::Complete, ..StepOutcome::default() };
            Judgement { outcome, text }
        }
    }
}

/// The exit code and the error of an attempt that nobody ended early; `None` when it is complete.
fn failure(evidence: &Evidence<'_>) -> Option<(i32, String)> {
    let report = evidence.report;
    if let Some(error) = evidence.spawn_error {
        return Some((1, error.to_owned()));
    }
    // A child that was ended by us after its last word did not fail because of that.
    let drained = evidence.ending.is_some() && (report.clean_stop || report.settled);
    let (code, signal) = if drained && evidence.exit.code.is_none_or(|code| code != 0) {
        (Some(0), None)
    } else {
        (evidence.exit.code, evidence.exit.signal)
    };
    let own_code = code.filter(|code| *code != 0).unwrap_or(1);
    if let Some(error) = report.protocol_error.as_ref().or(report.assistant_error.as_ref()) {
        return Some((own_code, error.clone()));
    }
    if let Some(signal) = signal {
        return Some((1, format!("Subagent process terminated by signal {}.", signal_name(signal))));
    }
    match code {
        None => return Some((1, "how the process ended could not be learnt".to_owned())),
        Some(0) => {}
        Some(code) => {
            let stderr = evidence.stderr_tail.trim();
            let error = if stderr.is_empty() { format!("exited with code {code}") } else { stderr.to_owned() };
            return Some((code, error));
        }
    }
    if report.plain {
        return None;
    }
    if let Some((error, code)) = &report.hidden_error {
        return Some((*code, error.clone()));
    }
    let empty = report.final_text.as_ref().is_none_or(|text| text.trim().is_empty());
    if !report.terminal_record_seen() {
        let error = if empty {
            "the agent produced no output and ended without saying that it was done"
        } else {
            "the agent ended without saying that it was done"
        };
        return Some((1, error.to_owned()));
    }
    // Something more was being said when the output broke off, so the last word is not known. A child that was ended
    // after its last word may have been cut in the middle of a repetition.
    if report.torn && !drained {
        return Some((1, "the agent's output broke off in the middle of a record".to_owned()));
    }
    empty.then(|| (1, "the agent produced no output".to_owned()))
}

fn failed(exit_code: i32, error: String) -> StepOutcome {
    StepOutcome { phase: StepPhase::Failed, exit_code, error: Some(error), ..StepOutcome::default() }
}

fn sentence(ending: &Ending, otherwise: &str) -> String {
    if ending.message.is_empty() { otherwise.to_owned() } else { ending.message.clone() }
}

/// A stop or a timeout always has a text, if only the sentence itself (runner-behaviour 1.7).
fn or_message(outcome: StepOutcome, text: String) -> Judgement {
    let text = if text.trim().is_empty() { outcome.error.clone().unwrap_or_default() } else { text };
    Judgement { outcome, text }
}

/// The name of a signal, such as `SIGKILL`; `signal 42` where it has no name that is the same everywhere.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return named_by_system(signal).map_or_else(|| format!("signal {signal}"), str::to_owned),
    };
    name.to_owned()
}

/// Signals whose numbers differ between systems.
fn named_by_system(signal: i32) -> Option<&'static str> {
    use rustix::process::Signal;
    let table =
        [(Signal::BUS, "SIGBUS"), (Signal::USR1, "SIGUSR1"), (Signal::USR2, "SIGUSR2"), (Signal::XCPU, "SIGXCPU")];
    table.into_iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Timestamp;

    fn exit(code: i32) -> ExitInfo {
        ExitInfo { code: Some(code), signal: None }
    }

    fn signal(signal: i32) -> ExitInfo {
        ExitInfo { code: None, signal: Some(signal) }
    }

    fn ending(cause: EndingCause, message: &str) -> Ending {
        Ending {
            cause,
            since: Timestamp::from_millis(0),
            message: message.to_owned(),
            abort_at: None,
            int_at: None,
            term_at: None,
            kill_at: None,
        }
    }

    fn good() -> Report {
        Report {
            final_text: Some("done".into()),
            settled: true,
            clean_stop: true,
            ended: true,
            saw_any_event: true,
            ..Report::default()
        }
    }

    struct Case {
        name: &'static str,
        report: Report,
        exit: ExitInfo,
        ending: Option<Ending>,
        stderr: &'static str,
        phase: StepPhase,
        code: i32,
        error: Option<&'static str>,
        text: &'static str,
    }

    fn case(name: &'static str, report: Report, exit: ExitInfo) -> Case {
        Case {
            name,
            report,
            exit,
            ending: None,
            stderr: "",
            phase: StepPhase::Complete,
            code: 0,
            error: None,
            text: "done",
        }
    }

    impl Case {
        fn ending(mut self, cause: EndingCause, message: &str) -> Self {
            self.ending = Some(ending(cause, message));
            self
        }
        fn fails(mut self, code: i32, error: &'static str) -> Self {
            (self.phase, self.code, self.error) = (StepPhase::Failed, code, Some(error));
            self
        }
        fn is(mut self, phase: StepPhase, code: i32, error: Option<&'static str>) -> Self {
            (self.phase, self.code, self.error) = (phase, code, error);
            self
        }
        fn stderr(mut self, text: &'static str) -> Self {
            self.stderr = text;
            self
        }
        fn text(mut self, text: &'static str) -> Self {
            self.text = text;
            self
        }
    }

    #[test]
    fn table() {
        use EndingCause::{Drain, Interrupt, Kill, Protocol, RunStop, RunTimeout, StepStop, StepTimeout};
        let unfinished = Report { settled: false, clean_stop: false, ended: false, ..good() };
        let plain = Report { plain: true, final_text: Some("done".into()), ..Report::default() };
        let error = |text: &str| Report { assistant_error: Some(text.into()), clean_stop: false, ..good() };
        let hidden = Report { hidden_error: Some(("bash failed (exit 7): no".into(), 7)), ..good() };
        let silent = Report { final_text: None, clean_stop: false, ..good() };
        let cases = [
            case("clean", good(), exit(0)),
            case("settled after a cut answer", Report { clean_stop: false, ..good() }, exit(0)),
            case("a clean stop is enough", Report { settled: false, ended: false, ..good() }, exit(0)),
            case("no last word", unfinished.clone(), exit(0))
                .fails(1, "the agent ended without saying that it was done"),
            case("nothing at all", Report::default(), exit(0))
                .fails(1, "the agent produced no output and ended without saying that it was done")
                .text(""),
            case("empty answer", silent.clone(), exit(0)).fails(1, "the agent produced no output").text(""),
            case("white space is no answer", Report { final_text: Some(" \n".into()), ..good() }, exit(0))
                .fails(1, "the agent produced no output")
                .text(" \n"),
            case("hidden tool error", hidden.clone(), exit(0)).fails(7, "bash failed (exit 7): no"),
            case("provider error with exit 0", error("400: bad"), exit(0)).fails(1, "400: bad"),
            case("provider error beats stderr", error("400: bad"), exit(3)).stderr("noise").fails(3, "400: bad"),
            case("refused prompt", Report { protocol_error: Some("refused".into()), ..Report::default() }, exit(0))
                .fails(1, "refused")
                .text(""),
            case("exit code", good(), exit(3)).fails(3, "exited with code 3"),
            case("exit code with stderr", good(), exit(3)).stderr("  boom\n").fails(3, "boom"),
            case("stderr of a good run is no error", good(), exit(0)).stderr("warning"),
            case("killed from outside", unfinished.clone(), signal(9))
                .fails(1, "Subagent process terminated by signal SIGKILL."),
            case("killed after its last word, not by us", good(), signal(15))
                .fails(1, "Subagent process terminated by signal SIGTERM."),
            case("unknown end", good(), ExitInfo::default()).fails(1, "how the process ended could not be learnt"),
            // Ended by us.
            case("drain", good(), signal(15)).ending(Drain, ""),
            case("drain with an exit code", good(), exit(143)).ending(Drain, ""),
            case("drain, hidden error", hidden, signal(9)).ending(Drain, "").fails(7, "bash failed (exit 7): no"),
            case("drain, provider error", error("500"), signal(15)).ending(Drain, "").fails(1, "500"),
            case("drain without a last word", unfinished.clone(), signal(9))
                .ending(Drain, "")
                .fails(1, "Subagent process terminated by signal SIGKILL."),
            case("interrupt", unfinished.clone(), exit(143)).ending(Interrupt, "").is(StepPhase::Paused, 0, None),
            case("interrupt by protocol", error("This operation was aborted"), exit(0)).ending(Interrupt, "").is(
                StepPhase::Paused,
                0,
                None,
            ),
            case("interrupt without text", Report::default(), signal(2))
                .ending(Interrupt, "")
                .is(StepPhase::Paused, 0, None)
                .text(""),
            case("stop", unfinished.clone(), signal(15)).ending(RunStop, "").is(StepPhase::Stopped, 1, Some(STOPPED)),
            case("stop, own words, no text", Report::default(), signal(9))
                .ending(StepStop, "Step stopped.")
                .is(StepPhase::Stopped, 1, Some("Step stopped."))
                .text("Step stopped."),
            case("kill", unfinished.clone(), signal(9)).ending(Kill, "").is(StepPhase::Stopped, 1, Some(STOPPED)),
            case("stop of a child that fails", error("500"), exit(1)).ending(RunStop, "").is(
                StepPhase::Stopped,
                1,
                Some(STOPPED),
            ),
            case("run timeout", good(), exit(0))
                .ending(RunTimeout, "timed out after 5ms")
                .fails(1, "timed out after 5ms"),
            case("step timeout without text", silent, signal(15))
                .ending(StepTimeout, "timed out after 5ms")
                .fails(1, "timed out after 5ms")
                .text("timed out after 5ms"),
            case("protocol", unfinished, signal(15)).ending(Protocol, "nonsense").fails(1, "nonsense"),
            // Plain commands.
            case("command", plain.clone(), exit(0)),
            case("silent command", Report { final_text: None, ..plain.clone() }, exit(0)).text(""),
            case("command fails", plain.clone(), exit(2)).stderr("no such file\n").fails(2, "no such file"),
            case("command fails silently", plain.clone(), exit(2)).fails(2, "exited with code 2"),
            case("command killed", plain, signal(11)).fails(1, "Subagent process terminated by signal SIGSEGV."),
        ];
        for case in cases {
            let found = judge(&Evidence {
                report: &case.report,
                exit: case.exit,
                spawn_error: None,
                ending: case.ending.as_ref(),
                stderr_tail: case.stderr,
            });
            let outcome = &found.outcome;
            assert_eq!(outcome.phase, case.phase, "{}", case.name);
            assert_eq!(outcome.exit_code, case.code, "{}", case.name);
            assert_eq!(outcome.error.as_deref(), case.error, "{}", case.name);
            assert_eq!(found.text, case.text, "{}", case.name);
            assert_eq!(outcome.stopped, case.phase == StepPhase::Stopped, "{}", case.name);
            let timeout = case.ending.as_ref().is_some_and(|e| matches!(e.cause, RunTimeout | StepTimeout));
            assert_eq!(outcome.timed_out, timeout, "{}", case.name);
            let from_outside = case.ending.is_none().then_some(case.exit.signal).flatten();
            assert_eq!(outcome.signal, from_outside, "{}", case.name);
        }
    }

    #[test]
    fn a_child_that_never_started() {
        let found = judge(&Evidence {
            report: &Report::default(),
            exit: ExitInfo::default(),
            spawn_error: Some("no such file or directory: nope"),
            ending: None,
            stderr_tail: "",
        });
        assert_eq!(found.outcome.phase, StepPhase::Failed);
        assert_eq!(
            (found.outcome.exit_code, found.outcome.error.as_deref()),
            (1, Some("no such file or directory: nope"))
        );
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_name(9), "SIGKILL");
        assert_eq!(signal_name(rustix::process::Signal::USR1.as_raw()), "SIGUSR1");
        assert_eq!(signal_name(99), "signal 99");
    }
}
