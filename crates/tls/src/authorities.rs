//! Who signs the certificates of clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};

use crate::file_error::TlsFileError;
use crate::pem;

/// Authorities whose certificates are believed: of clients, or of back-ends.
#[derive(Debug, Clone)]
pub struct TrustedAuthorities {
    /// Where they are.
    pub file: PathBuf,
    pub(crate) roots: Arc<RootCertStore>,
    pub(crate) certificates: Arc<[CertificateDer<'static>]>,
    digest: [u8; 32],
}

impl TrustedAuthorities {
    /// Reads all certificates of a PEM file.
    ///
    /// # Errors
    /// A file that cannot be read, has none, or has one that is no authority's.
    pub fn read(file: &Path) -> Result<Self, TlsFileError> {
        let bytes = pem::contents(file)?;
        let mut roots = RootCertStore::empty();
        let certificates = pem::certificates(file, &bytes)?;
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| {
                let remedy = "name a PEM file with certificates of authorities alone";
                TlsFileError::of(file, format!("has a certificate that cannot be a root: {error}"), remedy)
            })?;
        }
        let (roots, certificates) = (Arc::new(roots), certificates.into());
        Ok(Self { file: file.to_owned(), roots, certificates, digest: Sha256::digest(&bytes).into() })
    }
}

/// The same file with the same contents.
impl PartialEq for TrustedAuthorities {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.digest == other.digest
    }
}

impl Eq for TrustedAuthorities {}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_testkit::TestAuthority;

    #[test]
    fn authorities_and_what_is_none() {
        let authority = TestAuthority::new();
        let read = TrustedAuthorities::read(&authority.file()).unwrap();
        assert_eq!(read.roots.len(), 1);
        assert_eq!(read, TrustedAuthorities::read(&authority.file()).unwrap());
        let key = authority.issue("site", &["a.example"]).key;
        assert_eq!(TrustedAuthorities::read(&key).unwrap_err().what, "has no certificate");
    }
}
