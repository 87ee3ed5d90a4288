//! PEM files, bounded in size.

use std::io::Read as _;
use std::path::Path;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::file_error::TlsFileError;

/// The most bytes of a file with certificates, a key or an OCSP response.
const FILE_BYTES_MOST: u64 = 4 << 20;

/// The bytes of a file.
pub(crate) fn contents(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(FILE_BYTES_MOST + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(TlsFileError::of(path, error.to_string(), "name a file that this user may read"));
    }
    if bytes.len() as u64 > FILE_BYTES_MOST {
        return Err(TlsFileError::of(path, "is larger than 4 MiB", "name a PEM file"));
    }
    Ok(bytes)
}

/// All certificates of a PEM file; at least one.
pub(crate) fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let remedy = "name a PEM file that has the certificate first, and then those that lead to its root";
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let all = all.map_err(|error| TlsFileError::of(path, error.to_string(), remedy))?;
    if all.is_empty() {
        return Err(TlsFileError::of(path, "has no certificate", remedy));
    }
    Ok(all)
}

/// The first private key of a PEM file.
pub(crate) fn private_key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let remedy = "name a PEM file with the private key, without a pass phrase";
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| {
        let encrypted = bytes.windows(9).any(|window| window == b"ENCRYPTED");
        let what = if encrypted { "is protected by a pass phrase".to_owned() } else { error.to_string() };
        TlsFileError::of(path, what, remedy)
    })
}
