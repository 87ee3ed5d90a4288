//! What a certificate says of itself.

use std::net::IpAddr;
use std::path::Path;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Version;

use crate::file_error::TlsFileError;

pub(crate) struct Inspected {
    /// In lower case.
    pub(crate) names: Vec<String>,
    pub(crate) begins: Timestamp,
    pub(crate) ends: Timestamp,
    pub(crate) warnings: Vec<String>,
    /// In DER, with its algorithm.
    pub(crate) public_key: Vec<u8>,
    pub(crate) is_version_3: bool,
}

/// Looks into the certificates of a file; there is at least one.
pub(crate) fn inspect(path: &Path, chain: &[CertificateDer<'_>]) -> Result<Inspected, TlsFileError> {
    let parsed: Result<Vec<X509Certificate<'_>>, _> =
        chain.iter().map(|der| X509Certificate::from_der(der).map(|(_, parsed)| parsed)).collect();
    let bad =
        |what: String| TlsFileError::of(path, what, "name a file with certificates of X.509, version 3");
    let parsed = parsed.map_err(|error| bad(format!("has a certificate that cannot be read: {error}")))?;
    let first = parsed.first().ok_or_else(|| bad("has no certificate".to_owned()))?;
    let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|error| bad(error.to_string()));
    let names = names(first);
    let mut warnings = broken_links(&parsed);
    if names.is_empty() {
        warnings.push("names no host (subjectAltName), so clients will not accept it".to_owned());
    }
    Ok(Inspected {
        names,
        begins: time(first.validity().not_before.timestamp())?,
        ends: time(first.validity().not_after.timestamp())?,
        warnings,
        public_key: first.public_key().raw.to_vec(),
        is_version_3: first.version() == X509Version::V3,
    })
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return Vec::new() };
    let of = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => address(bytes),
        _ => None,
    };
    extension.value.general_names.iter().filter_map(of).collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from);
    v4().or_else(v6).map(|address| address.to_string())
}

/// Clients know roots alone: whatever is between must be sent with the certificate, each behind the one that it has signed.
fn broken_links(chain: &[X509Certificate<'_>]) -> Vec<String> {
    let mut out = Vec::new();
    for (index, pair) in chain.windows(2).enumerate() {
        if let [one, next] = pair
            && one.issuer() != next.subject()
        {
            let (issuer, found) = (one.issuer(), next.subject());
            out.push(format!(
                "certificate {} is of {found}, and not of {issuer}, which signed the one before it",
                index + 2
            ));
        }
    }
    if let [only] = chain
        && only.issuer() != only.subject()
    {
        let issuer = only.issuer();
        out.push(format!(
            "lacks its chain: the certificate of {issuer}, which signed it, unless that is a root"
        ));
    }
    out
}
