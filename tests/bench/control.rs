//! How long it takes from the rename of stop.json to the handler of SIGTERM in the child, beside a signal that is sent
//! directly.

#[path = "support.rs"]
mod support;

use rustix::process::{Pid, Signal, kill_process};
use support::{Samples, World, child, now, rounds, seconds};

fn main() {
    support::play();
    let (mut direct, mut deck) = (Samples::default(), Samples::default());
    for _ in 0..rounds(40) {
        let world = World::new();
        let mut waiting = child("wait", &world.stamps()).spawn().unwrap();
        world.wait_stamp("ready");
        let sent = now();
        kill_process(Pid::from_child(&waiting), Signal::TERM).unwrap();
        direct.push(seconds(sent, world.wait_stamp("signal")) * 1e3);
        waiting.wait().unwrap();

        let mut world = World::new();
        let dir = world.start("wait", false);
        world.wait_stamp("ready");
        let control = dir.join("control");
        std::fs::write(control.join(".stop"), "{}").unwrap();
        let sent = now();
        std::fs::rename(control.join(".stop"), control.join("stop.json")).unwrap();
        deck.push(seconds(sent, world.wait_stamp("signal")) * 1e3);
        world.wait_result(&dir);
    }
    direct.print_p95("control: direct signal", "ms", "");
    deck.print_p95("control: stop.json", "ms", &format!(", {:.1} ms more", deck.median() - direct.median()));
}
