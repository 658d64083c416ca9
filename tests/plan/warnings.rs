//! What is odd and no mistake.

use super::*;

#[test]
fn odd_things_are_warnings() {
    let table: &[(&str, &str, &str)] = &[
        ("[[step]]\nagent = \"scout\"\ntask = \"{previous}\"", "step[1].task", "empty in the first step"),
        ("[[step]]\nagent = \"scout\"\ntask = \"{prevoius}\"", "step[1].task", "is no placeholder"),
        ("[[step]]\nagent = \"scout\"\ntask = \"{output.scout}\"", "step[1].task", "is no placeholder"),
        (
            "[[step]]\nrunner = { command = \"x\", args = [\"{task}\"] }\ntask = \"t\"",
            "step[1].runner",
            "list of processes",
        ),
        (
            "[[step]]\nrunner = { command = \"x\", args = [\"-c\", \"say {outputs.b}\"] }",
            "step[1].runner",
            "`{outputs.b}` is not filled in in the arguments",
        ),
        (
            "[[step]]\nrunner = { command = \"x\", args = [\"{previous}\"] }\ntask = \"t\"",
            "step[1].runner",
            "`{previous}` is not filled in in the arguments",
        ),
        (
            "[[step]]\nrunner = { command = \"x\", prompt = \"arg\" }\ntask = \"t\"",
            "step[1].runner",
            "list of processes",
        ),
        (
            "[[step]]\nagent = \"scout\"\ntask = \"t\"\ntool_timeout = \"6m\"\nbudget = { time = \"5m\" }",
            "step[1].tool_timeout",
            "longer than the whole step's",
        ),
        (
            "tool_timeout = \"6m\"\nbudget = { time = \"5m\" }\n[[step]]\nagent = \"scout\"\ntask = \"t\"",
            "tool_timeout",
            "longer than the whole run's",
        ),
        (
            "[[step]]\nagent = \"scout\"\ntask = \"t\"\nbudget = { idle = \"6m\", time = \"5m\" }",
            "step[1].budget.idle",
            "longer than the whole time",
        ),
        (
            "budget = { time = \"1m\" }\n[[step]]\nagent = \"scout\"\ntask = \"t\"\nbudget = { time = \"2m\" }",
            "step[1]",
            "longer than the whole run's",
        ),
    ];
    for (text, key, message) in table {
        let loaded = load_text("p.toml", text).unwrap();
        let [warning] = &loaded.warnings[..] else { panic!("{text}\n{:#?}", loaded.warnings) };
        assert_eq!((warning.severity, warning.key.as_str()), (Severity::Warning, *key), "{text}");
        assert!(warning.message.contains(message), "{text}\n{warning:#?}");
    }
}

#[test]
fn a_program_that_cannot_come_any_more_is_an_error_with_its_place_and_others_are_warnings() {
    let mut options = options();
    options.path = Some("/nowhere".into());
    let args: [String; 0] = [];
    let problems = plan::from_command("no-such-program", &args, &options).unwrap_err().0;
    assert_eq!(problems[0].message, "the program `no-such-program` of step `no-such-program` was not found");
    let loaded = plan::from_command("./made-later", &args, &options).unwrap();
    assert_eq!(loaded.warnings[0].message, "the program `./made-later` of step `made-later` was not found");
    let text = "[[step]]\nrunner = { type = \"external-cli\", command = \"gone\" }\n\
                [[step]]\nrunner = { type = \"external-cli\", command = \"gone\" }\n\
                [[step]]\nagent = \"a\"\nsystem_prompt = \"p\"\ntask = \"t\"\n";
    let problems = plan::load(Input::Reader(&mut text.as_bytes()), &options).unwrap_err().0;
    let said: Vec<_> = problems.iter().map(|p| (p.location(), p.message.as_str())).collect();
    let gone = "the program `gone` of step `gone` was not found";
    let pi = "the program `pi` of step `a` was not found";
    assert_eq!(said, [("<stdin>:2:10".to_owned(), gone), ("<stdin>:5:1".to_owned(), pi)], "each once");
    let loaded = plan::from_command("/bin/sh", &args, &options).unwrap();
    assert_eq!(loaded.warnings, []);
}
