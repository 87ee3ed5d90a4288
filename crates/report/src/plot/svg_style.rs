//! What the static drawings share: sizes, text, colours, markers and dashes.

use plotters::{
    coord::Shift,
    element::PathElement,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use crate::plot::{SeriesLook, look::Marker};

pub(super) const WIDTH: u32 = 700;
/// Height of a line of labels.
pub(super) const LINE: u32 = 16;
/// Width that an average character of a label needs.
pub(super) const CHARACTER: usize = 7;
const FONT: &str = "sans-serif";

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type DrawResult = Result<(), Box<dyn std::error::Error>>;

pub(super) fn text_style(size: i32) -> TextStyle<'static> {
    (FONT, size).into_text_style(&(WIDTH, WIDTH)).color(&BLACK)
}

/// Text at the right of, in the middle of, or at the left of a place, and beside it in height.
pub(super) fn beside(size: i32, across: HPos) -> TextStyle<'static> {
    text_style(size).pos(Pos::new(across, VPos::Center))
}

pub(super) fn color(look: SeriesLook) -> RGBColor {
    let (red, green, blue) = look.color();
    RGBColor(red, green, blue)
}

/// A marker around a pixel.
pub(super) fn draw_marker(area: &Area<'_>, (x, y): (i32, i32), look: SeriesLook) -> DrawResult {
    let color = color(look);
    let filled = |corners: &[(i32, i32)]| {
        let corners: Vec<(i32, i32)> = corners.iter().map(|(right, down)| (x + right, y + down)).collect();
        area.draw(&Polygon::new(corners, color.filled()))
    };
    let crossed = |strokes: [[(i32, i32); 2]; 2]| {
        strokes.into_iter().try_for_each(|ends| {
            let ends: Vec<(i32, i32)> = ends.iter().map(|(right, down)| (x + right, y + down)).collect();
            area.draw(&PathElement::new(ends, color.stroke_width(2)))
        })
    };
    match look.marker() {
        Marker::Circle => area.draw(&Circle::new((x, y), 4, color.filled()))?,
        Marker::TriangleUp => filled(&[(0, -5), (5, 4), (-5, 4)])?,
        Marker::TriangleDown => filled(&[(0, 5), (5, -4), (-5, -4)])?,
        Marker::Square => filled(&[(-4, -4), (4, -4), (4, 4), (-4, 4)])?,
        Marker::Diamond => filled(&[(0, -5), (5, 0), (0, 5), (-5, 0)])?,
        Marker::Cross => crossed([[(-5, 0), (5, 0)], [(0, -5), (0, 5)]])?,
        Marker::X => crossed([[(-4, -4), (4, 4)], [(-4, 4), (4, -4)]])?,
    }
    Ok(())
}

/// A line through pixels, with the dashes of the look.
pub(super) fn draw_line(area: &Area<'_>, pixels: &[(i32, i32)], look: SeriesLook, width: u32) -> DrawResult {
    let style = color(look).stroke_width(width);
    if look.dashes().is_empty() {
        return Ok(area.draw(&PathElement::new(pixels.to_vec(), style))?);
    }
    for stroke in strokes(pixels, look.dashes()) {
        area.draw(&PathElement::new(stroke, style))?;
    }
    Ok(())
}

/// The strokes of a dashed line: lengths of strokes and gaps in turn.
fn strokes(pixels: &[(i32, i32)], lengths: &[i32]) -> Vec<Vec<(i32, i32)>> {
    let mut strokes: Vec<Vec<(i32, i32)>> = Vec::new();
    let mut lengths = lengths.iter().map(|&length| f64::from(length)).cycle();
    let (mut left, mut drawn) = (lengths.next().unwrap_or(f64::INFINITY), true);
    let round = |(x, y): (f64, f64)| (x.round() as i32, y.round() as i32);
    let mut stroke: Vec<(i32, i32)> = pixels.first().copied().into_iter().collect();
    for ends in pixels.windows(2) {
        let mut from = (f64::from(ends[0].0), f64::from(ends[0].1));
        let to = (f64::from(ends[1].0), f64::from(ends[1].1));
        loop {
            let distance = (to.0 - from.0).hypot(to.1 - from.1);
            if distance < left {
                left -= distance;
                break;
            }
            let part = if distance > 0.0 { left / distance } else { 1.0 };
            from = (from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1));
            stroke.push(round(from));
            if drawn {
                strokes.push(std::mem::take(&mut stroke));
            }
            stroke = vec![round(from)];
            drawn = !drawn;
            left = lengths.next().unwrap_or(f64::INFINITY);
        }
        if drawn {
            stroke.push(ends[1]);
        }
    }
    if drawn && stroke.len() > 1 {
        strokes.push(stroke);
    }
    strokes
}

pub(super) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_go_on_round_corners() {
        assert_eq!(
            strokes(&[(0, 0), (10, 0), (10, 10)], &[6, 2]),
            [vec![(0, 0), (6, 0)], vec![(8, 0), (10, 0), (10, 4)], vec![(10, 6), (10, 10)]]
        );
        assert_eq!(strokes(&[(0, 0), (3, 0)], &[6, 2]), [[(0, 0), (3, 0)]]);
        assert!(strokes(&[(1, 1)], &[6, 2]).is_empty() && strokes(&[], &[6, 2]).is_empty());
    }
}
