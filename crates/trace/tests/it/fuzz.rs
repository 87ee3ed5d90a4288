//! Random, truncated and damaged bytes never make a reader panic.

use std::sync::OnceLock;

use plimsoll_trace::{Format, Include, ReadOptions, TraceStats, convert, format_of_output, formats};
use proptest::prelude::*;

use crate::helpers::{Scratch, gzip, load_bytes, load_path, xz, zstd};

const LOG: &str = "h - u [01/Jul/1995:00:00:01 -0400] \"GET /a%7e?b#c HTTP/1.0\" 200 6245 \"-\" \"M\"\n\
                   g - - [01/Jul/1995:00:00:09 -0400] \"HEAD http://h/x \\\" HTTP/1.1\" 304 -\n";

/// Valid files of every format, some compressed.
fn samples() -> &'static [Vec<u8>] {
    static SAMPLES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let scratch = Scratch::new();
        let mut csv = "time_s,target,size_bytes,kind,class,service_s,client\n".to_owned();
        for i in 0..200 {
            csv.push_str(&format!("{}.5,\"/t{}\",{i},dynamic,3,0.25,c{}\n", i / 3, i * i % 17, i % 5));
        }
        let trace = load_path(&scratch.file("s", csv.as_bytes()), &ReadOptions::default()).unwrap();
        let mut samples = vec![csv.into_bytes(), LOG.repeat(50).into_bytes()];
        for name in ["a.parquet", "a.tr", "a.oracleGeneral"] {
            let path = scratch.path(name);
            convert(&trace, format_of_output(&path).unwrap(), &path).unwrap();
            samples.push(std::fs::read(path).unwrap());
        }
        let mut world_cup = Vec::new();
        for i in 0..100u32 {
            for word in [898_700_000 + i, i % 9, i * i % 31, i * 100] {
                world_cup.extend_from_slice(&word.to_be_bytes());
            }
            world_cup.extend_from_slice(&[0, 0x42, 1, 0x60]);
        }
        samples.push(world_cup);
        let logs = formats::FORMATS.iter().filter(|spec| !spec.sample.is_empty());
        samples.extend(logs.map(|spec| format!("{}\n", spec.sample).repeat(5).into_bytes()));
        let packed: Vec<_> =
            samples.iter().flat_map(|sample| [gzip(sample), zstd(sample), xz(sample)]).collect();
        samples.extend(packed);
        samples
    })
}

/// Reads the bytes as every format and as none; whatever loads must also iterate and describe itself.
fn read_every_way(bytes: &[u8]) {
    let formats: Vec<_> = Format::all().map(Some).collect();
    for format in formats.into_iter().chain([None]) {
        let options =
            ReadOptions { format, max_bad_ratio: 1.0, include: Include::All, ..ReadOptions::default() };
        match load_bytes(bytes, &options) {
            Ok(trace) => {
                let records = trace.open().unwrap().map(Result::unwrap);
                assert_eq!(records.count() as u64, trace.len());
                assert_eq!(TraceStats::of(&trace).unwrap().requests, trace.len());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        read_every_way(&bytes);
    }

    #[test]
    fn random_text(text in "[ -~\\t\\r\\n\"\\[\\]]{0,400}") {
        read_every_way(text.as_bytes());
    }

    #[test]
    fn magic_and_rubbish(magic in 0usize..5, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let magics: [&[u8]; 5] = [
            &[0x1f, 0x8b, 8, 0],
            &[0x28, 0xb5, 0x2f, 0xfd],
            &[0xfd, b'7', b'z', b'X', b'Z', 0],
            b"PAR1",
            &[0x52, 0x2a, 0x4d, 0x18],
        ];
        let mut whole = magics[magic].to_vec();
        whole.extend_from_slice(&bytes);
        whole.extend_from_slice(magics[magic]);
        read_every_way(&whole);
    }

    #[test]
    fn truncated_files(sample in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        let sample = sample.get(samples());
        read_every_way(&sample[..cut.index(sample.len())]);
    }

    #[test]
    fn flipped_bits(
        sample in any::<prop::sample::Index>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..6),
    ) {
        let mut sample = sample.get(samples()).clone();
        for (place, bit) in flips {
            let place = place.index(sample.len());
            sample[place] ^= 1 << bit;
        }
        read_every_way(&sample);
    }
}

/// Parquet is the one format whose reader is not ours: every byte of a small file is damaged once.
#[test]
fn parquet_with_any_byte_damaged() {
    let parquet = &samples()[2];
    assert!(parquet.starts_with(b"PAR1"));
    for place in 0..parquet.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut damaged = parquet.clone();
            damaged[place] ^= mask;
            let options = ReadOptions {
                format: Some(formats::parquet::FORMAT),
                max_bad_ratio: 1.0,
                ..ReadOptions::default()
            };
            if let Err(error) = load_bytes(&damaged, &options) {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
}
