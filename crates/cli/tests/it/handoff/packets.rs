//! Packets of unusual shape reach back-ends as they reach a server that clients talk to directly.

use plimsoll_testkit::eventually;

use super::bed::{Bed, Options};
use super::http::content;
use super::raw::{RawClient, Shape};

const BODY: usize = 50_000;

/// Gets a file over several back-ends by requests that are longer than a fragment.
fn served(shape: Shape, counted: &str) {
    let bed = Bed::new(Options { is_quiet: true, ..Options::default() }, &[("body", content(7, BODY))]);
    let body = content(7, BODY);
    for (port, vip) in [(20_000, bed.vip()), (20_001, bed.vip_v6())] {
        let mut client = RawClient::connect(&bed, vip, port, shape);
        for _ in 0..4 {
            let request = format!("GET /body HTTP/1.1\r\nHost: lab\r\nX-Long: {}\r\n\r\n", "x".repeat(300));
            let answer = bed.client(|| client.request(&request, &body));
            assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(&body));
        }
        bed.client(|| client.close());
    }
    assert!(bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}") >= Some(2.0));
    assert_eq!(bed.metric("plimsoll_connections_reset_total"), Some(0.0));
    let packets = || bed.metric(&format!("plimsoll_packets_total{{action=\"{counted}\"}}"));
    eventually("packets of this shape", || packets() > Some(20.0));
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn ip_options_and_extension_headers() {
    served(Shape::Options, "forwarded");
}

#[test]
fn fragments() {
    served(Shape::Fragments, "fragment");
}
