//! The syntax of `Host` and of an authority (RFC 9110, section 7.2; RFC 3986, section 3.2).

/// Whether `value` is a host, an optional port, and nothing else: no user information, no white space, not empty.
pub(crate) fn is_valid(value: &[u8]) -> bool {
    let (host, port) = match value {
        [b'[', rest @ ..] => {
            let Some(end) = memchr::memchr(b']', rest) else {
                return false;
            };
            let literal =
                std::str::from_utf8(&rest[..end]).ok().and_then(|s| s.parse::<std::net::Ipv6Addr>().ok());
            if literal.is_none() {
                return false;
            }
            (&rest[..end], &rest[end + 1..])
        }
        _ => {
            let end = memchr::memchr(b':', value).unwrap_or(value.len());
            if !value[..end].iter().all(|&b| is_name_byte(b)) {
                return false;
            }
            (&value[..end], &value[end..])
        }
    };
    let port_ok = match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    !host.is_empty() && port_ok
}

/// A `reg-name` byte of RFC 3986, section 3.2.2, without percent-encoding, which no host that is looked up contains.
fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~!$&'()*+;=".contains(&b)
}

/// A host without the port that may stand behind it.
pub(crate) fn without_port(host: &[u8]) -> &[u8] {
    let behind = host.iter().rposition(|&b| b == b']').map_or(0, |at| at + 1);
    let colon = host[behind..].iter().position(|&b| b == b':');
    colon.map_or(host, |at| &host[..behind + at])
}

/// Whether two authorities of `http` name the same place: hosts in any case, port 80 when there is none.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let plain = |v: &'_ [u8]| -> Vec<u8> {
        let v = v.strip_suffix(b":80").or_else(|| v.strip_suffix(b":")).unwrap_or(v);
        v.to_ascii_lowercase()
    };
    plain(a) == plain(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for good in ["a", "example.org", "example.org:8080", "127.0.0.1:1", "[::1]", "[::1]:80", "a_b", "a:"]
        {
            assert!(is_valid(good.as_bytes()), "{good}");
        }
        for bad in
            ["", ":80", "a b", "a,b", "u@a", "a/b", "[::1", "[zz]", "a:80:80", "a:8a", "a:123456", "a?b", "ä"]
        {
            assert!(!is_valid(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn the_default_port_goes_without_saying() {
        assert!(same(b"Example.org", b"example.ORG:80"));
        assert!(!same(b"example.org", b"example.org:8080"));
        assert!(!same(b"a", b"b"));
    }
}
