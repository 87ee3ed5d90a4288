//! Statistics of the real traces.
//!
//! The figures of the real traces come from a Python script that shares no code with Plimsoll: it takes the lines apart
//! with a regular expression (access logs; the target is everything between the method and ` HTTP/`),
//! `struct.unpack('>IIIIBBBB')` (World Cup), `csv.DictReader` or `split`; counts GET and HEAD with status 200, 206 and
//! 304; takes the size of HEAD, 304, `-` and an unknown size as 0; takes as the size of a document the largest body
//! sent with status 200, else the largest body; and sums documents by falling `Counter` until 97, 98 and 99 % of the
//! requests are reached.

use super::{counts, real_trace, stats};

struct Expected {
    file: &'static str,
    format: &'static str,
    requests: u64,
    targets: u64,
    sent_bytes: u64,
    documents_bytes: u64,
    request_max_bytes: u64,
    request_median_bytes: f64,
    document_median_bytes: f64,
    top: (&'static str, u64),
    coverage_bytes: [u64; 3],
    duration_s: f64,
}

const REAL: [Expected; 5] = [
    Expected {
        file: "nasa_1995_excerpt.log.gz",
        format: "common-log",
        requests: 6_845,
        targets: 772,
        sent_bytes: 126_107_453,
        documents_bytes: 39_468_543,
        request_max_bytes: 1_269_716,
        request_median_bytes: 3_938.0,
        document_median_bytes: 8_195.5,
        top: ("/images/NASA-logosmall.gif", 395),
        coverage_bytes: [30_706_120, 34_222_840, 37_191_606],
        duration_s: 2_381_544.0,
    },
    Expected {
        file: "apache_combined_2015.log.gz",
        format: "combined-log",
        requests: 9_614,
        targets: 1_389,
        sent_bytes: 2_746_940_015,
        documents_bytes: 561_277_715,
        request_max_bytes: 69_192_717,
        request_median_bytes: 11_244.5,
        document_median_bytes: 10_282.0,
        top: ("/favicon.ico", 807),
        coverage_bytes: [454_032_891, 483_365_551, 525_841_260],
        duration_s: 298_859.0,
    },
    Expected {
        file: "cran_mirror_2012.csv.gz",
        format: "csv",
        requests: 80_431,
        targets: 17_334,
        sent_bytes: 65_276_814_885,
        documents_bytes: 13_304_327_373,
        request_max_bytes: 70_524_242,
        request_median_bytes: 241_169.0,
        document_median_bytes: 192_529.0,
        top: ("/src/contrib/plyr_1.8.tar.gz", 624),
        coverage_bytes: [11_513_745_925, 12_069_057_583, 12_859_611_784],
        duration_s: 7_602_328.0,
    },
    Expected {
        file: "cdn_time_id_size.tr.gz",
        format: "time-id-size",
        requests: 66_987,
        targets: 36_815,
        sent_bytes: 485_457_552,
        documents_bytes: 280_431_244,
        request_max_bytes: 4_092_928,
        request_median_bytes: 2_416.0,
        document_median_bytes: 2_741.0,
        top: ("134", 1_031),
        coverage_bytes: [260_078_865, 269_568_952, 274_555_136],
        duration_s: 66_986.0,
    },
    Expected {
        file: "worldcup98_test_log.gz",
        format: "worldcup98",
        requests: 1_000,
        targets: 410,
        sent_bytes: 5_410_216,
        documents_bytes: 1_626_894,
        request_max_bytes: 60_349,
        request_median_bytes: 934.0,
        document_median_bytes: 935.5,
        top: ("3208", 99),
        coverage_bytes: [1_513_152, 1_547_665, 1_620_346],
        duration_s: 1_838.0,
    },
];

#[test]
fn stats_of_real_traces() {
    for expected in &REAL {
        let Some(path) = real_trace(expected.file) else {
            return;
        };
        let found = stats(&path);
        assert_eq!(found["format"], expected.format);
        assert_eq!(found["trace"]["path"], path.as_str());
        assert_eq!(found["trace"]["sha256"].as_str().unwrap().len(), 64);
        for (key, value) in [
            ("requests", expected.requests),
            ("targets", expected.targets),
            ("sent_bytes", expected.sent_bytes),
            ("documents_bytes", expected.documents_bytes),
            ("request_max_bytes", expected.request_max_bytes),
            ("lines_rejected", 0),
        ] {
            assert_eq!(found[key], value, "{key} of {}", expected.file);
        }
        for (key, value) in [
            ("request_median_bytes", expected.request_median_bytes),
            ("document_median_bytes", expected.document_median_bytes),
            ("duration_s", expected.duration_s),
            ("top_share", expected.top.1 as f64 / expected.requests as f64),
        ] {
            // Read back from JSON, the last bit may differ.
            let found = found[key].as_f64().unwrap();
            assert!((found - value).abs() <= 1e-12 * value, "{key} of {}: {found}", expected.file);
        }
        assert_eq!(found["top_target"], expected.top.0);
        let coverage: Vec<_> = found["coverage"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["bytes"].as_u64().unwrap())
            .collect();
        assert_eq!(coverage, expected.coverage_bytes, "{}", expected.file);
        for bins in ["request_sizes", "document_sizes"] {
            let sum: u64 = counts(&found[bins], |bin| &bin["count"]).sum();
            let all = if bins == "request_sizes" { "requests" } else { "targets" };
            assert_eq!(found[all], sum, "{bins} of {}", expected.file);
        }
        let arrivals: u64 = counts(&found["arrivals"]["requests"], |bin| bin).sum();
        assert_eq!(arrivals, expected.requests);
    }
}
