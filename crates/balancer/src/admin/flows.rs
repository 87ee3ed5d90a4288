//! `/flows`: connections that back-ends have.

use std::net::IpAddr;

use http::StatusCode;
use serde::Serialize;

use crate::mechanism::carry::{FlowPhase, FlowState, Mechanism as _};
use crate::mechanism::registry::{MechanismSystems, Mechanisms};
use crate::shared::FrontEndShared;
use plimsoll_observe::reply::{Refused, Reply, json};

/// Flows that are shown without `limit`.
const LIMIT: usize = 1000;
const REMEDY: &str = "give backend=NAME, client=IP-ADDRESS, limit=NUMBER, or none of them";

#[derive(Serialize)]
struct ShownFlows {
    /// All that were asked for; with a limit more than there are in `flows`.
    count: usize,
    flows: Vec<ShownFlow>,
}

#[derive(Serialize)]
struct ShownFlow {
    client: String,
    address: String,
    protocol: String,
    backend: Option<String>,
    phase: &'static str,
    age_s: f64,
    idle_s: f64,
    acknowledged_bytes: u64,
    forwarded_packets: u64,
    forwarded_bytes: u64,
}

/// What the query asks for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    backend: Option<String>,
    client: Option<IpAddr>,
    limit: usize,
}

impl Wanted {
    fn of(query: &str) -> Result<Self, String> {
        let mut wanted = Self { backend: None, client: None, limit: LIMIT };
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = || format!("`{key}={value}` is not known");
            match &*key {
                "backend" => wanted.backend = Some(value.into_owned()),
                "client" => {
                    wanted.client = Some(value.parse::<IpAddr>().map_err(|_| wrong())?.to_canonical());
                }
                "limit" => wanted.limit = value.parse().map_err(|_| wrong())?,
                _ => return Err(wrong()),
            }
        }
        Ok(wanted)
    }
}

/// Answers the query of a request to `/flows`: the oldest connections first.
pub(super) fn answer(
    shared: &FrontEndShared,
    systems: &MechanismSystems,
    query: Option<&str>,
) -> Result<Reply, Refused> {
    let wanted = Wanted::of(query.unwrap_or_default())
        .map_err(|what| Refused::new(StatusCode::BAD_REQUEST, what, REMEDY))?;
    let backends = shared.backends.load_full();
    let name = |index: Option<usize>| backends.get(index?).map(|backend| backend.name.to_string());
    if let Some(backend) = &wanted.backend
        && !backends.iter().any(|known| *known.name == **backend)
    {
        let what = format!("there is no back-end {backend:?}");
        return Err(Refused::new(StatusCode::NOT_FOUND, what, "GET /backends lists them"));
    }
    let mut found: Vec<FlowState> = Vec::new();
    let listed = Mechanisms::flows(systems, &mut |state| {
        let of_client = wanted.client.is_none_or(|ip| state.flow.client.ip().to_canonical() == ip);
        if of_client && (wanted.backend.is_none() || name(state.backend) == wanted.backend) {
            found.push(state);
        }
    });
    listed.map_err(|why| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, why, "see the log"))?;
    found.sort_unstable_by_key(|state| (std::cmp::Reverse(state.age), state.flow));
    let count = found.len();
    let flows = found.iter().take(wanted.limit).map(|state| ShownFlow {
        client: state.flow.client.to_string(),
        address: state.flow.vip.to_string(),
        protocol: state.protocol.to_string(),
        backend: name(state.backend),
        phase: phase_name(state.phase),
        age_s: state.age.as_secs_f64(),
        idle_s: state.idle.as_secs_f64(),
        acknowledged_bytes: state.acknowledged_bytes,
        forwarded_packets: state.forwarded_packets,
        forwarded_bytes: state.forwarded_bytes,
    });
    Ok(json(StatusCode::OK, &ShownFlows { count, flows: flows.collect() }))
}

fn phase_name(phase: FlowPhase) -> &'static str {
    match phase {
        FlowPhase::Held => "held",
        FlowPhase::Returning => "returning",
        FlowPhase::HalfClosed => "half_closed",
        FlowPhase::Over => "over",
        FlowPhase::Opening => "opening",
        FlowPhase::LeftOver => "left_over",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries() {
        let all = Wanted { backend: None, client: None, limit: LIMIT };
        assert_eq!(Wanted::of(""), Ok(all));
        let some = Wanted { backend: Some("b 0".into()), client: Some([10, 0, 0, 1].into()), limit: 5 };
        assert_eq!(Wanted::of("backend=b%200&client=::ffff:10.0.0.1&limit=5"), Ok(some));
        for (wrong, what) in [
            ("limit=-1", "`limit=-1` is not known"),
            ("client=b0", "`client=b0` is not known"),
            ("sort=age", "`sort=age` is not known"),
        ] {
            assert_eq!(Wanted::of(wrong), Err(what.to_owned()));
        }
    }
}
