//! Static drawings of bars that lie beside the names of their categories: names of policies are long.

use plotters::{element::PathElement, prelude::*, style::text_anchor::HPos};

use crate::plot::{
    AxisUnit, Plot,
    svg_style::{Area, CHARACTER, DrawResult, WIDTH, beside, color, shortened},
    ticks::{Axis, label},
};

/// Height of a bar with its gap.
const ROW: i32 = 24;
const BAR: i32 = 16;
const TOP: i32 = 8;
/// Room below the bars for the axis.
const AXIS: i32 = 46;
/// Room right of the longest bar for its value.
const VALUE: i32 = 72;
/// The most characters of a category's name.
const MOST_CHARACTERS: usize = 32;

pub(super) fn draw(plot: &Plot, out: &mut String) -> DrawResult {
    let bottom = TOP + ROW * plot.categories.len() as i32;
    let root = SVGBackend::with_string(out, (WIDTH, (bottom + AXIS) as u32)).into_drawing_area();
    let longest = plot.categories.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let left = (longest.min(MOST_CHARACTERS) * CHARACTER) as i32 + 20;
    let right = WIDTH as i32 - VALUE;
    let (low, high) = plot.extent().map_or((0.0, 1.0), |(_, y)| y);
    let axis = Axis::around(low.min(0.0), high, false, plot.y_unit);
    let at = |value: f64| left + (axis.place(value) * f64::from(right - left)).round() as i32;
    for (place, text) in &axis.ticks {
        let x = left + (place * f64::from(right - left)).round() as i32;
        root.draw(&PathElement::new(vec![(x, TOP), (x, bottom)], BLACK.mix(0.15)))?;
        root.draw_text(text, &beside(14, HPos::Center), (x, bottom + 12))?;
    }
    root.draw_text(&plot.y_label, &beside(15, HPos::Center), (i32::midpoint(left, right), bottom + 34))?;
    for (row, name) in (0..).zip(&plot.categories) {
        let middle = TOP + ROW * row + ROW / 2;
        root.draw_text(&shortened(name, MOST_CHARACTERS), &beside(14, HPos::Right), (left - 8, middle))?;
    }
    draw_bars(plot, &root, at)?;
    root.draw(&PathElement::new(vec![(left, TOP), (left, bottom)], BLACK.mix(0.5)))?;
    Ok(root.present()?)
}

fn draw_bars(plot: &Plot, root: &Area<'_>, at: impl Fn(f64) -> i32) -> DrawResult {
    let Some(series) = plot.series.first() else { return Ok(()) };
    for (bar, (category, value, low, high)) in plot.drawable(series).enumerate() {
        let middle = TOP + (f64::from(ROW) * (category + 0.5)).round() as i32;
        let corners = [(at(0.0), middle - BAR / 2), (at(value), middle + BAR / 2)];
        root.draw(&Rectangle::new(corners, color(plot.bar_look(0, bar)).filled()))?;
        if low < high {
            root.draw(&PathElement::new(vec![(at(low), middle), (at(high), middle)], BLACK.mix(0.8)))?;
        }
        let text = match plot.y_unit {
            AxisUnit::Percent => format!("{} %", crate::format::percent_number(value / 100.0)),
            unit => label(value, unit),
        };
        root.draw_text(&text, &beside(13, HPos::Left), (at(high.max(0.0)) + 6, middle))?;
    }
    Ok(())
}
