//! The other formats, compression, and several inputs.

use plimsoll_trace::{ReadOptions, RecordKind, TraceInput, TraceReader, formats, load};

use crate::helpers::{Scratch, gzip, listed, load_bytes, load_path, load_text, stamped, xz, zstd};

const S: u64 = 1_000_000_000;

#[test]
fn csv_takes_any_order_of_columns_and_quotes() {
    let trace = load_text(
        "client,size_bytes,\"target\",extra,time_s,kind,class,service_s\r\n\
         bob,10,\"/a,\"\"b\"\"\",x,1.000000001,static,7,\r\n\
         \r\n\
         ann,20,\"/two\nlines\",y,2.5,dynamic,,0.25\r\n\
         bob,30,/c,z,3,,65535,\r\n",
    )
    .unwrap();
    assert_eq!(trace.report.format, Some(formats::csv::FORMAT));
    assert!(!trace.report.times_spread);
    assert_eq!(
        listed(&trace),
        [
            (S + 1, "/a,\"b\"".to_owned(), 10),
            (2 * S + S / 2, "/two\nlines".to_owned(), 20),
            (3 * S, "/c".to_owned(), 30)
        ]
    );
    let records = stamped(&trace);
    let rest: Vec<_> = records.iter().map(|r| (r.client, r.kind, r.class, r.service_ns)).collect();
    assert_eq!(
        rest,
        [
            (0, RecordKind::Static, 7, 0),
            (1, RecordKind::Dynamic, 0, S / 4),
            (0, RecordKind::Static, 65535, 0)
        ]
    );
    assert_eq!((trace.report.lines, trace.report.clients), (3, 2));
}

#[test]
fn csv_rows_are_refused_with_line_and_reason() {
    let options = ReadOptions { max_bad_ratio: 1.0, ..ReadOptions::default() };
    let text = "time_s,target,size_bytes,kind,class,service_s\r\n\
                -1,/a,1\r\n\
                nan,/a,1\r\n\
                1,/a,-1\r\n\
                1,,1\r\n\
                1,/a\r\n\
                1,/a,1,fast\r\n\
                1,/a,1,,65536\r\n\
                1,/a,1,,,x\r\n\
                1,/a,1\r\n";
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!(trace.len(), 1);
    let reasons: Vec<_> = trace.report.rejections.iter().map(|r| (r.line, r.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (2, "time is negative"),
            (3, "time is not finite"),
            (4, "size is negative"),
            (5, "column target has no value"),
            (6, "column size_bytes has no value"),
            (7, "kind is neither static nor dynamic"),
            (8, "class is not a number from 0 to 65535"),
            (9, "service_s is not a number of seconds"),
        ]
    );
}

#[test]
fn a_quote_closed_rows_later_is_a_refused_row() {
    let options = ReadOptions { max_bad_ratio: 1.0, ..ReadOptions::default() };
    let text = "time_s,target,size_bytes\n1,\"/a,1\n2,/b,2\n3,\"/c\",3\n4,/d,4\n";
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!(listed(&trace), [(4 * S, "/d".to_owned(), 4)]);
    let [refused] = &trace.report.rejections[..] else { panic!("{:?}", trace.report.rejections) };
    assert_eq!(refused.line, 2);
    assert!(refused.reason.contains("its quote is not closed"), "{}", refused.reason);
}

#[test]
fn a_quote_never_closed_costs_a_record_not_the_file() {
    let mut text = "time_s,target,size_bytes\n1,\"/a,1\n".to_owned();
    for second in 2..20_000 {
        text.push_str(&format!("{second},/b,1\n"));
    }
    let trace = load_text(&text).unwrap();
    assert_eq!(trace.report.lines_rejected, 1);
    // The 64 KiB that the quote may swallow are less than 8,000 of these lines.
    assert!(trace.len() > 12_000, "{}", trace.len());
    assert_eq!(trace.report.rejections[0].line, 2);
    assert_eq!(listed(&trace).last().unwrap().0, 19_999 * S);
}

#[test]
fn time_id_size_takes_every_separator() {
    let trace = load_text("1 a 10\n2,b,20\n\n3\tc  30\n4.5, a, 5\n").unwrap();
    assert_eq!(trace.report.format, Some(formats::time_id_size::FORMAT));
    let sizes: Vec<_> = listed(&trace).into_iter().map(|r| (r.0, r.2)).collect();
    assert_eq!(sizes, [(S, 10), (2 * S, 20), (3 * S, 30), (4 * S + S / 2, 5)]);
    assert_eq!(trace.targets.document_size_bytes(0), 10);
    assert!(!trace.report.times_spread);
}

