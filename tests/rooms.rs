//! The table of rooms in `src/lib.rs` is true: what a room uses is what it may touch there, and the rooms that are called
//! pure see no file, clock, process or thread.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What a row of the table says.
struct Row {
    owns: String,
    may: BTreeSet<String>,
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The rows in their order.
fn table() -> Vec<(String, Row)> {
    let text = fs::read_to_string(source().join("lib.rs")).unwrap();
    let rows: Vec<[String; 3]> = text
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            [cells[0].trim().trim_end_matches("`]"), cells[1], cells[2]].map(|cell| cell.trim().to_owned())
        })
        .collect();
    assert!(rows.len() > 10, "the table is there");
    let mut table: Vec<(String, Row)> = Vec::new();
    for [name, owns, touches] in rows {
        let above: BTreeSet<String> = table.iter().map(|(name, _)| name.clone()).collect();
        let may = match touches.as_str() {
            "nothing" => BTreeSet::new(),
            "all" | "all above" => above.clone(),
            named => {
                // What stands in brackets says which part of a room is used.
                let bare: String =
                    named.split('(').map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)).collect();
                let words = bare.split(|c: char| !c.is_alphanumeric()).filter(|word| above.contains(*word));
                words.map(str::to_owned).collect()
            }
        };
        table.push((name, Row { owns, may }));
    }
    table
}

/// Everything below `src` that is compiled into the program, without its tests.
fn program() -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![source()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.insert(path.clone(), fs::read_to_string(path).unwrap());
            }
        }
    }
    let tests: Vec<PathBuf> = files.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
    assert!(tests.len() > 20, "modules of tests are known as such");
    files.retain(|path, _| !tests.iter().any(|test| path.with_extension("").starts_with(test)));
    for text in files.values_mut() {
        *text = without_tests(text);
    }
    files
}

/// The modules that a file has for tests only, each in a file of its own: their paths without the ending.
fn test_modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = path.parent().unwrap();
    let own = match path.file_name().unwrap().to_str().unwrap() {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        _ => path.with_extension(""),
    };
    let behind = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| {
        let mut lines = rest.lines();
        let mut line = lines.next()?;
        let mut place = None;
        if let Some(file) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            place = Some(folder.join(file).with_extension(""));
            line = lines.next()?;
        }
        let name = line.split_once("mod ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"))?.1;
        let name = name.strip_suffix(';')?;
        Some(place.unwrap_or_else(|| own.join(name)))
    });
    behind.collect()
}

/// The code before the tests at the end of a file, without comments.
fn without_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// The room that a file belongs to.
fn room(path: &Path) -> String {
    let first = path.strip_prefix(source()).unwrap().components().next().unwrap();
    Path::new(first.as_os_str()).with_extension("").display().to_string()
}

/// The rooms that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let after = text.split("crate::").skip(1);
    after.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

#[test]
fn a_room_touches_what_the_table_says_and_nothing_else() {
    let table = table();
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in program() {
        assert!(!text.contains("crate::{"), "{}: name each room on a line of its own", path.display());
        let room = room(&path);
        let mut rooms = named(&text);
        rooms.remove(&room);
        used.entry(room).or_default().extend(rooms);
    }
    for beside in ["tell", "alarm"] {
        assert_eq!(used.remove(beside), Some(BTreeSet::new()), "{beside} knows of no room");
        for rooms in used.values_mut() {
            rooms.remove(beside);
        }
    }
    for root in ["lib", "main"] {
        used.remove(root);
    }
    let rooms: BTreeSet<&String> = table.iter().map(|(name, _)| name).collect();
    assert_eq!(used.keys().collect::<BTreeSet<_>>(), rooms, "each room has its row");
    for (name, row) in &table {
        let used = &used[name];
        let beyond: Vec<_> = used.difference(&row.may).collect();
        assert!(beyond.is_empty(), "{name} uses {beyond:?}, which the table does not grant");
        if row.may.len() + 1 < table.len() && !["engine", "cli"].contains(&name.as_str()) {
            let idle: Vec<_> = row.may.difference(used).collect();
            assert!(idle.is_empty(), "{name} does not use {idle:?}, which the table grants");
        }
    }
}

#[test]
fn the_pure_rooms_see_no_file_no_clock_no_process_and_no_thread() {
    const OUTSIDE: [&str; 10] = [
        "std::fs",
        "std::process",
        "std::net",
        "std::env",
        "std::thread",
        "std::os::",
        "tokio",
        "rustix",
        "Instant::now",
        "SystemTime::now",
    ];
    let table = table();
    let pure: BTreeSet<&str> =
        table.iter().filter(|(_, row)| row.owns.contains("Pure")).map(|(n, _)| n.as_str()).collect();
    assert!(pure.contains("run") && pure.contains("agents") && pure.contains("listing"), "{pure:?}");
    for (path, text) in program().iter().filter(|(path, _)| pure.contains(room(path).as_str())) {
        // Numbers of signals and their names ask the system for nothing.
        let text = text.replace("rustix::process::Signal", "");
        for word in OUTSIDE {
            assert!(!text.contains(word), "{} is in a pure room and names {word}", path.display());
        }
    }
}
