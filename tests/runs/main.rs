//! Runs of plain commands and demo agents, from the command line to the files and the exit code.

#[path = "../support/runs.rs"]
mod support;

mod directory;
mod ends;
mod inbox;
mod printed;

use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use support::{Done, World, code, files_below, signal, wait_child, wait_for};
