//! How long it takes from the line that opens a tool call to a status.json that names the tool, while the agent is
//! quiet otherwise and while it talks all the time; and whether tools that end at once are in the recent tools.

#[path = "support.rs"]
mod support;

use std::os::unix::fs::MetadataExt;

use support::{Samples, World, check_complete, now, seconds, status};

const TOOLS: usize = 40;
const SHORT: usize = 50;

fn main() {
    support::play();
    for (name, busy) in [("quiet", 0), ("busy", 1)] {
        let mut world = World::new();
        let dir = world.start(&format!("tools {TOOLS} {busy} {SHORT}"), true);
        let path = dir.join("status.json");
        let mut seen = vec![None; TOOLS];
        let mut last = 0;
        let mut writes = 0u32;
        loop {
            let inode = std::fs::metadata(&path).map_or(0, |m| m.ino());
            if inode != last {
                last = inode;
                writes += 1;
                let status = status(&dir);
                let at = now();
                let current = status["steps"][0]["currentTool"].as_str().unwrap_or_default();
                let number = current.strip_prefix("tool_").and_then(|n| n.parse::<usize>().ok());
                if let Some(slot) = number.and_then(|n| seen.get_mut(n)) {
                    slot.get_or_insert(at);
                }
                if status["endedAt"].is_number() {
                    break;
                }
            }
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        check_complete(&dir);
        let opened = std::fs::read_to_string(world.stamps().join("tools")).unwrap();
        let mut samples = Samples::default();
        let mut missed = 0;
        for (opened, seen) in opened.lines().zip(&seen) {
            match seen {
                Some(seen) => samples.push(seconds(opened.parse().unwrap(), *seen) * 1e3),
                None => missed += 1,
            }
        }
        let recent = status(&dir)["steps"][0]["recentTools"].as_array().unwrap().clone();
        let lost = (0..SHORT).filter(|n| !recent.iter().any(|t| t["tool"] == format!("short_{n}"))).count();
        let more = format!(", {missed} missed, {writes} writes, {lost} of {SHORT} short tools lost");
        samples.print_p95(&format!("status: {name}"), "ms", &more);
    }
}
