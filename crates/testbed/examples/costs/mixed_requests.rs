//! Requests of very different cost, as a shop has them.

use plimsoll_testbed::load::Req;

use super::request_kind::{RequestKind, draw};

/// Different documents of each kind.
const DOCUMENTS: u64 = 1000;

/// All kinds.
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
    let (kind, which) = draw(&KINDS, DOCUMENTS, seed, number);
    match KINDS[kind].name {
        "item" => Req::get(format!("/item/{which}")),
        "list" => Req::get(format!("/list/{}?sort=price", which / 10)),
        "search" => Req::get(format!("/search?q=word{which}")),
        operation => {
            let body = format!("{{\"operationName\":\"{operation}\",\"variables\":{{\"id\":{which}}}}}");
            Req::post(format!("/graphql?operationName={operation}"), body)
        }
    }
}
