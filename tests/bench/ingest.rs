//! How fast a pi stream of 64 MiB becomes a recorded run: from the first instruction of the child to the result file,
//! beside a pump that only keeps the bytes.

#[path = "support.rs"]
mod support;

use support::{Samples, World, check_complete, pumped, rounds, seconds, write_stream};

const PROMPT: &[u8] = b"{\"id\":\"p\",\"type\":\"prompt\",\"message\":\"t\"}\n";

fn main() {
    support::play();
    // One MiB instead of 64 shows what a run costs whatever it prints.
    let size = std::env::var("SUBDECK_BENCH_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(64);
    let file = tempfile::NamedTempFile::new().unwrap();
    let mib = write_stream(file.path(), size) as f64 / f64::from(1 << 20);
    let role = format!("stream {}", file.path().display());
    let (mut pump, mut deck) = (Samples::default(), Samples::default());
    for round in 0..=rounds(7) {
        let through_pump = mib / pumped(&World::new(), &role, PROMPT);
        let mut world = World::new();
        let dir = world.start(&role, true);
        let ended = world.wait_result(&dir);
        check_complete(&dir);
        let through_deck = mib / seconds(world.wait_stamp("exec"), ended);
        // The first round warms the caches.
        if round > 0 {
            pump.push(through_pump);
            deck.push(through_deck);
        }
    }
    pump.print("ingest: pump", "MiB/s", "");
    deck.print("ingest: subdeck", "MiB/s", &format!("{:.2} of the pump", deck.median() / pump.median()));
}
