//! What is put into a spool comes back.

use super::*;

fn records(count: u64) -> Vec<Record> {
    (0..count)
        .map(|i| Record {
            time_ns: i / 3 * (NS_PER_S / 2),
            size_bytes: i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64),
            service_ns: if i % 5 == 0 { u64::MAX - i } else { 0 },
            target: (i % 7) as u32 * 600_000_000,
            client: (i % 3) as u32,
            class: (i % 2) as u16 * u16::MAX,
            kind: if i % 4 == 0 { RecordKind::Dynamic } else { RecordKind::Static },
            answer: [AnswerKind::Document, AnswerKind::NotModified, AnswerKind::Invalid]
                [(i % 11 % 3) as usize],
            http11: i % 13 < 2,
        })
        .collect()
}

/// One by one, and in batches of seven.
fn read(spool: Spool) -> Vec<Record> {
    let spool = Arc::new(spool);
    let mut cursor = SpoolCursor::new(Arc::clone(&spool));
    let single: Vec<Record> = std::iter::from_fn(|| cursor.next().unwrap()).collect();
    let (mut cursor, mut batched) = (SpoolCursor::new(spool), Vec::new());
    for _ in 0..=single.len() / 7 {
        cursor.take_batch(&mut batched, 7).unwrap();
    }
    assert_eq!(batched, single);
    single
}

fn spool(records: &[Record], memory_bytes: usize) -> Spool {
    let mut writer = SpoolWriter::new(memory_bytes);
    for record in records {
        writer.push(record).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn records_come_back_from_memory_and_from_disk() {
    let records = records(100_000);
    for memory_bytes in [0, CHUNK_BYTES * 2, 1 << 30] {
        let spool = spool(&records, memory_bytes);
        assert_eq!(spool.is_on_disk(), memory_bytes < 1 << 30);
        assert_eq!(spool.len(), 100_000);
        assert!(spool.chunks() > 4);
        let chunked: Vec<_> =
            (0..spool.chunks()).flat_map(|chunk| spool.chunk_records(chunk).unwrap()).collect();
        assert!(chunked == records);
        assert!(read(spool) == records);
    }
    assert!(read(spool(&[], 0)).is_empty());
}

#[test]
fn an_error_follows_the_records_before_it() {
    let records = records(100_000);
    let spool = spool(&records, 0);
    let SpoolStore::File(file) = &spool.store else { panic!("it is in memory") };
    file.set_len(spool.chunks[1].offset + 10).unwrap();
    let before = spool.chunk_records(0).unwrap().len();
    assert_ne!(before % 32, 0, "the error comes in the middle of a batch");
    let (mut cursor, mut batched) = (SpoolCursor::new(Arc::new(spool)), Vec::new());
    for _ in 0..before / 32 {
        cursor.take_batch(&mut batched, 32).unwrap();
    }
    assert!(matches!(cursor.take_batch(&mut batched, 32), Err(TraceError::Spool { .. })));
    assert!(batched == records[..before]);
}

#[test]
fn fields_tell_what_occurs() {
    let mut plain = records(1);
    plain[0] = Record { service_ns: 0, kind: RecordKind::Static, ..plain[0] };
    assert_eq!(spool(&plain, 0).fields(), RecordFields::default());
    let all = RecordFields { kind: true, class: true, service: true, client: true };
    assert_eq!(spool(&records(20), 0).fields(), all);
}
