//! Fields that matter to an intermediary.

use plimsoll_config::FieldEdit;

/// What a field means to the front-end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// Nothing: it is passed on as it is.
    Other,
    Host,
    ContentLength,
    TransferEncoding,
    Connection,
    /// Belongs to one connection whatever `Connection` says (RFC 9110, section 7.6.1).
    HopByHop,
    Expect,
    Via,
    MaxForwards,
    ForwardedFor,
    ForwardedProto,
    ForwardedHost,
    /// RFC 7239: says what the three above say.
    Forwarded,
    /// Another field by which proxies tell about a client's connection: see [`FORWARDING`].
    ForwardedOther,
    /// A field that says who a client is, by its certificate: see [`CLIENT_CERTIFICATE`].
    ClientCertificate,
    /// One of these fields written with other signs than dashes, which many back-ends cannot tell apart.
    ForwardedLookalike,
    Cookie,
    Referer,
    UserAgent,
    Date,
}

/// The most fields that a head can be configured to have.
pub(crate) const MOST_FIELDS: usize = 256;

/// What each field of a message means, by its place.
pub(crate) type FieldKinds = [Field; MOST_FIELDS];

/// Of a message that was not looked at yet.
pub(crate) const NO_KINDS: FieldKinds = [Field::Other; MOST_FIELDS];

/// The meaning of the field called `name`, in any case.
pub(crate) fn classify(name: &str) -> Field {
    match classify_common(name) {
        Field::Other if is_forwarding(name) => {}
        kind => return kind,
    }
    if name.bytes().any(|b| b != b'-' && !b.is_ascii_alphanumeric()) {
        Field::ForwardedLookalike
    } else if CLIENT_CERTIFICATE.into_iter().any(|known| name.eq_ignore_ascii_case(known)) {
        Field::ClientCertificate
    } else {
        Field::ForwardedOther
    }
}

/// The same for messages in which names that only [`is_forwarding`] knows mean nothing, as in responses: they are [`Field::Other`].
pub(crate) fn classify_common(name: &str) -> Field {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    match name.len() {
        2 if is("te") => Field::HopByHop,
        3 if is("via") => Field::Via,
        4 if is("host") => Field::Host,
        4 if is("date") => Field::Date,
        6 if is("cookie") => Field::Cookie,
        6 if is("expect") => Field::Expect,
        7 if is("upgrade") => Field::HopByHop,
        7 if is("referer") => Field::Referer,
        9 if is("forwarded") => Field::Forwarded,
        10 if is("connection") => Field::Connection,
        10 if is("keep-alive") => Field::HopByHop,
        10 if is("user-agent") => Field::UserAgent,
        12 if is("max-forwards") => Field::MaxForwards,
        14 if is("content-length") => Field::ContentLength,
        15 if is("x-forwarded-for") => Field::ForwardedFor,
        16 if is("proxy-connection") => Field::HopByHop,
        16 if is("x-forwarded-host") => Field::ForwardedHost,
        17 if is("transfer-encoding") => Field::TransferEncoding,
        17 if is("x-forwarded-proto") => Field::ForwardedProto,
        _ => Field::Other,
    }
}

/// Fields by which proxies tell back-ends about a client or its request: all that begin with `x-forwarded`,
/// `x-original-forwarded` or `x-envoy-external-`, and these. What a stranger sends of them is not passed on, also where another
/// sign stands for a dash; those that are ours are written anew.
const FORWARDING: [&str; 20] = [
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-scheme",
    "x-url-scheme",
    "x-rewrite-url",
    "x-original-url",
    "x-original-uri",
    "x-original-host",
    "x-original-for",
    "x-original-method",
    "x-original-proto",
    "true-client-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "fastly-client-ip",
    "front-end-https",
    "x-ms-forwarded-client-cert",
    "x-appengine-user-ip",
];
/// Those of RFC 9440, and ours.
const CLIENT_CERTIFICATE: [&str; 3] = ["client-cert", "client-cert-chain", "x-client-cert-subject"];
const FORWARDING_PREFIXES: [&str; 3] = ["x-forwarded", "x-original-forwarded", "x-envoy-external-"];

fn is_forwarding(name: &str) -> bool {
    let dashed = || name.bytes().map(as_variable);
    let same = |known: &str| name.len() == known.len() && dashed().eq(known.bytes());
    let begins = |prefix: &str| name.len() >= prefix.len() && dashed().take(prefix.len()).eq(prefix.bytes());
    may_be_forwarding(name.as_bytes())
        && (FORWARDING.into_iter().chain(CLIENT_CERTIFICATE).any(same)
            || FORWARDING_PREFIXES.into_iter().any(begins))
}

/// What a sign of a name is in that of a variable, with a dash for an underscore.
fn as_variable(sign: u8) -> u8 {
    if sign.is_ascii_alphanumeric() { sign.to_ascii_lowercase() } else { b'-' }
}

/// Whether a name begins like one of those: most others differ in their first two letters.
fn may_be_forwarding(name: &[u8]) -> bool {
    let [first, second, ..] = name else { return false };
    matches!(
        (first.to_ascii_lowercase(), as_variable(*second)),
        (b'x', b'-') | (b'f', b'o' | b'a' | b'r') | (b't', b'r') | (b'c', b'f' | b'l')
    )
}

/// Whether the field of this name is not passed on, because of these changes.
pub(crate) fn is_replaced(edits: &[FieldEdit], name: &str) -> bool {
    let is_it =
        |edit: &FieldEdit| !matches!(edit, FieldEdit::Add(..)) && edit.name().eq_ignore_ascii_case(name);
    edits.iter().any(is_it)
}

