//! What an input is that is no text: archives and compressions that are not read, and text that does not look like it.

/// Says what the first bytes of an input are, and what to do; `None` for other bytes.
pub(crate) fn reason(first: &[u8]) -> Option<&'static str> {
    const TAR: usize = 257;
    let marks: &[(&[u8], &str)] = &[
        (b"BZh", "it is compressed with bzip2, which is not read; pipe it in with bzcat FILE | plimsoll … -"),
        (
            b"PK\x03\x04",
            "it is a ZIP archive, which is not read; pipe its files in with unzip -p FILE | plimsoll … -",
        ),
        (
            b"\x04\x22\x4d\x18",
            "it is compressed with LZ4, which is not read; pipe it in with lz4 -dc FILE | plimsoll … -",
        ),
        (
            b"\x1f\x9d",
            "it is compressed with compress, which is not read; pipe it in with zcat FILE | plimsoll … -",
        ),
        (
            b"7z\xbc\xaf\x27\x1c",
            "it is a 7z archive, which is not read; pipe its files in with 7z e -so FILE | plimsoll … -",
        ),
        (b"\x1f\x8b", "it is compressed twice; pipe it in with zcat FILE | plimsoll … -"),
        (b"\x28\xb5\x2f\xfd", "it is compressed twice; pipe it in with zstdcat FILE | plimsoll … -"),
        (b"\xfd7zXZ\0", "it is compressed twice; pipe it in with xzcat FILE | plimsoll … -"),
        (b"\xff\xfe", UTF_16),
        (b"\xfe\xff", UTF_16),
    ];
    if let Some((_, reason)) = marks.iter().find(|(mark, _)| first.starts_with(mark)) {
        return Some(reason);
    }
    if first.get(TAR..TAR + 5) == Some(b"ustar") {
        return Some(
            "it is a tar archive, which is not read; pipe its files in with tar -xOf FILE | plimsoll … -",
        );
    }
    let nuls = first.iter().filter(|&&byte| byte == 0).count();
    let rest = first.iter().filter(|&&byte| byte != 0);
    let text = rest.clone().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let hollow = first.starts_with(&[0; 512]) && first.iter().all(|&byte| byte == 0);
    (nuls > 0 && (hollow || (text && rest.count() > nuls / 64))).then_some(
        "it has NUL bytes, as a log does that was cut while its server had it open; pipe it in with \
         tr -d '\\000' < FILE | plimsoll … -",
    )
}

const UTF_16: &str = "it is text in UTF-16; pipe it in with iconv -f UTF-16 -t UTF-8 FILE | plimsoll … -";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_named_with_a_remedy() {
        let tar = [&b"access.log"[..], &[0; 247], b"ustar\0rest"].concat();
        let hollow = [&[0; 600][..], b"192.0.2.7 - - [\n"].concat();
        for (bytes, part) in [
            (&b"BZh91AY&SY"[..], "bzcat"),
            (b"PK\x03\x04\x14\0", "unzip -p"),
            (b"\x1f\x8b\x08\0", "compressed twice"),
            (b"\xff\xfeh\0i\0", "iconv"),
            (&tar, "tar -xOf"),
            (&hollow, "tr -d '\\000'"),
            (&[0; 4096], "tr -d"),
        ] {
            assert!(reason(bytes).is_some_and(|text| text.contains(part)), "{part}");
        }
        let junk: Vec<u8> = (0..5000u32).map(|i| (i * 7919 % 251) as u8).collect();
        assert_eq!(reason(&junk), None);
        assert_eq!(reason(b"\0\0\0\x01\0\0"), None);
        assert_eq!(reason(b""), None);
    }
}
