//! The report as a page with charts.
//!
//! Invariant: whatever a log contains is text on the page: every value goes through [`escaped`].

use super::Replayed;
use super::suggest::{Suggested, shares};
use crate::error::Result;
use crate::page::{self, BLUE, GREY, Line, ORANGE, RED, escaped};
use std::fmt::Write;
use tollgate_replay::Report;
use tollgate_replay::compare::{Comparison, Difference};
use tollgate_replay::report::{Part, WafReport};

/// Parts of the time that a chart shows.
pub(super) const PARTS: usize = 120;

/// Limits that have a line of their own.
const LINES: usize = 4;

pub(super) fn render(replayed: &Replayed) -> Result<String> {
    let report = &replayed.report;
    let mut body = summary(report);
    body.push_str(&charts(report)?);
    body.push_str(&limits(report));
    if let Some(compare) = &report.compare {
        body.push_str(&comparison(compare));
    }
    if let Some(suggested) = &replayed.suggest {
        body.push_str(&suggestions(suggested));
    }
    let in_front: String = replayed.edge.iter().map(super::RuleReport::text).collect();
    if !in_front.is_empty() {
        let _ = write!(body, "<h2>In front (approximate)</h2><pre>{}</pre>", escaped(in_front.trim()));
    }
    if let Some(report) = &report.waf {
        body.push_str(&waf(report));
    }
    body.push_str(&files(report));
    Ok(page::page("What the policy would have done", &body))
}

fn summary(report: &Report) -> String {
    let between = report.parts.first().and_then(|part| part.from).map_or_else(String::new, |_| {
        let [first, last] =
            [report.first, report.last].map(|at| at.map(tollgate_replay::report::instant).unwrap_or_default());
        format!("<p>{} to {}</p>", escaped(&first), escaped(&last))
    });
    let Report { requests, denied, exempt, unmatched, skipped, .. } = report;
    format!(
        "{between}<table class=\"left\"><tr><th>requests<td>{requests}</tr><tr><th>would have been denied (exact)<td>{denied} {}</tr>\
         <tr><th>exempt<td>{exempt}</tr><tr><th>on no route<td>{unmatched}</tr><tr><th>lines skipped<td>{skipped}</tr></table>",
        percent(*denied, *requests)
    )
}

fn charts(report: &Report) -> Result<String> {
    let (Some(first), Some(last)) = (report.first, report.last) else { return Ok(String::new()) };
    #[allow(clippy::cast_precision_loss, reason = "hours to be shown")]
    let hours = (last.as_nanos() - first.as_nanos()).max(1_000_000_000) as f64 / 3.6e12;
    let x = format!("hours since {}", tollgate_replay::report::instant(first));
    let parts = &report.parts;
    let each = hours * 60.0 / parts.len().max(1) as f64;
    let of = |value: &dyn Fn(&Part) -> u64| -> Vec<(f64, f64)> {
        #[allow(clippy::cast_precision_loss, reason = "counts to be shown")]
        let point = |(at, part)| ((at as f64 + 0.5) * hours / parts.len() as f64, value(part) as f64);
        parts.iter().enumerate().map(point).collect()
    };
    let mut series: Vec<Line<'_>> =
        vec![("allowed", BLUE, of(&|part| part.allowed)), ("denied", RED, of(&|part| part.denied))];
    if report.compare.is_some() {
        series.push(("denied by the other policy", ORANGE, of(&|part| part.denied_by_other)));
    }
    let title = format!("requests in {each:.1} min");
    let mut body = format!("<h2>Requests</h2>{}", page::lines(&title, (&x, hours), &series)?);
    let mut denying: Vec<_> = report.limits.iter().filter(|(_, limit)| limit.denied > 0).collect();
    denying.sort_by_key(|(_, limit)| std::cmp::Reverse(limit.denied));
    if denying.len() > 1 {
        let colours = [RED, BLUE, ORANGE, GREY];
        let line = |(name, colour)| -> Line<'_> {
            let name: &String = name;
            (name, colour, of(&|part| part.limits.get(name).copied().unwrap_or(0)))
        };
        let series: Vec<_> = denying.iter().map(|(name, _)| *name).take(LINES).zip(colours).map(line).collect();
        let _ = write!(body, "<h2>Denials by limit</h2>{}", page::lines(&title, (&x, hours), &series)?);
    }
    Ok(body)
}