/// The same for a request. Its back-end may take all signs but letters and digits for the same one, as servers do that make
/// variables of names (CGI): a client could send what is replaced in another spelling.
pub(crate) fn replaces_alike(edits: &[FieldEdit], name: &str) -> bool {
    let is_it = |edit: &FieldEdit| {
        let known = edit.name();
        known.len() == name.len()
            && !matches!(edit, FieldEdit::Add(..))
            && known.bytes().map(as_variable).eq(name.bytes().map(as_variable))
    };
    edits.iter().any(is_it)
}

/// Writes the fields that these changes bring.
pub(crate) fn push_edits(edits: &[FieldEdit], out: &mut Vec<u8>) {
    for (at, edit) in edits.iter().enumerate() {
        match edit {
            FieldEdit::Set(name, value) | FieldEdit::Add(name, value)
                if !is_replaced(&edits[at + 1..], name) =>
            {
                push(out, name.as_bytes(), value.as_bytes());
            }
            _ => {}
        }
    }
}

/// `Content-Length` as RFC 9110, section 8.6, writes it: digits only. A list, a sign or white space inside is not a
/// length.
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0u64, |n, &b| b.is_ascii_digit().then(|| n * 10 + u64::from(b - b'0')))
}

/// Fields that one message may nominate: each is compared with every field.
const MOST_NOMINATED: usize = 64;

/// What the `Connection` fields of a message say.
#[derive(Debug, Default)]
pub(crate) struct ConnectionOptions<'a> {
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    /// Names of fields that are for this connection only.
    nominated: Vec<&'a [u8]>,
}

impl<'a> ConnectionOptions<'a> {
    /// Adds the value of one `Connection` field; false when there are too many options.
    pub(crate) fn add(&mut self, value: &'a [u8]) -> bool {
        for option in list(value) {
            if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else if self.nominated.len() < MOST_NOMINATED {
                self.nominated.push(option);
            } else {
                return false;
            }
        }
        true
    }

    /// Whether any field is named that is not to be passed on.
    pub(crate) fn nominates_any(&self) -> bool {
        !self.nominated.is_empty()
    }

    /// Whether a field of this name is not to be passed on.
    pub(crate) fn nominates(&self, name: &str) -> bool {
        self.nominated.iter().any(|n| n.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// Whether this may be in a token (RFC 9110, section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The members of a comma-separated list, without white space around them and without empty ones.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(trim).filter(|member| !member.is_empty())
}

/// Without the white space of RFC 9110, section 5.6.3, at both ends.
pub(crate) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Appends one field line.
pub(crate) fn push(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_observe::line::push_number;

    #[test]
    fn lengths_are_digits_and_nothing_else() {
        assert_eq!(content_length(b"0"), Some(0));
        assert_eq!(content_length(b"0012"), Some(12));
        for bad in ["", "+5", "-5", "5, 5", "5,5", "5 ", "0x5", "5.0", "99999999999999999999", "\u{b2}"] {
            assert_eq!(content_length(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn connection_options_nominate_fields() {
        let mut options = ConnectionOptions::default();
        assert!(options.add(b"keep-alive, X-One ,,\tx-two"));
        assert!(options.add(b"CLOSE"));
        assert!(options.close && options.keep_alive);
        assert!(options.nominates("x-one") && options.nominates("X-Two"));
        assert!(!options.nominates("x-three"));
        assert!(!options.add("a,".repeat(100).as_bytes()));
    }

    #[test]
    fn numbers_in_decimal() {
        for n in [0, 7, 10, 65_535, u64::MAX] {
            let mut out = Vec::new();
            push_number(&mut out, n);
            assert_eq!(out, n.to_string().into_bytes());
        }
    }

    #[test]
    fn names_are_known_in_any_case() {
        assert_eq!(classify("Content-LENGTH"), Field::ContentLength);
        assert_eq!(classify("TE"), Field::HopByHop);
        assert_eq!(classify("X-Forwarded-Foo"), Field::ForwardedOther);
        assert_eq!(classify("X-Original_URL"), Field::ForwardedLookalike);
        assert_eq!(classify("X-Forward"), Field::Other);
        assert_eq!(classify("X-Original-Filename"), Field::Other);
        assert_eq!(classify("True-Client-IP"), Field::ForwardedOther);
        assert_eq!(classify("X-Real-IP"), Field::ForwardedOther);
        assert_eq!(classify("x_real-ip"), Field::ForwardedLookalike);
        assert_eq!(classify("X.Real-IP"), Field::ForwardedLookalike);
        assert_eq!(classify("Client~Cert"), Field::ForwardedLookalike);
        assert_eq!(classify("Front-End-Https"), Field::ForwardedOther);
        assert_eq!(classify("X_Forwarded-For"), Field::ForwardedLookalike);
        assert_eq!(classify("FORWARDED"), Field::Forwarded);
        for (kind, names) in [
            (Field::ForwardedOther, &FORWARDING[..]),
            (Field::ForwardedOther, &FORWARDING_PREFIXES),
            (Field::ClientCertificate, &CLIENT_CERTIFICATE),
        ] {
            for name in names.iter().filter(|name| **name != "forwarded") {
                assert_eq!(classify(name), kind, "{name}");
                assert_eq!(classify(&name.to_ascii_uppercase()), kind, "{name}");
                let lookalike = name.replace('-', "_");
                assert_eq!(classify(&lookalike), Field::ForwardedLookalike, "{lookalike}");
            }
        }
    }
}
