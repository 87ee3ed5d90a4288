//! Small plots for a terminal, drawn with Unicode blocks; same numbers, same characters.

use crate::{escape, format};

/// Blocks of one to eight eighths of a cell's height.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Blocks of one to seven eighths of a cell's width.
const WIDTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// One line that follows the values over time, at most `width` characters: neighbours are averaged to fit. Zero is an
/// empty cell, any larger value at least one eighth; values that are negative or not finite count as zero.
pub fn sparkline(values: &[f64], width: usize) -> String {
    let cells = average_into(values, width);
    let largest = cells.iter().copied().fold(0.0, f64::max);
    cells
        .iter()
        .map(|&value| {
            if value <= 0.0 {
                return ' ';
            }
            let eighths = (value / largest * 8.0).ceil().clamp(1.0, 8.0) as usize;
            HEIGHTS[eighths - 1]
        })
        .collect()
}

/// Horizontal bars, one line per pair of label and value, at most `width` characters wide (never narrower than the
/// labels and values need); the longest bar is the largest value. Every line ends with a line feed.
pub fn bar_chart(rows: &[(String, f64)], width: usize) -> String {
    let labels: Vec<String> =
        rows.iter().map(|(label, _)| escape::terminal(&label.replace('\n', " "))).collect();
    let values: Vec<String> = rows.iter().map(|&(_, value)| format::number(value)).collect();
    let label_width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let value_width = values.iter().map(|value| value.chars().count()).max().unwrap_or(0);
    // Two gaps of two characters.
    let bar_width = width.saturating_sub(label_width + value_width + 4).max(1);
    let largest = rows.iter().map(|&(_, value)| usable(value)).fold(0.0, f64::max);
    let mut out = String::new();
    for ((label, value), &(_, size)) in labels.iter().zip(&values).zip(rows) {
        let line = format!(
            "{label:<label_width$}  {value:>value_width$}  {}",
            bar(usable(size), largest, bar_width)
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn bar(value: f64, largest: f64, width: usize) -> String {
    if value <= 0.0 || largest <= 0.0 {
        return String::new();
    }
    let eighths = ((value / largest * 8.0 * width as f64).round() as usize).max(1);
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.push(WIDTHS[eighths % 8 - 1]);
    }
    out
}

/// Averages neighbouring values so that at most `width` remain; the parts differ by one value at most.
fn average_into(values: &[f64], width: usize) -> Vec<f64> {
    if values.is_empty() || width == 0 {
        return Vec::new();
    }
    let cells = width.min(values.len());
    (0..cells)
        .map(|cell| {
            let part = &values[cell * values.len() / cells..(cell + 1) * values.len() / cells];
            part.iter().map(|&value| usable(value)).sum::<f64>() / part.len() as f64
        })
        .collect()
}

fn usable(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparkline_scales_to_the_largest() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 4.0, 8.0], 10), " ▁▂▄█");
        assert_eq!(sparkline(&[1.0, 1.0, 8.0, 8.0], 2), "▁█");
        assert_eq!(sparkline(&[], 10), "");
        assert_eq!(sparkline(&[1.0], 0), "");
        assert_eq!(sparkline(&[f64::NAN, -1.0, f64::INFINITY, 2.0], 4), "   █");
    }

    #[test]
    fn bars_keep_within_the_width() {
        let rows = [("a".to_owned(), 10.0), ("long label".to_owned(), 5.0), ("zero".to_owned(), 0.0)];
        assert_eq!(
            bar_chart(&rows, 36),
            concat!(
                "a           10  ████████████████████\n",
                "long label   5  ██████████\n",
                "zero         0\n"
            )
        );
        assert!(bar_chart(&rows, 3).lines().all(|line| line.chars().count() <= 17));
        assert_eq!(bar_chart(&[], 40), "");
    }

    #[test]
    fn a_small_value_is_still_seen() {
        assert!(bar_chart(&[("a".to_owned(), 1e6), ("b".to_owned(), 1.0)], 40).ends_with("▏\n"));
    }
}
