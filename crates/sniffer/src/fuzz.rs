//! Fuzz targets: packets that pass, and lists of files.

use std::net::{Ipv4Addr, SocketAddr};

use crate::{Ends, Exchanges, FileTable, MOST_HEAD_BYTES, RequestStart, Segment};

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] =
    &[("sniffer_request", request), ("sniffer_exchanges", exchanges), ("sniffer_files", files)];

/// The start of a request: its parts are parts of the packet, also where more of it comes.
fn request(bytes: &[u8]) {
    let Some(start) = RequestStart::read(bytes) else { return };
    let line_end = bytes.iter().position(|&b| b == b'\n').expect("a request has a line");
    assert!((1..=24).contains(&start.method.len()) && bytes.starts_with(start.method));
    assert_eq!(start.path_and_query.first(), Some(&b'/'));
    assert!(start.path().len() <= start.path_and_query.len() && !start.path().contains(&b'?'));
    assert!(start.path_and_query.len() <= line_end.max(1));
    assert!(start.field(b"host").is_none_or(|host| !host.contains(&b'\n')));
    assert!(
        start.if_modified_since().is_none_or(|seconds| seconds < 253_402_300_800),
        "before the year 10000"
    );
    let line = &bytes[..=line_end.min(MOST_HEAD_BYTES - 1)];
    let alone = RequestStart::read(line).expect("the line is enough");
    assert_eq!((alone.method, alone.path_and_query), (start.method, start.path_and_query));
}

/// Segments of a few connections: an exchange has no more than was seen, and there are no more of them than could be.
fn exchanges(bytes: &[u8]) {
    let address = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut exchanges = Exchanges::new(2);
    let (mut done, mut rest, mut at_ns) = (Vec::new(), bytes, 0_u64);
    while let Some((&[flags, seq, length], data)) = rest.split_first_chunk::<3>() {
        let (data, after) = data.split_at(usize::from(length).min(data.len()));
        rest = after;
        at_ns += u64::from(flags >> 6) * 100_000_000_000;
        let ends = Ends { client: address(1000 + u16::from(flags & 3)), server: address(80) };
        let segment = Segment {
            at_ns,
            from_client: flags & 4 != 0,
            syn: flags & 8 != 0,
            end: flags & 16 != 0,
            // Around the place where sequence numbers begin anew.
            seq: u32::from(seq).wrapping_sub(64),
            ack: u32::from(seq & 0xf0).wrapping_sub(64),
            data_bytes: if flags & 32 != 0 { u32::from(length) } else { data.len() as u32 },
            data,
        };
        exchanges.take(ends, &segment, &mut |exchange| done.push(exchange));
    }
    exchanges.close(&mut |exchange| done.push(exchange));
    assert!(done.len() <= bytes.len() / 12, "a request has a line");
    for exchange in &done {
        assert!(exchange.method.len() <= 24 && exchange.target.first() == Some(&b'/'));
        assert!(exchange.size_bytes.is_none() || exchange.status.is_some());
        assert!(exchange.status.is_none_or(|status| status <= 999));
    }
}

/// A list of files: as many files as it has lines, at most.
fn files(bytes: &[u8]) {
    let Ok(table) = FileTable::read(bytes, 50) else { return };
    assert!(table.len() <= 50 && table.len() <= bytes.split(|&b| b == b'\n').count());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
