//! Certificates for tests.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tempfile::TempDir;

/// An authority of a test, with the files that it has issued; they are gone when it is dropped.
#[derive(Debug)]
pub struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

/// A certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedFiles {
    /// PEM: the certificate, then the authority's.
    pub chain: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

impl TestAuthority {
    /// A new authority.
    ///
    /// # Panics
    /// When the system gives no random numbers or no directory.
    #[must_use]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let issuer = CertifiedIssuer::self_signed(params, new_key()).expect("a key can sign");
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("authority.pem"), issuer.pem()).expect("a file");
        Self { issuer, directory }
    }

    /// The file with the authority's certificate.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// A path in its directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory of all files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A certificate of ECDSA for these hosts, in files of this name; earlier ones of the name are replaced.
    ///
    /// # Panics
    /// When a host is none, or a file cannot be written.
    #[must_use]
    pub fn issue(&self, name: &str, hosts: &[&str]) -> IssuedFiles {
        self.issue_with(name, hosts, |_| {})
    }

    /// The same, but it has held in 2020 alone.
    ///
    /// # Panics
    /// As [`TestAuthority::issue`].
    #[must_use]
    pub fn issue_ended(&self, name: &str, hosts: &[&str]) -> IssuedFiles {
        self.issue_with(name, hosts, |params| {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        })
    }

    fn issue_with(
        &self,
        name: &str,
        hosts: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> IssuedFiles {
        let key = new_key();
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names of hosts");
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let issued = params.signed_by(&key, &self.issuer).expect("a key can sign");
        let files =
            IssuedFiles { chain: self.path(&format!("{name}.pem")), key: self.path(&format!("{name}.key")) };
        std::fs::write(&files.chain, format!("{}{}", issued.pem(), self.issuer.pem())).expect("a file");
        std::fs::write(&files.key, key.serialize_pem()).expect("a file");
        files
    }
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("random numbers")
}

impl Default for TestAuthority {
    fn default() -> Self {
        Self::new()
    }
}
