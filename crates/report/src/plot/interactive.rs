//! Plots as figures for plotly.js: plain JSON data, see <https://plotly.com/javascript/reference/>. Colours of text
//! and grid are set by the page's script, which knows whether the page is light or dark.

use serde_json::{Value, json};

use crate::{
    escape::plotly_text,
    plot::{
        AxisUnit, PALETTE, Plot, Series, SeriesStyle,
        ticks::{decades, label},
    },
};

const SYMBOLS: [&str; 6] = ["circle", "triangle-up", "square", "diamond", "cross", "x"];
const DASHES: [&str; 3] = ["solid", "dash", "dot"];

/// `{"data": …, "layout": …}` for `Plotly.newPlot`.
pub(crate) fn figure(plot: &Plot) -> Value {
    let mut data = Vec::new();
    for (index, series) in plot.series.iter().enumerate() {
        traces(plot, series, index, &mut data);
    }
    let shown = plot.series.iter().filter(|series| plot.drawable(series).next().is_some()).count();
    json!({
        "data": data,
        "layout": {
            "xaxis": x_axis(plot),
            "yaxis": y_axis(plot),
            "barmode": "group",
            "showlegend": shown > 1,
            // The legend is above the plot, unless that would take several lines.
            "legend": if shown > 6 { json!({ "tracegroupgap": 0, "font": { "size": 11 } }) } else { json!({ "orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom" }) },
            "hovermode": if plot.has_bars() { "closest" } else { "x unified" },
        },
    })
}

fn traces(plot: &Plot, series: &Series, index: usize, data: &mut Vec<Value>) {
    let points: Vec<_> = plot.drawable(series).map(|point| rounded(point, plot.x_log)).collect();
    if points.is_empty() {
        return;
    }
    let column = |pick: fn(&(f64, f64, f64, f64)) -> f64| points.iter().map(pick).collect::<Vec<f64>>();
    let x = column(|point| point.0);
    let (red, green, blue) = PALETTE[index % PALETTE.len()];
    let color = format!("rgb({red},{green},{blue})");
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
        "marker": { "color": color, "symbol": SYMBOLS[index % SYMBOLS.len()], "size": 8 },
    });
    if series.kind != SeriesStyle::Bars {
        let few = points.len() <= 40 && matches!(series.kind, SeriesStyle::Line);
        trace["mode"] = json!(match series.kind {
            SeriesStyle::Points => "markers",
            _ if few => "lines+markers",
            _ => "lines",
        });
        let shape = if series.kind == SeriesStyle::Step { "hv" } else { "linear" };
        let dash = DASHES[index / PALETTE.len() % DASHES.len()];
        trace["line"] = json!({ "color": color, "width": if points.len() > 40 { 1.4 } else { 2.2 }, "shape": shape, "dash": dash });
    } else {
        // Only scatter traces have a symbol.
        trace["marker"] = json!({ "color": color });
    }
    if series.errors.is_some() && series.kind != SeriesStyle::Band {
        trace["error_y"] = json!({
            "type": "data", "symmetric": false, "thickness": 1.4, "width": 5,
            "array": points.iter().map(|point| point.3 - point.1).collect::<Vec<_>>(),
            "arrayminus": points.iter().map(|point| point.1 - point.2).collect::<Vec<_>>(),
        });
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
