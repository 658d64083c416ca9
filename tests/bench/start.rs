//! How long it takes from `subdeck run` to the first instruction of the child, in front and detached, beside a child
//! that is started directly.

#[path = "support.rs"]
mod support;

use support::{Samples, World, check_complete, child, now, rounds, seconds};

fn main() {
    support::play();
    let (mut direct, mut front, mut detached) = (Samples::default(), Samples::default(), Samples::default());
    // A root that has been used before, as every root but a new one; the first round makes it.
    let mut used = World::new();
    for round in 0..=rounds(40) {
        let world = World::new();
        let begun = now();
        assert!(child("nothing", &world.stamps()).status().unwrap().success());
        let alone = seconds(begun, world.wait_stamp("exec")) * 1e3;

        used.forget_stamp("exec");
        let mut command = used.command("--no-tui", "nothing", false);
        let begun = now();
        let output = command.output().unwrap();
        let in_front = seconds(begun, used.wait_stamp("exec")) * 1e3;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        used.forget_stamp("exec");
        let command = used.command("--detach", "nothing", false);
        let begun = now();
        let dir = used.detach(command);
        let in_back = seconds(begun, used.wait_stamp("exec")) * 1e3;
        used.wait_result(&dir);
        check_complete(&dir);
        if round > 0 {
            direct.push(alone);
            front.push(in_front);
            detached.push(in_back);
        }
    }
    direct.print_p95("start: direct", "ms", "");
    for (how, samples) in [("--no-tui", &front), ("--detach", &detached)] {
        let more = format!(", {:.1} ms more", samples.median() - direct.median());
        samples.print_p95(&format!("start: subdeck run {how}"), "ms", &more);
    }
}
