//! Whether a task clearly demands that files are changed (runner-behaviour 4.6). It is asked before a step that changed
//! nothing is held against its agent, so a doubt is a no: one wrong accusation costs more than one missed.

/// Agents whose work is to look, by parts of their names.
const LOOKERS: [&str; 12] = [
    "review", "research", "scout", "plan", "explor", "analy", "audit", "oracle", "advis", "critic", "inspect", "search",
];
/// Words that turn a demand into a question, a plan or a prohibition, wherever they stand.
const DOUBTS: [&str; 38] = [
    "do not edit",
    "do not change",
    "do not modify",
    "do not write",
    "do not touch",
    "do not make",
    "do not create",
    "do not commit",
    "don't edit",
    "don't change",
    "don't modify",
    "don't write",
    "don't touch",
    "don't make",
    "never edit",
    "never change",
    "never modify",
    "without editing",
    "without changing",
    "without modifying",
    "without touching",
    "read-only",
    "read only",
    "no edits",
    "no changes",
    "no code changes",
    "no file changes",
    "dry run",
    "dry-run",
    "only report",
    "just report",
    "report only",
    "if needed",
    "if necessary",
    "if any",
    "propose",
    "suggest",
    "how would",
];
/// Verbs that demand a change where a sentence begins with them.
const VERBS: [&str; 19] = [
    "add",
    "apply",
    "change",
    "create",
    "delete",
    "edit",
    "fix",
    "implement",
    "migrate",
    "modify",
    "patch",
    "port",
    "refactor",
    "remove",
    "rename",
    "replace",
    "rewrite",
    "update",
    "write",
];
/// What may stand before the verb.
const POLITE: [&str; 9] = ["please", "now", "then", "and", "you", "must", "should", "to", "next"];
/// What is changed when code is changed.
const OBJECTS: [&str; 26] = [
    "file",
    "files",
    "code",
    "function",
    "functions",
    "method",
    "methods",
    "class",
    "classes",
    "module",
    "modules",
    "test",
    "tests",
    "bug",
    "bugs",
    "struct",
    "enum",
    "crate",
    "component",
    "endpoint",
    "parser",
    "readme",
    "changelog",
    "config",
    "script",
    "import",
];

/// Whether an agent of this name that is given this task must have changed a file when it is done.
///
/// A sentence has to begin with a verb of change and to name a file or a part of a program; a word that asks, plans or
/// prohibits anywhere in the task, or an agent whose name says that it looks, makes it a no.
#[must_use]
pub fn demands_edits(agent: &str, task: &str) -> bool {
    let agent = agent.to_lowercase();
    let task = task.to_lowercase().replace('\u{2019}', "'");
    if LOOKERS.iter().any(|part| agent.contains(part)) || DOUBTS.iter().any(|words| task.contains(words)) {
        return false;
    }
    sentences(&task).any(|sentence| {
        let mut words = sentence.split_whitespace().map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()));
        let verb = words.by_ref().find(|w| !w.is_empty() && !POLITE.contains(w));
        verb.is_some_and(|verb| VERBS.contains(&verb)) && !sentence.contains('?') && names_code(sentence)
    })
}

/// The sentences and the items of lists. A full stop inside a word, such as in a file's name, ends nothing.
fn sentences(task: &str) -> impl Iterator<Item = &str> {
    task.lines().flat_map(|line| line.split_inclusive(['?', '!', ';']).flat_map(|part| part.split(". ")))
}

/// Whether a file or a part of a program is named.
fn names_code(sentence: &str) -> bool {
    sentence.split_whitespace().any(|word| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        OBJECTS.contains(&bare) || is_file(bare)
    })
}

/// A name such as `src/a.rs` or `main.c`.
fn is_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty() && (1..=5).contains(&end.len()) && end.chars().all(|c| c.is_ascii_alphanumeric())
            // A number such as 1.5 is no file.
            && !end.chars().all(|c| c.is_ascii_digit())
    })
}

