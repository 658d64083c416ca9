//! What a child's recorded line says, by the one decoder of pi-shaped records (law 5).

use crate::run::AgentEvent;

/// Appends what the line says.
pub(super) fn decode_line(line: &[u8], said: &mut Vec<AgentEvent>) {
    // Which kind of line it was matters to those who print it; here only what it says does.
    let _ = crate::agents::pi::decode_line(line, said);
}
