//! A certificate with its key, as two or three files hold it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};

use crate::file_error::TlsFileError;
use crate::inspect::{Inspected, inspect};
use crate::pem;

/// Where a certificate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: the certificate, then those that lead to its root.
    pub chain: PathBuf,
    /// PEM: its private key.
    pub key: PathBuf,
    /// DER: an OCSP response, to be stapled.
    pub ocsp: Option<PathBuf>,
}

/// A certificate that was read, with its key.
#[derive(Clone)]
pub struct Certificate {
    /// Where it is.
    pub files: CertificateFiles,
    /// The names that it is for, in lower case; one may begin with `*.`.
    pub names: Vec<String>,
    /// From when on it holds.
    pub begins: Timestamp,
    /// Until when it holds.
    pub ends: Timestamp,
    /// What is no error but most likely not meant.
    pub warnings: Vec<String>,
    pub(crate) certified: Arc<CertifiedKey>,
    /// Of all that the files hold.
    digest: [u8; 32],
}

/// What is said of a certificate that rustls cannot read, though it can be shown to clients.
const NOT_VERSION_3: &str = "is not of X.509, version 3, and many clients refuse it: ask for one with subjectAltName (openssl x509 -req: by -extfile or \
                             -copy_extensions copy)";

/// Whether the key's public half is this one, as certificates have it.
fn is_key_of(certified: &CertifiedKey, public_key: &[u8]) -> bool {
    certified.key.public_key().is_some_and(|of_key| *of_key == *public_key)
}

impl Certificate {
    /// Reads and checks it.
    ///
    /// # Errors
    /// The first thing that is wrong: a file that cannot be read or holds something else, a key of an unknown kind, a key that is
    /// not that of the certificate.
    pub fn read(files: &CertificateFiles) -> Result<Self, TlsFileError> {
        let mut digest = Sha256::new();
        let mut contents = |path: &Path| {
            let bytes = pem::contents(path)?;
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(&bytes);
            Ok::<_, TlsFileError>(bytes)
        };
        let chain = pem::certificates(&files.chain, &contents(&files.chain)?)?;
        let key = pem::private_key(&files.key, &contents(&files.key)?)?;
        let ocsp = files.ocsp.as_deref().map(&mut contents).transpose()?;
        let signing = any_supported_type(&key).map_err(|error| {
            let remedy = "use a key of RSA with 2,048 to 8,192 bits, of ECDSA with P-256, P-384 or P-521, or of Ed25519";
            TlsFileError::of(&files.key, error.to_string(), remedy)
        })?;
        let Inspected { names, begins, ends, mut warnings, public_key, is_version_3 } =
            inspect(&files.chain, &chain)?;
        let mut certified = CertifiedKey::new(chain, signing);
        certified.ocsp = ocsp;
        match certified.keys_match() {
            Ok(()) => {}
            // It may be one that the library cannot read, which only shows it to clients.
            Err(rustls::Error::InvalidCertificate(why)) if is_key_of(&certified, &public_key) => {
                let warning = format!("cannot be read by the TLS library, and maybe not by clients: {why}");
                warnings.push(if is_version_3 { warning } else { NOT_VERSION_3.to_owned() });
            }
            Err(_) => {
                let what = format!("is not the key of the certificate in {}", files.chain.display());
                let remedy = "name the key with which the certificate was asked for";
                return Err(TlsFileError::of(&files.key, what, remedy));
            }
        }
        let certified = Arc::new(certified);
        Ok(Self {
            files: files.clone(),
            names,
            begins,
            ends,
            warnings,
            certified,
            digest: digest.finalize().into(),
        })
    }

    /// What a user must know at `now`: it has ended, ends within 14 days, or does not hold yet.
    #[must_use]
    pub fn notice(&self, now: Timestamp) -> Option<String> {
        let days = |from: Timestamp, to: Timestamp| to.duration_since(from).as_hours() / 24;
        let shown = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M UTC").to_string();
        if now > self.ends {
            return Some(format!("ended at {}, {} days ago", shown(self.ends), days(self.ends, now)));
        }
        if now < self.begins {
            return Some(format!("does not hold before {}", shown(self.begins)));
        }
        let left = days(now, self.ends);
        (left < SOON_DAYS).then(|| format!("ends at {}, in {left} days", shown(self.ends)))
    }
}

/// A certificate that ends earlier should have been replaced: those that are renewed automatically are, 30 days before.
const SOON_DAYS: i64 = 14;

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("files", &self.files)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// The same files with the same contents.
impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files && self.digest == other.digest
    }
}

