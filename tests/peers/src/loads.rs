//! Decisions a second and their latency, at 1, 8 and 32 callers, on one hot key and on many.
//!
//! Invariant: in every round each row does each cell once, next to the others, so that what else the machine does meets them
//! alike; a figure is the median of the rounds.

use crate::child::Child;
use crate::error::Result;
use crate::note;
use crate::protocol::{Answer, Order};
use crate::server::Told;
use crate::settings::{Contestant, Peers};
use serde::Serialize;

/// Callers at once.
pub(crate) const CALLERS: [usize; 3] = [1, 8, 32];

/// How much is measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Effort {
    /// How long each row does each cell in a round.
    pub(crate) seconds: f64,
    /// How often.
    pub(crate) rounds: usize,
    /// How many keys are many.
    pub(crate) keys: usize,
}

/// A situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Cell {
    /// How many keys the callers choose from; 1 is the hot key.
    pub(crate) keys: usize,
    /// How many callers there are.
    pub(crate) callers: usize,
}

/// A row in a situation: medians.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) contestant: Contestant,
    pub(crate) cell: Cell,
    /// Decisions a second, of all callers.
    pub(crate) per_second: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    /// Processor time of the row's process for a decision, in microseconds.
    pub(crate) client_cpu_us: Option<u64>,
    /// Processor time of the table's process for a decision, in microseconds.
    pub(crate) table_cpu_us: Option<u64>,
    /// Calls that got no decision, of all rounds.
    pub(crate) failed: u64,
    /// Why the first of them did not.
    pub(crate) failure: Option<String>,
}

/// What a row did in a situation once.
struct Sample {
    answer: Answer,
    client_cpu_us: Option<u64>,
    table_cpu_us: Option<u64>,
}

/// Measures every row that is timed in every situation.
pub(crate) async fn measure(
    peers: &Peers,
    rows: &[Contestant],
    server: &mut Child,
    told: &Told,
    effort: Effort,
) -> Result<Vec<Line>> {
    let many = |callers| Cell { keys: effort.keys, callers };
    let hot = |callers| Cell { keys: 1, callers };
    let cells: Vec<_> = CALLERS.map(hot).into_iter().chain(CALLERS.map(many)).collect();
    let mut racers = Vec::new();
    for row in rows.iter().filter(|row| row.is_timed) {
        note(format_args!("filling: {}", row.title));
        let mut process = peers.start(row, &told.direct)?;
        let _: Answer = process.ask(&Order::Open { clients: 1 }).await?;
        for keys in [1, effort.keys] {
            let fill = Order::Fill { prefix: prefix(row, keys), keys, callers: CALLERS[CALLERS.len() - 1] };
            let _: Answer = process.ask(&fill).await?;
        }
        racers.push((row, process, cells.iter().map(|_| Vec::new()).collect::<Vec<_>>()));
    }
    for round in 0..effort.rounds {
        for (at, cell) in cells.iter().enumerate() {
            let (round, rounds) = (round + 1, effort.rounds);
            note(format_args!("round {round} of {rounds}: {} keys, {} callers", cell.keys, cell.callers));
            // Nobody is always the one after the same neighbour.
            racers.rotate_left(1);
            for (row, process, samples) in &mut racers {
                samples[at].push(sample((row, process), server, *cell, effort.seconds).await?);
            }
        }
    }
    let in_order = rows.iter().filter_map(|row| racers.iter().find(|(racer, ..)| std::ptr::eq(*racer, row)));
    Ok(in_order
        .flat_map(|(row, _, samples)| cells.iter().zip(samples).map(|(cell, samples)| line(row, *cell, samples)))
        .collect())
}

/// What the keys of a row begin with; rows of one program share a table.
fn prefix(row: &Contestant, keys: usize) -> String {
    format!("{}-{}-", row.setting, if keys == 1 { "hot" } else { "many" })
}

async fn sample(
    (row, process): (&Contestant, &mut Child),
    server: &mut Child,
    cell: Cell,
    seconds: f64,
) -> Result<Sample> {
    let before = (process.cpu_us(), server.cpu_us());
    let order = Order::Load { prefix: prefix(row, cell.keys), keys: cell.keys, callers: cell.callers, seconds };
    let answer: Answer = process.ask(&order).await?;
    let each = |before: Option<u64>, after: Option<u64>| {
        before.zip(after).map(|(before, after)| after.saturating_sub(before) / answer.decisions().max(1))
    };
    let (client_cpu_us, table_cpu_us) = (each(before.0, process.cpu_us()), each(before.1, server.cpu_us()));
    Ok(Sample { answer, client_cpu_us, table_cpu_us })
}

fn line(row: &Contestant, cell: Cell, samples: &[Sample]) -> Line {
    let of = |figure: fn(&Sample) -> Option<u64>| median(samples.iter().map(figure).collect());
    Line {
        contestant: row.clone(),
        cell,
        per_second: of(|sample| Some(sample.answer.per_second())).unwrap_or_default(),
        p50_us: of(|sample| Some(sample.answer.p50_us)).unwrap_or_default(),
        p99_us: of(|sample| Some(sample.answer.p99_us)).unwrap_or_default(),
        client_cpu_us: of(|sample| sample.client_cpu_us),
        table_cpu_us: of(|sample| sample.table_cpu_us),
        failed: samples.iter().map(|sample| sample.answer.failed).sum(),
        failure: samples.iter().find_map(|sample| sample.answer.failure.clone()),
    }
}

fn median(mut values: Vec<Option<u64>>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied().flatten()
}
