//! The targets as a part of the test run: seeds, mutations of them, any bytes, and what hurts parsers most.
#![allow(clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::panic::catch_unwind;
use std::sync::LazyLock;
use tollgate_inputs::{TARGETS, Target, seeds};

/// What parsers trip over.
const PIECES: [&[u8]; 24] = [
    b"\n",
    b",",
    b"\"",
    b"\\",
    b";",
    b"=",
    b"&",
    b"%",
    b":",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"for=",
    b"user_name",
    b"USERNAME",
    b"\xe2\x84\xaa",
    b"\xef\xb7\xba",
    b"::ffff:",
    b"0",
    b"1e400",
];

/// A change of some bytes.
#[derive(Debug, Clone)]
struct Edit {
    at: Index,
    removed: usize,
    with: Vec<u8>,
}

fn edit() -> impl Strategy<Value = Edit> {
    let with = prop_oneof![
        Just(Vec::new()),
        select(PIECES.to_vec()).prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..8),
        "[ -~]{0,12}".prop_map(String::into_bytes),
        ".{0,6}".prop_map(String::into_bytes),
    ];
    (any::<Index>(), 0_usize..12, with).prop_map(|(at, removed, with)| Edit { at, removed, with })
}

fn edited(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for Edit { at, removed, with } in edits {
        let at = at.index(bytes.len() + 1);
        let end = (at + removed).min(bytes.len());
        bytes.splice(at..end, with.iter().copied());
    }
    bytes
}

fn holds((name, check): Target, bytes: &[u8]) {
    let held = catch_unwind(|| check(bytes));
    // A seed for the folder of the target, once it is mended.
    assert!(held.is_ok(), "{name} does not hold of {:?}", String::from_utf8_lossy(bytes));
}

/// Tests of each target by itself, so that one which fails does not hide the others.
macro_rules! targets {
    ($($name:ident = $index:literal, long after $fronts:expr;)*) => { $(
        mod $name {
            use super::*;

            const TARGET: Target = TARGETS[$index];
            static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| seeds::of(TARGET.0));

            #[test]
            fn every_seed_holds() {
                assert_eq!(TARGET.0, stringify!($name));
                SEEDS.iter().for_each(|seed| holds(TARGET, seed));
            }

            #[test]
            fn what_is_long_is_read_in_proportion() {
                proportionate(TARGET, &$fronts);
            }

            proptest! {
                #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

                #[test]
                fn changed_seeds_hold(
                    seed in any::<Index>(), other in any::<Index>(), cut in prop::option::of(any::<(Index, Index)>()),
                    edits in prop::collection::vec(edit(), 0..6),
                ) {
                    let mut bytes = seed.get(&SEEDS).clone();
                    if let Some((end, start)) = cut {
                        let other = other.get(&SEEDS);
                        bytes.truncate(end.index(bytes.len() + 1));
                        bytes.extend(&other[start.index(other.len() + 1)..]);
                    }
                    holds(TARGET, &edited(bytes, &edits));
                }

                #[test]
                fn any_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
                    holds(TARGET, &bytes);
                }

                #[test]
                fn any_text_holds(choices in "[0-9]{0,5}", text in "(\\PC|\n){0,60}") {
                    holds(TARGET, format!("{choices}\n{text}").as_bytes());
                }
            }
        }
    )* };
}

targets! {
    address = 0, long after ["4120\n192.0.2.1\n\nx", "4420\n192.0.2.1\n\nf", "\n", "2130\n192.0.2.1\n", "3100\n\n"];
    body = 1, long after ["1\n", "2\nuser_name=a&", "1\n{\"user_name\":\"a\",\"b\":"];
    event = 2, long after ["01\n/v1/decisions\n\n", "10\n", "30\n/\n", "20\n/api/orders\n\n\na:", "4\n", "4\n{\"headers\":"];
    key = 3, long after ["\n", "\n\n", "\n\n\n"];
    policy = 4, long after [""];
}

#[test]
fn every_target_is_fuzzed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/targets");
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let mut fuzzed: Vec<String> = files.map(|path| path.file_stem().expect("a name").display().to_string()).collect();
    fuzzed.sort();
    assert_eq!(fuzzed, TARGETS.map(|(name, _)| name));
}

/// 64 KiB of what is cheap to send and could be dear to read.
fn hostile() -> Vec<(String, Vec<u8>)> {
    const BYTES: usize = 64 * 1024;
    let filled = |piece: &str| piece.repeat(BYTES / piece.len()).into_bytes();
    let nested = |open: &str, close: &str| [filled(open), filled(close)].concat();
    let mut all: Vec<(String, Vec<u8>)> = [
        ",",
        "\"",
        "\\\"",
        "\\",
        ";",
        "for=1;",
        "a=\"\\\",",
        "1.2.3.4,",
        "10.0.0.1,",
        "[",
        "{",
        "&",
        "a=b&",
        "user_name=a&",
        "\"a\":1,",
        "%",
        "%2",
        "%25",
        ":",
        "9",
        "\u{fdfa}",
        "\u{390}",
        "a@",
        "+",
        "xn--a.",
        "\n",
        "a=1\n",
        "a.",
        "'''",
        "\"\"\"",
        "a=[\n",
        "[a]\n",
        "[[routes]]\n",
        "[limits.a]\n",
        "x = {",
        "'\n",
        "\"\n",
        "{\"a\":",
    ]
    .iter()
    .map(|piece| (format!("{piece:?} again and again"), filled(piece)))
    .collect();
    all.push(("nested arrays".to_owned(), nested("[", "]")));
    all.push(("nested objects".to_owned(), nested("{\"a\":", "}")));
    all
}

/// Bytes of memory for each byte of input: at once, and in all, as far as work shows in allocations. What was measured is
/// 202 and 1,665, both of the policy file, whose reader tells many mistakes of one text; a request takes 92 and 263.
const AT_ONCE: u64 = 256;
const IN_ALL: u64 = 2048;

fn proportionate((name, check): Target, fronts: &[&str]) {
    for (what, junk) in hostile() {
        for front in fronts {
            let input = [front.as_bytes(), &junk].concat();
            let allocated = allocation_counter::measure(|| check(&input));
            let bytes = u64::try_from(input.len()).expect("few");
            let (most, total) = (allocated.bytes_max / bytes, allocated.bytes_total / bytes);
            assert!(most <= AT_ONCE, "{name}: {what} after {front:?} takes {most} bytes for each");
            assert!(total <= IN_ALL, "{name}: {what} after {front:?} allocates {total} bytes for each");
        }
    }
}
