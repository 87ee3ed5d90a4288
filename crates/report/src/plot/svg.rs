//! Plots as static SVG, for readers without JavaScript and for print.

use plotters::{
    element::PathElement,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use crate::plot::{
    AxisUnit, Plot, Series, lying_bars,
    svg_series::{Canvas, LABEL_DISTANCE, draw_legend, label_room},
    svg_style::{Area, CHARACTER, DrawResult, LINE, WIDTH, beside, shortened, text_style},
    ticks::Axis,
};

const HEIGHT: u32 = 330;
const LEGEND_WIDTH: u32 = 150;
/// Room left of the plot for labels and title of the y axis.
const Y_LABELS: u32 = 78;
const MARGIN: u32 = 12;

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
    let shown = plot.shown();
    if plot.has_lying_bars() && !shown.is_empty() {
        return lying_bars::draw(plot, out);
    }
    let labelled = plot.labels_ends();
    // Each label has its line.
    let lines = if labelled { LABEL_DISTANCE * shown.len() as i32 } else { 0 };
    let height = HEIGHT.max(lines as u32 + 2 * MARGIN + 30 + 2 * LINE);
    let root = SVGBackend::with_string(out, (WIDTH, height)).into_drawing_area();
    let Some(((x_min, x_max), (y_min, y_max))) = plot.extent() else {
        root.draw_text("No data.", &beside(14, HPos::Center), (430, 190))?;
        return Ok(root.present()?);
    };
    let margin = if plot.has_bars() { 0.5 / (plot.categories.len().max(2) - 1) as f64 } else { 0.04 };
    let x = match plot.named_x() {
        Some(names) => Axis::named(&names, margin, plot.x_log),
        None => Axis::exactly(x_min, x_max, plot.x_log, AxisUnit::Plain),
    };
    // From zero, like the interactive plot, unless the axis has none.
    let y = Axis::around(if plot.y_log { y_min } else { y_min.min(0.0) }, y_max, plot.y_log, plot.y_unit);
    if labelled {
        draw_chart(plot, &root, (&x, &y), &shown, label_room(&shown))?;
    } else if shown.len() > 1 {
        let (body, side) = root.split_horizontally(WIDTH - LEGEND_WIDTH);
        draw_chart(plot, &body, (&x, &y), &shown, 0)?;
        draw_legend(&side, plot, &shown)?;
    } else {
        draw_chart(plot, &root, (&x, &y), &shown, 0)?;
    }
    Ok(root.present()?)
}

/// `label_room`: pixels at the right for labels at the ends of lines; 0 for none.
fn draw_chart(
    plot: &Plot,
    area: &Area<'_>,
    (x, y): (&Axis, &Axis),
    shown: &[(usize, &Series)],
    label_room: u32,
) -> DrawResult {
    let width = area.dim_in_pixel().0.saturating_sub(Y_LABELS + 2 * MARGIN + label_room);
    let labels = XLabels::fit(x, width as usize, !plot.categories.is_empty());
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .margin_right(MARGIN + label_room)
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
    let canvas = Canvas { plot, area, chart: &chart, x, y };
    draw_y_labels(&canvas)?;
    draw_x_labels(&canvas, &labels)?;
    for &(index, _) in shown {
        canvas.draw_series(index, shown)?;
    }
    if label_room > 0 { canvas.draw_end_labels(shown) } else { Ok(()) }
}

fn draw_y_labels(canvas: &Canvas<'_, '_, '_>) -> DrawResult {
    for (place, label) in &canvas.y.ticks {
        let (x, y) = canvas.pixel((0.0, *place));
        canvas.area.draw_text(label, &beside(14, HPos::Right), (x - 6, y))?;
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

fn draw_x_labels(canvas: &Canvas<'_, '_, '_>, labels: &XLabels) -> DrawResult {
    for (index, (place, label)) in canvas.x.ticks.iter().step_by(labels.every).enumerate() {
        let (at, axis) = canvas.pixel((*place, 0.0));
        let style = text_style(14).pos(Pos::new(HPos::Center, VPos::Top));
        let line = (index % labels.lines) as i32 * LINE as i32;
        canvas.area.draw_text(&shortened(label, labels.most), &style, (at, axis + 7 + line))?;
        canvas.area.draw(&PathElement::new(vec![(at, axis), (at, axis + 4)], BLACK.mix(0.5)))?;
    }
    Ok(())
}
