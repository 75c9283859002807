//! Pages with charts: each one file that opens without a network.
//!
//! Invariant: everything is in the page, as SVG; it loads and runs nothing.

use crate::error::{CliError, Result};
use crate::output;
use plotters::prelude::*;
use std::path::Path;

const SIZE: (u32, u32) = (900, 320);
/// What is usual, or asked for.
pub(super) const GREY: RGBColor = RGBColor(150, 150, 150);
/// What an attack got.
pub(super) const RED: RGBColor = RGBColor(200, 40, 40);
/// People.
pub(super) const BLUE: RGBColor = RGBColor(40, 110, 200);
/// What lies between.
pub(super) const ORANGE: RGBColor = RGBColor(220, 150, 30);

/// A page of that title.
pub(super) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}\
         td,th{{padding:.2rem .8rem;text-align:right}}td:last-child{{text-align:left}}svg{{max-width:100%;height:auto}}</style>\
         <h1>{title}</h1>{body}</html>\n"
    )
}

/// Writes a page there.
pub(super) fn write(path: &Path, page: &str) -> Result<()> {
    std::fs::write(path, page).map_err(|e| CliError::System(format!("cannot write {}: {e}", path.display())))?;
    output::note(format!("charts are in {}", path.display()));
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::System(format!("a chart cannot be drawn: {error}"))
}

/// A line's name, colour and points `(hour, value)`.
pub(super) type Line = (&'static str, RGBColor, Vec<(f64, f64)>);

/// Lines over so many hours.
pub(super) fn lines(title: &str, hours: f64, series: &[Line]) -> Result<String> {
    let most = series.iter().flat_map(|(_, _, points)| points).map(|(_, y)| *y).fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..hours, 0.0..most * 1.05)
            .map_err(failed)?;
        chart.configure_mesh().x_desc("hour").light_line_style(TRANSPARENT).draw().map_err(failed)?;
        for (name, colour, points) in series {
            let colour = *colour;
            let drawn = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
            let line = chart.draw_series(drawn).map_err(failed)?;
            line.label(*name).legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
        }
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::UpperLeft).background_style(WHITE).border_style(BLACK);
        legend.draw().map_err(failed)?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}
