//! How the certificates of back-ends are verified.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// Whose certificates are believed.
#[derive(Debug)]
pub(crate) enum Believed {
    /// Those that authorities have signed. A back-end may also have the very certificate that is named as an authority's, as one that has signed
    /// itself: OpenSSL takes that, and rustls does not.
    ByAuthorities { by_webpki: Arc<WebPkiServerVerifier>, named: Arc<[CertificateDer<'static>]> },
    /// Everybody's; only that the other side has the key of its certificate is checked.
    All,
}

/// Verifies what a back-end shows.
#[derive(Debug)]
pub(crate) struct BackendVerifier {
    pub(crate) believed: Believed,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for BackendVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Believed::ByAuthorities { by_webpki, named } = &self.believed else {
            return Ok(ServerCertVerified::assertion());
        };
        if !named.iter().any(|named| named == certificate) {
            return by_webpki.verify_server_cert(certificate, intermediates, name, ocsp, now);
        }
        // Who it is was decided when it was named.
        is_valid(certificate, now)?;
        verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn is_valid(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let (_, read) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    match (read.validity().not_before.timestamp(), read.validity().not_after.timestamp()) {
        (begins, _) if now < begins => Err(CertificateError::NotValidYet),
        (_, ends) if now > ends => Err(CertificateError::Expired),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::RootCertStore;

    use super::*;

    fn certificate(names: &[&str]) -> CertificateDer<'static> {
        let key = rcgen::KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        // What `openssl req -x509` makes.
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        (params.not_before, params.not_after) =
            (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2030, 1, 1));
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn a_certificate_that_is_named_itself_is_good_for_its_names_and_time() {
        let (named, other) = (certificate(&["a.example"]), certificate(&["a.example"]));
        let mut roots = RootCertStore::empty();
        roots.add(named.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let by_webpki = builder.build().unwrap();
        let believed = Believed::ByAuthorities { by_webpki, named: [named.clone()].into() };
        let verifier = BackendVerifier { believed, provider };
        let verify = |certificate: &CertificateDer<'_>, name: &'static str, year: u64| {
            let name = ServerName::try_from(name).unwrap();
            let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_557_600 + 86_400));
            verifier.verify_server_cert(certificate, &[], &name, &[], now).map(drop)
        };
        assert_eq!(verify(&named, "a.example", 2026), Ok(()));
        assert!(verify(&named, "b.example", 2026).is_err());
        assert_eq!(verify(&named, "a.example", 2031), Err(CertificateError::Expired.into()));
        assert_eq!(verify(&named, "a.example", 2019), Err(CertificateError::NotValidYet.into()));
        assert!(verify(&other, "a.example", 2026).is_err(), "nobody has named it");
    }
}
