//! Content codings of clients: which one a client gets.

use plimsoll_config::ContentCoding;

use super::fields::{list, trim};

/// How much somebody wants a coding, in thousandths (RFC 9110, section 12.4.2); none where it is no weight.
fn weight(text: &[u8]) -> Option<u16> {
    let (whole, rest) = match text {
        [b'0', rest @ ..] => (0, rest),
        [b'1', rest @ ..] => (1000, rest),
        _ => return None,
    };
    let digits = match rest {
        [] => rest,
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    let mut thousandths = 0;
    for at in 0..3 {
        let digit = digits.get(at).copied().unwrap_or(b'0');
        thousandths = 10 * thousandths + u16::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    Some(whole + thousandths).filter(|&weight| weight <= 1000)
}

/// What a client says of codings, in thousandths, as far as it says something of them.
#[derive(Default)]
struct Wishes {
    zstd: Option<u16>,
    gzip: Option<u16>,
    /// None at all.
    identity: Option<u16>,
    others: Option<u16>,
}

impl Wishes {
    /// Takes a value of `Accept-Encoding`. What is said twice counts by its least weight, and what is no weight is 0.
    fn take(&mut self, value: &[u8]) {
        for member in list(value) {
            let mut parts = member.split(|&b| b == b';').map(trim);
            let name = parts.next().unwrap_or_default();
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            let wish = match name {
                b"*" => &mut self.others,
                _ if is("zstd") => &mut self.zstd,
                // RFC 9110, section 8.4.1.3.
                _ if is("gzip") || is("x-gzip") => &mut self.gzip,
                _ if is("identity") => &mut self.identity,
                _ => continue,
            };
            let given = parts.next().map_or(1000, |parameter| {
                let value =
                    parameter.get(..2).filter(|q| q.eq_ignore_ascii_case(b"q=")).map(|_| &parameter[2..]);
                value.and_then(weight).unwrap_or(0)
            });
            *wish = Some(wish.map_or(given, |earlier| earlier.min(given)));
        }
    }

    /// Of the codings that it wants most, and not less than none at all, the first that is offered.
    fn best(&self, offered: &[ContentCoding]) -> Option<ContentCoding> {
        let wish = |coding: ContentCoding| {
            let said = match coding {
                ContentCoding::Zstd => self.zstd,
                ContentCoding::Gzip => self.gzip,
            };
            said.or(self.others).unwrap_or(0)
        };
        let mut best = None;
        for &coding in offered {
            if wish(coding) > best.map_or(0, wish) {
                best = Some(coding);
            }
        }
        best.filter(|&best| self.identity.is_none_or(|identity| wish(best) >= identity))
    }
}

/// The coding for the client of a request with these fields, of those that are offered; none where it asks that nothing is changed
/// on the way.
pub(crate) fn accepted(fields: &[httparse::Header<'_>], offered: &[ContentCoding]) -> Option<ContentCoding> {
    let mut wishes = Wishes::default();
    for field in fields {
        match field.name.len() {
            15 if field.name.eq_ignore_ascii_case("accept-encoding") => wishes.take(field.value),
            13 if field.name.eq_ignore_ascii_case("cache-control") && has(field.value, "no-transform") => {
                return None;
            }
            _ => {}
        }
    }
    wishes.best(offered)
}

/// Whether this list has this member.
pub(super) fn has(value: &[u8], member: &str) -> bool {
    list(value).any(|one| one.eq_ignore_ascii_case(member.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(named: &'a [(&'a str, &'a str)]) -> Vec<httparse::Header<'a>> {
        named.iter().map(|&(name, value)| httparse::Header { name, value: value.as_bytes() }).collect()
    }

    #[test]
    fn clients_get_what_they_like_best() {
        let of = |value: &str| accepted(&fields(&[("Accept-Encoding", value)]), &ContentCoding::ALL);
        let (zstd, gzip) = (Some(ContentCoding::Zstd), Some(ContentCoding::Gzip));
        for (value, expected) in [
            ("gzip, deflate, br", gzip),
            ("gzip, deflate, br, zstd", zstd),
            ("GZIP;Q=0.5, zstd;q=0.4", gzip),
            ("gzip ; q=0.5 , zstd;q=0.5", zstd),
            ("zstd;q=0, *", gzip),
            ("*", zstd),
            ("*;q=0", None),
            ("*;q=0, gzip;q=1", gzip),
            ("gzip;q=0", None),
            ("gzip;q=0.000", None),
            ("gzip;q=0.001", gzip),
            ("gzip;q=0, gzip", None),
            ("x-gzip", gzip),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip;q=0.5", gzip),
            ("identity;q=0, gzip;q=0.1", gzip),
            ("gzip;q=1.000", gzip),
            ("gzip;q=1.", gzip),
            ("gzip;q=2", None),
            ("gzip;q=1.001", None),
            ("gzip;q=0.1234", None),
            ("gzip;q=.5", None),
            ("gzip;q=", None),
            ("gzip;level=3", None),
            ("gzipped, br", None),
            ("", None),
        ] {
            assert_eq!(of(value), expected, "{value}");
        }
        let of = |named: &[(&str, &str)]| accepted(&fields(named), &ContentCoding::ALL);
        assert_eq!(of(&[("accept-encoding", "br"), ("Accept-Encoding", "gzip")]), gzip);
        assert_eq!(of(&[("accept-encoding", "gzip"), ("Cache-Control", "no-cache, no-transform")]), None);
        assert_eq!(of(&[]), None);
        assert_eq!(accepted(&fields(&[("Accept-Encoding", "zstd, gzip")]), &[ContentCoding::Gzip]), gzip);
    }
}
