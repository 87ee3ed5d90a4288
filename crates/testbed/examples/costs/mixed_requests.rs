//! Requests of very different cost, as a shop has them.

use plimsoll_policy::Rng;
use plimsoll_testbed::load::Req;

/// Requests of one kind.
pub(crate) struct RequestKind {
    pub(crate) name: &'static str,
    /// Share of all requests.
    share: f64,
    /// Mean CPU time in seconds.
    pub(crate) cpu_s: f64,
    /// Mean time of disk accesses in seconds.
    pub(crate) disk_s: f64,
    /// Bytes of an answer.
    pub(crate) answer_bytes: usize,
    /// Whether it is computed, and no document.
    pub(crate) is_dynamic: bool,
}

/// All kinds. Costs of single requests deviate by up to 20 %.
pub(crate) const KINDS: [RequestKind; 5] = [
    RequestKind {
        name: "item",
        share: 0.70,
        cpu_s: 0.002,
        disk_s: 0.0,
        answer_bytes: 512,
        is_dynamic: false,
    },
    RequestKind {
        name: "list",
        share: 0.17,
        cpu_s: 0.001,
        disk_s: 0.012,
        answer_bytes: 512,
        is_dynamic: false,
    },
    RequestKind {
        name: "search",
        share: 0.06,
        cpu_s: 0.030,
        disk_s: 0.0,
        answer_bytes: 512,
        is_dynamic: true,
    },
    RequestKind { name: "Feed", share: 0.05, cpu_s: 0.006, disk_s: 0.0, answer_bytes: 512, is_dynamic: true },
    RequestKind {
        name: "Report",
        share: 0.02,
        cpu_s: 0.100,
        disk_s: 0.050,
        answer_bytes: 512,
        is_dynamic: true,
    },
];

/// The mean over all requests of what `part` says of their kind.
pub(crate) fn mean(part: impl Fn(&RequestKind) -> f64) -> f64 {
    KINDS.iter().map(|kind| kind.share * part(kind)).sum()
}

/// The kind of a request, by path and query.
pub(crate) fn kind_of(path_and_query: &str) -> Option<&'static RequestKind> {
    let name = match path_and_query.split(['/', '?']).nth(1)? {
        "graphql" => path_and_query.split_once("operationName=")?.1,
        first => first,
    };
    KINDS.iter().find(|kind| kind.name == name)
}

/// Request `number` of the run with this seed.
pub(crate) fn request(seed: u64, number: u64) -> Req {
    let mut rng = Rng::new(seed, number);
    let mut left = rng.unit();
    let kind = KINDS.iter().find(|kind| {
        left -= kind.share;
        left < 0.0
    });
    // Few are asked for often, many rarely.
    let which = (1000.0 * rng.unit() * rng.unit()) as u64;
    match kind.unwrap_or(&KINDS[0]).name {
        "item" => Req::get(format!("/item/{which}")),
        "list" => Req::get(format!("/list/{}?sort=price", which / 10)),
        "search" => Req::get(format!("/search?q=word{which}")),
        operation => {
            let body = format!("{{\"operationName\":\"{operation}\",\"variables\":{{\"id\":{which}}}}}");
            Req::post(format!("/graphql?operationName={operation}"), body)
        }
    }
}
