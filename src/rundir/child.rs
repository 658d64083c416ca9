//! What a child's recorded line says, by the one decoder of pi-shaped records (law 5).

use serde_json::{Map, Value};

use crate::agents::pi::WHOLE_ARGS;
use crate::run::AgentEvent;

/// Appends what the line says.
pub(super) fn decode_line(line: &[u8], said: &mut Vec<AgentEvent>) {
    // Which kind of line it was matters to those who print it; here only what it says does.
    let _ = crate::agents::pi::decode_line(line, said);
}

/// All the arguments of a call, as its record has them.
pub(super) fn whole_args(record: &Map<String, Value>) -> Option<&Value> {
    record.get(WHOLE_ARGS).or_else(|| record.get("args"))
}
