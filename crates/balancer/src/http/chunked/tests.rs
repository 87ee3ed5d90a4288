use proptest::prelude::*;

use super::*;

/// Decodes `wire` in pieces cut at `cuts`; content, trailers and what was left over.
fn decode(wire: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, Vec<u8>, usize), BadChunk> {
    decode_by(Decoder::new(1024, 16), wire, cuts)
}

fn decode_by(
    mut decoder: Decoder,
    wire: &[u8],
    cuts: &[usize],
) -> Result<(Vec<u8>, Vec<u8>, usize), BadChunk> {
    let mut content = Vec::new();
    let mut used = 0;
    let ends = cuts.iter().map(|&c| c.min(wire.len())).chain([wire.len()]);
    for end in ends {
        if end < used {
            continue;
        }
        let mut piece = wire[used..end].to_vec();
        let step = decoder.decode(&mut piece)?;
        content.extend_from_slice(&piece[..step.content]);
        used += step.consumed;
        if step.done {
            return Ok((content, decoder.trailers(&[])?, wire.len() - used));
        }
    }
    Err(BadChunk("unfinished"))
}

#[test]
fn good_bodies() {
    let body = |wire: &str| decode(wire.as_bytes(), &[]).unwrap();
    assert_eq!(body("0\r\n\r\n").0, b"");
    assert_eq!(body("5\r\nhello\r\n0\r\n\r\nGET /"), (b"hello".to_vec(), vec![], 5));
    assert_eq!(body("3\r\nabc\r\nA\r\n0123456789\r\n0000\r\n\r\n").0, b"abc0123456789");
    assert_eq!(body("3;a;b=c ; d=\"x;\\\" y\"\r\nabc\r\n0;z\r\n\r\n").0, b"abc");
    assert_eq!(body("0\r\nX-Sum: 1\r\nDate: now\r\n\r\n").1, b"X-Sum: 1\r\n");
}

#[test]
fn bad_bodies() {
    let long_line = format!("1;a={}\r\nx\r\n0\r\n\r\n", "b".repeat(300));
    let many_extensions = format!("{}0\r\n\r\n", format!("1;a={}\r\nx\r\n", "b".repeat(200)).repeat(100));
    let long_trailers = format!("0\r\nX: {}\r\n\r\n", "y".repeat(2000));
    for bad in [
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "\r\n\r\n",
        "g\r\n",
        "-5\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "11111111111111111\r\n",
        "5;\r\nhello\r\n0\r\n\r\n",
        "5;a=\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b\r\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n",
        "5;a\0\r\nhello\r\n0\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n",
        "0\r\nTransfer-Encoding: x\r\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\n X: y\r\n\r\n",
        "0\r\nX\r\n\r\n",
        "0\r\nX: a\nY: b\r\n\r\n",
        "0\r\nHost: a\r\n\r\n",
        &long_line,
        &many_extensions,
        &long_trailers,
    ] {
        assert!(decode(bad.as_bytes(), &[]).is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn pieces_make_no_difference(
        chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..8),
        mut cuts in proptest::collection::vec(0usize..400, 0..12),
    ) {
        let mut wire = Vec::new();
        for chunk in &chunks {
            wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            wire.extend_from_slice(chunk);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(b"0\r\nX-A: b\r\n\r\n");
        cuts.sort_unstable();
        let (content, trailers, left) = decode(&wire, &cuts).unwrap();
        prop_assert_eq!(content, chunks.concat());
        prop_assert_eq!(trailers, b"X-A: b\r\n".to_vec());
        prop_assert_eq!(left, 0);
    }

    #[test]
    fn anything_ends_in_a_body_or_an_error(wire in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&wire, &[]);
    }
}

#[test]
fn what_back_ends_send_may_end_lines_in_line_feeds_and_have_blanks_behind_sizes() {
    let strict = "5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\nX-Sum: 1\r\n\r\nrest";
    let loose = [
        strict.replace("\r\n", "\n"),
        strict.replace("5\r\n", "5   \r\n").replace("0\r\n", "0\t \r\n"),
        strict.replace("5\r\n", "5;a=b \n"),
        strict.replace("hello\r\n", "hello\n"),
    ];
    let expected = (b"hello0123456789abcdef".to_vec(), b"X-Sum: 1\r\n".to_vec(), 4);
    for wire in loose {
        for cut in 0..wire.len() {
            let decoded = decode_by(Decoder::of_response(1024, 16), wire.as_bytes(), &[cut]);
            assert_eq!(decoded.as_ref(), Ok(&expected), "{wire:?} cut at {cut}");
        }
        assert!(decode(wire.as_bytes(), &[]).is_err(), "{wire:?} of a client");
    }
    for bad in
        ["5\rhello", "5\r\nhelloX", "5\nhello\rX", " 5\r\n", "5 5\n", "\n\n", "0\nContent-Length: 5\n\n"]
    {
        assert!(decode_by(Decoder::of_response(1024, 16), bad.as_bytes(), &[]).is_err(), "{bad:?}");
    }
}
