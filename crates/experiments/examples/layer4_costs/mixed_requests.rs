//! Documents, large files and computed pages, one connection each.

use plimsoll_testbed::load::Req;

use super::request_kind::{self, RequestKind};

/// All kinds.
#[rustfmt::skip]
pub(crate) const KINDS: [RequestKind; 5] = [
    RequestKind { name: "page", share: 0.60, cpu_s: 0.001, disk_s: 0.0, answer_bytes: 4 << 10, is_dynamic: false },
    RequestKind { name: "image", share: 0.20, cpu_s: 0.0005, disk_s: 0.008, answer_bytes: 16 << 10, is_dynamic: false },
    RequestKind { name: "large", share: 0.05, cpu_s: 0.004, disk_s: 0.015, answer_bytes: 256 << 10, is_dynamic: false },
    RequestKind { name: "search", share: 0.10, cpu_s: 0.030, disk_s: 0.0, answer_bytes: 2 << 10, is_dynamic: true },
    RequestKind { name: "report", share: 0.05, cpu_s: 0.100, disk_s: 0.020, answer_bytes: 2 << 10, is_dynamic: true },
];

/// Different documents of each kind.
const DOCUMENTS: u64 = 1000;

/// The kind of a request, by path and query.
pub(crate) fn kind_of(path_and_query: &str) -> Option<&'static RequestKind> {
    let name = path_and_query.split('/').nth(1)?;
    KINDS.iter().find(|kind| kind.name == name)
}

/// The number of the kind of request `number` of the run with this seed, and which of that kind.
fn draw(seed: u64, number: u64) -> (usize, u64) {
    request_kind::draw(&KINDS, DOCUMENTS, seed, number)
}

/// The number of the kind of a request.
pub(crate) fn kind_number(seed: u64, number: u64) -> usize {
    draw(seed, number).0
}

/// Request `number` of the run with this seed.
pub(crate) fn request(seed: u64, number: u64) -> Req {
    let (kind, which) = draw(seed, number);
    Req::get(format!("/{}/{which}", KINDS[kind].name))
}

/// The class file: what requests of each computed kind cost.
pub(crate) fn classes() -> String {
    let class = |kind: &RequestKind| {
        let RequestKind { name, cpu_s, disk_s, .. } = kind;
        format!(
            "[[class]]\nname = \"{name}\"\ncpu_s = {cpu_s}\ndisk_s = {disk_s}\n[[pattern]]\nclass = \"{name}\"\npath = \"/{name}/**\"\n"
        )
    };
    KINDS.iter().filter(|kind| kind.is_dynamic).map(class).collect()
}

/// The list of documents.
pub(crate) fn file_list() -> String {
    let documents = KINDS.iter().filter(|kind| !kind.is_dynamic);
    documents
        .flat_map(|kind| {
            (0..DOCUMENTS)
                .map(move |number| format!("{} 1700000000 /{}/{number}\n", kind.answer_bytes, kind.name))
        })
        .collect()
}
