//! What a response tells of the back-end's cache: `Cache-Status` (RFC 9211), `X-Cache-Status`, `X-Cache`, or `Age` (RFC 9111).
//!
//! Caches on the way add themselves at the end of a list, so the last member is the back-end's, also over several lines. These tell
//! nothing: what may not be stored, was revalidated or had expired, and what waited for another request's read.

/// What the clearest of the fields so far tells: whether the back-end had the content in its cache, or nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ToldHit(Option<(CacheField, Option<bool>)>);

/// The fields, from the vaguest to the clearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CacheField {
    Age,
    XCache,
    XCacheStatus,
    CacheStatus,
}

impl CacheField {
    fn of(name: &str) -> Option<Self> {
        let (known, field) = match name.len() {
            3 => ("age", Self::Age),
            7 => ("x-cache", Self::XCache),
            12 => ("cache-status", Self::CacheStatus),
            14 => ("x-cache-status", Self::XCacheStatus),
            _ => return None,
        };
        name.eq_ignore_ascii_case(known).then_some(field)
    }

    fn read(self, value: &[u8]) -> Option<bool> {
        match self {
            // Some caches send an age of 0 with what they have just fetched.
            Self::Age => {
                let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                (is_number && value.iter().any(|&digit| digit != b'0')).then_some(true)
            }
            Self::XCache | Self::XCacheStatus => by_word(value),
            Self::CacheStatus => by_parameters(value),
        }
    }
}

impl ToldHit {
    /// Whether it was a hit, where a field tells.
    pub(crate) fn get(self) -> Option<bool> {
        self.0.and_then(|(_, hit)| hit)
    }

    /// Looks at a further field of the response.
    #[inline]
    pub(crate) fn add(&mut self, name: &str, value: &[u8]) {
        if let Some(field) = CacheField::of(name)
            && self.0.is_none_or(|(by, _)| field >= by)
            // A list without members says nothing (RFC 9110, section 5.6.1).
            && value.iter().any(|byte| !b" \t,".contains(byte))
        {
            self.0 = Some((field, field.read(value)));
        }
    }
}