fn limits(report: &Report) -> String {
    let mut body = String::from(
        "<h2>Limits (exact)</h2><table class=\"left\"><tr><th>limit<th>allowed<th>denied<th>not charged<th>no value<th>keys</tr>",
    );
    for (name, limit) in &report.limits {
        let name = escaped(name);
        let _ = write!(
            body,
            "<tr><td>{name}<td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            limit.allowed, limit.denied, limit.not_charged, limit.missing_dimension, limit.keys
        );
    }
    body.push_str("</table>");
    for (name, limit) in report.limits.iter().filter(|(_, limit)| !limit.top_denied.is_empty()) {
        let most = limit.top_denied.iter().map(|key| key.denied).max().unwrap_or(1);
        let _ = write!(
            body,
            "<h3>Most denied by {}</h3><table class=\"left\"><tr><th>key<th>denied<th>allowed<th>longest wait, ms<th></tr>",
            escaped(name)
        );
        for key in &limit.top_denied {
            let wait = key.max_wait_ms.map_or_else(|| "never fits".to_owned(), |ms| ms.to_string());
            let width = key.denied * 100 / most.max(1);
            let _ = write!(
                body,
                "<tr><td>{}<td>{}<td>{}<td>{wait}<td><span class=\"bar\" style=\"width:{width}px\"></span></tr>",
                escaped(&key.key),
                key.denied,
                key.allowed
            );
        }
        body.push_str("</table>");
    }
    for (name, limit) in &report.limits {
        for (entry, requests) in limit.missing.iter().filter(|(_, requests)| **requests > 0) {
            let (name, entry) = (escaped(name), escaped(entry));
            let _ = write!(
                body,
                "<p>{name}: {requests} requests are not decided: the log has no <code>{entry}</code>.</p>"
            );
        }
    }
    body
}

fn comparison(compare: &Comparison) -> String {
    let mut body = format!(
        "<h2>With the other policy</h2><p>{} denied; {} newly, of {} clients; {} freed, of {} clients.</p>\
         <table class=\"left\"><tr><th>limit<th>denied before<th>after<th>newly denied<th>freed</tr>",
        compare.denied,
        compare.newly_denied.requests,
        compare.newly_denied.clients,
        compare.freed.requests,
        compare.freed.clients
    );
    for (name, limit) in &compare.limits {
        let denied = |counts: &Option<tollgate_replay::compare::Counts>| {
            counts.map_or_else(|| "-".to_owned(), |counts| counts.denied.to_string())
        };
        let (before, after) = (denied(&limit.before), denied(&limit.after));
        let (newly, freed) = (limit.newly_denied.requests, limit.freed.requests);
        let _ = write!(body, "<tr><td>{}<td>{before}<td>{after}<td>{newly}<td>{freed}</tr>", escaped(name));
    }
    body.push_str("</table>");
    body + &clients("newly denied", &compare.newly_denied) + &clients("freed", &compare.freed)
}

fn clients(what: &str, difference: &Difference) -> String {
    if difference.top.is_empty() {
        return String::new();
    }
    let mut body = format!("<h3>Most {what}</h3><table class=\"left\"><tr><th>client<th>{what}<th>of</tr>");
    for client in &difference.top {
        let _ = write!(body, "<tr><td>{}<td>{}<td>{}</tr>", escaped(&client.client), client.requests, client.of);
    }
    body + "</table>"
}

fn suggestions(suggested: &Suggested) -> String {
    let mut body = String::from("<h2>Suggested limits</h2>");
    for (name, suggestion) in &suggested.limits {
        let _ = write!(
            body,
            "<h3>{}, from {} requests of {} clients</h3><table class=\"left\"><tr><th>percentile<th>peak/s<th>peak/min\
             <th>rate<th>burst<th>clients denied<th>requests denied</tr>",
            escaped(name),
            suggestion.requests,
            suggestion.keys
        );
        for row in &suggestion.rows {
            let [clients, requests] = shares(row, suggestion);
            let _ = write!(
                body,
                "<tr><td>{}<td>{}<td>{}<td>{}/min<td>{}<td>{clients}<td>{requests}</tr>",
                row.percentile, row.peak_per_second, row.peak_per_minute, row.per_minute, row.burst
            );
        }
        body.push_str("</table>");
    }
    let _ = write!(body, "<pre>{}</pre>", escaped(&suggested.policy));
    body
}

fn waf(report: &WafReport) -> String {
    let actions = report.actions.iter().map(|(action, requests)| format!("{} {requests}", escaped(action)));
    let mut body = format!(
        "<h2>What AWS WAF did</h2><p>{}</p><table class=\"left\"><tr><th>rule<th>ended<th>counted</tr>",
        actions.collect::<Vec<_>>().join(", ")
    );
    for (name, rule) in &report.rules {
        let _ = write!(body, "<tr><td>{}<td>{}<td>{}</tr>", escaped(name), rule.ended, rule.counted);
    }
    body + "</table>"
}

fn files(report: &Report) -> String {
    let mut body = String::from("<h2>Logs</h2><table class=\"left\"><tr><th>log<th>format<th>requests<th>skipped</tr>");
    for file in &report.files {
        let format = file.format.map_or_else(|| "unknown".to_owned(), |format| format.to_string());
        let _ =
            write!(body, "<tr><td>{}<td>{format}<td>{}<td>{}</tr>", escaped(&file.name), file.requests, file.skipped);
    }
    body.push_str("</table>");
    for flawed in &report.malformed {
        let place = flawed.file.as_ref().map_or_else(String::new, |file| format!("{file}:"));
        let (line, column, why, text) = (flawed.line, flawed.column, escaped(&flawed.why), escaped(&flawed.text));
        let _ = write!(body, "<p>{}{line}:{column}: {why}<br><code>{text}</code></p>", escaped(&place));
    }
    body
}

#[allow(clippy::cast_precision_loss, reason = "a share to be shown")]
fn percent(part: u64, whole: u64) -> String {
    format!("({:.2}%)", part as f64 * 100.0 / whole.max(1) as f64)
}
