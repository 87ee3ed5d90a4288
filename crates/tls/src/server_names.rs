//! Which certificate a client gets: by the name that it asks for (SNI, RFC 6066, section 3).
//!
//! ```text
//! of the certificates for this very name, else for `*` in place of its first label, else the first one in the configuration:
//!     the first whose key can sign as the client wants
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct ServerNames {
    /// By name; those that begin with `*.` under what follows it, dot included.
    by_name: BTreeMap<String, Vec<Arc<CertifiedKey>>>,
    others: Vec<Arc<CertifiedKey>>,
}

impl ServerNames {
    /// Of these certificates; who asks for no name, or for one that none of them has, gets the first one, or one that has the same
    /// names with another kind of key.
    pub(crate) fn new(certificates: &[Certificate]) -> Self {
        let mut by_name: BTreeMap<String, Vec<Arc<CertifiedKey>>> = BTreeMap::new();
        for certificate in certificates {
            for name in &certificate.names {
                let name = name.strip_prefix('*').unwrap_or(name).to_owned();
                by_name.entry(name).or_default().push(Arc::clone(&certificate.certified));
            }
        }
        let first = certificates.first();
        let of_first = certificates.iter().filter(|c| first.is_some_and(|first| first.names == c.names));
        Self { by_name, others: of_first.map(|c| Arc::clone(&c.certified)).collect() }
    }

    /// The certificates for a name in lower case.
    fn of(&self, name: Option<&str>) -> &[Arc<CertifiedKey>] {
        let wild = |name: &str| self.by_name.get(&name[name.find('.')?..]);
        let found = name.and_then(|name| self.by_name.get(name).or_else(|| wild(name)));
        found.map_or(&self.others, Vec::as_slice)
    }
}

impl ResolvesServerCert for ServerNames {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = client.server_name().map(str::to_ascii_lowercase);
        let certificates = self.of(name.as_deref());
        let signs = |c: &&Arc<CertifiedKey>| c.key.choose_scheme(client.signature_schemes()).is_some();
        // Where none fits, the first one lets rustls say so.
        certificates.iter().find(signs).or_else(|| certificates.first()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::CertificateFiles;
    use plimsoll_testkit::{IssuedFiles, TestAuthority};

    fn read_of(IssuedFiles { chain, key }: IssuedFiles) -> Certificate {
        Certificate::read(&CertificateFiles { chain, key, ocsp: None }).unwrap()
    }

    #[test]
    fn the_very_name_then_the_wild_one_then_the_first() {
        let authority = TestAuthority::new();
        let read = |name: &str, names: &[&str]| read_of(authority.issue(name, names));
        let all = [
            read("first", &["first.example"]),
            read("wild", &["*.wild.example"]),
            read("exact", &["a.wild.example", "wild.example"]),
        ];
        let names = ServerNames::new(&all);
        let is = |name: Option<&str>, index: usize| {
            let found = names.of(name);
            found.len() == 1 && Arc::ptr_eq(&found[0], &all[index].certified)
        };
        assert!(
            is(Some("first.example"), 0) && is(Some("a.wild.example"), 2) && is(Some("b.wild.example"), 1)
        );
        assert!(is(Some("wild.example"), 2), "the wild one has no name without a label before it");
        assert!(is(Some("a.b.wild.example"), 0), "the star is one label");
        assert!(is(Some("nobody.example"), 0) && is(Some("nodot"), 0) && is(None, 0));
    }

    #[test]
    fn two_kinds_of_keys_for_one_name() {
        let authority = TestAuthority::new();
        let read = |name: &str| read_of(authority.issue(name, &["a.example"]));
        let names = ServerNames::new(&[read("one"), read("two")]);
        assert_eq!((names.of(Some("a.example")).len(), names.of(None).len()), (2, 2));
    }
}