fn oracle(records: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time_s, object, size_bytes, next) in records {
        bytes.extend_from_slice(&time_s.to_le_bytes());
        bytes.extend_from_slice(&object.to_le_bytes());
        bytes.extend_from_slice(&size_bytes.to_le_bytes());
        bytes.extend_from_slice(&next.to_le_bytes());
    }
    bytes
}

#[test]
fn oracle_general_is_little_endian_and_packed() {
    let records = [(5, u64::MAX, 7, 2), (5, 1 << 40, 9, -1), (6, u64::MAX, u32::MAX, -1)];
    let trace = load_bytes(&oracle(&records), &ReadOptions::default()).unwrap();
    assert_eq!(trace.report.format, Some(formats::oracle::FORMAT));
    assert_eq!(
        listed(&trace),
        [
            (5 * S, u64::MAX.to_string(), 7),
            (5 * S, (1u64 << 40).to_string(), 9),
            (6 * S, u64::MAX.to_string(), u64::from(u32::MAX))
        ]
    );
}

#[test]
fn a_binary_record_cut_short_is_refused() {
    let mut bytes = oracle(&[(5, 1, 7, -1); 30]);
    bytes.truncate(bytes.len() - 5);
    let trace = load_bytes(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!(trace.len(), 29);
    let rejection = &trace.report.rejections[0];
    assert_eq!(rejection.line, 30);
    assert_eq!(rejection.reason, "record is cut short after 19 of 24 bytes");
}

/// World Cup records of (time, size, method, status byte, type).
fn world_cup(records: &[(u32, u32, u8, u8, u8)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(time_s, size, method, status, kind) in records {
        for word in [time_s, 3, 77, size] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.extend_from_slice(&[method, status, kind, 0x61]);
    }
    bytes
}

#[test]
fn world_cup_codes_are_understood() {
    const T: u32 = 898_700_000;
    let trace = load_bytes(
        &world_cup(&[
            (T, 100, 0, 0x42, 0),
            (T, u32::MAX, 0, 0x82, 0),
            (T + 1, 55, 1, 0x42, 6),
            (T + 1, u32::MAX, 0, 0x4d, 1),
            (T + 2, 30, 0, 0x48, 1),
            (T + 2, 9, 2, 0x42, 6),
            (T + 3, 8, 0, 0x53, 0),
            (T + 3, 8, 0, 0x65, 0),
        ]),
        &ReadOptions::default(),
    )
    .unwrap();
    assert_eq!(trace.report.format, Some(formats::worldcup::FORMAT));
    let sizes: Vec<u64> = stamped(&trace).iter().map(|r| r.size_bytes).collect();
    assert_eq!(sizes, [100, 0, 0, 0, 30]);
    assert_eq!(stamped(&trace)[2].kind, RecordKind::Dynamic);
    assert_eq!(trace.targets.name(0), b"77");
    assert_eq!(trace.targets.document_size_bytes(0), 100);
    let counts: Vec<_> = trace.report.not_counted.keys().map(String::as_str).collect();
    assert_eq!(counts, ["method POST", "status (other)", "status 404"]);
    assert!(trace.report.stamp_assumption.starts_with("completion"));
    let totals = trace.report.world_cup.unwrap().to_string();
    // 100 + 55 + 30 + 9 + 8 + 8 bytes: unknown sizes add nothing, and are no maximum.
    assert!(totals.contains("Total Bytes: 210\n"), "{totals}");
    assert!(totals.contains("Max Size: 100\n"), "{totals}");
    assert!(totals.contains("Min Size: 8\n"), "{totals}");
    assert!(totals.contains("Server 97: 8\n"), "{totals}");
}

#[test]
fn every_compression_serves_every_format() {
    let text = b"time_s,target,size_bytes\n1,/a,10\n2,/b,20\n".to_vec();
    let binary = oracle(&[(5, 1, 7, -1), (6, 2, 8, -1)]);
    for content in [text, binary] {
        let plain = load_bytes(&content, &ReadOptions::default()).unwrap();
        for packed in [gzip(&content), zstd(&content), xz(&content)] {
            let trace = load_bytes(&packed, &ReadOptions::default()).unwrap();
            assert_eq!(trace.report.format, plain.report.format);
            assert_eq!(listed(&trace), listed(&plain));
            assert_ne!(trace.report.sha256, plain.report.sha256);
        }
    }
}

#[test]
fn streams_of_several_members_are_read_to_the_end() {
    let (first, second) = (b"1 a 10\n2 b", b" 20\n3 c 30\n");
    for pack in [gzip, zstd, xz] {
        let both = [pack(first), pack(second)].concat();
        let trace = load_bytes(&both, &ReadOptions::default()).unwrap();
        assert_eq!(trace.len(), 3);
    }
}

#[test]
fn several_inputs_are_one_trace() {
    let scratch = Scratch::new();
    let first = scratch.file("1.gz", &gzip(b"1 a 10\n2 b 20\n"));
    let empty = scratch.file("2", b"");
    let second = scratch.file("3", b"3 a 10\n4 x\n");
    let inputs = [&first, &empty, &second].map(|path| TraceInput::File(path.clone()));
    let options = ReadOptions { max_bad_ratio: 0.5, ..ReadOptions::default() };
    let trace = load(&inputs, &options).unwrap();
    assert_eq!((trace.len(), trace.targets.len()), (3, 2));
    assert_eq!(trace.report.paths.len(), 3);
    // The number of the line in its own file.
    let rejection = &trace.report.rejections[0];
    assert_eq!((rejection.line, rejection.path.as_str()), (2, second.to_str().unwrap()));
    let whole =
        scratch.file("whole", &[std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap()].concat());
    let digest = load_path(&whole, &ReadOptions { format: Some(formats::time_id_size::FORMAT), ..options });
    // The same bytes end to end; as gzip with trailing rubbish they cannot be read themselves.
    assert!(digest.is_err());
    let limited = ReadOptions { limit: Some(1), ..ReadOptions::default() };
    let limited = load(&inputs, &limited).unwrap();
    assert_eq!(limited.report.sha256, trace.report.sha256);
}

#[test]
fn a_spool_on_disk_gives_the_same_records() {
    let text: String = (0..200_000).map(|i| format!("{} {} {}\n", i / 7, i % 1000, i)).collect();
    let in_memory = load_text(&text).unwrap();
    let options = ReadOptions { spool_memory_bytes: 0, ..ReadOptions::default() };
    let on_disk = load_bytes(text.as_bytes(), &options).unwrap();
    assert!(stamped(&in_memory) == stamped(&on_disk));
    let spread = |t: &plimsoll_trace::Trace| -> Vec<_> { t.open().unwrap().map(Result::unwrap).collect() };
    assert!(spread(&in_memory) == spread(&on_disk));
    let other_seed = ReadOptions { seed: 2, ..ReadOptions::default() };
    assert!(spread(&load_bytes(text.as_bytes(), &other_seed).unwrap()) != spread(&on_disk));
}

#[test]
fn lines_of_any_length_cost_no_memory() {
    let mut text = "1 a 10\n".repeat(30);
    text.push_str(&"x".repeat(1 << 20));
    text.push_str("\n2 b 20\n");
    text.push_str(&"y".repeat(1 << 20));
    let options = ReadOptions { max_bad_ratio: 0.1, ..ReadOptions::default() };
    let trace = load_bytes(text.as_bytes(), &options).unwrap();
    assert_eq!((trace.len(), trace.report.lines_rejected), (31, 2));
    let rejected: Vec<u64> = trace.report.rejections.iter().map(|r| r.line).collect();
    assert_eq!(rejected, [31, 33]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_header() {
    let trace = load_text("\u{feff}time_s,target,size_bytes\n1,/a,10\n").unwrap();
    assert_eq!(trace.report.format, Some(formats::csv::FORMAT));
    assert_eq!(trace.len(), 1);
}

#[test]
fn a_reader_streams_and_ends_with_its_verdict() {
    let scratch = Scratch::new();
    let path = scratch.file("s", b"2 a 10\nbad\n1 b 20\n");
    let mut reader = TraceReader::new(&[TraceInput::File(path)], &ReadOptions::default());
    let first = reader.next().unwrap().unwrap();
    assert_eq!((first.time_ns, first.target), (S, 1));
    assert_eq!(reader.next().unwrap().unwrap().time_ns, 2 * S);
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("1 of 3 lines"), "{error}");
    assert!(reader.next().is_none());
    assert!(reader.whole_seconds());
    assert_eq!(reader.targets().name(0), b"a");
}
