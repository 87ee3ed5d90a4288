//! Which form of `/metrics` a client asks for, and the older of the two: the text format 0.0.4 of Prometheus, made from that of
//! OpenMetrics, whose lines differ little.

use std::collections::BTreeSet;

use http::HeaderMap;
use http::header::ACCEPT;

/// A form of `/metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus 0.0.4, which every collector reads.
    Prometheus,
}

impl MetricsFormat {
    /// The one that the client likes better; OpenMetrics only where it is asked for by name.
    pub fn wanted(fields: &HeaderMap) -> Self {
        let accepted = fields.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let (mut open_metrics, mut plain) = (0.0, None::<f64>);
        // What stands for more than one media type counts where no narrower range does (RFC 9110, section 12.5.1).
        let (mut text, mut anything) = (None, None);
        for range in accepted.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
            let params: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
            let of = |name: &str| {
                let found = params.iter().find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.trim().trim_matches('"'))
            };
            let quality = of("q").map_or(1.0, |q| q.parse::<f64>().unwrap_or(0.0));
            match (&*media_type, of("version")) {
                ("application/openmetrics-text", None | Some("1.0.0")) => {
                    open_metrics = quality.max(open_metrics);
                }
                ("text/plain", None | Some("0.0.4")) => plain = Some(quality.max(plain.unwrap_or(0.0))),
                ("text/*", _) => text = Some(quality),
                ("*/*", _) => anything = Some(quality),
                _ => {}
            }
        }
        let plain = plain.or(text).or(anything).unwrap_or(0.0);
        if open_metrics > 0.0 && open_metrics >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// In this form what is written as OpenMetrics.
    pub fn of(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::Prometheus => to_prometheus(&open_metrics),
        }
    }
}

/// Names counters as their samples are named, and leaves out what is not known there.
fn to_prometheus(open_metrics: &str) -> String {
    let typed = open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let counters: BTreeSet<&str> =
        typed.filter(|(_, kind)| *kind == "counter").map(|(name, _)| name).collect();
    let mut out = String::with_capacity(open_metrics.len() + 1024);
    for line in open_metrics.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let described =
            ["# HELP ", "# TYPE "].into_iter().find_map(|start| Some((start, line.strip_prefix(start)?)));
        match described.and_then(|(start, rest)| Some((start, rest.split_once(' ')?))) {
            Some((start, (name, rest))) if counters.contains(name) => {
                out.extend([start, name, "_total ", rest]);
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_only_when_asked_for() {
        let of = |accept: &str| {
            let mut fields = HeaderMap::new();
            fields.insert(ACCEPT, accept.parse().unwrap());
            MetricsFormat::wanted(&fields)
        };
        assert_eq!(MetricsFormat::wanted(&HeaderMap::new()), MetricsFormat::Prometheus);
        for plain in [
            "",
            "*/*",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "text/plain",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=0.1, */*",
            "application/openmetrics-text;q=0.5, text/*;q=0.6, */*;q=0.1",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.5",
        ] {
            assert_eq!(of(plain), MetricsFormat::Prometheus, "{plain}");
        }
        for open in [
            "application/openmetrics-text",
            "application/openmetrics-text;q=0.5, text/plain;q=0.4, */*",
            "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8",
            "Application/OpenMetrics-Text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        ] {
            assert_eq!(of(open), MetricsFormat::OpenMetrics, "{open}");
        }
    }

    #[test]
    fn counters_are_named_as_their_samples() {
        let open = "# HELP a A.\n# TYPE a counter\na_total{b=\"c\"} 1\n# HELP t_seconds T.\n# TYPE t_seconds histogram\n\
                    # UNIT t_seconds seconds\nt_seconds_sum 0.5\n# EOF\n";
        let plain = "# HELP a_total A.\n# TYPE a_total counter\na_total{b=\"c\"} 1\n# HELP t_seconds T.\n\
                     # TYPE t_seconds histogram\nt_seconds_sum 0.5\n";
        assert_eq!(MetricsFormat::Prometheus.of(open.to_owned()), plain);
        assert_eq!(MetricsFormat::OpenMetrics.of(open.to_owned()), open);
    }
}
