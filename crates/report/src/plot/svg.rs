//! Plots as static SVG, for readers without JavaScript and for print.

use plotters::{
    chart::ChartContext,
    coord::{Shift, types::RangedCoordf64},
    element::PathElement,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use crate::plot::{PALETTE, Plot, Series, SeriesStyle, ticks::Axis};

const WIDTH: u32 = 700;
const HEIGHT: u32 = 330;
const LEGEND_WIDTH: u32 = 150;
/// Room left of the plot for labels and title of the y axis.
const Y_LABELS: u32 = 78;
const MARGIN: u32 = 12;
/// Height of a line of labels.
const LINE: u32 = 16;
/// Width that an average character of a label needs.
const CHARACTER: usize = 7;
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type DrawResult = Result<(), Box<dyn std::error::Error>>;

impl Plot {
    /// The plot as a static SVG element, with the text in the colour of the surrounding page.
    pub fn to_svg(&self) -> String {
        svg(self)
    }
}

/// The plot as an SVG element. Everything that is black in the drawing takes the text colour of the page.
fn svg(plot: &Plot) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail; a plot that plotters cannot lay out is left out rather than the whole report.
    if draw(plot, &mut out).is_err() {
        return String::new();
    }
    out.replace("\"#000000\"", "\"currentColor\"").replacen("<svg ", "<svg role=\"img\" ", 1)
}

fn draw(plot: &Plot, out: &mut String) -> DrawResult {
    let root = SVGBackend::with_string(out, (WIDTH, HEIGHT)).into_drawing_area();
    let Some(((x_min, x_max), (y_min, y_max))) = plot.extent() else {
        root.draw_text("No data.", &text_style(14).pos(Pos::new(HPos::Center, VPos::Center)), (430, 190))?;
        return Ok(root.present()?);
    };
    let margin = if plot.has_bars() { 0.5 / (plot.categories.len().max(2) - 1) as f64 } else { 0.04 };
    let x = match plot.named_x() {
        Some(names) => Axis::named(&names, margin, plot.x_log),
        None => Axis::exactly(x_min, x_max, plot.x_log, crate::plot::AxisUnit::Plain),
    };
    // From zero, like the interactive plot, unless the axis has none.
    let y = Axis::around(if plot.y_log { y_min } else { y_min.min(0.0) }, y_max, plot.y_log, plot.y_unit);
    let shown: Vec<(usize, &Series)> =
        plot.series.iter().enumerate().filter(|(_, series)| plot.drawable(series).next().is_some()).collect();
    if shown.len() > 1 {
        let (body, side) = root.split_horizontally(WIDTH - LEGEND_WIDTH);
        draw_chart(plot, &body, &x, &y, &shown)?;
        draw_legend(&side, &shown)?;
    } else {
        draw_chart(plot, &root, &x, &y, &shown)?;
    }
    Ok(root.present()?)
}

fn text_style(size: i32) -> TextStyle<'static> {
    (FONT, size).into_text_style(&(WIDTH, HEIGHT)).color(&BLACK)
}

fn draw_chart(plot: &Plot, area: &Area<'_>, x: &Axis, y: &Axis, shown: &[(usize, &Series)]) -> DrawResult {
    let width = area.dim_in_pixel().0.saturating_sub(Y_LABELS + 2 * MARGIN);
    let labels = XLabels::fit(x, width as usize, !plot.categories.is_empty());
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .x_label_area_size(30 + LINE * labels.lines as u32)
        .y_label_area_size(Y_LABELS)
        .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
    // The mesh proposes its own places, so ours are drawn below by hand: no labels and no lines from it.
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(0)
        .y_labels(0)
        .axis_style(BLACK.mix(0.5))
        .x_desc(plot.x_label.as_str())
        .y_desc(plot.y_label.as_str())
        .axis_desc_style(text_style(15))
        .draw()?;
    let plane = chart.plotting_area();
    for &(place, _) in &y.ticks {
        plane.draw(&PathElement::new(vec![(0.0, place), (1.0, place)], BLACK.mix(0.15)))?;
    }
    draw_y_labels(area, &chart, y)?;
    draw_x_labels(area, &chart, x, &labels)?;
    for &(index, series) in shown {
        draw_series(plot, &mut chart, x, y, (index, series), shown)?;
    }
    Ok(())
}

fn draw_y_labels(area: &Area<'_>, chart: &Chart<'_, '_>, y: &Axis) -> DrawResult {
    let (left, top) = area.get_base_pixel();
    for (place, label) in &y.ticks {
        let (pixel_x, pixel_y) = chart.plotting_area().map_coordinate(&(0.0, *place));
        let style = text_style(14).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(label, &style, (pixel_x - left - 6, pixel_y - top))?;
    }
    Ok(())
}

/// How the labels of the x axis find room.
struct XLabels {
    /// Every how many ticks one is labelled; 1 for categories, which all need their name.
    every: usize,
    /// Lines that the labels are spread over, in turn.
    lines: usize,
    /// Characters of a label that are shown.
    most: usize,
}

impl XLabels {
    fn fit(x: &Axis, width: usize, categories: bool) -> Self {
        let widest = x.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let room = (width / x.ticks.len().max(1)).max(1);
        let needed = (widest * CHARACTER + 12).div_ceil(room);
        if categories {
            let lines = needed.clamp(1, 3);
            return Self { every: 1, lines, most: (room * lines / CHARACTER).max(4) };
        }
        Self { every: needed.max(1), lines: 1, most: usize::MAX }
    }
}

