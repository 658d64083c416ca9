//! Plans of agents and commands, and runs of them.

use crate::PROMPT;
use crate::support::{Run, World};

pub const SCENES: &str = r#"
[scene.quick]
[[scene.quick.turn]]
think = "Where to begin?"
say = "I look."
tool = [{ name = "bash", args = { command = "ls" }, time_ms = 50, output = "a\nb\n" }, { name = "read", args = { path = "a" }, time_ms = 20, fail = true, output = "no such file" }]
[[scene.quick.turn]]
say = "Two files."
[scene.slow]
[[scene.slow.turn]]
say = "I take my time."
tool = [{ name = "bash", args = { command = "sleep" }, time_ms = 6000000 }]
[[scene.slow.turn]]
say = "Done."
"#;

pub fn agent(world: &World, id: &str, scene: &str) -> String {
    let script = world.file("scenes.toml", SCENES);
    format!(
        "{{ id = \"{id}\", agent = \"{id}\", task = \"{PROMPT} of {id}\", runner = {{ type = \"demo\", script = \"{}#{scene}\" }} }}",
        script.display()
    )
}

pub fn command(id: &str, script: &str) -> String {
    format!(
        "{{ id = \"{id}\", runner = {{ type = \"external-cli\", command = \"sh\", args = [\"-c\", \"{script}\"] }} }}"
    )
}

/// A plan of logical steps: one entry is a single step, several are a group.
pub fn plan(world: &World, head: &str, steps: &[&[String]]) -> String {
    let mut text = format!("{head}\n");
    for step in steps {
        text.push_str("[[step]]\n");
        match step {
            [only] => {
                let inner = only.trim_start_matches('{').trim_end_matches('}').trim();
                text.push_str(&split_fields(inner).join("\n"));
            }
            many => text.push_str(&format!("parallel = [\n{}\n]", many.join(",\n"))),
        }
        text.push('\n');
    }
    world.file("plan.toml", &text).to_str().unwrap().to_owned()
}

/// The fields of an inline table, each on a line of its own.
pub fn split_fields(inner: &str) -> Vec<String> {
    let (mut fields, mut field, mut depth, mut quoted) = (Vec::new(), String::new(), 0, false);
    for c in inner.chars() {
        match c {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                fields.push(std::mem::take(&mut field).trim().to_owned());
                continue;
            }
            _ => {}
        }
        field.push(c);
    }
    fields.push(field.trim().to_owned());
    fields
}

/// Starts a run whose agents play fast, in the background.
pub fn start(world: &World, plan: &str, more: &[&str]) -> Run {
    let mut command = world.subdeck(&["run", "--detach", plan]);
    let done = crate::support::Done::of(command.args(more).env("SUBDECK_DEMO_SPEED", "100").output().unwrap());
    assert_eq!(done.code, 0, "{done:?}");
    world.run(done.stdout.trim())
}
