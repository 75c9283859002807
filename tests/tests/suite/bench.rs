//! The counts that `tollgate bench` prints, checked.

use crate::harness::{json, run};

#[test]
fn every_situation_takes_the_round_trips_and_write_units_that_it_has_to() {
    // A folder without the functions: what they take to start is nothing that a test could check.
    let folder = tempfile::tempdir().unwrap();
    let at = ["--lambda-dir", folder.path().to_str().unwrap()];
    let report = json(&run(&[&["bench", "--seconds", "1", "--json"][..], &at].concat()));
    // Ten thousand keys are remembered, whatever the number that was asked for.
    let memory = &report["memory"];
    assert!(memory["keys"] == 100_000 && memory["grew_by"].as_u64().is_none_or(|bytes| bytes < 64 << 20), "{memory}");
    // What a replay remembers of an address it has never seen before; how fast it is is for the release build to tell.
    let replay = &report["replay"];
    assert!(replay["lines_per_second"].as_u64().unwrap() > 0, "{replay}");
    assert!(replay["bytes_per_key"].as_u64().is_none_or(|bytes| bytes < 4096), "{replay}");
    let lines = report["decisions"].as_array().unwrap();
    // When the calls of these are asked for decides how many go together.
    let most = |name: &str| match name {
        "leased" => Some(0.1),
        "40 concurrent in one process" => Some(0.5),
        _ => None,
    };
    let (together, alone): (Vec<_>, Vec<_>) = lines
        .iter()
        .map(|l| (l["name"].as_str().unwrap(), l["round_trips"].as_f64().unwrap(), l["write_units"].as_f64().unwrap()))
        .partition(|(name, ..)| most(name).is_some());
    assert_eq!(together.len(), 2);
    for (name, round_trips, write_units) in together {
        let within = 0.0..=most(name).unwrap();
        assert!(within.contains(&round_trips) && within.contains(&write_units), "{name}: {round_trips} {write_units}");
    }
    let expected = [
        ("new key", 1.0, 1.0),
        ("steady allow", 1.0, 1.0),
        ("idle key", 1.0, 1.0),
        ("denial, known", 0.0, 0.0),
        ("denial, unknown", 1.0, 1.0),
        // A look and the lock.
        ("denial that locks", 2.0, 1.0),
        ("denial by a lock, unknown", 1.0, 0.0),
        ("fixed window", 1.0, 1.0),
        ("fixed window, a new one", 1.0, 1.0),
        ("quota of a month", 1.0, 1.0),
        ("sliding window", 1.0, 1.0),
        ("sliding window, a new one", 1.0, 1.0),
        ("sliding log", 1.0, 1.0),
        ("sliding log, written anew", 1.0, 1.0),
        ("sliding log, success taken out", 2.0, 2.0),
        ("charge and settlement", 2.0, 2.0),
        ("3 limits on one key", 1.0, 1.0),
        ("3 keys", 3.0, 3.0),
        ("3 keys, known denial", 0.0, 0.0),
        // Three charges, of which two are given back.
        ("3 keys, unknown denial", 5.0, 5.0),
        ("3 keys, one transaction", 1.0, 6.0),
        ("8 shards", 1.0, 1.0),
        ("8 shards, known denial", 0.0, 0.0),
        ("8 shards, unknown denial", 2.0, 2.0),
        ("40 concurrent on a new key", 1.0, 1.0),
    ];
    assert_eq!(alone, expected);
    for line in lines {
        let allowed = match line["name"].as_str().unwrap() {
            denial if denial.contains("denial") => 0,
            concurrent if concurrent.starts_with("40 concurrent") => 10,
            _ => line["decisions"].as_u64().unwrap(),
        };
        assert_eq!(line["allowed"], allowed, "{line}");
    }
    assert!(report["throughput"].as_array().unwrap().iter().all(|l| l["per_second"].as_u64().unwrap() > 0), "{report}");
    assert_eq!(report["arithmetic"].as_array().unwrap().len(), 5);
    assert!(report["lambda"].as_str().unwrap().contains("cargo build --release -p limiter"), "{report}");
}
