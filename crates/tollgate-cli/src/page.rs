//! Pages with charts: each one file that opens without a network.
//!
//! Invariant: everything is in the page, as SVG; it loads and runs nothing. Text that others wrote goes through [`escaped`].

use crate::error::{CliError, Result};
use crate::output;
use plotters::prelude::*;
use std::path::Path;

const SIZE: (u32, u32) = (900, 320);
/// How far the y axis goes beyond the highest value, so that the legend covers none.
const HEADROOM: f64 = 1.4;
/// What is usual, or asked for.
pub(crate) const GREY: RGBColor = RGBColor(150, 150, 150);
/// What an attack got.
pub(crate) const RED: RGBColor = RGBColor(200, 40, 40);
/// People.
pub(crate) const BLUE: RGBColor = RGBColor(40, 110, 200);
/// What lies between.
pub(crate) const ORANGE: RGBColor = RGBColor(220, 150, 30);

/// In light and dark: charts are drawn black on white, and take the page's colours.
const STYLE: &str = "\
    :root{color-scheme:light dark}\
    body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;background:Canvas;color:CanvasText}\
    table{border-collapse:collapse;margin:.5rem 0;display:block;overflow-x:auto}\
    td,th{padding:.2rem .8rem;text-align:right;border-bottom:1px solid #8884}\
    td:last-child,.left td:first-child,.left th:first-child{text-align:left}\
    td{overflow-wrap:anywhere}\
    pre{overflow-x:auto;padding:.8rem;border:1px solid #8884}\
    svg{max-width:100%;height:auto}\
    svg text{fill:CanvasText}svg [fill=\"#FFFFFF\"]{fill:Canvas}svg [stroke=\"#000000\"]{stroke:CanvasText}\
    .left td:last-child{text-align:right}.bar{display:inline-block;float:left;height:.7em;background:#c82828;vertical-align:baseline}";

/// A page of that title, which is text; the body is HTML.
pub(crate) fn page(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1>{body}</html>\n"
    )
}

/// Text as HTML that shows it, in an element or a quoted attribute. Control characters are replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// Writes a page there.
pub(crate) fn write(path: &Path, page: &str) -> Result<()> {
    std::fs::write(path, page).map_err(|e| CliError::System(format!("cannot write {}: {e}", path.display())))?;
    output::note(format!("charts are in {}", path.display()));
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::System(format!("a chart cannot be drawn: {error}"))
}

/// A line's name, colour and points `(x, value)`.
pub(crate) type Line<'a> = (&'a str, RGBColor, Vec<(f64, f64)>);

/// Lines over x from 0 to `most_x`, which is called `x`.
pub(crate) fn lines(title: &str, (x, most_x): (&str, f64), series: &[Line<'_>]) -> Result<String> {
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
            .build_cartesian_2d(0.0..most_x, 0.0..most * HEADROOM)
            .map_err(failed)?;
        chart.configure_mesh().x_desc(x).light_line_style(TRANSPARENT).draw().map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_others_wrote_is_text_and_nothing_else() {
        let hostile = "</td><script>alert(1)</script>\" onload='x' &lt;\u{1b}[31m";
        let shown = "&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&#39;x&#39; &amp;lt;\u{fffd}[31m";
        assert_eq!(escaped(hostile), shown);
    }
}
