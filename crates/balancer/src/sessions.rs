//! Sticky sessions: the cookie that says which back-end a session has.

use std::sync::Arc;

use plimsoll_config::{Config, CookieSecure, SameSite, StickyConfig};
use plimsoll_policy::BackendId;

use crate::backend::Backend;
use crate::http::key::cookie_in_head;

/// What stands for a back-end in cookies: a hash of its name under the salt as a key, so that it is the same at every front-end and
/// after a restart, and who does not know the salt cannot tell whether a name fits.
fn token(name: &str, sticky: &StickyConfig) -> u64 {
    let key = blake3::derive_key("plimsoll 2026 session cookies", sticky.salt.as_bytes());
    let hash = blake3::keyed_hash(&key, name.as_bytes());
    hash.as_bytes().iter().take(8).fold(0, |token, &byte| token << 8 | u64::from(byte))
}

/// What stands for back-ends in the cookies of a pool.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    /// The back-ends of which it was made, and the salt.
    of: Option<(Arc<Vec<Arc<Backend>>>, String)>,
    /// By token.
    tokens: Vec<(u64, BackendId)>,
    /// The tokens by back-end, so that no response waits for a hash.
    of_backends: Vec<Option<u64>>,
}

impl SessionTable {
    /// Of these back-ends.
    pub(crate) fn new(backends: &Arc<Vec<Arc<Backend>>>, sticky: &StickyConfig) -> Self {
        let token_of = |b: &Arc<Backend>| (!b.is_retired()).then(|| token(&b.name, sticky));
        let of_backends: Vec<_> = backends.iter().map(token_of).collect();
        let there = backends.iter().zip(&of_backends);
        let mut tokens: Vec<_> = there.filter_map(|(b, token)| Some(((*token)?, b.id))).collect();
        tokens.sort_unstable();
        Self { of: Some((Arc::clone(backends), sticky.salt.clone())), tokens, of_backends }
    }

    /// Whether it is of these back-ends.
    pub(crate) fn is_of(&self, backends: &Arc<Vec<Arc<Backend>>>, sticky: &StickyConfig) -> bool {
        self.of.as_ref().is_some_and(|(of, salt)| Arc::ptr_eq(of, backends) && *salt == sticky.salt)
    }

    /// What stands for this one, which need not be there any more.
    fn token(&self, backend: &Backend, sticky: &StickyConfig) -> u64 {
        let is_it = |of: &&(Arc<Vec<Arc<Backend>>>, String)| {
            of.1 == sticky.salt && of.0.get(backend.id.index()).is_some_and(|b| b.name == backend.name)
        };
        let known = self.of.as_ref().filter(is_it).and_then(|_| *self.of_backends.get(backend.id.index())?);
        known.unwrap_or_else(|| token(&backend.name, sticky))
    }

    /// The back-end for which this stands.
    pub(crate) fn backend(&self, token: u64) -> Option<BackendId> {
        let at = self.tokens.binary_search_by_key(&token, |(token, _)| *token).ok()?;
        Some(self.tokens[at].1)
    }
}

