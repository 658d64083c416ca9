//! How long it takes from the rename of stop.json or interrupt.json to the signal's handler in the child, beside a
//! signal that is sent directly.

#[path = "support.rs"]
mod support;

use rustix::process::{Pid, Signal, kill_process};
use support::{Samples, World, child, now, rounds, seconds};

fn main() {
    support::play();
    let mut direct = Samples::default();
    let mut asked = [("stop.json", Samples::default()), ("interrupt.json", Samples::default())];
    for _ in 0..rounds(40) {
        let world = World::new();
        let mut waiting = child("wait", &world.stamps()).spawn().unwrap();
        world.wait_stamp("ready");
        let sent = now();
        kill_process(Pid::from_child(&waiting), Signal::TERM).unwrap();
        direct.push(seconds(sent, world.wait_stamp("signal")) * 1e3);
        waiting.wait().unwrap();

        for (request, samples) in &mut asked {
            let mut world = World::new();
            let dir = world.start("wait", false);
            world.wait_stamp("ready");
            let control = dir.join("control");
            std::fs::write(control.join(".request"), "{}").unwrap();
            let sent = now();
            std::fs::rename(control.join(".request"), control.join(*request)).unwrap();
            samples.push(seconds(sent, world.wait_stamp("signal")) * 1e3);
            world.wait_result(&dir);
        }
    }
    direct.print_p95("control: direct signal", "ms", "");
    for (request, samples) in &asked {
        let more = format!(", {:.1} ms more", samples.median() - direct.median());
        samples.print_p95(&format!("control: {request}"), "ms", &more);
    }
}
