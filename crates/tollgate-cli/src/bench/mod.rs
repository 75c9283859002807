//! `tollgate bench`: what a decision costs, measured: round trips and write units, latency over HTTP, the
//! arithmetic, and the cold start of the limiter function.
//!
//! Invariant: counts come from the wire and from DynamoDB's own capacity figures, not from what the code means to do.
//! Times are of this machine and the emulator; compare them within one run only.

mod arithmetic;
mod counts;
mod lambda;
mod memory;
mod replay;
mod throughput;

use crate::args::BenchArgs;
use crate::error::{CliError, Result};
use crate::open::Place;
use crate::output;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;
use tollgate::{DynamoStore, Limiter};
use tollgate_core::{Charge, Charges, Figures, ItemKey, Key, LimitName, Terms, TokenBucket};

/// Everything that was measured.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// How the binary was built; times of a debug build say little.
    pub build: &'static str,
    /// Round trips and write units.
    pub decisions: Vec<counts::Line>,
    /// Decisions over HTTP.
    pub throughput: Vec<throughput::Line>,
    /// Nanoseconds in process.
    pub arithmetic: Vec<arithmetic::Line>,
    /// What a process grows by that is asked for ever new keys.
    pub memory: memory::Memory,
    /// Lines of a log that are decided a second.
    pub replay: replay::Line,
    /// Cold start, memory and size of the limiter function.
    pub lambda: lambda::Section,
}

/// Measures and prints.
///
/// # Errors
///
/// The table cannot be reached.
pub async fn run(args: BenchArgs) -> Result<()> {
    let report = Box::pin(measure(&args)).await?;
    output::result(args.json, &report, || text(&report))
}

/// Measures.
///
/// # Errors
///
/// The table cannot be reached, or a function does not answer as it should.
pub async fn measure(args: &BenchArgs) -> Result<Report> {
    let Place { target, connected, embedded } = Place::of(&args.target, None, None).await?;
    let decisions = Box::pin(counts::measure(&connected, &target)).await?;
    let throughput = throughput::measure(&connected, &target.table, Duration::from_secs(args.seconds)).await?;
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let arithmetic = arithmetic::measure(&connected, &target.table).await?;
    drop(embedded);
    let lambda = lambda::measure(args.lambda_dir.as_deref()).await?;
    // A debug build takes too long for as many.
    let memory = memory::measure(if cfg!(debug_assertions) { 100_000 } else { 1_000_000 }).await?;
    let replay =
        if cfg!(debug_assertions) { replay::measure(50_000, 50_000) } else { replay::measure(1_000_000, 500_000) }?;
    Ok(Report { build, decisions, throughput, arithmetic, memory, replay, lambda })
}

/// The charges of one decision: one token of each of `limits` (name, tokens, seconds) of a new key.
fn charges(limits: &[(&str, u64, u64)]) -> Result<Vec<Charges>> {
    let bucket = |&(name, tokens, secs): &(&str, u64, u64)| {
        Ok((LimitName::new(name)?, TokenBucket::new(tokens, secs.saturating_mul(1_000_000_000), tokens)?.into()))
    };
    charging(limits.iter().map(bucket).collect::<Result<Vec<_>>>()?)
}

/// The charges of one decision: one of each of `limits` of a new key.
fn charging(limits: Vec<(LimitName, Figures)>) -> Result<Vec<Charges>> {
    let key = Key::new([("bench", format!("{:016x}", fastrand::u64(..)))])?;
    let charge = |(limit, figures)| Charge::new(limit, Terms::new(1, figures), 1);
    Ok(vec![Charges::new(ItemKey::shared(key), limits.into_iter().map(charge).collect())?])
}

/// The charges of a decision on a limit of which a process takes up to `most` tokens ahead.
fn leased(limit: (&str, u64, u64), most: u64) -> Result<Vec<Charges>> {
    let own = |charges: Charges| {
        let item = ItemKey::own(charges.key().clone(), LimitName::new(limit.0)?);
        Ok(Charges::new(item, charges.charges().iter().map(|charge| charge.clone().leased(most)).collect())?)
    };
    charges(&[limit])?.into_iter().map(own).collect()
}

fn task_failed(error: &tokio::task::JoinError) -> CliError {
    CliError::System(format!("a bench task stopped: {error}"))
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "decision{:26}round trips   write units   (each; {} build)", "", report.build);
    for l in &report.decisions {
        let _ = writeln!(
            out,
            "  {:<30} {:>12.2} {:>13.2}   {} decisions, {} allowed",
            l.name, l.round_trips, l.write_units, l.decisions, l.allowed
        );
    }
    out.push_str(
        "  (known: this process saw within the last second that nothing is left; unknown: it did not, so that each other\n  \
         key is charged and gets its token back)\n",
    );
    let _ = writeln!(out, "over HTTP{:25}decisions/s      p50 µs     p99 µs", "");
    for l in &report.throughput {
        let _ = writeln!(out, "  {:<30} {:>12} {:>11} {:>10}", l.name, l.per_second, l.p50_us, l.p99_us);
    }
    let _ = writeln!(out, "in process{:24}ns a call", "");
    for l in &report.arithmetic {
        let _ = writeln!(out, "  {:<30} {:>12.1}", l.name, l.ns);
    }
    let grew_by = report.memory.grew_by.map_or_else(|| "unknown".to_owned(), megabytes);
    let _ = writeln!(
        out,
        "memory\n  after {} keys, of which {} are remembered: {grew_by} more",
        report.memory.keys,
        Limiter::<DynamoStore>::REMEMBERED_KEYS
    );
    let replay::Line { lines, keys, lines_per_second, bytes_per_key } = &report.replay;
    let bytes = bytes_per_key.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
    let _ = writeln!(
        out,
        "replay, one core\n  of {lines} combined lines: {lines_per_second} lines/s\n  of {keys} addresses: {bytes} bytes for each"
    );
    lambda_text(&mut out, &report.lambda);
    out
}

fn lambda_text(out: &mut String, section: &lambda::Section) {
    let lines = match section {
        lambda::Section::Measured(lines) => lines,
        lambda::Section::Missing(what_to_do) => {
            let _ = writeln!(out, "as a Lambda function\n  {what_to_do}");
            return;
        }
    };
    let _ = writeln!(out, "as a Lambda function{:15}cold start   (init)       warm    memory    binary       zip", "");
    for l in lines {
        let _ = writeln!(
            out,
            "  {:<30} {:>9.1} ms {:>8.1} {:>7.2} ms {:>9} {:>9} {:>9}",
            l.name,
            l.cold_start_ms,
            l.init_ms,
            l.warm_ms,
            l.peak_memory.map_or_else(|| "-".to_owned(), megabytes),
            megabytes(l.binary),
            megabytes(l.zip)
        );
    }
}

#[allow(clippy::cast_precision_loss, reason = "sizes of a few megabytes")]
fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}
