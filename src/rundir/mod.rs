//! What is on disk: one file per document kind, reading and writing (run-directory).
//!
//! The only door between a runner and everything else (law 4). Readers here never write anything but control files;
//! on-disk field names appear nowhere else.

mod acceptance;
mod append;
pub mod artifacts;
mod budget_read;
pub mod capability;
mod child;
mod child_record;
mod contract;
mod control;
mod control_own;
pub mod drafts;
mod ears;
pub mod find;
pub mod fleet;
pub mod follow;
pub mod graph;
pub mod health;
pub mod heard;
mod home;
pub mod identity;
mod inbox;
pub mod inbox_closed;
pub mod index;
mod inner_run;
pub mod inside;
mod json;
mod log;
pub mod logmd;
mod look;
mod marks;
mod merge;
pub mod nested;
pub mod notice_record;
pub mod open;
mod past;
mod paths;
pub mod plan_doc;
mod presence;
pub mod prune;
mod question_record;
pub mod record;
mod recording;
pub mod records;
mod records_read;
mod request;
mod request_read;
pub mod result;
pub mod result_read;
pub mod segment;
mod session_log;
mod signal_names;
pub mod status;
mod status_encoder;
mod status_read;
mod status_step;
mod step_read;
mod supervision;
pub mod supervisor;
mod tail;
pub mod transcript;
pub mod trust;
mod unrecorded;
pub mod user;
pub mod watch;
mod workflow;
mod write;

pub use append::{EVENTS_MAX_BYTES, EventLog, Kept};
pub use control::{Inbox, SendError};
pub use control_own::{Answered, answer_to, answers};
pub use find::{FindError, Listed, list_runs};
pub use follow::{Changes, Follower};
pub use health::Health;
pub use home::{Home, HomeDisk, Place};
pub use identity::{AcquireError, RunnerIdentity, RunnerLife, RunnerLock};
pub use inbox::InboxReader;
pub use log::{
    LineIndex, LogChange, LogLine, LogSearch, Match, StepLog, absent as log_absent, elsewhere as logged_elsewhere,
    not_read as logs_not_read,
};
pub use marks::{Mark, MarkReader, MarkWriter};
pub use past::LeftOut;
pub use paths::{ACTIVE, RESULTS, RUNS, RunDir, RunRoot, TERMINAL, is_run_id, new_run_id};
pub use recording::Recording;
pub use request::{About, Ack, ControlRequest, OwnRequest, OwnWhat, Steer};
pub use result::{ResultContext, ResultSteps};
pub use status::StatusContext;
pub use status_encoder::StatusEncoder;
pub use status_read::{ReadError, decode as decode_status, read as read_status};
pub use watch::Watch;
pub use workflow::answer_of_child;
pub use write::{Disk, Op, RETRY, RealDisk, WriteFailure, Writer, Written, is_capacity, is_full, replace};

#[cfg(test)]
mod tests;
