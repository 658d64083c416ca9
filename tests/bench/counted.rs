//! How many instructions a piece of a program takes, without a counter of the processor: the program runs it one step at a
//! time under a tracer. The number is the same however busy the machine is. An instruction that repeats itself counts
//! once for each time; what the kernel does for the program does not count.

use std::process::Command;

/// Marks where the counted piece begins, and where it ends. Stops the process, so only a counted one may call it.
pub fn mark() {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::STOP).unwrap();
}

/// Runs a program and counts the steps between its two marks; `None` where nobody may trace, or nobody can.
#[cfg(target_os = "linux")]
pub fn instructions(command: &mut Command) -> Option<u64> {
    use nix::sys::ptrace::{self, Options};
    use nix::sys::signal::Signal;
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;

    let mut child = command.spawn().ok()?;
    let pid = Pid::from_raw(i32::try_from(child.id()).ok()?);
    let counted = (|| {
        // Its first mark, as its parent sees it; nothing of it is traced before.
        if !matches!(waitpid(pid, Some(WaitPidFlag::WUNTRACED)).ok()?, WaitStatus::Stopped(_, Signal::SIGSTOP)) {
            return None;
        }
        ptrace::seize(pid, Options::PTRACE_O_EXITKILL).ok()?;
        nix::sys::signal::kill(pid, Signal::SIGCONT).ok()?;
        let mut steps = 0;
        loop {
            match waitpid(pid, None).ok()? {
                // The second mark.
                WaitStatus::Stopped(_, Signal::SIGSTOP) => return Some(steps),
                WaitStatus::Stopped(_, Signal::SIGTRAP) => steps += 1,
                // That it stops and goes on by the signals of the first mark.
                WaitStatus::PtraceEvent(..) | WaitStatus::Stopped(_, Signal::SIGCONT) => {}
                _ => return None,
            }
            ptrace::step(pid, None).ok()?;
        }
    })();
    // Its end is of no interest.
    let _ = child.kill();
    let _ = child.wait();
    counted
}

/// Nobody steps through a program here.
#[cfg(not(target_os = "linux"))]
pub fn instructions(_: &mut Command) -> Option<u64> {
    None
}