/// `HIT`, `Hit from cloudfront`, `TCP_MEM_HIT`, `MISS from a`: the first word of the last member of the list.
fn by_word(value: &[u8]) -> Option<bool> {
    let mut members = value.rsplit(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let last = members.find(|member| !member.is_empty())?;
    let word = last.split(|byte| byte.is_ascii_whitespace() || b";:/".contains(byte)).next()?;
    let is_one_of = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    // Varnish's and nginx's names, and Squid's (`TCP_` before, in its newer versions also what the hit was in).
    if is_one_of(&["hit", "stale", "updating", "tcp_hit", "tcp_mem_hit", "tcp_imshit", "tcp_ims_hit"]) {
        return Some(true);
    }
    is_one_of(&["miss", "tcp_miss"]).then_some(false)
}

/// `OneCache; hit; ttl=30` or `TwoCache; fwd=uri-miss; stored`: the parameters of the last member of the list, in any order.
fn by_parameters(value: &[u8]) -> Option<bool> {
    let mut told = MemberParameters::default();
    for (part, starts_member) in parts(value) {
        // Empty members count for nothing (RFC 9110, section 5.6.1).
        if starts_member && !part.is_empty() {
            told = MemberParameters::default();
        } else {
            told.add(part);
        }
    }
    told.get()
}

/// What the parameters of a member of `Cache-Status` tell.
#[derive(Default)]
struct MemberParameters {
    hit: bool,
    missed: bool,
    /// It waited for another request's read, or had the content, which was still good.
    not_read: bool,
}

impl MemberParameters {
    fn add(&mut self, part: &[u8]) {
        let (name, value) = match part.iter().position(|&byte| byte == b'=') {
            Some(at) => (&part[..at], Some(&part[at + 1..])),
            None => (part, None),
        };
        match (name, value) {
            (b"hit", None | Some(b"?1")) => self.hit = true,
            (b"fwd", Some(b"miss" | b"uri-miss" | b"vary-miss" | b"partial")) => self.missed = true,
            (b"fwd-status", Some(b"304")) | (b"collapsed", None | Some(b"?1")) => self.not_read = true,
            _ => {}
        }
    }

    fn get(&self) -> Option<bool> {
        if self.hit { Some(true) } else { (self.missed && !self.not_read).then_some(false) }
    }
}

/// The parts of a list of items with parameters, without spaces around them, and whether each begins a member. Neither commas nor
/// semicolons count in quoted strings.
fn parts(value: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    let mut rest = Some((value, true));
    std::iter::from_fn(move || {
        let (bytes, starts_member) = rest?;
        let (mut is_quoted, mut is_escaped) = (false, false);
        let end = bytes.iter().position(|&byte| {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_quoted => is_escaped = true,
                b'"' => is_quoted = !is_quoted,
                b',' | b';' => return !is_quoted,
                _ => {}
            }
            false
        });
        let part = &bytes[..end.unwrap_or(bytes.len())];
        rest = end.map(|at| (&bytes[at + 1..], bytes[at] == b','));
        Some((part.trim_ascii(), starts_member))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(fields: &[(&str, &str)]) -> Option<bool> {
        let mut told = ToldHit::default();
        fields.iter().for_each(|(name, value)| told.add(name, value.as_bytes()));
        told.get()
    }

    #[test]
    fn words_of_usual_caches() {
        for (value, expected) in [
            ("hit", Some(true)),
            ("HIT from cache.example", Some(true)),
            ("Hit from cloudfront", Some(true)),
            ("TCP_MEM_HIT", Some(true)),
            ("STALE", Some(true)),
            ("MISS, HIT", Some(true)),
            ("HIT, MISS", Some(false)),
            ("Miss from cloudfront", Some(false)),
            ("TCP_MISS", Some(false)),
            ("EXPIRED", None),
            ("TCP_CLIENT_REFRESH_MISS", None),
            ("TCP_HIT/200", Some(true)),
            ("hit:3", Some(true)),
            ("HIT, ", Some(true)),
            ("NOHIT", None),
            ("TCP_REMOTE_HIT", None),
            ("REVALIDATED", None),
            ("RefreshHit from cloudfront", None),
            ("TCP_REFRESH_UNMODIFIED", None),
            ("BYPASS", None),
            ("white", None),
            ("", None),
            (",", None),
        ] {
            assert_eq!(told(&[("X-Cache", value)]), expected, "{value}");
            assert_eq!(told(&[("x-cache-status", value)]), expected, "{value}");
        }
    }

    #[test]
    fn parameters_of_rfc_9211() {
        for (value, expected) in [
            ("ExampleCache; hit", Some(true)),
            ("ExampleCache;hit;ttl=-4", Some(true)),
            ("ExampleCache; hit=?0", None),
            ("ExampleCache; fwd=uri-miss; stored", Some(false)),
            ("ExampleCache; fwd=stale; fwd-status=304", None),
            ("ExampleCache; fwd=stale", None),
            ("ExampleCache; fwd-status=304; fwd=miss", None),
            ("ExampleCache; fwd=miss; fwd-status=304", None),
            ("ExampleCache; fwd=uri-miss; collapsed", None),
            ("ExampleCache; hit, ", Some(true)),
            ("ExampleCache; fwd=bypass", None),
            ("Origin; hit, Edge; fwd=miss", Some(false)),
            ("Origin; fwd=miss, Edge; hit", Some(true)),
            ("A; fwd=miss; detail=\"x, B; hit\"", Some(false)),
            ("A; detail=\"\\\"; hit\"", None),
            ("hit", None),
            ("A; hit, B", None),
        ] {
            assert_eq!(told(&[("Cache-Status", value)]), expected, "{value}");
        }
    }

    #[test]
    fn the_clearest_field_counts() {
        assert_eq!(told(&[("Age", "30"), ("X-Cache", "MISS")]), Some(false));
        assert_eq!(told(&[("X-Cache", "MISS"), ("Age", "30")]), Some(false));
        assert_eq!(told(&[("Cache-Status", "a; hit"), ("X-Cache", "MISS")]), Some(true));
        assert_eq!(told(&[("X-Cache", "HIT"), ("X-Cache", "MISS")]), Some(false), "the later one of a list");
        assert_eq!(told(&[("X-Cache", "HIT"), ("X-Cache", ", ")]), Some(true), "the later one is empty");
        assert_eq!(told(&[("Age", "1"), ("X-Cache", "BYPASS")]), None);
        assert_eq!(told(&[("X-Cache", "BYPASS"), ("Age", "1")]), None);
        assert_eq!(
            told(&[("X-Cache", "HIT"), ("X-Cache", "BYPASS")]),
            None,
            "the back-end's own tells nothing"
        );
        assert_eq!(told(&[("Cache-Status", "Origin; hit"), ("Cache-Status", "Edge; fwd=bypass")]), None);
        for (age, expected) in
            [("0", None), ("00", None), ("", None), ("x", None), ("-1", None), ("20", Some(true))]
        {
            assert_eq!(told(&[("age", age)]), expected, "{age}");
        }
        assert_eq!(told(&[("X-Cached", "HIT"), ("Date", "now")]), None);
    }
}
