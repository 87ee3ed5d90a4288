//! The series of a static drawing, and their names.

use plotters::{
    chart::ChartContext, coord::types::RangedCoordf64, element::PathElement, prelude::*,
    style::text_anchor::HPos,
};

use crate::plot::{
    Plot, Series, SeriesLook, SeriesStyle,
    end_labels::apart,
    svg_style::{Area, CHARACTER, DrawResult, beside, color, draw_line, draw_marker, shortened},
    ticks::Axis,
};

/// Lines of more points have no markers.
const MOST_MARKED: usize = 40;
/// The size of labels at ends of lines, and the distance between them.
const LABEL_SIZE: i32 = 13;
pub(super) const LABEL_DISTANCE: i32 = 15;
/// The most characters of a name at the end of a line.
const MOST_CHARACTERS: usize = 30;

pub(super) type Chart<'a, 'b> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A plot being drawn: its axes and the places on the drawing.
pub(super) struct Canvas<'c, 'a, 'b> {
    pub(super) plot: &'c Plot,
    pub(super) area: &'c Area<'a>,
    pub(super) chart: &'c Chart<'a, 'b>,
    pub(super) x: &'c Axis,
    pub(super) y: &'c Axis,
}

/// Room right of the plot for labels at the ends of lines.
pub(super) fn label_room(shown: &[(usize, &Series)]) -> u32 {
    let longest = shown.iter().map(|(_, series)| series.name.chars().count()).max().unwrap_or(0);
    (longest.min(MOST_CHARACTERS) * CHARACTER + 30) as u32
}

