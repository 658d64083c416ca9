//! Indexes and the files of the inbox and of ours.

use super::Kind::{Bool, Int, Number, Path, Text, Words};
use super::Table;
use super::status::STATES;

/// An entry of the finished runs (run-directory 1.5).
pub const TERMINAL_ENTRY: Table =
    &[("version", Int, true), ("runId", Text, true), ("sessionId", Text, true), ("endedAt", Number, true)];

/// An entry of a result (run-directory 5).
pub const RESULT_INDEX: Table = &[
    ("version", Int, true),
    ("runId", Text, true),
    ("sessionId", Text, true),
    ("file", Text, true),
    ("writtenAt", Number, true),
    ("asyncDir", Path, false),
];

/// `control/steer-capabilities/<flat>.json` (run-directory 3.5).
pub const CAPABILITY: Table = &[
    ("type", Words(&["steer-capability"]), true),
    ("protocolVersion", Int, true),
    ("index", Int, true),
    ("pid", Int, true),
    ("readyAt", Number, true),
    ("supported", Bool, true),
];

/// `control/steer-inbox-closed.json` (run-directory 3.7).
pub const INBOX_CLOSED: Table = &[("version", Int, true), ("closedAt", Number, true), ("state", Words(STATES), true)];

/// `subdeck/runner.json`.
pub const RUNNER_JSON: Table = &[
    ("pid", Int, true),
    ("startTicks", Int, false),
    ("bootId", Text, false),
    ("host", Text, true),
    ("uid", Int, true),
    ("version", Text, true),
    ("keeperPid", Int, false),
    ("keeperStartTicks", Int, false),
];
