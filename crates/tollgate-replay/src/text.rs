//! A report as a page for a person on call: what would have been denied, by which limit, to whom.
//!
//! Invariant: whatever the log contains, the page has no control characters but line ends.

use crate::compare::{Comparison, Counts, Difference};
use crate::report::{DeniedKey, LimitReport, Report, WafReport, instant, printable};
use std::fmt;
use std::fmt::Write as _;

/// Most logs that are told one by one.
const FILES: usize = 20;

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
    page.push_str(&missing(report));
    for (name, limit) in report.limits.iter().filter(|(_, limit)| !limit.top_denied.is_empty()) {
        let mut keys = Table::new([Left, Right, Right, Right]);
        keys.row(["key", "denied", "allowed", "longest wait"].map(str::to_owned));
        for key in &limit.top_denied {
            keys.row(key_row(key));
        }
        page.push_str(&format!("\nmost denied by {name}\n"));
        page.push_str(&keys.render("  "));
    }
    page.push_str(&report.compare.as_ref().map_or_else(String::new, comparison));
    page.push_str(&report.waf.as_ref().map_or_else(String::new, waf));
    page.push_str(&malformed(report));
    page
}

/// What the log could not tell.
fn missing(report: &Report) -> String {
    let mut lines = String::new();
    for (name, limit) in &report.limits {
        for (entry, requests) in limit.missing.iter().filter(|(_, requests)| **requests > 0) {
            let (requests, entry) = (thousands(*requests), printable(entry).collect::<String>());
            let _ = writeln!(
                lines,
                "{name}: {requests} requests are not decided, since the log has no `{entry}`; name a field that has it with --identity"
            );
        }
    }
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn comparison(compare: &Comparison) -> String {
    let mut page = String::from("\nwith the other policy\n");
    let mut counts = Table::new([Right, Left, Left]);
    let decided = compare.newly_denied.requests + compare.freed.requests + compare.same_allowed + compare.same_denied;
    let of = |difference: &Difference| format!("of {} client(s)", thousands(difference.clients));
    counts.row([thousands(compare.denied), "would have been denied".to_owned(), percent(compare.denied, decided)]);
    for (difference, what) in [(&compare.newly_denied, "newly denied"), (&compare.freed, "freed")] {
        counts.row([thousands(difference.requests), what.to_owned(), of(difference)]);
    }
    page.push_str(&counts.render("  "));
    let mut limits = Table::new([Left, Right, Right, Right, Right]);
    limits.row(["limit", "denied before", "after", "newly denied", "freed"].map(str::to_owned));
    for (name, limit) in &compare.limits {
        let denied = |counts: Option<Counts>| counts.map_or_else(|| "-".to_owned(), |counts| thousands(counts.denied));
        let [newly_denied, freed] =
            [&limit.newly_denied, &limit.freed].map(|difference| thousands(difference.requests));
        limits.row([name.clone(), denied(limit.before), denied(limit.after), newly_denied, freed]);
    }
    page.push('\n');
    page.push_str(&limits.render("  "));
    for (difference, what) in [(&compare.newly_denied, "most newly denied"), (&compare.freed, "most freed")] {
        if difference.top.is_empty() {
            continue;
        }
        let mut clients = Table::new([Left, Right, Right]);
        clients.row(["client", what, "of"].map(str::to_owned));
        for client in &difference.top {
            clients.row([printable(&client.client).collect(), thousands(client.requests), thousands(client.of)]);
        }
        page.push('\n');
        page.push_str(&clients.render("  "));
    }
    page
}

fn waf(waf: &WafReport) -> String {
    let actions = waf.actions.iter().map(|(action, requests)| format!("{} {}", action, thousands(*requests)));
    let actions: String = printable(&actions.collect::<Vec<_>>().join(", ")).collect();
    let mut rules = Table::new([Left, Right, Right]);
    rules.row(["rule", "ended", "counted"].map(str::to_owned));
    for (name, rule) in &waf.rules {
        rules.row([printable(name).collect(), thousands(rule.ended), thousands(rule.counted)]);
    }
    format!("\nwhat AWS WAF did, by the log: {actions}\n{}", rules.render("  "))
}

fn summary(report: &Report) -> String {
    let mut lines = String::new();
    if let (Some(first), Some(last)) = (report.first, report.last) {
        lines = format!("{} to {}\n", instant(first), instant(last));
    }
    for file in report.files.iter().filter(|_| report.files.len() <= FILES) {
        let format = file.format.map_or_else(|| "no format that is known".to_owned(), |format| format.to_string());
        let name: String = printable(&file.name).collect();
        let (requests, skipped) = (thousands(file.requests), thousands(file.skipped));
        let _ = writeln!(lines, "{name}: {format}, {requests} requests, {skipped} skipped");
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
    if let Some(waf) = &report.waf {
        count(waf.stopped, "stopped by AWS WAF, so not decided", true);
    }
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
        let file =
            flawed.file.as_ref().map_or_else(String::new, |file| format!("{}: ", printable(file).collect::<String>()));
        let why: String = printable(why).collect();
        let _ = writeln!(lines, "  {file}line {line}, column {column}: {why}\n    {}", flawed.text);
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
