//! What the deck shows where and for how long, on the real program: the pages of a grid, what a zoomed tab leaves out, the
//! pane of a folded group.

// Each test file uses a part of it.
#[allow(dead_code)]
#[path = "support/deck.rs"]
mod support;

use support::{ESCAPE, Home};

/// So many commands side by side, each of which ends when there is a file of its name.
fn side_by_side(home: &Home, count: usize) {
    let one = |n: usize| {
        format!(
            "  {{ id = \"part{n}\", runner = {{ type = \"external-cli\", command = \"sh\", args = [\"wait.sh\", \"part{n}\"] }} }},\n"
        )
    };
    let parts: String = (1..=count).map(one).collect();
    home.file("plan.toml", &format!("[[step]]\nconcurrency = {count}\nparallel = [\n{parts}]\n"));
    home.file("wait.sh", "echo \"here is $1\"\nuntil [ -e \"$1.over\" ]; do sleep 0.1; done\necho \"$1 is over\"\n");
}

#[test]
fn the_pages_of_a_grid_stay_where_they_are_when_a_step_ends() {
    let home = Home::new();
    side_by_side(&home, 8);
    let pty = home.deck(&["run", "plan.toml"], 120, 36);
    pty.wait_text("here is part1");
    pty.keys("j");
    pty.wait_text("╭─ 2 part2 ");
    pty.keys("v");
    pty.wait_text("panes 1-6 of 8");
    pty.wait_text("╭─›2 part2 ● running");
    home.file("part1.over", "");
    pty.wait_text("1 part1 ✓ done");
    pty.wait_text("part1 is over");
    // The page is the same, with the same step selected, and so is what it is counted from.
    let text = pty.text();
    assert!(text.contains("panes 1-6 of 8") && text.contains("╭─›2 part2 ● running"), "{text}");
    pty.keys("\x1b[6~");
    pty.wait_text("panes 3-8 of 8");
    pty.keys("\x1b[5~");
    pty.wait_text("panes 1-6 of 8");
    // Looked at anew it begins with what goes on.
    pty.keys("g");
    pty.wait_text("╭─›1 part1 ✓ done");
    pty.keys("jvvv");
    pty.wait_text("╭─›steps ");
    pty.keys("v");
    pty.wait_text("panes 2-7 of 8");
}

#[test]
fn what_a_zoomed_tab_leaves_out_ends_with_the_zoom_for_an_output_and_stays_for_a_list() {
    let home = Home::new();
    home.file(
        "plan.toml",
        r#"
[[step]]
parallel = [
  { id = "look", agent = "scout", runner = { type = "demo", script = "default" }, task = "Look around" },
  { id = "talk", runner = { type = "external-cli", command = "sh", args = ["talk.sh"] } },
]
"#,
    );
    home.file("talk.sh", "echo fine one; echo BAD one >&2; echo fine two; exec sleep 1000\n");
    home.file("README.md", "what the agent reads\n");
    let pty = home.deck_with(&["run", "plan.toml"], &[("SUBDECK_DEMO_SPEED", "0.05")], 120, 36);
    pty.wait_text("╭─ 1 look ");
    pty.keys("z2");
    pty.wait_text("bash ls");
    pty.keys("&");
    pty.wait_text("errors only");
    pty.wait_text("nothing went wrong so far");
    pty.keys("]1");
    pty.wait_text("BAD one");
    pty.keys("&");
    pty.wait_for("standard error alone", |s| {
        let text = s.contents();
        text.contains("stderr only") && text.contains("BAD one") && !text.contains("fine one")
    });
    pty.keys(ESCAPE);
    pty.wait_for("the whole output below the list", |s| {
        let text = s.contents();
        text.contains("╭─ 2 talk ") && text.contains("fine one") && text.contains("BAD one")
    });
    pty.keys("z");
    pty.wait_for("the whole output, zoomed", |s| {
        let text = s.contents();
        text.contains("[1 output]") && text.contains("fine two") && !text.contains("stderr only")
    });
    // The list of the other step is as it was left.
    pty.keys("[");
    pty.wait_text("[2 tools");
    pty.wait_text("errors only");
    pty.keys("&");
    pty.wait_text("bash ls");
    pty.wait_gone("errors only");
}

#[test]
fn the_pane_of_a_folded_group_follows_its_members() {
    let home = Home::new();
    side_by_side(&home, 3);
    let pty = home.deck(&["run", "plan.toml"], 100, 30);
    pty.wait_text("here is part1");
    pty.keys("\x1b[D");
    pty.wait_text("─ group of steps 1-3 ─");
    pty.wait_text("● 3 running");
    pty.wait_text("── 1 part1 ──");
    home.file("part2.over", "");
    pty.wait_for("a member that ended", |s| {
        let text = s.contents();
        text.contains("● 2 running   ✓ 1 done")
            && text.lines().any(|row| row.contains("2 part2") && row.contains("✓ done"))
    });
    // The keys act on the first one, whose output is below; the others are reached when it lies open.
    assert!(pty.text().contains("here is part1"), "{}", pty.text());
    pty.keys("\x1b[Cj");
    pty.wait_text("╭─ 2 part2 ");
    pty.wait_text("part2 is over");
}
