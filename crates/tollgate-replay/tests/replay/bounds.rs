//! Memory grows with the callers, and not with the lines.

use crate::support::{TestRules, everywhere, limit, line};
use std::io::{BufReader, Read};
use tollgate_replay::{Options, Replay};

/// So many lines of so many addresses in turn, made as they are read.
struct Log {
    lines: u64,
    keys: u64,
    next: u64,
    text: Vec<u8>,
}

impl Read for Log {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.text.is_empty() && self.next < self.lines {
            let key = self.next % self.keys;
            // The times go up and down, so that there is something to put in order.
            let secs = self.next * 7919 % 40_000;
            self.text =
                line(&format!("10.{}.{}.{}", key >> 16, key >> 8 & 255, key & 255), "-", secs, "/").into_bytes();
            self.next += 1;
        }
        let taken = self.text.len().min(out.len());
        out[..taken].copy_from_slice(&self.text[..taken]);
        self.text.drain(..taken);
        Ok(taken)
    }
}

/// The most bytes that are allocated at once, and the requests that are denied.
fn most(rules: &TestRules, lines: u64, keys: u64) -> (u64, u64) {
    let mut denied = 0;
    let info = allocation_counter::measure(|| {
        let mut options = Options::default();
        options.held = 1000;
        let mut replay = Replay::new(rules, options);
        replay.read(None, BufReader::new(Log { lines, keys, next: 0, text: Vec::new() }), |_| ()).unwrap();
        denied = replay.report().unwrap().denied;
    });
    (info.bytes_max, denied)
}

#[test]
fn memory_grows_with_callers_and_not_with_lines() {
    let rules = everywhere(limit("per-ip", "client_ip", 1, 60, 2));
    let [(few, _), (many, denied)] = [20_000, 80_000].map(|lines| most(&rules, lines, 50));
    // The parts of the runs in the temporary file that are read at once: 60 runs more of 16 KB at most each.
    assert!(many < few + 60 * 16 * 1024 + 4096, "{few} bytes for 20,000 lines, {many} for 80,000");
    assert!(denied > 0);
    let (callers, _) = most(&rules, 20_000, 10_000);
    let each = (callers - few) / 9_950;
    assert!((100..2000).contains(&each), "{each} bytes a caller");
}
