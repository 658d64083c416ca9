//! Amp, whose lines are like those of Claude Code (agent-streams 8). Nobody here could drive it: it needs its own service. What
//! stands here is what its own documents say, so it is started in the plainest way: one prompt on standard input, no messages,
//! no interrupt over its protocol. What its input lines do in the middle of a turn was never seen.

use super::{ClaudeAdapter, talk};
use crate::agents::OneShot;
use crate::agents::families::{Agents, Input, Start, Voice};
use crate::run::Permission;

/// The family of Amp.
pub struct Amp;

impl Agents for Amp {
    fn arguments(&self, start: &Start<'_>) -> Vec<String> {
        let mut args: Vec<&str> = Vec::new();
        if let Some(thread) = start.resume {
            args.extend(["threads", "continue", thread]);
        }
        // A thread that is archived when it ends could not be gone on with.
        args.extend(["-x", "--stream-json", "--no-archive-after-execute"]);
        // By itself it does what its own settings allow, and asks nobody.
        if start.kind.permission == Permission::Allow {
            args.push("--dangerously-allow-all");
        }
        if let Some(model) = start.model {
            args.extend(["-m", model]);
        }
        args.into_iter().map(str::to_owned).collect()
    }

    fn variables(&self, _start: &Start<'_>) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    fn voice(&self, start: &Start<'_>) -> Voice {
        let task = match start.system_text.map(str::trim).filter(|text| !text.is_empty()) {
            Some(system) => format!("{system}\n\n{}", talk::task(start.task)),
            None => talk::task(start.task),
        };
        Voice {
            adapter: Box::new(ClaudeAdapter::new(start.resume.is_some())),
            talk: Box::new(OneShot { reason: "Amp was started with one prompt" }),
            input: Input::Once(task.into_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::told::play;
    use crate::run::{AgentEvent, AgentKind, Family, ToolOutcome, Transport};

    fn start(permission: Permission) -> Start<'static> {
        Start {
            task: "secret",
            ..Start::new(AgentKind { family: Family::Amp, transport: Transport::OneShot, permission })
        }
    }

    #[test]
    fn what_it_is_started_with() {
        let plain = Amp.arguments(&start(Permission::Ask)).join(" ");
        assert_eq!(plain, "-x --stream-json --no-archive-after-execute");
        let full = Start { resume: Some("T-1"), model: Some("high"), ..start(Permission::Allow) };
        let rest = "-x --stream-json --no-archive-after-execute --dangerously-allow-all -m high";
        assert_eq!(Amp.arguments(&full).join(" "), format!("threads continue T-1 {rest}"));
        let told = Start { system_text: Some("Be brief.\n"), ..start(Permission::Ask) };
        assert_eq!(Amp.voice(&told).input, Input::Once(b"Be brief.\n\nTask: secret".to_vec()));
    }

    /// Written after the types of its own library, in which an error is one text and nothing is said of cost.
    #[test]
    fn its_lines_are_understood_like_those_of_claude() {
        let began = r#"{"type":"system","subtype":"init","session_id":"T-1","cwd":"/x","tools":["Bash"],"mcp_servers":[]}
{"type":"assistant","session_id":"T-1","parent_tool_use_id":null,"message":{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"cmd":"ls"}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":1}}}
{"type":"user","session_id":"T-1","parent_tool_use_id":null,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x","is_error":false}]}}
"#;
        let done = r#"{"type":"assistant","session_id":"T-1","parent_tool_use_id":null,"message":{"type":"message","role":"assistant","content":[{"type":"text","text":"fine"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}}
{"type":"result","subtype":"success","is_error":false,"result":"fine","duration_ms":9,"num_turns":2,"session_id":"T-1","usage":{"input_tokens":8,"output_tokens":3}}
"#;
        let (seen, report) = play(&mut ClaudeAdapter::new(false), &format!("{began}{done}"));
        assert!(report.settled && report.clean_stop && report.final_text.as_deref() == Some("fine"), "{report:?}");
        let ended = |event: &AgentEvent| matches!(event, AgentEvent::ToolEnded { outcome: ToolOutcome::Ok, .. });
        assert!(seen.events.iter().any(ended));
        let failed = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"error":"no credits","duration_ms":9,"num_turns":1,"session_id":"T-1"}
"#;
        let (_, report) = play(&mut ClaudeAdapter::new(false), &format!("{began}{failed}"));
        assert_eq!(report.assistant_error.as_deref(), Some("no credits"));
    }
}
