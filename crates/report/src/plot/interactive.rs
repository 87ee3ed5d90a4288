//! Plots as figures for plotly.js: plain JSON data, see <https://plotly.com/javascript/reference/>. Colours of text
//! and grid are set by the page's script, which knows whether the page is light or dark.

use serde_json::{Value, json};

use crate::{
    escape::plotly_text,
    format::percent,
    plot::{
        AxisUnit, Plot, Series, SeriesLook, SeriesStyle,
        look::Marker,
        ticks::{decades, label},
    },
};

/// `{"data": …, "layout": …}` for `Plotly.newPlot`, and for the page's script: `ends`, the lines to be labelled where they end, as
/// name, look and last point, and `height`, the least height in pixels.
pub(crate) fn figure(plot: &Plot) -> Value {
    if plot.has_lying_bars() {
        return lying_bars(plot);
    }
    let shown = plot.shown();
    let mut data = Vec::new();
    for &(index, series) in &shown {
        traces(plot, series, index, &mut data);
    }
    let ends = if plot.labels_ends() { ends(plot, &shown) } else { Vec::new() };
    json!({
        "data": data,
        "layout": {
            "xaxis": x_axis(plot),
            "yaxis": y_axis(plot),
            "barmode": "group",
            "showlegend": shown.len() > 1,
            // The legend is above the plot, unless that would take several lines.
            "legend": if shown.len() > 6 { json!({ "tracegroupgap": 0, "font": { "size": 11 } }) } else { json!({ "orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom" }) },
            "hovermode": if plot.has_bars() { "closest" } else { "x unified" },
        },
        "height": if ends.is_empty() { 0 } else { LABEL_HEIGHT * ends.len() + 90 },
        "ends": ends,
    })
}

/// Height of a label at the end of a line.
const LABEL_HEIGHT: usize = 15;
/// Height of a bar that lies.
const ROW_HEIGHT: usize = 24;

fn rgb(look: SeriesLook) -> String {
    let (red, green, blue) = look.color();
    format!("rgb({red},{green},{blue})")
}

fn symbol(look: SeriesLook) -> &'static str {
    match look.marker() {
        Marker::Circle => "circle",
        Marker::TriangleUp => "triangle-up",
        Marker::Square => "square",
        Marker::Diamond => "diamond",
        Marker::Cross => "cross",
        Marker::X => "x",
        Marker::TriangleDown => "triangle-down",
    }
}

fn dash(look: SeriesLook) -> String {
    match look.dashes() {
        [] => "solid".to_owned(),
        lengths => lengths.iter().map(|length| format!("{length}px")).collect::<Vec<_>>().join(","),
    }
}

fn ends(plot: &Plot, shown: &[(usize, &Series)]) -> Vec<Value> {
    let end = |&(index, series): &(usize, &Series)| {
        let last = plot.drawable(series).last()?;
        let (x, y, ..) = rounded(last, plot.x_log);
        let look = plot.look(index);
        Some(json!({
            "name": plotly_text(&series.name), "color": rgb(look), "dashes": look.dashes(), "x": x, "y": y,
        }))
    };
    shown.iter().filter_map(end).collect()
}

/// Bars beside the names of their categories, from top to bottom.
fn lying_bars(plot: &Plot) -> Value {
    let points: Vec<_> = plot
        .series
        .iter()
        .flat_map(|series| plot.drawable(series))
        .map(|point| rounded(point, false))
        .collect();
    let column = |pick: fn(&(f64, f64, f64, f64)) -> f64| points.iter().map(pick).collect::<Vec<f64>>();
    let names = plot.categories.iter().map(|name| plotly_text(name)).collect::<Vec<_>>();
    let mut trace = json!({
        "type": "bar", "orientation": "h", "x": column(|point| point.1), "y": column(|point| point.0),
        "width": 0.7, "text": points.iter().map(|point| value_text(point.1, plot.y_unit)).collect::<Vec<_>>(),
        "textposition": "outside", "cliponaxis": false, "hoverinfo": "x+text",
        "hovertext": points.iter().map(|point| names.get(point.0 as usize).cloned().unwrap_or_default()).collect::<Vec<_>>(),
        "marker": { "color": (0..points.len()).map(|bar| rgb(plot.bar_look(0, bar))).collect::<Vec<_>>() },
    });
    if points.iter().any(|point| point.2 < point.3) {
        trace["error_x"] = errors(&points);
    }
    json!({
        "data": [trace],
        "layout": {
            "xaxis": y_axis(plot),
            "yaxis": {
                "autorange": "reversed", "tickvals": (0..names.len()).collect::<Vec<_>>(), "ticktext": names,
                "showgrid": false, "ticks": "",
            },
            "showlegend": false,
            "hovermode": "closest",
        },
        "height": ROW_HEIGHT * plot.categories.len() + 80,
        "ends": [],
    })
}

