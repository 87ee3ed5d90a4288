//! Loads that back-ends write into their responses: ORCA's field `endpoint-load-metrics`, as text or JSON.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_policy::{BackendId, LoadReport};

use super::LoadIntake;
use crate::backend::Backend;
use crate::backend_pool::FIRST_POOL;
use crate::shared::FrontEndShared;

/// Takes the load out of the head of a back-end's response.
#[derive(Clone, Copy)]
pub(crate) struct HeaderLoads<'a> {
    shared: &'a Arc<FrontEndShared>,
    backend: BackendId,
}

/// What a field says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HeaderValue {
    /// The load.
    Load(u32),
    /// It tells other things.
    NoLoad,
    /// It is not understood.
    Unreadable,
    /// No back-end has that.
    Implausible,
}

impl<'a> HeaderLoads<'a> {
    /// For responses of this back-end; `None` where loads do not come from there.
    pub(crate) fn of(shared: &'a Arc<FrontEndShared>, backend: &Backend) -> Option<Self> {
        let from = shared.load_information.config.from;
        let tells = from == plimsoll_config::LoadSource::Header && backend.pool == FIRST_POOL;
        tells.then_some(Self { shared, backend: backend.id })
    }

    /// Takes the load from this head, if it has one.
    pub(crate) fn take(self, head: &[u8]) {
        let information = &self.shared.load_information;
        let LoadIntake { config, counts, .. } = information;
        let Some(value) = field(head, config.header.as_bytes()) else { return };
        match load_of(value, &config.metric, config.most_load) {
            HeaderValue::Load(load) => {
                counts.reports.add(1);
                information.hearing().heard(self.backend.index(), None, information.now_ns());
                self.shared.dispatch.report(&LoadReport::of(self.backend, load));
            }
            HeaderValue::NoLoad => {}
            HeaderValue::Unreadable => counts.unreadable.add(1),
            HeaderValue::Implausible => {
                counts.implausible.add(1);
                counts.neutral.add(u64::from(self.shared.dispatch.report_mean(self.backend)));
            }
        }
    }
}

/// The first value of the field of this name in a head whose form was checked.
pub(super) fn field<'h>(head: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let (start, rest) = line.split_at_checked(name.len())?;
        let value = rest.strip_prefix(b":")?;
        start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
    })
}

/// The load in a value: `TEXT name=value,…`, `JSON {…}`, or either without its word. Other forms are not understood.
pub(super) fn load_of(value: &[u8], metric: &str, most_load: u32) -> HeaderValue {
    let Ok(text) = std::str::from_utf8(value) else { return HeaderValue::Unreadable };
    let found = match text.split_once(' ') {
        Some(("TEXT", rest)) => in_text(rest, metric),
        Some(("JSON", rest)) => in_json(rest, metric),
        Some(("BIN", _)) => return HeaderValue::Unreadable,
        _ if text.starts_with('{') => in_json(text, metric),
        _ => in_text(text, metric),
    };
    let number = match found {
        Ok(Some(number)) => number,
        Ok(None) => return HeaderValue::NoLoad,
        Err(()) => return HeaderValue::Unreadable,
    };
    if !number.is_finite() || number < 0.0 {
        return HeaderValue::Unreadable;
    }
    if number > f64::from(most_load) {
        return HeaderValue::Implausible;
    }
    // Within a `u32`, as it is not above `most_load`.
    HeaderValue::Load(number.round() as u32)
}

fn in_text(text: &str, metric: &str) -> Result<Option<f64>, ()> {
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=').ok_or(())?;
        if name.trim() == metric {
            return value.trim().parse().map(Some).map_err(|_| ());
        }
    }
    Ok(None)
}

fn in_json(text: &str, metric: &str) -> Result<Option<f64>, ()> {
    let root: serde_json::Value = serde_json::from_str(text).map_err(|_| ())?;
    let object = root.as_object().ok_or(())?;
    let found = object.get(metric).or_else(|| {
        // Names of metrics may have dots themselves.
        let (table, name) = metric.split_once('.')?;
        object.get(table)?.get(name)
    });
    found.map(|value| value.as_f64().ok_or(())).transpose()
}

/// Looks for back-ends that were silent for too long, until it is dropped.
pub(crate) async fn watch(shared: Arc<FrontEndShared>) {
    const SHORTEST: Duration = Duration::from_millis(5);
    let information = &shared.load_information;
    let mut tick = tokio::time::interval((information.config.interval / 2).max(SHORTEST));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        look_for_silent(&shared);
    }
}

/// Back-ends that were silent for too long count as loaded like the others. Returns them.
pub(super) fn look_for_silent(shared: &FrontEndShared) -> Vec<BackendId> {
    let information = &shared.load_information;
    let backends = shared.backends.load();
    let now_ns = information.now_ns();
    let silent: Vec<BackendId> = {
        let mut hearing = information.hearing();
        hearing.keep(|index| backends.get(index).is_some_and(|backend| !backend.is_retired()));
        let there = backends.iter().filter(|backend| !backend.is_retired());
        there.map(|backend| backend.id).filter(|id| hearing.is_silent(id.index(), now_ns)).collect()
    };
    for &backend in &silent {
        information.counts.neutral.add(u64::from(shared.dispatch.report_mean(backend)));
    }
    silent
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRIC: &str = "named_metrics.active";

    #[test]
    fn forms_of_the_field() {
        let of = |value: &str| load_of(value.as_bytes(), METRIC, 65_535);
        assert_eq!(of("TEXT cpu_utilization=0.3,named_metrics.active=12"), HeaderValue::Load(12));
        assert_eq!(of("TEXT named_metrics.active=12.6, mem_utilization=0.5"), HeaderValue::Load(13));
        assert_eq!(of("named_metrics.active=0"), HeaderValue::Load(0));
        let json = r#"JSON {"cpu_utilization":0.3,"named_metrics":{"active":7}}"#;
        assert_eq!(of(json), HeaderValue::Load(7));
        assert_eq!(of(r#"{"named_metrics":{"active":7}}"#), HeaderValue::Load(7));
        assert_eq!(of(r#"{"named_metrics.active":8}"#), HeaderValue::Load(8));
        assert_eq!(of("TEXT cpu_utilization=0.3"), HeaderValue::NoLoad);
        assert_eq!(of("JSON {}"), HeaderValue::NoLoad);
        for wrong in [
            "",
            "TEXT",
            "BIN CAAQAA==",
            "named_metrics.active=many",
            "named_metrics.active=-1",
            "named_metrics.active=NaN",
            "JSON [1]",
            "JSON {",
            r#"{"named_metrics":{"active":"7"}}"#,
        ] {
            assert_eq!(of(wrong), HeaderValue::Unreadable, "{wrong}");
        }
        assert_eq!(load_of(b"\xff", METRIC, 9), HeaderValue::Unreadable);
        assert_eq!(of("named_metrics.active=4294967295"), HeaderValue::Implausible);
        assert_eq!(load_of(b"named_metrics.active=10", METRIC, 9), HeaderValue::Implausible);
    }

    #[test]
    fn the_field_in_a_head() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nEndpoint-Load-Metrics:  TEXT a=1 \r\n\r\n";
        assert_eq!(field(head, b"endpoint-load-metrics"), Some(&b"TEXT a=1"[..]));
        assert_eq!(field(head, b"endpoint-load"), None);
        assert_eq!(
            field(b"endpoint-load-metrics: x\r\n\r\n", b"endpoint-load-metrics"),
            None,
            "no status line"
        );
    }
}
