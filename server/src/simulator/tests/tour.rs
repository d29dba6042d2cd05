//! The welcome tour against the sample workspace.

use std::fs;

use serde_json::Value;

use super::super::sample_workspace;
use super::super::scenario::Step;
use super::scenarios;

#[test]
fn the_tour_tells_the_truth_about_the_sample_workspace() {
    let folder = tempfile::tempdir().unwrap();
    sample_workspace::unpack(folder.path()).unwrap();
    let welcome = scenarios()
        .into_iter()
        .find(|scenario| scenario.name == "welcome")
        .unwrap();
    let steps: Vec<&Step> = welcome.turns.iter().flat_map(|turn| &turn.steps).collect();
    let calls: Vec<(&str, Value)> = steps
        .iter()
        .filter_map(|step| match step {
            Step::ToolCall(call) => {
                Some((call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
            }
            _ => None,
        })
        .collect();
    let names: Vec<&str> = calls.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["list_dir", "search_files", "read_file"]);
    for (_, arguments) in &calls {
        assert!(
            folder.path().join(arguments["path"].as_str().unwrap()).exists(),
            "{arguments}"
        );
    }
    let (pattern, within) = (
        calls[1].1["pattern"].as_str().unwrap(),
        calls[1].1["path"].as_str().unwrap(),
    );
    let mut found: Vec<String> = fs::read_dir(folder.path().join(within))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| fs::read_to_string(path).unwrap().contains(pattern))
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, ["cli.py", "log.py", "store.py"]);
    let quoted = "# TODO: keep the torn bytes in a side file, so that nothing is thrown away unseen.";
    let read = fs::read_to_string(folder.path().join(calls[2].1["path"].as_str().unwrap())).unwrap();
    assert!(read.contains(quoted));
    let said: String = steps
        .iter()
        .filter_map(|step| {
            if let Step::Text(text) = step {
                text.text.clone()
            } else {
                None
            }
        })
        .collect();
    assert!(said.contains(quoted) && said.contains("`cli.py`, `log.py` and `store.py`"));
}

#[test]
fn the_tour_takes_fifteen_to_twenty_seconds() {
    let welcome = scenarios()
        .into_iter()
        .find(|scenario| scenario.name == "welcome")
        .unwrap();
    let seconds: f64 = welcome
        .turns
        .iter()
        .flat_map(|turn| &turn.steps)
        .map(|step| match step {
            Step::Text(text) | Step::Reasoning(text) => {
                text.text.as_ref().unwrap().chars().count() as f64 / text.rate
            }
            Step::ToolCall(call) => call.arguments.chars().count() as f64 / call.rate,
            Step::Silence(silence) => silence.seconds,
            _ => 0.0,
        })
        .sum();
    assert!((15.0..=20.0).contains(&seconds), "{seconds} s");
}
