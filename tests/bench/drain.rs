//! How fast 1 GB of short lines of a plain command are kept, beside a pump, and what the runner needs for it.

#[path = "support.rs"]
mod support;

use support::{Samples, World, check_complete, pumped, rounds, seconds, status};

const BYTES: u64 = 1_000_000_000;

fn main() {
    support::play();
    let role = format!("flood {BYTES}");
    let (mut pump, mut deck, mut memory) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..rounds(3) {
        pump.push(BYTES as f64 / 1e6 / pumped(&World::new(), &role, b""));
        let mut world = World::new();
        let dir = world.start(&role, false);
        let peak = std::path::PathBuf::from(format!("/proc/{}/status", status(&dir)["pid"]));
        let mut kib = 0.0;
        let ended = loop {
            // The peak of a process can only be read while it lives; the file says the highest value so far.
            let text = std::fs::read_to_string(&peak).unwrap_or_default();
            let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
            kib = line.unwrap_or(kib);
            if status(&dir)["endedAt"].is_number() {
                break world.wait_result(&dir);
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        check_complete(&dir);
        let kept = std::fs::metadata(dir.join("external-0.stdout.log")).unwrap().len();
        assert_eq!(kept, BYTES, "not every byte was kept");
        deck.push(BYTES as f64 / 1e6 / seconds(world.wait_stamp("exec"), ended));
        memory.push(kib / 1024.0);
    }
    pump.print("drain: pump", "MB/s", "");
    deck.print("drain: subdeck", "MB/s", &format!("{:.2} of the pump", deck.median() / pump.median()));
    memory.print("drain: peak of the runner", "MiB", "");
}