impl Canvas<'_, '_, '_> {
    /// The pixel of a place from 0 to 1 on both axes.
    pub(super) fn pixel(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let (left, top) = self.area.get_base_pixel();
        let (pixel_x, pixel_y) = self.chart.plotting_area().map_coordinate(&(x, y));
        (pixel_x - left, pixel_y - top)
    }

    /// The points of a series in places from 0 to 1: x, y, and the ends of its error bar.
    fn places(&self, series: &Series) -> Vec<(f64, f64, f64, f64)> {
        let place = |(at, value, low, high): (f64, f64, f64, f64)| {
            (self.x.place(at), self.y.place(value), self.y.place(low), self.y.place(high))
        };
        self.plot.drawable(series).map(place).collect()
    }

    pub(super) fn draw_series(&self, index: usize, shown: &[(usize, &Series)]) -> DrawResult {
        let Some(series) = self.plot.series.get(index) else { return Ok(()) };
        let (points, look) = (self.places(series), self.plot.look(index));
        let mut offset = 0.0;
        let path = |points: Vec<(f64, f64)>| -> Vec<(i32, i32)> {
            points.into_iter().map(|point| self.pixel(point)).collect()
        };
        let along = || points.iter().map(|point| (point.0, point.1)).collect::<Vec<_>>();
        match series.kind {
            SeriesStyle::Bars => offset = self.draw_bars(index, shown, &points)?,
            SeriesStyle::Points => {}
            SeriesStyle::Line => draw_line(self.area, &path(along()), look, 2)?,
            SeriesStyle::Step => draw_line(self.area, &path(stairs(&points)), look, 1)?,
            SeriesStyle::Band => {
                let upper = points.iter().map(|point| (point.0, point.3));
                let lower = points.iter().rev().map(|point| (point.0, point.2));
                let corners = upper.chain(lower).collect::<Vec<_>>();
                self.chart.plotting_area().draw(&Polygon::new(corners, color(look).mix(0.22)))?;
                draw_line(self.area, &path(along()), look, 2)?;
            }
        }
        if series.kind == SeriesStyle::Points
            || (series.kind == SeriesStyle::Line && points.len() <= MOST_MARKED)
        {
            for point in along() {
                draw_marker(self.area, self.pixel(point), look)?;
            }
        }
        if series.errors.is_some() && series.kind != SeriesStyle::Band {
            for &(at, _, low, high) in &points {
                let ends = vec![(at + offset, low), (at + offset, high)];
                let style = BLACK.mix(0.8).stroke_width(1);
                self.chart.plotting_area().draw(&PathElement::new(ends, style))?;
            }
        }
        Ok(())
    }

    /// Draws bars beside those of the other series, and returns how far their middle is from their x.
    fn draw_bars(
        &self,
        index: usize,
        shown: &[(usize, &Series)],
        points: &[(f64, f64, f64, f64)],
    ) -> Result<f64, Box<dyn std::error::Error>> {
        let bars: Vec<usize> = shown
            .iter()
            .filter(|(_, other)| other.kind == SeriesStyle::Bars)
            .map(|&(other, _)| other)
            .collect();
        // Bars one unit apart touch neither each other nor, on an odd axis, the ends of the plot.
        let slot = self.x.one().min(1.0 / points.len().max(1) as f64);
        let width = 0.8 * slot / bars.len().max(1) as f64;
        let rank = bars.iter().position(|&other| other == index).unwrap_or(0);
        let left = -0.4 * slot + width * rank as f64;
        let zero = if self.plot.y_log { 0.0 } else { self.y.place(0.0) };
        for (bar, &(at, value, ..)) in points.iter().enumerate() {
            let corners = [(at + left, zero), (at + left + width * 0.94, value)];
            let style = color(self.plot.bar_look(index, bar)).filled();
            self.chart.plotting_area().draw(&Rectangle::new(corners, style))?;
        }
        Ok(left + width / 2.0)
    }

    /// The names of lines where they end.
    pub(super) fn draw_end_labels(&self, shown: &[(usize, &Series)]) -> DrawResult {
        let end = |series: &Series| self.places(series).last().map(|&(x, y, ..)| self.pixel((x, y)));
        let ends: Vec<(usize, &str, (i32, i32))> = shown
            .iter()
            .filter_map(|&(index, series)| Some((index, series.name.as_str(), end(series)?)))
            .collect();
        let wanted: Vec<f64> = ends.iter().map(|(_, _, (_, y))| f64::from(*y)).collect();
        let (_, top) = self.pixel((1.0, 1.0));
        let (right, bottom) = self.pixel((1.0, 0.0));
        let places = apart(&wanted, f64::from(LABEL_DISTANCE), f64::from(top), f64::from(bottom));
        for ((index, name, (x, y)), place) in ends.into_iter().zip(places) {
            let (look, at) = (self.plot.look(index), place.round() as i32);
            let leader = vec![(x + 6, y), (right + 4, y), (right + 12, at)];
            self.area.draw(&PathElement::new(leader, color(look).mix(0.5).stroke_width(1)))?;
            draw_marker(self.area, (right + 18, at), look)?;
            let style = beside(LABEL_SIZE, HPos::Left);
            self.area.draw_text(&shortened(name, MOST_CHARACTERS), &style, (right + 27, at))?;
        }
        Ok(())
    }
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

/// The names of series beside the drawing, where they do not stand at ends of lines.
pub(super) fn draw_legend(area: &Area<'_>, plot: &Plot, shown: &[(usize, &Series)]) -> DrawResult {
    let (_, height) = area.dim_in_pixel();
    let spacing = (height as i32 - 30) / shown.len().max(15) as i32;
    for (line, &(index, series)) in shown.iter().enumerate() {
        let middle = 24 + spacing * line as i32;
        let look: SeriesLook = plot.look(index);
        if series.kind == SeriesStyle::Bars || series.kind == SeriesStyle::Band {
            area.draw(&Rectangle::new([(4, middle - 5), (22, middle + 5)], color(look).filled()))?;
        } else {
            if series.kind != SeriesStyle::Points {
                draw_line(area, &[(2, middle), (24, middle)], look, 2)?;
            }
            draw_marker(area, (13, middle), look)?;
        }
        let style = beside(14, HPos::Left);
        area.draw_text(&shortened(&series.name, 18), &style, (31, middle))?;
    }
    Ok(())
}