/// What the cookie of a request says, whose head is this.
pub(crate) fn told(head: &[u8], sticky: &StickyConfig) -> Option<u64> {
    let value = cookie_in_head(sticky.cookie.as_bytes(), head)?;
    let text = std::str::from_utf8(value).ok().filter(|text| text.len() == 16)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.bytes().all(is_digit).then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// The same of a request whose head came so, where a route changes fields before the request goes on.
pub(crate) fn told_before_edits(head: &[u8], config: &Config) -> Option<u64> {
    let is_edited = config.taken.as_ref().is_some_and(|route| !route.request_fields.is_empty());
    told(head, config.sticky.as_ref().filter(|_| is_edited)?)
}

/// The field that sets the cookie, with the end of its line; nothing where the client has it already.
pub(crate) fn field(
    (backend, table): (&Backend, &SessionTable),
    told: Option<u64>,
    (sticky, secure): (&StickyConfig, bool),
) -> Option<Vec<u8>> {
    let token = table.token(backend, sticky);
    if told == Some(token) {
        return None;
    }
    let mut field = format!("Set-Cookie: {}={token:016x}; Path=/", sticky.cookie);
    if let Some(max_age) = sticky.max_age {
        field.push_str(&format!("; Max-Age={}", max_age.as_secs()));
    }
    if sticky.http_only {
        field.push_str("; HttpOnly");
    }
    let by_tls = sticky.secure == CookieSecure::Always || sticky.secure == CookieSecure::Auto && secure;
    if by_tls || sticky.same_site == SameSite::None {
        field.push_str("; Secure");
    }
    field.push_str(match sticky.same_site {
        SameSite::Lax => "; SameSite=Lax\r\n",
        SameSite::Strict => "; SameSite=Strict\r\n",
        SameSite::None => "; SameSite=None\r\n",
    });
    Some(field.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sticky(keys: &str) -> StickyConfig {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n[sticky]\n{keys}"
        );
        Config::parse(&text, "test.toml").unwrap().sticky.unwrap()
    }

    fn backend(id: u16, name: &str) -> Arc<Backend> {
        let address = Ok(([127, 0, 0, 1], 1).into());
        Arc::new(Backend::new(BackendId(id), name.into(), address, "b".into(), 4, 1))
    }

    #[test]
    fn a_cookie_leads_back_to_its_back_end() {
        let backends = Arc::new(vec![backend(0, "10.0.0.1:80"), backend(1, "web-2.internal")]);
        let sticky = sticky("");
        let table = SessionTable::new(&backends, &sticky);
        assert!(table.is_of(&backends, &sticky) && !table.is_of(&Arc::new(Vec::new()), &sticky));
        for backend in backends.as_slice() {
            let set = field((backend, &table), None, (&sticky, false)).unwrap();
            let none = SessionTable::default();
            assert_eq!(field((backend, &none), None, (&sticky, false)).unwrap(), set, "one that has left");
            let set = String::from_utf8(set).unwrap();
            let value = set.strip_prefix("Set-Cookie: ").unwrap().split(';').next().unwrap();
            assert!(!value.contains(&*backend.name), "{value}");
            let head = format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: x=y; {value}; z=1\r\n\r\n");
            let told = told(head.as_bytes(), &sticky).unwrap();
            assert_eq!(table.backend(told), Some(backend.id));
            assert_eq!(field((backend, &table), Some(told), (&sticky, false)), None, "the client has it");
        }
        assert_eq!(table.backend(7), None);
    }

    #[test]
    fn what_is_no_such_cookie_says_nothing() {
        let sticky = sticky("");
        for value in
            ["", "1", "0123456789abcdeg", "0123456789ABCDEF", "+123456789abcdef", "0123456789abcdef0"]
        {
            let head = format!("GET / HTTP/1.1\r\nCookie: plimsoll={value}\r\n\r\n");
            assert_eq!(told(head.as_bytes(), &sticky), None, "{value}");
        }
        let elsewhere = b"GET /?plimsoll=0123456789abcdef HTTP/1.1\r\nX: plimsoll=0123456789abcdef\r\n\r\n";
        assert_eq!(told(elsewhere, &sticky), None);
    }

    #[test]
    fn the_attributes_are_as_configured() {
        let of = |keys: &str, secure| {
            let of = (&*backend(0, "a"), &SessionTable::default());
            String::from_utf8(field(of, None, (&sticky(keys), secure)).unwrap()).unwrap()
        };
        assert!(of("", false).ends_with("; Path=/; HttpOnly; SameSite=Lax\r\n"));
        assert!(of("", true).ends_with("; Path=/; HttpOnly; Secure; SameSite=Lax\r\n"));
        let keys = "cookie = \"s\"\nmax_age = \"8h\"\nsecure = \"never\"\nhttp_only = false\nsame_site = \"strict\"\n";
        let set = of(keys, true);
        assert!(
            set.starts_with("Set-Cookie: s=")
                && set.ends_with("; Path=/; Max-Age=28800; SameSite=Strict\r\n")
        );
        assert!(of("same_site = \"none\"", false).contains("; Secure; SameSite=None"));
        let value = |set: &str| set.split(';').next().unwrap().to_owned();
        assert_ne!(value(&of("", false)), value(&of("salt = \"x\"", false)));
    }
}
