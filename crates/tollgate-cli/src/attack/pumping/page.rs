//! The charts: one page that opens without a network.
//!
//! Invariant: everything is in the page, as SVG; it loads and runs nothing.

use super::play::POINT;
use super::{Day, Played, Report};
use crate::error::{CliError, Result};
use plotters::prelude::*;

const SIZE: (u32, u32) = (900, 320);

/// The page.
pub(super) fn render(report: &Report) -> Result<String> {
    let worst = report.days.iter().max_by(|a, b| a.defended.loss_percent.total_cmp(&b.defended.loss_percent));
    let Some(worst) = worst else { return Err(CliError::Input("nothing was played".to_owned())) };
    let rows: String = report.days.iter().map(row).collect();
    let text = super::text(report);
    let summary = text.lines().last().unwrap_or_default();
    let messages = messages(&worst.defended)?;
    let bills = bills(&[&worst.undefended, &worst.limits_only, &worst.defended])?;
    Ok(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>SMS pumping</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}\
         td,th{{padding:.2rem .8rem;text-align:right}}td:last-child{{text-align:left}}svg{{max-width:100%;height:auto}}</style>\
         <h1>SMS pumping, {} seeds from {}</h1><p>{summary}</p>\
         <h2>Messages, seed {}</h2>{messages}<h2>The attack's bill, seed {}</h2>{bills}\
         <h2>Every seed</h2><table><tr><th>seed<th>found, min<th>lost, %<th>people<th>known, %<th>CAPTCHAs<th>blocked<th>were all strangers<th>attack</tr>{rows}</table></html>\n",
        report.days.len(),
        report.seed,
        worst.defended.seed,
        worst.defended.seed,
    ))
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

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::System(format!("a chart cannot be drawn: {error}"))
}

/// Lines over the hours of a day.
fn lines(title: &str, series: &[(&str, RGBColor, Vec<f64>)]) -> Result<String> {
    let most = series.iter().flat_map(|(_, _, points)| points).copied().fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..24.0, 0.0..most * 1.05)
            .map_err(failed)?;
        chart.configure_mesh().x_desc("hour").light_line_style(TRANSPARENT).draw().map_err(failed)?;
        for (name, colour, points) in series {
            let (mut hour, colour) = (0.0, *colour);
            let points = points.iter().map(|y| {
                let at = (hour, *y);
                hour += f64::from(u32::try_from(POINT).unwrap_or(1)) / 60.0;
                at
            });
            let line = chart.draw_series(LineSeries::new(points, colour.stroke_width(2))).map_err(failed)?;
            line.label(*name).legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
        }
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::UpperLeft).background_style(WHITE).border_style(BLACK);
        legend.draw().map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn messages(day: &Day) -> Result<String> {
    let of = |which: usize| day.series.iter().map(|point| point.get(which).copied().unwrap_or(0) as f64).collect();
    let series = [
        ("asked for by the attack", RGBColor(150, 150, 150), of(0)),
        ("sent to the attack", RGBColor(200, 40, 40), of(1)),
        ("sent to people", RGBColor(40, 110, 200), of(2)),
    ];
    lines("messages in ten minutes", &series)
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn bills(days: &[&Day; 3]) -> Result<String> {
    let of = |day: &Day| {
        let price = day.lost.checked_div(day.lost_messages).unwrap_or(0);
        let mut bill = 0;
        let add = |point: &[u64; 3]| {
            bill += point[1] * price;
            bill as f64
        };
        day.series.iter().map(add).collect()
    };
    let [none, limits, all] = days.map(of);
    let series = [
        ("undefended", RGBColor(150, 150, 150), none),
        ("limits alone", RGBColor(220, 150, 30), limits),
        ("limits and ladder", RGBColor(200, 40, 40), all),
    ];
    lines("what the attack's messages cost, in the unit of the policy's prices", &series)
}
