//! Fuzz targets: certificates, of clients and in files.

use std::path::Path;

use rustls::pki_types::CertificateDer;

use crate::client_identity::client_fields;
use crate::inspect::inspect;
use crate::pem;

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("tls_client_certificate", client), ("tls_files", files)];

/// Whatever a certificate says, back-ends get two fields.
fn client(der: &[u8]) {
    let fields = client_fields(&CertificateDer::from(der.to_vec()));
    let lines: Vec<&[u8]> = fields.split(|&b| b == b'\n').collect();
    assert!(lines.len() == 3 && lines[2].is_empty());
    assert!(lines[0].starts_with(b"Client-Cert: :") && lines[1].starts_with(b"X-Client-Cert-Subject: "));
    let is_printable =
        |line: &[u8]| line.strip_suffix(b"\r").is_some_and(|l| l.iter().all(|b| (b' '..=b'~').contains(b)));
    assert!(lines[..2].iter().all(|line| is_printable(line)));
}

/// A file with certificates is read, or what is wrong is told with its name.
fn files(bytes: &[u8]) {
    let path = Path::new("fuzzed.pem");
    match pem::certificates(path, bytes) {
        Ok(chain) => {
            assert!(!chain.is_empty());
            if let Err(error) = inspect(path, &chain) {
                assert!(error.to_string().contains("fuzzed.pem"));
            }
        }
        Err(error) => assert!(error.to_string().contains("fuzzed.pem"), "{error}"),
    }
    drop(pem::private_key(path, bytes));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
