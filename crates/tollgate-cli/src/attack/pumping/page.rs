//! The page of SMS pumping: the worst day's messages and bill, and every seed.

use super::play::POINT;
use super::{Day, Played, Report};
use crate::error::{CliError, Result};
use crate::page::{self, BLUE, GREY, ORANGE, RED};

const HOURS: f64 = 24.0;

/// The page.
pub(super) fn render(report: &Report) -> Result<String> {
    let worst = report.days.iter().max_by(|a, b| a.defended.loss_percent.total_cmp(&b.defended.loss_percent));
    let Some(worst) = worst else { return Err(CliError::Input("nothing was played".to_owned())) };
    let rows: String = report.days.iter().map(row).collect();
    let text = super::text(report);
    let (summary, seed) = (text.lines().last().unwrap_or_default(), worst.defended.seed);
    let messages = messages(&worst.defended)?;
    let bills = bills(&[&worst.undefended, &worst.limits_only, &worst.defended])?;
    let title = format!("SMS pumping, {} seeds from {}", report.days.len(), report.seed);
    let body = format!(
        "<p>{summary}</p><h2>Messages, seed {seed}</h2>{messages}<h2>The attack's bill, seed {seed}</h2>{bills}\
         <h2>Every seed</h2><table><tr><th>seed<th>found, min<th>lost, %<th>people<th>known, %<th>CAPTCHAs<th>blocked<th>were all strangers<th>attack</tr>{rows}</table>"
    );
    Ok(page::page(&title, &body))
}

fn row(Played { defended: day, strangers, .. }: &Played) -> String {
    let found = day.detected_after_min.map_or("never".to_owned(), |minutes| format!("{minutes:.1}"));
    let Day { seed, loss_percent, people, known_percent, challenged, blocked, attack, .. } = day;
    let of_strangers = strangers.blocked;
    format!(
        "<tr><td>{seed}<td>{found}<td>{loss_percent:.2}<td>{people}<td>{known_percent}<td>{challenged}<td>{blocked}\
         <td>{of_strangers}<td>{attack}</tr>"
    )
}

/// Values of points of time as points of a line.
fn by_hour(values: impl Iterator<Item = u64>) -> Vec<(f64, f64)> {
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
    values.enumerate().map(|(at, value)| (at as f64 * POINT as f64 / 60.0, value as f64)).collect()
}

fn messages(day: &Day) -> Result<String> {
    let of = |which: usize| by_hour(day.series.iter().map(|point| point.get(which).copied().unwrap_or(0)));
    let series =
        [("asked for by the attack", GREY, of(0)), ("sent to the attack", RED, of(1)), ("sent to people", BLUE, of(2))];
    page::lines("messages in ten minutes", ("hour", HOURS), &series)
}

fn bills(days: &[&Day; 3]) -> Result<String> {
    let of = |day: &Day| {
        let price = day.lost.checked_div(day.lost_messages).unwrap_or(0);
        by_hour(day.series.iter().scan(0, |bill, point| {
            *bill += point[1] * price;
            Some(*bill)
        }))
    };
    let [none, limits, all] = days.map(of);
    let series = [("undefended", GREY, none), ("limits alone", ORANGE, limits), ("limits and ladder", RED, all)];
    page::lines("what the attack's messages cost, in the unit of the policy's prices", ("hour", HOURS), &series)
}
