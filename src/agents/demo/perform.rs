//! One turn of a scene: what the agent says, the tools it uses, and what goes past the protocol.

use std::time::Duration;

use serde_json::{Value, json};

use super::play::{Halt, Played, Player, short};
use super::{Tool, Turn, UsageOf};

impl Player<'_> {
    /// Plays one turn; says whether it asked for tools.
    pub(super) fn turn(&mut self, turn: &Turn, new: Option<&str>, last: bool) -> Result<bool, Halt> {
        if let Some(retry) = &turn.retry {
            for attempt in 1..=retry.times {
                let message = self.assistant("", &[], "error", Some(&retry.error), zero());
                self.message(&message)?;
                self.emit("turn_end", &json!({}))?;
                self.emit("agent_end", &json!({"messages": [], "willRetry": true}))?;
                let fields = json!({
                    "attempt": attempt, "maxAttempts": 3, "delayMs": retry.wait_ms, "errorMessage": retry.error,
                });
                self.emit("auto_retry_start", &fields)?;
                self.pause(retry.wait_ms)?;
                self.emit("agent_start", &json!({}))?;
                self.emit("turn_start", &json!({}))?;
            }
        }
        let mut say = self.fill(&turn.say);
        if std::mem::take(&mut self.going_on) {
            say = format!("I go on where I was. {say}");
        }
        match new {
            // The answer to a message that came after the script names it already.
            Some(text) if self.taken.iter().any(|taken| taken == text) => {
                say = format!("Noted: {}. {say}", short(text))
            }
            _ => {}
        }
        if last && !self.taken.is_empty() {
            let taken: Vec<String> = self.taken.drain(..).map(|text| format!("\"{}\"", short(&text))).collect();
            say = format!("{say}\n\nTaken into account: {}.", taken.join(", "));
        }
        self.speak(turn, &say)?;
        if let Some(retry) = &turn.retry {
            self.emit("auto_retry_end", &json!({"success": true, "attempt": retry.times}))?;
        }
        self.asides(turn)?;
        let results = self.tools(&turn.tool)?;
        self.emit("turn_end", &json!({"toolResults": results}))?;
        Ok(!turn.tool.is_empty())
    }

    /// Streams thoughts and text, then the whole message.
    fn speak(&mut self, turn: &Turn, say: &str) -> Played {
        let opening = self.assistant("", &[], "pending", None, zero());
        self.emit("message_start", &json!({"message": opening}))?;
        let thinking = !turn.think.is_empty();
        let mut said = String::new();
        let thoughts = words(&turn.think).map(|word| ("thinking_delta", 0, word));
        let text = words(say).map(|word| ("text_delta", u32::from(thinking), word));
        for (kind, index, word) in thoughts.chain(text) {
            if kind == "text_delta" {
                said.push_str(word);
            }
            match self.piece(kind, index, word) {
                Err(Halt::Aborted) => return self.broken_off(&said),
                other => other?,
            }
        }
        let stop = if turn.tool.is_empty() { "stop" } else { "toolUse" };
        let usage = turn.usage.unwrap_or_else(|| self.usual(say, &turn.think));
        let message = self.assistant(say, &turn.tool, stop, None, usage);
        self.message(&message)
    }

    fn piece(&mut self, kind: &str, index: u32, word: &str) -> Played {
        let event = json!({"type": kind, "contentIndex": index, "delta": word});
        self.emit("message_update", &json!({"assistantMessageEvent": event}))?;
        self.pause(self.scene.pace_ms)
    }

    fn broken_off(&mut self, said: &str) -> Played {
        let message = self.assistant(said, &[], "aborted", Some("Request was aborted"), zero());
        self.message(&message)?;
        self.emit("turn_end", &json!({}))?;
        Err(Halt::Aborted)
    }

    fn assistant(&self, text: &str, tools: &[Tool], stop: &str, error: Option<&str>, usage: UsageOf) -> Value {
        let mut content = Vec::new();
        if !text.is_empty() {
            content.push(json!({"type": "text", "text": text}));
        }
        for (number, tool) in (self.calls..).zip(tools) {
            content.push(
                json!({"type": "toolCall", "id": format!("call_{number}"), "name": tool.name, "arguments": tool.args}),
            );
        }
        let mut message = json!({
            "role": "assistant", "content": content, "provider": "demo", "model": self.scene.model,
            "stopReason": stop, "timestamp": self.stage.wall_ms(),
            "usage": {
                "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read, "cacheWrite": 0,
                "totalTokens": usage.input + usage.output + usage.cache_read, "cost": {"total": usage.cost},
            },
        });
        if let (Some(map), Some(error)) = (message.as_object_mut(), error) {
            map.insert("errorMessage".into(), json!(error));
        }
        message
    }

    /// What a turn would use, by the length of its texts.
    fn usual(&self, say: &str, think: &str) -> UsageOf {
        let count = |text: &str| text.split_whitespace().count() as u64;
        let turn = self.next_turn as u64;
        let (input, cache_read) = (420 + count(&self.task) * 2, turn * 1300);
        let output = 24 + (count(say) + count(think)) * 2;
        let cost = (input as f64) * 1e-6 + (cache_read as f64) * 1e-7 + (output as f64) * 5e-6;
        UsageOf { input, output, cache_read, cost }
    }

    /// What goes past the protocol.
    fn asides(&mut self, turn: &Turn) -> Played {
        for line in &turn.warn {
            self.stage.err(line);
            self.pause_or_end(self.scene.pace_ms)?;
        }
        for line in &turn.print {
            self.raw(format!("{line}\n").as_bytes())?;
            self.pause_or_end(self.scene.pace_ms)?;
        }
        if let Some(bar) = &turn.progress {
            let steps = bar.steps.clamp(1, 1000);
            for step in 0..=steps {
                let done = (step * 24 / steps) as usize;
                let text = format!(
                    "\r{} \u{1b}[32m{}\u{1b}[0m{} {:>3}%",
                    bar.label,
                    "#".repeat(done),
                    ".".repeat(24 - done),
                    step * 100 / steps
                );
                self.raw(text.as_bytes())?;
                self.pause_or_end(bar.time_ms / u64::from(steps))?;
            }
            self.raw(b"\n")?;
        }
        Ok(())
    }

    /// A pause between the message and its tools; an abort there ends the turn.
    fn pause_or_end(&mut self, ms: u64) -> Played {
        match self.pause(ms) {
            Err(Halt::Aborted) => self.broken_off(""),
            other => other,
        }
    }

    /// Runs tools side by side; gives their result messages in the order of the calls.
    fn tools(&mut self, tools: &[Tool]) -> Result<Vec<Value>, Halt> {
        let start = self.stage.now();
        let mut running: Vec<Running<'_>> = Vec::new();
        for tool in tools {
            let id = format!("call_{}", self.calls);
            self.calls += 1;
            let fields = json!({"toolCallId": id, "toolName": tool.name, "args": tool.args});
            self.emit("tool_execution_start", &fields)?;
            running.push(Running { tool, id, lines: tool.output.lines().collect(), shown: 0, result: None });
        }
        // The next thing that happens, until every call has its result.
        while let Some((at, index)) = running.iter().enumerate().filter_map(|(i, r)| Some((r.next()?, i))).min() {
            match self.pause_until(start + at) {
                Err(Halt::Aborted) => {
                    for run in running.iter_mut().filter(|run| run.result.is_none()) {
                        let text = format!("{}\n\nCommand aborted", run.so_far());
                        self.tool_ended(run, text, true)?;
                    }
                    self.results(&running)?;
                    self.emit("turn_end", &json!({}))?;
                    self.emit("turn_start", &json!({}))?;
                    return self.broken_off("").map(|()| Vec::new());
                }
                other => other?,
            }
            let Some(run) = running.get_mut(index) else { break };
            if run.shown < run.lines.len() {
                run.shown += 1;
                let partial = json!({"content": [{"type": "text", "text": format!("{}\n", run.so_far())}]});
                let fields = json!({
                    "toolCallId": run.id, "toolName": run.tool.name, "args": run.tool.args, "partialResult": partial,
                });
                self.emit("tool_execution_update", &fields)?;
            } else {
                let (text, fail) = (run.tool.output.trim_end().to_owned(), run.tool.fail);
                self.tool_ended(run, text, fail)?;
            }
        }
        self.results(&running)
    }

    fn tool_ended(&mut self, run: &mut Running<'_>, text: String, is_error: bool) -> Played {
        let content = json!([{"type": "text", "text": text}]);
        let fields = json!({
            "toolCallId": run.id, "toolName": run.tool.name, "result": {"content": content}, "isError": is_error,
        });
        run.result = Some((content, is_error));
        self.emit("tool_execution_end", &fields)
    }

    fn results(&mut self, running: &[Running<'_>]) -> Result<Vec<Value>, Halt> {
        let mut messages = Vec::new();
        for run in running {
            let Some((content, is_error)) = &run.result else { continue };
            let message = json!({
                "role": "toolResult", "toolCallId": run.id, "toolName": run.tool.name, "content": content,
                "isError": is_error, "timestamp": self.stage.wall_ms(),
            });
            self.emit("message_start", &json!({"message": message}))?;
            self.message(&message)?;
            messages.push(message);
        }
        Ok(messages)
    }
}

/// A call that runs.
struct Running<'a> {
    tool: &'a Tool,
    id: String,
    lines: Vec<&'a str>,
    shown: usize,
    result: Option<(Value, bool)>,
}

impl Running<'_> {
    /// When its next line comes, or its end; `None` once it has ended.
    fn next(&self) -> Option<Duration> {
        if self.result.is_some() {
            return None;
        }
        let parts = self.lines.len() as u64 + 1;
        let part = (self.shown as u64 + 1).min(parts);
        Some(Duration::from_millis(self.tool.time_ms * part / parts))
    }

    fn so_far(&self) -> String {
        self.lines.get(..self.shown).unwrap_or_default().join("\n")
    }
}

const fn zero() -> UsageOf {
    UsageOf { input: 0, output: 0, cache_read: 0, cost: 0.0 }
}

/// Words with the white space after them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}
