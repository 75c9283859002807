//! The counts that `tollgate bench` prints, checked: one round trip and one write unit in every line.

use crate::harness::{json, run};

#[test]
fn every_situation_is_one_round_trip_and_one_write_unit() {
    // A folder without the functions: what they take to start is nothing that a test could check.
    let folder = tempfile::tempdir().unwrap();
    let at = ["--lambda-dir", folder.path().to_str().unwrap()];
    let report = json(&run(&[&["bench", "--seconds", "1", "--json"][..], &at].concat()));
    let lines = report["decisions"].as_array().unwrap();
    let names: Vec<_> = lines.iter().map(|l| l["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["new key", "steady allow", "idle key", "denial", "3 limits on one key", "40 concurrent on a new key"]
    );
    for line in lines {
        assert_eq!((&line["round_trips"], &line["write_units"]), (&1.0.into(), &1.0.into()), "{line}");
        let allowed = match line["name"].as_str().unwrap() {
            "denial" => 0,
            "40 concurrent on a new key" => 10,
            _ => line["decisions"].as_u64().unwrap(),
        };
        assert_eq!(line["allowed"], allowed, "{line}");
    }
    assert!(report["throughput"].as_array().unwrap().iter().all(|l| l["per_second"].as_u64().unwrap() > 0), "{report}");
    assert_eq!(report["arithmetic"].as_array().unwrap().len(), 3);
    assert!(report["lambda"].as_str().unwrap().contains("cargo build --release -p limiter"), "{report}");
}
