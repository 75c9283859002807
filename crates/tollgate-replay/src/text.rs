//! A report as a page for a person on call: what would have been denied, by which limit, to whom.
//!
//! Invariant: whatever the log contains, the page has no control characters but line ends.

use crate::report::{DeniedKey, LimitReport, Report, instant, printable};
use std::fmt;
use std::fmt::Write as _;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(self))
    }
}

/// The page, with a line end at its end.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut page = summary(report);
    let mut limits = Table::new([Left, Right, Right, Right, Right, Right, Right, Right]);
    limits.row(["limit", "allowed", "", "denied", "", "not charged", "no value", "keys"].map(str::to_owned));
    for (name, limit) in &report.limits {
        limits.row(limit_row(name, limit));
    }
    page.push('\n');
    page.push_str(&limits.render(""));
    for (name, limit) in report.limits.iter().filter(|(_, limit)| !limit.top_denied.is_empty()) {
        let mut keys = Table::new([Left, Right, Right, Right]);
        keys.row(["key", "denied", "allowed", "longest wait"].map(str::to_owned));
        for key in &limit.top_denied {
            keys.row(key_row(key));
        }
        page.push_str(&format!("\nmost denied by {name}\n"));
        page.push_str(&keys.render("  "));
    }
    page.push_str(&malformed(report));
    page
}

fn summary(report: &Report) -> String {
    let mut lines = String::new();
    if let (Some(first), Some(last)) = (report.first, report.last) {
        lines = format!("{} to {}\n", instant(first), instant(last));
    }
    let mut counts = Table::new([Right, Left, Left]);
    let mut count = |number, what: &str, share: bool| {
        let share = if share { percent(number, report.requests) } else { String::new() };
        counts.row([thousands(number), what.to_owned(), share]);
    };
    count(report.requests, "requests", false);
    count(report.denied, "would have been denied", true);
    count(report.exempt, "exempt", true);
    count(report.unmatched, "on no route", true);
    count(report.skipped, "lines skipped", false);
    lines + &counts.render("")
}

fn limit_row(name: &str, limit: &LimitReport) -> [String; 8] {
    let decided = limit.allowed + limit.denied + limit.not_charged;
    [
        name.to_owned(),
        thousands(limit.allowed),
        percent(limit.allowed, decided),
        thousands(limit.denied),
        percent(limit.denied, decided),
        thousands(limit.not_charged),
        thousands(limit.missing_dimension),
        thousands(limit.keys),
    ]
}

fn key_row(key: &DeniedKey) -> [String; 4] {
    let wait = key.max_wait_ms.map_or_else(|| "never fits".to_owned(), wait);
    [printable(&key.key).collect(), thousands(key.denied), thousands(key.allowed), wait]
}

fn malformed(report: &Report) -> String {
    let mut lines = String::new();
    let (shown, all) = (report.malformed.len() as u64, report.skipped);
    if all > 0 {
        let of = if shown < all { format!(", {} of {}", thousands(shown), thousands(all)) } else { String::new() };
        lines = format!("\nskipped lines{of}\n");
    }
    for flawed in &report.malformed {
        let (line, column, why) = (thousands(flawed.line), flawed.column, &flawed.why);
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "  line {line}, column {column}: {why}\n    {}", flawed.text);
    }
    lines
}

/// `1234567` as `1,234,567`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share in percent with two decimals, rounded to the nearest; nothing if there is no whole.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    let hundredths = (part * 20_000 + whole) / (2 * whole);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// A wait in the largest unit of which there is at least one, with one decimal, rounded up as waits are.
fn wait(ms: u64) -> String {
    let (unit, name) = match ms {
        0..1_000 => return format!("{ms} ms"),
        1_000..60_000 => (1_000, "s"),
        60_000..3_600_000 => (60_000, "min"),
        3_600_000..86_400_000 => (3_600_000, "h"),
        _ => (86_400_000, "days"),
    };
    let tenths = ms.div_ceil(unit / 10);
    format!("{}.{} {name}", thousands(tenths / 10), tenths % 10)
}

use Align::{Left, Right};

#[derive(Clone, Copy)]
enum Align {
    Left,
    Right,
}

/// Rows whose columns are as wide as their widest cell, two spaces apart.
struct Table<const N: usize> {
    align: [Align; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    fn new(align: [Align; N]) -> Self {
        Self { align, rows: Vec::new() }
    }

    fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    fn render(&self, indent: &str) -> String {
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut out = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(self.align).zip(widths).map(|((cell, align), width)| match align {
                Left => format!("{cell:<width$}"),
                Right => format!("{cell:>width$}"),
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            out.push_str(indent);
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}
