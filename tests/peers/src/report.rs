//! The tables: what was measured, as Markdown and as JSON.
//!
//! Invariant: of every cell the ratios are to the better of the peers in that very cell, and where tollgate is behind is said.

use crate::counts;
use crate::error::Result;
use crate::loads::{self, CALLERS, Cell, Effort};
use crate::settings::{Contestant, Program};
use serde::Serialize;
use std::fmt::Write;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) effort: Effort,
    /// How the drivers in Rust and the table were built; times of a debug build say little.
    pub(crate) build: &'static str,
    /// Processors of the machine, which contestants and table share.
    pub(crate) processors: usize,
    /// What else the machine was doing before the first and after the last measurement: runnable processes on average
    /// over a minute.
    pub(crate) load_before: Option<f64>,
    pub(crate) round_trips: Vec<counts::Line>,
    pub(crate) loads: Vec<loads::Line>,
    pub(crate) ratios: Vec<Ratio>,
}

/// A row of tollgate beside the peers in a cell.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ratio {
    pub(crate) contestant: Contestant,
    pub(crate) cell: Cell,
    /// Decisions a second, by those of the peer that makes most.
    pub(crate) per_second: f64,
    /// 99th percentile of the latency, by that of the peer whose is lowest.
    pub(crate) p99: f64,
}

impl Report {
    /// Puts together what was measured.
    pub(crate) fn new(
        effort: Effort,
        load_before: Option<f64>,
        round_trips: Vec<counts::Line>,
        loads: Vec<loads::Line>,
    ) -> Self {
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let ratios = loads.iter().filter_map(|line| ratio(line, &loads)).collect();
        Self { effort, build, processors, load_before, round_trips, loads, ratios }
    }

    /// The Markdown that the README has.
    pub(crate) fn markdown(&self) -> Result<String> {
        let mut out = String::new();
        self.write(&mut out).map_err(std::io::Error::other)?;
        Ok(out)
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "| round trips | new key | known key | denial | the next one | hot key, 32 callers | 40 at once, one client | 40 clients |"
        )?;
        writeln!(out, "| --- | --- | --- | --- | --- | --- | --- | --- |")?;
        for line in &self.round_trips {
            let each = [line.new_key, line.known_key, line.denial, line.next_denial, line.hot_key];
            let each = each.map(|n| figure(n) + " | ").concat();
            let (together, apart) = (crowd(&line.together), crowd(&line.apart));
            writeln!(out, "| {} | {each}{together} | {apart} |", line.contestant.title)?;
        }
        let cells = |keys: &[usize]| {
            let keys = keys.to_vec();
            keys.into_iter().flat_map(|keys| CALLERS.map(|callers| Cell { keys, callers })).collect::<Vec<_>>()
        };
        for (title, keys) in
            [("one hot key".to_owned(), 1), (format!("{} keys", thousands(self.effort.keys as u64)), self.effort.keys)]
        {
            self.write_loads(out, &title, &cells(&[keys]))?;
        }
        self.write_ratios(out, &cells(&[1, self.effort.keys]))
    }

    fn write_loads(&self, out: &mut String, title: &str, cells: &[Cell]) -> std::fmt::Result {
        if self.loads.is_empty() {
            return Ok(());
        }
        let heads: Vec<_> = cells.iter().map(|cell| callers(cell.callers)).collect();
        writeln!(out, "\n| decisions/s (p99), {title} | {} | µs of processor, client + table |", heads.join(" | "))?;
        writeln!(out, "| --- {}|", "| --- ".repeat(cells.len() + 1))?;
        for rows in self.loads.chunk_by(|a, b| a.contestant.title == b.contestant.title) {
            let of = |cell: &Cell| rows.iter().find(|line| line.cell == *cell);
            let times: Vec<_> = cells.iter().map(|cell| of(cell).map_or_else(String::new, load)).collect();
            let last = cells.last().and_then(of);
            let spent = last.and_then(|line| line.client_cpu_us.zip(line.table_cpu_us));
            let spent = spent.map_or_else(String::new, |(client, table)| format!("{client} + {table}"));
            let Some(first) = rows.first() else { continue };
            writeln!(out, "| {} | {} | {spent} |", first.contestant.title, times.join(" | "))?;
        }
        Ok(())
    }

    fn write_ratios(&self, out: &mut String, cells: &[Cell]) -> std::fmt::Result {
        if self.ratios.is_empty() {
            return Ok(());
        }
        let head = |cell: &Cell| format!("{}, {}", if cell.keys == 1 { "hot" } else { "many" }, callers(cell.callers));
        let heads: Vec<_> = cells.iter().map(head).collect();
        writeln!(out, "\n| by the better peer: decisions/s (p99) | {} |", heads.join(" | "))?;
        writeln!(out, "| --- {}|", "| --- ".repeat(cells.len()))?;
        for rows in self.ratios.chunk_by(|a, b| a.contestant.title == b.contestant.title) {
            let text = |cell: &Cell| rows.iter().find(|ratio| ratio.cell == *cell).map_or_else(String::new, times);
            let Some(first) = rows.first() else { continue };
            let all: Vec<_> = cells.iter().map(text).collect();
            writeln!(out, "| {} | {} |", first.contestant.title, all.join(" | "))?;
        }
        let behind: Vec<_> = self.ratios.iter().filter(|ratio| ratio.per_second < 1.0 || ratio.p99 > 1.0).collect();
        if behind.is_empty() {
            return writeln!(out, "\nIn no cell is tollgate behind the better peer, in decisions a second or in p99.");
        }
        writeln!(out, "\nWhere tollgate is behind the better peer:\n")?;
        for ratio in behind {
            writeln!(out, "- {}, {}: {}", ratio.contestant.title, head(&ratio.cell), times(ratio))?;
        }
        Ok(())
    }
}

