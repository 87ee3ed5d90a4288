//! Fuzz targets: what strangers send, and what must hold whatever it is.

mod bodies;
mod heads;
mod requests;
mod told;
mod written_head;

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("http1_head_end", heads::head_end),
    ("http1_request", requests::http1),
    ("http1_response", heads::response),
    ("http1_chunked", bodies::chunked),
    ("http1_path", heads::path),
    ("http2_request", requests::http2),
    ("http2_response", heads::response_to_http2),
    ("http2_trailers", bodies::trailers),
    ("http2_frames", bodies::frames),
    ("graphql_operation", bodies::operation),
    ("load_field", bodies::load_field),
    ("admin_query", bodies::admin_query),
    ("proxy_header", told::proxy_header),
    ("forwarding_fields", told::forwarding),
    ("accept_encoding", told::accept_encoding),
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
