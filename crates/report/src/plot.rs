//! Plots: one description, drawn by plotly.js where JavaScript runs and as a static SVG everywhere else.

mod end_labels;
mod interactive;
mod look;
mod lying_bars;
mod svg;
mod svg_series;
mod svg_style;
mod ticks;

pub(crate) use interactive::figure;
pub use look::SeriesLook;

/// Larger values, and on a logarithmic axis values below its reciprocal, are not drawn: arithmetic on them
/// could overflow.
const LARGEST: f64 = 1e300;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesStyle {
    /// Points joined by straight lines.
    Line,
    /// One bar per point; bars of several series at one x stand side by side.
    Bars,
    /// A value holds from its x to the next one.
    Step,
    /// Points alone.
    Points,
    /// A line, with the room between the minimum and the maximum of `errors` shaded.
    Band,
}

/// The unit of the y axis, for its tick labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AxisUnit {
    /// A number as it is.
    #[default]
    Plain,
    /// Per cent: 50 stands for one half.
    Percent,
    /// Seconds; small values are labelled in ms or µs.
    Seconds,
}

/// One series of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points in order of x; those that cannot be drawn (not finite, beyond 1e300, or not above zero on a logarithmic axis) are
    /// left out.
    pub points: Vec<(f64, f64)>,
    /// How to draw them.
    pub kind: SeriesStyle,
    /// Minimum and maximum at each point, in units of y; as long as `points`.
    pub errors: Option<Vec<(f64, f64)>>,
    /// Colour, marker and dashes; `None` for those of its place in the plot.
    pub look: Option<SeriesLook>,
    /// The look of each bar, in place of one for all; as long as `points`, or empty.
    pub bar_looks: Vec<SeriesLook>,
}

impl Series {
    /// A series without error bars.
    pub fn new(name: impl Into<String>, kind: SeriesStyle, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, kind, errors: None, look: None, bar_looks: Vec::new() }
    }

    /// The same series with this look.
    #[must_use]
    pub fn with_look(mut self, look: SeriesLook) -> Self {
        self.look = Some(look);
        self
    }

    /// The same series with a minimum and a maximum at each point.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<(f64, f64)>) -> Self {
        self.errors = Some(errors);
        self
    }
}

/// A plot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plot {
    /// Title above the plot.
    pub title: String,
    /// Quantity and unit along x.
    pub x_label: String,
    /// Quantity and unit along y.
    pub y_label: String,
    /// Logarithmic x axis.
    pub x_log: bool,
    /// Logarithmic y axis.
    pub y_log: bool,
    /// Unit of the tick labels of y.
    pub y_unit: AxisUnit,
    /// Names for x = 0, 1, 2 …; empty for a numeric x axis.
    pub categories: Vec<String>,
    /// The series; empty ones are not drawn. Those without a look take one by their place.
    pub series: Vec<Series>,
    /// Bars lie: the categories stand from top to bottom, with their names beside them. For one series of bars on a linear axis.
    pub lying: bool,
    /// A remark below the plot; may be empty.
    pub note: String,
}

impl Plot {
    /// A plot without series on linear axes.
    pub fn new(title: impl Into<String>, x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        Self { title: title.into(), x_label: x_label.into(), y_label: y_label.into(), ..Self::default() }
    }

    /// The same plot with one more series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The look of a series by its index.
    fn look(&self, index: usize) -> SeriesLook {
        let own = self.series.get(index).and_then(|series| series.look);
        own.unwrap_or_else(|| SeriesLook::by_place_in_plot(index))
    }

    /// The look of a bar of a series.
    fn bar_look(&self, index: usize, bar: usize) -> SeriesLook {
        let own = self.series.get(index).and_then(|series| series.bar_looks.get(bar)).copied();
        own.unwrap_or_else(|| self.look(index))
    }

    /// The series that are drawn, with their indices.
    fn shown(&self) -> Vec<(usize, &Series)> {
        let drawn = |(_, series): &(usize, &Series)| self.drawable(series).next().is_some();
        self.series.iter().enumerate().filter(drawn).collect()
    }

    /// Whether lines are labelled where they end; otherwise a legend names the series.
    fn labels_ends(&self) -> bool {
        let shown = self.shown();
        let is_line = |kind| matches!(kind, SeriesStyle::Line | SeriesStyle::Step | SeriesStyle::Band);
        shown.len() > 1 && shown.iter().all(|(_, series)| is_line(series.kind))
    }

    /// Whether the plot needs the whole width of the page: many lines to tell apart.
    pub(crate) fn is_wide(&self) -> bool {
        self.labels_ends() && self.shown().len() > 8
    }

    /// Whether bars lie, and can.
    fn has_lying_bars(&self) -> bool {
        let is_bars = matches!(self.series.as_slice(), [only] if only.kind == SeriesStyle::Bars);
        self.lying && is_bars && !self.x_log && !self.y_log && !self.categories.is_empty()
    }

    /// Whether the axes can show a point.
    fn can_draw(&self, (x, y): (f64, f64)) -> bool {
        let fits = |value: f64, log: bool| value.abs() <= LARGEST && (!log || value >= 1.0 / LARGEST);
        fits(x, self.x_log) && fits(y, self.y_log)
    }

    /// The points of a series that the axes can show, each with its minimum and maximum (both its own y if it
    /// has none).
    fn drawable<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = (f64, f64, f64, f64)> + 'a {
        series.points.iter().enumerate().filter(|&(_, &point)| self.can_draw(point)).map(
            move |(index, &(x, y))| {
                let (low, high) = series
                    .errors
                    .as_ref()
                    .and_then(|errors| errors.get(index))
                    .copied()
                    .filter(|&(low, high)| self.can_draw((x, low)) && self.can_draw((x, high)))
                    .unwrap_or((y, y));
                (x, y, low.min(y), high.max(y))
            },
        )
    }

    /// Named places on the x axis: the categories, or the values themselves where they are a few whole numbers.
    fn named_x(&self) -> Option<Vec<(f64, String)>> {
        if !self.categories.is_empty() {
            return Some(
                self.categories.iter().enumerate().map(|(x, name)| (x as f64, name.clone())).collect(),
            );
        }
        let mut values: Vec<f64> =
            self.series.iter().flat_map(|series| self.drawable(series).map(|(x, ..)| x)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let few_whole = !values.is_empty() && values.len() <= 12 && values.iter().all(|x| x.fract() == 0.0);
        few_whole.then(|| values.into_iter().map(|x| (x, crate::format::number(x))).collect())
    }

    /// Whether there are bars, which start at zero and need room left and right.
    fn has_bars(&self) -> bool {
        self.series.iter().any(|series| series.kind == SeriesStyle::Bars)
    }

    /// Smallest and largest x and y over everything drawn; `None` when nothing is.
    fn extent(&self) -> Option<((f64, f64), (f64, f64))> {
        let mut extent: Option<((f64, f64), (f64, f64))> = None;
        for series in &self.series {
            for (x, _, low, high) in self.drawable(series) {
                let ((x_min, x_max), (y_min, y_max)) = extent.unwrap_or(((x, x), (low, high)));
                extent = Some(((x_min.min(x), x_max.max(x)), (y_min.min(low), y_max.max(high))));
            }
        }
        extent
    }
}
