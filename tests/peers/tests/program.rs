//! The program as a whole, without the peers: counts only, since times are the machine's.
#![allow(clippy::unwrap_used, missing_docs)]

use serde_json::Value;
use std::process::Command;

#[test]
fn what_tollgate_takes_is_counted_and_of_a_missing_peer_it_is_told_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    let (nowhere, json) = (folder.path().join("nowhere"), folder.path().join("told.json"));
    let mut peers = Command::new(env!("CARGO_BIN_EXE_peers"));
    peers.args(["--check", "--seconds", "0"]).arg("--json").arg(&json);
    peers.arg("--node-modules").arg(&nowhere).arg("--python").arg(&nowhere);
    let output = peers.output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    for how in ["npm ci --prefix", "uv pip install"] {
        assert!(err.contains(how), "{err}");
    }
    assert!(!folder.path().join("nowhere").exists());
    let told: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let rows = told["round_trips"].as_array().unwrap();
    assert!(rows.len() > 1, "{told}");
    for row in rows {
        assert_eq!(row["contestant"]["program"], "tollgate");
        assert_eq!(row["apart"]["most"], 10);
        assert!(out.contains(row["contestant"]["title"].as_str().unwrap()), "{out}");
    }
}