/// `None` where the row is not tollgate's, or no peer was measured in the cell.
fn ratio(line: &loads::Line, all: &[loads::Line]) -> Option<Ratio> {
    let peers = || all.iter().filter(|other| other.contestant.program.is_peer() && other.cell == line.cell);
    if line.contestant.program != Program::Tollgate {
        return None;
    }
    let per_second = quotient(line.per_second, peers().map(|peer| peer.per_second).max()?);
    let p99 = quotient(line.p99_us, peers().map(|peer| peer.p99_us).min()?);
    Some(Ratio { contestant: line.contestant.clone(), cell: line.cell, per_second, p99 })
}

#[allow(clippy::cast_precision_loss, reason = "figures of six digits")]
fn quotient(ours: u64, theirs: u64) -> f64 {
    ours as f64 / theirs.max(1) as f64
}

fn times(ratio: &Ratio) -> String {
    format!("{:.1} × ({:.2} ×)", ratio.per_second, ratio.p99)
}

fn callers(number: usize) -> String {
    if number == 1 { "1 caller".to_owned() } else { format!("{number} callers") }
}

fn load(line: &loads::Line) -> String {
    let failed = if line.failed > 0 { format!(", {} failed", line.failed) } else { String::new() };
    format!("{} ({}{failed})", thousands(line.per_second), milliseconds(line.p99_us))
}

fn crowd(crowd: &counts::Crowd) -> String {
    let admitted = match (crowd.fewest, crowd.most) {
        (fewest, most) if fewest == most => most.to_string(),
        (fewest, most) => format!("{fewest} to {most}"),
    };
    let failed = if crowd.failed > 0 { format!(", {} failed", crowd.failed) } else { String::new() };
    format!("{} ({admitted} admitted{failed})", figure(crowd.round_trips))
}

/// Without a fraction where there is none.
fn figure(n: f64) -> String {
    match n {
        _ if n.fract() == 0.0 => format!("{n:.0}"),
        _ if n < 1.0 => format!("{n:.2}"),
        _ => format!("{n:.1}"),
    }
}

#[allow(clippy::cast_precision_loss, reason = "latencies of less than a minute")]
fn milliseconds(us: u64) -> String {
    let ms = us as f64 / 1e3;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `text` with what is between the markers replaced by `markdown`; `None` if they are not there.
pub(crate) fn replace_between_markers(text: &str, markdown: &str) -> Option<String> {
    const MARKERS: (&str, &str) =
        ("<!-- cargo run --release -p tollgate-peers -- --readme README.md -->\n", "<!-- end -->");
    let (before, rest) = text.split_once(MARKERS.0)?;
    let (_, after) = rest.split_once(MARKERS.1)?;
    Some(format!("{before}{}\n{markdown}\n{}{after}", MARKERS.0, MARKERS.1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn line(program: Program, title: &str, per_second: u64, p99_us: u64) -> loads::Line {
        let contestant =
            Contestant { program, setting: "default", title: title.to_owned(), is_counted: true, is_timed: true };
        let cell = Cell { keys: 1, callers: 8 };
        let (client_cpu_us, table_cpu_us) = (None, None);
        let (failed, failure) = (0, None);
        loads::Line { contestant, cell, per_second, p50_us: 1, p99_us, client_cpu_us, table_cpu_us, failed, failure }
    }

    #[test]
    fn ratios_are_to_the_better_peer_of_the_cell_and_what_is_behind_is_told() {
        let ours = |per_second, p99_us| line(Program::Tollgate, "ours", per_second, p99_us);
        let others = [
            line(Program::RateLimiterFlexible, "fast", 1_000, 9_000),
            line(Program::ZaeLimiter, "even", 500, 3_000),
            line(Program::Bare, "bare", 9_000, 1),
        ];
        let effort = Effort { seconds: 1.0, rounds: 1, keys: 10 };
        let told = |ours| {
            let loads = [ours].into_iter().chain(others.clone()).collect();
            Report::new(effort, None, Vec::new(), loads).markdown().unwrap()
        };
        assert!(told(ours(2_000, 3_000)).contains("In no cell is tollgate behind"));
        for behind in [ours(999, 3_000), ours(2_000, 3_600)] {
            let text = told(behind);
            assert!(text.contains("Where tollgate is behind the better peer:\n\n- ours, hot, 8 callers: "), "{text}");
        }
        assert!(told(ours(2_000, 3_600)).contains("2.0 × (1.20 ×)"));
    }
}