fn value_text(value: f64, unit: AxisUnit) -> String {
    match unit {
        AxisUnit::Percent => percent(value / 100.0),
        unit => label(value, unit),
    }
}

fn errors(points: &[(f64, f64, f64, f64)]) -> Value {
    json!({
        "type": "data", "symmetric": false, "thickness": 1.4, "width": 5,
        "array": points.iter().map(|point| point.3 - point.1).collect::<Vec<_>>(),
        "arrayminus": points.iter().map(|point| point.1 - point.2).collect::<Vec<_>>(),
    })
}

fn traces(plot: &Plot, series: &Series, index: usize, data: &mut Vec<Value>) {
    let points: Vec<_> = plot.drawable(series).map(|point| rounded(point, plot.x_log)).collect();
    let column = |pick: fn(&(f64, f64, f64, f64)) -> f64| points.iter().map(pick).collect::<Vec<f64>>();
    let x = column(|point| point.0);
    let look = plot.look(index);
    let (red, green, blue) = look.color();
    let name = plotly_text(&series.name);
    if series.kind == SeriesStyle::Band {
        let edge = |y: Vec<f64>, fill: &str| {
            json!({
                "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "legendgroup": index.to_string(),
                "line": { "width": 0 }, "showlegend": false, "hoverinfo": "skip",
                "fill": fill, "fillcolor": format!("rgba({red},{green},{blue},0.22)"),
            })
        };
        data.push(edge(column(|point| point.2), "none"));
        data.push(edge(column(|point| point.3), "tonexty"));
    }
    let mut trace = json!({
        "type": if series.kind == SeriesStyle::Bars { "bar" } else { "scatter" },
        "name": name, "x": x, "y": column(|point| point.1), "legendgroup": index.to_string(),
        "marker": { "color": rgb(look), "symbol": symbol(look), "size": 8 },
    });
    if series.kind != SeriesStyle::Bars {
        let few = points.len() <= 40 && matches!(series.kind, SeriesStyle::Line);
        trace["mode"] = json!(match series.kind {
            SeriesStyle::Points => "markers",
            _ if few => "lines+markers",
            _ => "lines",
        });
        let shape = if series.kind == SeriesStyle::Step { "hv" } else { "linear" };
        let width = if points.len() > 40 { 1.4 } else { 2.2 };
        trace["line"] = json!({ "color": rgb(look), "width": width, "shape": shape, "dash": dash(look) });
    } else {
        // Only scatter traces have a symbol.
        trace["marker"] = json!({ "color": (0..points.len()).map(|bar| rgb(plot.bar_look(index, bar))).collect::<Vec<_>>() });
    }
    if series.errors.is_some() && series.kind != SeriesStyle::Band {
        trace["error_y"] = errors(&points);
    }
    data.push(trace);
}

/// Rounds to six significant digits: more than a screen can show, at a fraction of the bytes.
fn rounded((x, y, low, high): (f64, f64, f64, f64), x_log: bool) -> (f64, f64, f64, f64) {
    let round = |value: f64| format!("{value:.5e}").parse().unwrap_or(value);
    (if x_log { x } else { round(x) }, round(y), round(low), round(high))
}

fn x_axis(plot: &Plot) -> Value {
    let mut axis = json!({ "title": { "text": plotly_text(&plot.x_label), "standoff": 10 }, "type": axis_type(plot.x_log) });
    if let Some(names) = plot.named_x() {
        if plot.categories.is_empty() {
            axis["tickangle"] = json!(0);
        }
        axis["tickvals"] = names.iter().map(|(x, _)| *x).collect();
        axis["ticktext"] = names.iter().map(|(_, name)| plotly_text(name)).collect();
    }
    axis
}

fn y_axis(plot: &Plot) -> Value {
    let mut axis = json!({ "title": { "text": plotly_text(&plot.y_label), "standoff": 12 }, "type": axis_type(plot.y_log) });
    if let (true, Some((_, (low, high)))) = (plot.y_log, plot.extent()) {
        // plotly.js would label 2 and 5 of every decade without a unit.
        let ticks = decades(low, high);
        axis["ticktext"] = ticks.iter().map(|&value| label(value, plot.y_unit)).collect();
        axis["tickvals"] = ticks.into();
    } else {
        axis["rangemode"] = json!("tozero");
    }
    match plot.y_unit {
        AxisUnit::Plain => axis["hoverformat"] = json!(",.4~r"),
        AxisUnit::Percent => {
            axis["ticksuffix"] = json!(" %");
            axis["hoverformat"] = json!(".3~r");
        }
        AxisUnit::Seconds => {
            axis["tickformat"] = json!("~s");
            axis["hoverformat"] = json!(".4~s");
            axis["ticksuffix"] = json!("s");
        }
    }
    axis
}

fn axis_type(log: bool) -> &'static str {
    if log { "log" } else { "linear" }
}