fn draw_x_labels(area: &Area<'_>, chart: &Chart<'_, '_>, x: &Axis, labels: &XLabels) -> DrawResult {
    let (left, top) = area.get_base_pixel();
    for (index, (place, label)) in x.ticks.iter().step_by(labels.every).enumerate() {
        let (pixel_x, pixel_y) = chart.plotting_area().map_coordinate(&(*place, 0.0));
        let (at, axis) = (pixel_x - left, pixel_y - top);
        let style = text_style(14).pos(Pos::new(HPos::Center, VPos::Top));
        let line = (index % labels.lines) as i32 * LINE as i32;
        area.draw_text(&shortened(label, labels.most), &style, (at, axis + 7 + line))?;
        area.draw(&PathElement::new(vec![(at, axis), (at, axis + 4)], BLACK.mix(0.5)))?;
    }
    Ok(())
}

fn color(index: usize) -> RGBColor {
    let (red, green, blue) = PALETTE[index % PALETTE.len()];
    RGBColor(red, green, blue)
}

fn draw_series(
    plot: &Plot,
    chart: &mut Chart<'_, '_>,
    x: &Axis,
    y: &Axis,
    (index, series): (usize, &Series),
    shown: &[(usize, &Series)],
) -> DrawResult {
    let points: Vec<(f64, f64, f64, f64)> = plot
        .drawable(series)
        .map(|(at, value, low, high)| (x.place(at), y.place(value), y.place(low), y.place(high)))
        .collect();
    let color = color(index);
    let plane = chart.plotting_area();
    let mut offset = 0.0;
    match series.kind {
        SeriesStyle::Bars => {
            let bars: Vec<usize> = shown
                .iter()
                .filter(|(_, other)| other.kind == SeriesStyle::Bars)
                .map(|&(other, _)| other)
                .collect();
            // Bars one unit apart touch neither each other nor, on an odd axis, the ends of the plot.
            let slot = x.one().min(1.0 / points.len().max(1) as f64);
            let width = 0.8 * slot / bars.len().max(1) as f64;
            let rank = bars.iter().position(|&other| other == index).unwrap_or(0);
            let left = -0.4 * slot + width * rank as f64;
            offset = left + width / 2.0;
            for &(at, value, ..) in &points {
                let corners = [
                    (at + left, if plot.y_log { 0.0 } else { y.place(0.0) }),
                    (at + left + width * 0.94, value),
                ];
                plane.draw(&Rectangle::new(corners, color.filled()))?;
            }
        }
        SeriesStyle::Points => {}
        SeriesStyle::Line => {
            draw_path(chart, points.iter().map(|point| (point.0, point.1)).collect(), color, 2)?;
        }
        SeriesStyle::Step => draw_path(chart, stairs(&points), color, 1)?,
        SeriesStyle::Band => {
            let upper = points.iter().map(|point| (point.0, point.3));
            let lower = points.iter().rev().map(|point| (point.0, point.2));
            chart
                .plotting_area()
                .draw(&Polygon::new(upper.chain(lower).collect::<Vec<_>>(), color.mix(0.22)))?;
            draw_path(chart, points.iter().map(|point| (point.0, point.1)).collect(), color, 2)?;
        }
    }
    if series.kind == SeriesStyle::Points || (series.kind == SeriesStyle::Line && points.len() <= 40) {
        for &(at, value, ..) in &points {
            draw_marker(chart.plotting_area(), (at, value), index, color)?;
        }
    }
    if series.errors.is_some() && series.kind != SeriesStyle::Band {
        for &(at, _, low, high) in &points {
            let ends = vec![(at + offset, low), (at + offset, high)];
            chart.plotting_area().draw(&PathElement::new(ends, BLACK.mix(0.8).stroke_width(1)))?;
        }
    }
    Ok(())
}

/// Corners of a line that keeps each value until the next x.
fn stairs(points: &[(f64, f64, f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(points.len() * 2);
    for &(at, value, ..) in points {
        if let Some(&(_, before)) = corners.last() {
            corners.push((at, before));
        }
        corners.push((at, value));
    }
    corners
}

fn draw_path(chart: &Chart<'_, '_>, path: Vec<(f64, f64)>, color: RGBColor, width: u32) -> DrawResult {
    Ok(chart.plotting_area().draw(&PathElement::new(path, color.stroke_width(width)))?)
}

fn draw_marker<'a, C: plotters::coord::CoordTranslate>(
    area: &DrawingArea<SVGBackend<'a>, C>,
    at: C::From,
    index: usize,
    color: RGBColor,
) -> DrawResult
where
    C::From: Clone,
{
    match index % 3 {
        0 => area.draw(&Circle::new(at, 4, color.filled()))?,
        1 => area.draw(&TriangleMarker::new(at, 6, color.filled()))?,
        _ => area.draw(&Cross::new(at, 4, color.stroke_width(2)))?,
    }
    Ok(())
}

fn draw_legend(area: &Area<'_>, shown: &[(usize, &Series)]) -> DrawResult {
    let spacing = (HEIGHT as i32 - 30) / shown.len().max(15) as i32;
    for (line, &(index, series)) in shown.iter().enumerate() {
        let middle = 24 + spacing * line as i32;
        if series.kind == SeriesStyle::Bars || series.kind == SeriesStyle::Band {
            area.draw(&Rectangle::new([(4, middle - 5), (22, middle + 5)], color(index).filled()))?;
        } else {
            if series.kind != SeriesStyle::Points {
                area.draw(&PathElement::new(vec![(2, middle), (24, middle)], color(index).stroke_width(2)))?;
            }
            draw_marker(area, (13, middle), index, color(index))?;
        }
        let style = text_style(14).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(&shortened(&series.name, 18), &style, (31, middle))?;
    }
    Ok(())
}

fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}
