//! Files of which pieces are missing, doubled or others.

use super::*;

/// A text with some of its pieces dropped, doubled or replaced.
fn torn(text: &str, cuts: &[(usize, u8, String)]) -> String {
    let mut pieces: Vec<&str> = text.split_inclusive(|c: char| " \n=[]{}\",".contains(c)).collect();
    for (at, what, with) in cuts {
        let at = at % pieces.len();
        match what % 3 {
            0 if pieces.len() > 1 => drop(pieces.remove(at)),
            1 => pieces.insert(at, pieces[at]),
            _ => pieces[at] = with,
        }
    }
    pieces.concat()
}

proptest::proptest! {
    #[test]
    fn no_torn_plan_or_config_is_too_strange(
        cuts in proptest::collection::vec((0_usize..10_000, 0_u8..3, "[\\[\\]{}=\",.0-9a-zé\n-]{0,4}"), 1..6),
    ) {
        for name in ["full.toml", "small.json", "mistakes.toml", "configs/chain.json"] {
            let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
            match load_text(name, &torn(&text, &cuts)) {
                Ok(loaded) => {
                    let values = plan::stored::Secrets::of(&loaded.plan);
                    let stored = plan::stored::decode(&plan::stored::encode(&loaded.plan), &|step, name| values.get(step, name));
                    proptest::prop_assert_eq!(stored.unwrap().plan, loaded.plan);
                }
                Err(problems) => {
                    proptest::prop_assert!(problems.errors() > 0);
                    proptest::prop_assert!(problems.lines().iter().all(|l| !l.as_str().chars().any(char::is_control)));
                }
            }
        }
    }
}
