//! How long it takes from `subdeck run` to the first instruction of the child, in front and detached, beside a child
//! that is started directly.

#[path = "support.rs"]
mod support;

use support::{Samples, World, check_complete, child, now, rounds, seconds};

fn main() {
    support::play();
    let (mut direct, mut front, mut detached) = (Samples::default(), Samples::default(), Samples::default());
    for round in 0..=rounds(40) {
        let world = World::new();
        let begun = now();
        assert!(child("nothing", &world.stamps()).status().unwrap().success());
        let alone = seconds(begun, world.wait_stamp("exec")) * 1e3;

        let world = World::new();
        let begun = now();
        world.run("nothing", false);
        let in_front = seconds(begun, world.wait_stamp("exec")) * 1e3;

        let mut world = World::new();
        let begun = now();
        let dir = world.start("nothing", false);
        let in_back = seconds(begun, world.wait_stamp("exec")) * 1e3;
        world.wait_result(&dir);
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
