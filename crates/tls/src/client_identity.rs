//! What back-ends are told of a client's certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

/// The longest subject that is passed on, in bytes.
const SUBJECT_BYTES: usize = 1024;

/// Fields of requests on a connection whose client has this certificate: `Client-Cert` (RFC 9440, section 2.2), and its subject as
/// `X-Client-Cert-Subject`, with `?` in place of what is not printable ASCII.
#[must_use]
pub fn client_fields(certificate: &CertificateDer<'_>) -> Vec<u8> {
    let subject = X509Certificate::from_der(certificate).map(|(_, parsed)| parsed.subject().to_string());
    let printable = |c: char| if matches!(c, ' '..='~') { c } else { '?' };
    let subject: String = subject.unwrap_or_default().chars().take(SUBJECT_BYTES).map(printable).collect();
    let encoded = STANDARD.encode(certificate);
    format!("Client-Cert: :{encoded}:\r\nX-Client-Cert-Subject: {}\r\n", subject.trim()).into_bytes()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn certificate_and_subject() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "Ann\r\nX-Evil: é");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let fields = String::from_utf8(client_fields(certificate.der())).unwrap();
        let lines: Vec<&str> = fields.split("\r\n").collect();
        assert_eq!(lines.len(), 3, "{fields}");
        let encoded = lines[0].strip_prefix("Client-Cert: :").unwrap().strip_suffix(':').unwrap();
        assert_eq!(STANDARD.decode(encoded).unwrap(), certificate.der().as_ref());
        let subject = lines[1].strip_prefix("X-Client-Cert-Subject: ").unwrap();
        assert!(subject.ends_with("CN=Ann??X-Evil: ?"), "{subject}");
    }
}