/// Whether an agent that was challenged to better what it had made says that nothing better is to be made: to change
/// nothing is then what it was asked to decide, and no fault (runner-behaviour 4.6).
#[must_use]
pub fn keeps_what_is(task: &str, reply: &str) -> bool {
    let challenged = task.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    if !challenged.contains("challenge pass") {
        return false;
    }
    let reply = reply.to_lowercase().replace(['\u{2019}', '\u{2018}'], "'");
    let sentences: Vec<String> = reply
        .split(['.', '!', '?', '\n'])
        .map(|s| s.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|s| !s.is_empty())
        .collect();
    // What is told of somebody else's words, or doubted, is no word of its own.
    let plain = |s: &str| {
        !s.contains(['"', '\u{201c}', '\u{201d}'])
            && !["not sure", "unsure", "uncertain", "disagree", "wrong", "maybe", "might", "cannot", "can't"]
                .iter()
                .any(|doubt| s.contains(doubt))
    };
    let says = |words: &[&str]| sentences.iter().any(|s| plain(s) && words.iter().any(|w| s.contains(w)));
    let needless = sentences.first().is_some_and(|s| {
        plain(s)
            && ["no better", "no further", "no additional"].iter().any(|w| s.starts_with(w))
            && ["is needed", "are needed"].iter().any(|w| s.contains(w))
    });
    let kept =
        says(&["kept the current", "kept current", "current implementation was kept", "current candidate was kept"])
            && says(&[
                "no changes were made",
                "no change was made",
                "no code changes were made",
                "no code change was made",
            ]);
    let taken_back = sentences.iter().skip(1).any(|s| {
        ["change is needed", "changes are needed", "change is required", "changes are required", "work remains"]
            .iter()
            .any(|w| s.contains(w) && !s.contains(&format!("no {w}")))
    });
    (needless || kept) && !taken_back
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_demand_is_one() {
        for (agent, task) in [
            ("worker", "Fix the bug in src/lexer.rs"),
            ("worker", "Please implement the parser module."),
            ("general", "Context first.\n- add tests for `frame`\n- run them"),
            ("worker", "The build is broken. Then rename main.c to app.c and report."),
            ("builder", "You must update the README."),
            ("worker", "Refactor the function `take`; keep its tests green"),
        ] {
            assert!(demands_edits(agent, task), "{agent}: {task}");
        }
        for (agent, task) in [
            ("reviewer", "Fix the bug in src/lexer.rs"),
            ("research-agent", "Write a file with what you found"),
            ("planner", "Implement the parser module"),
            ("worker", ""),
            ("worker", "Please run the tests and report."),
            ("worker", "Explain the function `take` in src/a.rs"),
            ("worker", "Look at how to fix the bug"),
            ("worker", "Fix it"),
            ("worker", "Write a summary of what you see"),
            ("worker", "Add up 1.5 and 2.5"),
            ("worker", "Review src/a.rs and fix nothing"),
            ("worker", "Fix the bug in src/a.rs, but do not edit the tests"),
            ("worker", "Don\u{2019}t change anything. Fix the bug in your head."),
            ("worker", "Update the code if needed"),
            ("worker", "Should I add a test?"),
            ("worker", "Suggest how to change the code. Change the file a.rs only in words."),
            ("worker", "Fix the module (dry run)"),
        ] {
            assert!(!demands_edits(agent, task), "{agent}: {task}");
        }
    }

    #[test]
    fn an_agent_that_was_challenged_may_keep_what_is() {
        let task = "Implementation challenge pass two and implement any better current-scope change.";
        for (reply, keeps) in [
            ("No better current-scope change is needed. All tests pass.", true),
            ("No further code changes are needed", true),
            ("I looked again. Kept the current implementation, and no changes were made.", true),
            ("Kept the current implementation.", false),
            ("No better change is needed. On a second look, changes are required in src/a.rs.", false),
            ("Maybe no better change is needed.", false),
            ("The last report said \"No better change is needed\".", false),
            ("All is well.", false),
            ("", false),
        ] {
            assert_eq!(keeps_what_is(task, reply), keeps, "{reply}");
            assert!(!keeps_what_is("Fix the bug in src/a.rs.", reply), "nobody challenged it: {reply}");
        }
    }
}
