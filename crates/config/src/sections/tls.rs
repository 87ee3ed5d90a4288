//! TLS with clients: certificates, versions, and whether clients need certificates of their own.

use std::path::PathBuf;

use crate::declare::{KeyForm, keys, words};
use crate::keys::Default::{Is, Required};
use crate::keys::KeyKind::{Choice, Flag, Text};
use crate::path::{FileOr, NoFile, SystemsOwn, path};
use crate::reader::{ConfigReader, DeclaredTable, Wrong, quoted};
use crate::value::ConfigValue;

keys! {
    /// A certificate for listeners with `tls = true`; at most 1024. A client gets the one for the name that it asks for (SNI), or else the first. All
    /// are read again on reload, and when one of the files changes.
    ["certificate", many] pub struct CertificateConfig {
        /// PEM: the certificate, then those that lead to its root.
        "chain" chain: PathBuf = Required, Text("the path of a file") => NamedFile;
        /// PEM: the certificate's private key, without a pass phrase.
        "key" key: PathBuf = Required, Text("the path of a file") => NamedFile;
        /// DER: an OCSP response for it, which clients that ask get with it.
        "ocsp" ocsp: Option<PathBuf> = Is("none"), Text("the path of a file, or \"none\"") => FileOr<NoFile>;
    }
}

keys! {
    /// How listeners with `tls = true` speak TLS.
    ["tls"] pub struct TlsConfig {
        /// The oldest version that clients may speak. 1.2 with forward secrecy and authenticated encryption only.
        "min_version" oldest: OldestTlsConfig = Is("1.2"), Choice(OldestTlsConfig::WORDS);
        /// Whether clients need a certificate: `none`, they are not asked; `optional`, they may have one; `required`, the handshake fails without.
        /// What it says of its owner goes to back-ends in the fields `Client-Cert` and `X-Client-Cert-Subject`.
        "client_certificates" client_certificates: ClientCertificates =
            Is("none"), Choice(ClientCertificates::WORDS);
        /// PEM: the authorities that sign clients' certificates.
        "client_authorities" client_authorities: Option<PathBuf> =
            Is("none"), Text("the path of a file, or \"none\"") => FileOr<NoFile>;
    }
}

keys! {
    /// How TLS is spoken to back-ends with `tls = true`.
    ["backend_tls"] pub struct BackendTlsConfig {
        /// PEM: the authorities that sign back-ends' certificates; `system`: those that the system trusts.
        "authorities" authorities: Option<PathBuf> =
            Is("system"), Text("the path of a file, or \"system\"") => FileOr<SystemsOwn>;
        /// Whether certificates of back-ends are checked. Without that anybody between can read and change everything.
        "verify" verify: bool = Is("true"), Flag;
        /// PEM: a certificate by which back-ends know this front-end, then those that lead to its root.
        "chain" chain: Option<PathBuf> = Is("none"), Text("the path of a file, or \"none\"") => FileOr<NoFile>;
        /// PEM: its private key, without a pass phrase.
        "key" key: Option<PathBuf> = Is("none"), Text("the path of a file, or \"none\"") => FileOr<NoFile>;
    }
}

words! {
    /// The oldest version of TLS that clients may speak.
    pub enum OldestTlsConfig {
        V1_2 = "1.2" / "TLS 1.2.",
        V1_3 = "1.3" / "TLS 1.3.",
    }
}

words! {
    /// Whether clients need certificates.
    pub enum ClientCertificates {
        None = "none" / "They are not asked for one.",
        Optional = "optional" / "They may have one.",
        Required = "required" / "They need one.",
    }
}

/// Where clients that speak plain HTTP are sent: the port of HTTPS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpsRedirect {
    /// 443 unless told.
    pub port: u16,
}

/// `none`, `https`, or `https:PORT`.
pub(super) struct Redirect;

impl KeyForm<Option<HttpsRedirect>> for Redirect {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<HttpsRedirect>> {
        reader.text(section, name, |text| {
            let wrong = || -> Wrong {
                let what = format!("{} is no place to redirect to", quoted(text));
                (what, "write \"https\", \"https:PORT\" or \"none\"".to_owned())
            };
            match text.strip_prefix("https") {
                _ if text == "none" => Ok(None),
                Some("") => Ok(Some(HttpsRedirect { port: 443 })),
                Some(port) => {
                    let port = port.strip_prefix(':').and_then(|port| port.parse().ok());
                    port.filter(|&port| port > 0).map(|port| Some(HttpsRedirect { port })).ok_or_else(wrong)
                }
                None => Err(wrong()),
            }
        })
    }

    fn show(redirect: &Option<HttpsRedirect>) -> Option<ConfigValue> {
        Some(ConfigValue::Text(match redirect {
            None => "none".to_owned(),
            Some(HttpsRedirect { port: 443 }) => "https".to_owned(),
            Some(HttpsRedirect { port }) => format!("https:{port}"),
        }))
    }
}

/// The path of a file that is read, and read again with each reload.
struct NamedFile;

impl KeyForm<PathBuf> for NamedFile {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<PathBuf> {
        let text = reader.text(section, name, |text| path(text).map(str::to_owned))?;
        Some(reader.file(&text))
    }

    fn show(path: &PathBuf) -> Option<ConfigValue> {
        Some(ConfigValue::Text(path.display().to_string()))
    }
}
