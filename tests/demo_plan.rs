//! The plan of the demo: it loads without a word, and the scenes it names exist.

use subdeck::agents::demo::{BUILT_IN, PLAN, Script};
use subdeck::plan;

#[test]
fn the_plan_of_the_demo_is_good() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("demo.toml");
    std::fs::write(&path, PLAN).unwrap();
    let options = plan::LoadOptions {
        current_dir: dir.path().to_owned(),
        path: std::env::var_os("PATH"),
        ..plan::LoadOptions::default()
    };
    let loaded = match plan::load(plan::Input::Path(&path), &options) {
        Ok(loaded) => loaded,
        Err(problems) => panic!("{problems:?}"),
    };
    let script = Script::parse(BUILT_IN).unwrap();
    let mut demos = 0;
    for step in loaded.plan.flat() {
        if let plan::Runner::Demo { script: name } = &step.runner {
            assert!(script.scene.contains_key(name), "{name}");
            demos += 1;
        }
    }
    assert_eq!((loaded.plan.flat().count(), demos), (7, 6));
}
