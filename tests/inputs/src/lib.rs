//! What must hold of everything that reads a stranger's bytes.
//!
//! Each function of [`TARGETS`] takes any bytes and panics where a property does not hold. The test run calls them with the
//! seeds, with mutations of those and with what hurts parsers most (`tests/inputs.rs`); libFuzzer calls the same ones
//! (`tests/fuzz`). Invariant: a function is a function of its bytes, so what fuzzing finds is a seed of the test run from
//! then on.
//!
//! # Layout
//!
//! | module | what it reads |
//! | --- | --- |
//! | [`address`] | addresses, and the headers that proxies write them into |
//! | [`event`] | events of Lambda functions |
//! | [`body`] | fields of JSON and forms |
//! | [`policy`] | the policy file |
//! | [`key`] | keys, stored attributes, and values that are folded |
//! | `input` | bytes as choices and lines |
//! | `app` | a policy in front of a handler |
#![allow(clippy::expect_used, clippy::panic, reason = "a property that does not hold is a panic")]

pub mod address;
mod app;
pub mod body;
pub mod event;
mod input;
pub mod key;
pub mod policy;

/// A function that any bytes may be given to, and the name of its seeds' folder.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 5] = [
    ("address", address::check),
    ("body", body::check),
    ("event", event::check),
    ("key", key::check),
    ("policy", policy::check),
];

/// A folder's seeds.
pub mod seeds {
    use std::path::Path;

    /// The contents of all seeds of a target, in the order of their names.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn of(target: &str) -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
        let files = std::fs::read_dir(&folder).expect("a folder of seeds");
        let mut paths: Vec<_> = files.map(|entry| entry.expect("a file").path()).collect();
        paths.sort();
        let seeds: Vec<_> = paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect();
        assert!(!seeds.is_empty(), "no seeds in {}", folder.display());
        seeds
    }
}
