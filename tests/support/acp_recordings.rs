//! Recorded output of real agents that speak the Agent Client Protocol, and what a person reads in it.

use subdeck::agents::acp::Dialect;
use subdeck::run::{ExitInfo, StepPhase, ToolOutcome};

fn file(name: &str, end: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/streams/{name}{end}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// What the agent printed.
pub fn read(name: &str) -> Vec<u8> {
    file(name, ".jsonl")
}

/// What the client of the recording wrote to it.
pub fn sent(name: &str) -> Vec<serde_json::Value> {
    let text = String::from_utf8(file(name, ".sent.jsonl")).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

pub const OK: ExitInfo = ExitInfo { code: Some(0), signal: None };

pub struct Recording {
    pub name: &'static str,
    pub dialect: Dialect,
    pub session: &'static str,
    pub model: Option<&'static str>,
    /// Tools in the order they ended.
    pub tools: &'static [(&'static str, ToolOutcome)],
    pub text: Option<&'static str>,
    /// Input, output and cached tokens, and the cost in millionths of a dollar.
    pub usage: (u64, u64, u64, u64),
    /// How often the model was called, as far as the stream tells.
    pub turns: usize,
    pub end: (StepPhase, i32, Option<&'static str>),
}

const DONE: (StepPhase, i32, Option<&str>) = (StepPhase::Complete, 0, None);
pub const HELLO: &str = "Hello! This is a plain text reply, streamed in a few chunks.";
pub const THOUGHT: &str = "Thought about it: 42.";
pub const ALL_DONE: &str = "Final answer for scenario bash: all done.";

pub fn recordings() -> Vec<Recording> {
    use Dialect::{Copilot, Gemini, OpenCode, Qwen};
    use ToolOutcome::{Cancelled, Ok};
    let all = |name, dialect, session, model, tools, text, usage, turns, end| Recording {
        name,
        dialect,
        session,
        model,
        tools,
        text,
        usage,
        turns,
        end,
    };
    let fake = Some("fake/fake-model");
    let qwen = Some("$runtime|openai|fake-model(openai)");
    let gemini = Some("gemini-2.5-pro");
    vec![
        all(
            "opencode-1.18.33-acp-text",
            OpenCode,
            "ses_dd8e849ceffeoKny6dCz2R8vit",
            fake,
            &[],
            Some(THOUGHT),
            (1300, 57, 800, 4995),
            1,
            DONE,
        ),
        // Of several calls only the last one's tokens are told, but the cost of all.
        all(
            "opencode-1.18.33-acp-bash",
            OpenCode,
            "ses_dd8e7f68bffeIbYeeKCDRr14sS",
            fake,
            &[("bash", Ok)],
            Some(ALL_DONE),
            (1300, 57, 800, 9990),
            2,
            DONE,
        ),
        // The second prompt joins the first; both are answered together.
        all(
            "opencode-1.18.33-acp-steer",
            OpenCode,
            "ses_dd8e6f433ffeFaEmQK615IXYsn",
            fake,
            &[("bash", Ok)],
            Some(HELLO),
            (1300, 57, 800, 9990),
            2,
            DONE,
        ),
        all(
            "opencode-1.18.33-acp-cancel",
            OpenCode,
            "ses_dd8e72d52ffe98tMmsjkbGn5M5",
            fake,
            &[("bash", Cancelled)],
            Some(HELLO),
            (1300, 57, 800, 4995),
            2,
            DONE,
        ),
        all(
            "opencode-1.18.33-acp-err400",
            OpenCode,
            "ses_dd8e69fdbffeqcbbjFxIxZ1hqJ",
            fake,
            &[],
            None,
            (0, 0, 0, 0),
            0,
            (StepPhase::Failed, 1, Some("Internal error: scripted bad request")),
        ),
        all(
            "gemini-0.61.0-acp-text",
            Gemini,
            "5bcd9dd0-ceb6-4023-97bb-6105939b3f01",
            gemini,
            &[],
            Some(THOUGHT),
            (2100, 57, 0, 0),
            1,
            DONE,
        ),
        all(
            "gemini-0.61.0-acp-bash",
            Gemini,
            "409f2e99-342f-46dd-a056-f430fd34fd85",
            gemini,
            &[("run_shell_command", Ok)],
            Some(ALL_DONE),
            (4200, 114, 0, 0),
            2,
            DONE,
        ),
        // The second prompt's answer begins before the first one is over.
        all(
            "gemini-0.61.0-acp-steer",
            Gemini,
            "e85cbd2e-64fd-4f4f-bcfc-6c365e7388e8",
            gemini,
            &[("run_shell_command", Cancelled)],
            Some(HELLO),
            (2100, 57, 0, 0),
            2,
            DONE,
        ),
        all(
            "gemini-0.61.0-acp-cancel",
            Gemini,
            "d1e76b09-476a-44b9-9c2a-acb2480ceed1",
            gemini,
            &[("run_shell_command", Cancelled)],
            Some(HELLO),
            (2100, 57, 0, 0),
            2,
            DONE,
        ),
        all(
            "qwen-0.24.4-acp-text",
            Qwen,
            "333341b6-416d-4660-98a1-a0c5b465017d",
            qwen,
            &[],
            Some(THOUGHT),
            (1300, 57, 800, 0),
            1,
            DONE,
        ),
        all(
            "qwen-0.24.4-acp-bash",
            Qwen,
            "0d9b65b2-77bb-4018-86ac-722935537f67",
            qwen,
            &[("run_shell_command", Ok)],
            Some(ALL_DONE),
            (2600, 114, 1600, 0),
            2,
            DONE,
        ),
        all(
            "qwen-0.24.4-acp-steer",
            Qwen,
            "4f8a2126-4a28-4dce-9d5a-aa1e9e28b862",
            qwen,
            &[("run_shell_command", Cancelled)],
            Some(HELLO),
            (2600, 114, 1600, 0),
            2,
            DONE,
        ),
        all(
            "qwen-0.24.4-acp-cancel",
            Qwen,
            "69021dec-75a6-45a0-b715-475229669dac",
            qwen,
            &[("run_shell_command", Cancelled)],
            Some(HELLO),
            (2600, 114, 1600, 0),
            2,
            DONE,
        ),
        all(
            "qwen-0.24.4-acp-drain-steer",
            Qwen,
            "6ea01a89-91f3-4d35-98a6-8fe1e4ff5391",
            qwen,
            &[("run_shell_command", Ok)],
            Some(HELLO),
            (2600, 114, 1600, 0),
            2,
            DONE,
        ),
        all(
            "copilot-1.0.102-acp-text",
            Copilot,
            "87d5b686-2dd6-4599-9a44-bb2aacf0083c",
            None,
            &[],
            Some(THOUGHT),
            (1300, 57, 800, 0),
            1,
            DONE,
        ),
        all(
            "copilot-1.0.102-acp-bash",
            Copilot,
            "e947a469-c106-41f6-abd5-cfaeb7f1c228",
            None,
            &[("execute", Ok)],
            Some(ALL_DONE),
            (2600, 114, 1600, 0),
            2,
            DONE,
        ),
        all(
            "copilot-1.0.102-acp-steer",
            Copilot,
            "c44c4f8d-768e-4197-9eab-3cc924464b49",
            None,
            &[("execute", Cancelled)],
            Some(HELLO),
            (2600, 114, 1600, 0),
            2,
            DONE,
        ),
        all(
            "copilot-1.0.102-acp-cancel",
            Copilot,
            "8e7d67ea-0158-4021-8ed5-a7a7639366c7",
            None,
            &[("execute", Cancelled)],
            Some(HELLO),
            (2600, 114, 1600, 0),
            2,
            DONE,
        ),
        // With sub-agents: their calls and answers are theirs, what they used is in the sum of those that tell it. The lists of
        // commands, skills and models in these recordings were shortened.
        all(
            "opencode-1.18.33-acp-task",
            OpenCode,
            "ses_dd5c1c474ffet13JT2y3gtexJg",
            fake,
            &[("task", Ok)],
            Some("Final answer for scenario task: all done."),
            (1300, 57, 800, 9990),
            2,
            DONE,
        ),
        all(
            "gemini-0.61.0-acp-task",
            Gemini,
            "01fe569d-fbec-4db4-9596-d6ce0c7bbd2a",
            gemini,
            &[("invoke_agent", Ok)],
            Some("Final answer for scenario invoke: all done."),
            (4200, 114, 0, 0),
            2,
            DONE,
        ),
        all(
            "qwen-0.24.4-acp-task",
            Qwen,
            "66269500-dc54-41bf-9b35-aee2796934d2",
            qwen,
            &[("agent", Ok)],
            Some("Final answer for scenario inline: all done."),
            (5200, 228, 3200, 0),
            2,
            DONE,
        ),
        all(
            "qwen-0.24.4-acp-tasks",
            Qwen,
            "76e01122-571e-4171-b76c-cd959ae6c828",
            qwen,
            &[("agent", Ok), ("agent", Ok)],
            Some("Final answer for scenario twotasks: all done."),
            (7800, 342, 4800, 0),
            2,
            DONE,
        ),
        all(
            "qwen-0.24.4-acp-task-background",
            Qwen,
            "b4163c48-ecdd-4572-ac1f-ea2a1714075a",
            qwen,
            &[("agent", Ok)],
            Some("Final answer for scenario task: all done."),
            (3900, 171, 2400, 0),
            3,
            DONE,
        ),
        all(
            "copilot-1.0.102-acp-task",
            Copilot,
            "dacabb34-fde1-4544-9fbd-609516f229fd",
            None,
            &[("task", Ok)],
            Some("Final answer for scenario task: all done."),
            (5200, 228, 3200, 0),
            2,
            DONE,
        ),
        all(
            "copilot-1.0.102-acp-tasks",
            Copilot,
            "e4c4c9e2-ee3c-4551-9751-0ad9e64602a2",
            None,
            &[("task", Ok), ("task", Ok)],
            Some("Final answer for scenario twotasks: all done."),
            (7800, 342, 4800, 0),
            2,
            DONE,
        ),
        all(
            "copilot-1.0.102-acp-task-background",
            Copilot,
            "83eda565-1001-48dd-a994-f80664d007b9",
            None,
            &[("task", Ok), ("read", Ok)],
            Some("Final answer for scenario bgtask: all done."),
            (6500, 285, 4000, 0),
            3,
            DONE,
        ),
        // Copilot tells of its provider in the words of its model.
        all(
            "copilot-1.0.102-acp-truncated",
            Copilot,
            "511c74df-9959-44ef-8904-473bf317c9ed",
            None,
            &[],
            None,
            (0, 0, 0, 0),
            1,
            (
                StepPhase::Failed,
                1,
                Some(
                    "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed to finalize chat-completions stream: missing finish_reason for choice 0",
                ),
            ),
        ),
        all(
            "copilot-1.0.102-acp-no-response",
            Copilot,
            "27ff2876-4f1f-4058-9646-6c45cb03ed3e",
            None,
            &[],
            None,
            (3900, 171, 2400, 0),
            1,
            (StepPhase::Failed, 1, Some("Error: No response was returned. Send your message again to retry.")),
        ),
        all(
            "copilot-1.0.102-acp-err401",
            Copilot,
            "1ebf49c7-1f9f-4957-bf52-86d68b76f78b",
            None,
            &[],
            None,
            (0, 0, 0, 0),
            1,
            (
                StepPhase::Failed,
                1,
                Some(
                    "Error: Authentication failed with provider at http://127.0.0.1:18779/v1 (HTTP 401).\n  Check your COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN.",
                ),
            ),
        ),
    ]
}
