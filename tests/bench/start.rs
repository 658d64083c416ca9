//! How long it takes from `subdeck run --detach` to the first instruction of the child, beside a child that is started
//! directly.

#[path = "support.rs"]
mod support;

use support::{Samples, World, check_complete, child, now, rounds, seconds};

fn main() {
    support::play();
    let (mut direct, mut deck) = (Samples::default(), Samples::default());
    for round in 0..=rounds(40) {
        let world = World::new();
        let begun = now();
        assert!(child("nothing", &world.stamps()).status().unwrap().success());
        let alone = seconds(begun, world.wait_stamp("exec")) * 1e3;

        let mut world = World::new();
        let begun = now();
        let dir = world.start("nothing", false);
        let supervised = seconds(begun, world.wait_stamp("exec")) * 1e3;
        world.wait_result(&dir);
        check_complete(&dir);
        if round > 0 {
            direct.push(alone);
            deck.push(supervised);
        }
    }
    direct.print_p95("start: direct", "ms", "");
    deck.print_p95("start: subdeck run --detach", "ms", &format!(", {:.1} ms more", deck.median() - direct.median()));
}