impl Eq for Certificate {}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;
    use plimsoll_testkit::{IssuedFiles, TestAuthority};

    fn issue(authority: &TestAuthority, name: &str, hosts: &[&str]) -> CertificateFiles {
        let IssuedFiles { chain, key } = authority.issue(name, hosts);
        CertificateFiles { chain, key, ocsp: None }
    }

    #[test]
    fn a_certificate_and_its_key() {
        let authority = TestAuthority::new();
        let files = issue(&authority, "site", &["Example.org", "*.example.org"]);
        let read = Certificate::read(&files).unwrap();
        assert_eq!(read.names, ["example.org", "*.example.org"]);
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
        assert_eq!(read, Certificate::read(&files).unwrap());
        let renewed = issue(&authority, "site", &["example.org"]);
        assert_eq!(renewed, files);
        assert_ne!(read, Certificate::read(&renewed).unwrap());
    }

    /// As OpenSSL 3.0 makes them of a request without further options.
    #[test]
    fn a_certificate_of_version_1_is_shown_as_it_is_and_warned_of() {
        let authority = TestAuthority::new();
        let other = issue(&authority, "other", &["b.example"]);
        let directory = authority.path("");
        let openssl = |arguments: &str| {
            let mut command = std::process::Command::new("openssl");
            let output = command.args(arguments.split(' ')).current_dir(&directory).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        openssl("ecparam -name prime256v1 -genkey -noout -out ca.ec");
        openssl("req -x509 -new -key ca.ec -out ca.crt -subj /CN=authority");
        openssl("ecparam -name prime256v1 -genkey -noout -out v1.ec");
        openssl("pkcs8 -topk8 -nocrypt -in v1.ec -out v1.key");
        openssl("req -new -key v1.key -out v1.csr -subj /CN=old.example");
        openssl("x509 -req -in v1.csr -CA ca.crt -CAkey ca.ec -CAcreateserial -out v1.crt");
        let of_version_1 = std::process::Command::new("openssl")
            .args(["x509", "-in", "v1.crt", "-noout", "-text"])
            .current_dir(&directory)
            .output()
            .unwrap();
        // Later ones than 3.1 may make version 3, of which nothing is to be said.
        let is_version_1 = String::from_utf8_lossy(&of_version_1.stdout).contains("Version: 1 ");
        let files =
            CertificateFiles { chain: authority.path("v1.crt"), key: authority.path("v1.key"), ocsp: None };
        let read = Certificate::read(&files).unwrap();
        let is_warned_of = read.warnings.iter().any(|warning| warning == NOT_VERSION_3);
        assert_eq!(is_warned_of, is_version_1, "{:?}", read.warnings);
        let swapped = Certificate::read(&CertificateFiles { key: other.key, ..files }).unwrap_err();
        assert!(swapped.what.starts_with("is not the key of the certificate in "), "{swapped}");
    }

    #[test]
    fn errors_name_the_file_and_what_would_be_right() {
        let authority = TestAuthority::new();
        let (one, other) =
            (issue(&authority, "one", &["a.example"]), issue(&authority, "other", &["b.example"]));
        let of = |files: CertificateFiles| Certificate::read(&files).unwrap_err();
        let swapped = of(CertificateFiles { key: other.key.clone(), ..one.clone() });
        assert_eq!(swapped.file, other.key);
        assert!(swapped.what.starts_with("is not the key of the certificate in "), "{swapped}");
        let no_chain = of(CertificateFiles { chain: one.key.clone(), ..one.clone() });
        assert_eq!((no_chain.file, &*no_chain.what), (one.key.clone(), "has no certificate"));
        let no_key = of(CertificateFiles { key: one.chain.clone(), ..one.clone() });
        assert_eq!(no_key.file, one.chain);
        let missing = of(CertificateFiles { chain: authority.path("nothing"), ..one.clone() });
        assert!(missing.to_string().contains("No such file"), "{missing}");
        let protected = authority.path("protected.key");
        std::fs::write(
            &protected,
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        )
        .unwrap();
        assert_eq!(of(CertificateFiles { key: protected, ..one }).what, "is protected by a pass phrase");
    }

    #[test]
    fn when_it_ends_is_told_in_time() {
        let authority = TestAuthority::new();
        let read = Certificate::read(&issue(&authority, "site", &["a.example"])).unwrap();
        let at = |hours: i64| read.ends.checked_add(hours.hours()).unwrap();
        assert_eq!(read.notice(at(-24 * 14)), None);
        assert!(read.notice(at(-24 * 14 + 1)).unwrap().contains("in 13 days"));
        assert!(read.notice(at(49)).unwrap().contains("2 days ago"));
        let early = read.begins.checked_sub(1.hours()).unwrap();
        assert!(read.notice(early).unwrap().starts_with("does not hold before "));
    }
}
