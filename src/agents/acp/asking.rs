//! What an agent asks its client for (agent-streams 7).

use serde_json::Value;

use super::PERMISSION;
use super::adapter::AcpAdapter;
use super::subs::{OWN_TURN, Whose};
use super::tool::Call;
use crate::agents::Sink;
use crate::agents::jsonrpc::text;
use crate::agents::told::tell;
use crate::agents::written::{COMES, GOES, written};
use crate::run::{AgentEvent, Asking, Choice, Stream};

impl AcpAdapter {
    /// The agent asks for something.
    pub(super) fn request(&mut self, id: &Value, method: String, params: &Value, sink: &mut dyn Sink) {
        if method == PERMISSION {
            let choice = |option: &Value| {
                let word = |key| text(option, key).unwrap_or_default().to_owned();
                Some(Choice { id: text(option, "optionId")?.to_owned(), label: word("name"), kind: word("kind") })
            };
            let options = params.get("options").and_then(Value::as_array);
            let choices = options.into_iter().flatten().filter_map(choice).collect();
            return self.asked(id, params.get("toolCall").unwrap_or(&Value::Null), choices, sink);
        }
        if method == OWN_TURN {
            self.own_turn(sink);
        }
        sink.event(AgentEvent::Called { id: id.to_string(), method });
    }

    /// It asks whether it may do something; the call is told first, so that a person sees what it is about.
    fn asked(&mut self, id: &Value, call: &Value, choices: Vec<Choice>, sink: &mut dyn Sink) {
        let open = text(call, "toolCallId");
        if let Some(id) = open {
            let known = self.calls.iter().any(|known| known.id == id);
            match if known { Whose::Own } else { self.subs.whose("tool_call", call, self.session.dialect) } {
                Whose::Sub(at) => self.nested(at, "tool_call", call, sink),
                Whose::Own | Whose::OneOfThem => {
                    self.call(call, sink);
                    self.waits(id, sink);
                }
            }
        }
        let mut described = Call::new(open.unwrap_or_default());
        described.take(call, self.session.dialect);
        let args = described.subject();
        let what = if args.is_empty() { described.name().to_owned() } else { args.clone() };
        self.live.line(Stream::Own, &format!("the agent asks for permission: {what}"), sink);
        let asking = Asking {
            id: id.to_string(),
            text: format!("May it use {}? {args}", described.name()).trim_end().to_owned(),
            tool: Some(described.name().to_owned()),
            args,
            detail: would(call),
            call: open.map(str::to_owned),
            choices,
            ..Asking::default()
        };
        tell(AgentEvent::Asked(Box::new(asking.bounded())), sink);
    }

    /// A call waits for a permission. More than now is not told of it before it begins, so it is told as it is.
    fn waits(&mut self, id: &str, sink: &mut dyn Sink) {
        let Some(at) = self.calls.iter().position(|call| call.id == id) else { return };
        let mut call = self.calls.remove(at);
        if !call.started {
            self.started(&mut call, sink);
        }
        call.asked = true;
        self.calls.insert(at, call);
    }
}

/// The changes that a call shows as it asks.
fn would(call: &Value) -> String {
    let diffs = call.get("content").and_then(Value::as_array).into_iter().flatten();
    let diffs = diffs.filter(|part| text(part, "type") == Some("diff"));
    let parts = diffs.flat_map(|diff| [(GOES, text(diff, "oldText")), (COMES, text(diff, "newText"))]);
    written(parts.filter_map(|(mark, text)| Some((mark, text?))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_changes_of_a_call_are_told() {
        let call = json!({"content": [{"type": "content", "content": {"type": "text", "text": "x"}},
            {"type": "diff", "path": "/a", "oldText": "one", "newText": "two"},
            {"type": "diff", "path": "/b", "oldText": null, "newText": "new"}]});
        assert_eq!(would(&call), "- one\n+ two\n+ new");
        assert_eq!(would(&json!({"content": 7})), "");
    }
}
