//! What a process has cost so far, as the system counts it. Nothing here is a time on a clock.

use std::fs;

/// Fields of `/proc/PID/io`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Io {
    /// Bytes that were read, from whatever.
    pub read: u64,
    /// Bytes that were written, to whatever.
    pub written: u64,
    /// Calls that read.
    pub reads: u64,
    /// Calls that write.
    pub writes: u64,
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {text}"));
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What a process has read and written.
pub fn io(pid: u32) -> Io {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let field = |name| field(&text, name);
    Io { read: field("rchar:"), written: field("wchar:"), reads: field("syscr:"), writes: field("syscw:") }
}

/// The most memory that a process ever had, in bytes.
pub fn most_memory(pid: u32) -> u64 {
    field(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap(), "VmHWM:") * 1024
}

/// How often a process went to sleep: its threads wake at most so often.
pub fn sleeps(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let one = |path| fs::read_to_string(path).map_or(0, |text| field(&text, "voluntary_ctxt_switches:"));
    tasks.map(|task| one(task.path().join("status"))).sum()
}

/// The processor time of a process in ticks of a hundredth of a second; also of one that ended and was not waited for.
pub fn ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
    [11, 12].map(|at: usize| fields[at].parse::<u64>().unwrap()).iter().sum()
}
