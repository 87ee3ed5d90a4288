//! Reads `[[certificate]]` and `[tls]`, with the files that they name, and checks listeners against them.

use plimsoll_tls::{
    Certificate, CertificateFiles, ClientCheck, ClientTls, ServerCheck, TlsFileError, TrustedAuthorities,
};
use toml::de::DeTable;

use super::proxy_protocol;
use crate::read::peers::{Answering, PlacedListener};
use crate::read::tables::{list, one};
use crate::reader::{ConfigReader, DeclaredTable};
use crate::sections::{
    BackendTlsConfig, CertificateConfig, ClientCertificates, HandoffConfig, MechanismKind, TlsConfig,
};

const CERTIFICATES_MAX: usize = 1024;

/// What was read for TLS; see [`Config`](crate::Config).
pub(super) struct ReadTls {
    pub(super) tls: TlsConfig,
    pub(super) certificates: Vec<Certificate>,
    pub(super) client_check: ClientCheck,
    pub(super) backend_tls: BackendTlsConfig,
    pub(super) client_tls: Option<ClientTls>,
}

/// The tables, checked against the listeners; and what goes before TLS.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    (listeners, backends): (&[PlacedListener], &[Answering]),
    (mechanism, handoff): (MechanismKind, Option<&HandoffConfig>),
) -> Option<ReadTls> {
    proxy_protocol::check(reader, (listeners, backends), (mechanism, handoff));
    let sections =
        if root.get("certificate").is_some() { list(reader, root, "certificate")? } else { Vec::new() };
    let certificates = certificates(reader, &sections);
    let section = one(reader, root, "tls")?;
    let tls = TlsConfig::read(reader, &section);
    let clients = tls.as_ref().and_then(|tls| clients(reader, &section, tls));
    for listener in listeners.iter().filter(|l| l.tls) {
        check_mechanism(reader, listener, mechanism, handoff);
        if sections.is_empty() {
            let what = "there is no [[certificate]]".to_owned();
            let remedy = "add one, with `chain` and `key`, or remove `tls`".to_owned();
            reader.wrong(&format!("{}.tls", listener.path), listener.tls_span.clone(), (what, remedy));
        }
    }
    if let Some(first) = sections.first()
        && !listeners.iter().any(|l| l.tls)
    {
        let what = "has no effect: no listener speaks TLS".to_owned();
        let remedy = "write `tls = true` below a [[listener]], or remove it".to_owned();
        reader.wrong(&first.path, first.span.clone(), (what, remedy));
    }
    let (backend_tls, client_tls) = to_backends(reader, root, backends, mechanism)?;
    Some(ReadTls { tls: tls?, certificates, client_check: clients?, backend_tls, client_tls })
}

fn certificates<'a>(reader: &mut ConfigReader<'a>, sections: &[DeclaredTable<'a>]) -> Vec<Certificate> {
    let mut out = Vec::new();
    if let Some(beyond) = sections.get(CERTIFICATES_MAX) {
        let wrong = (format!("there are more than {CERTIFICATES_MAX}"), "use fewer".to_owned());
        reader.wrong(&beyond.path, beyond.span.clone(), wrong);
    }
    for section in sections.iter().take(CERTIFICATES_MAX) {
        let Some(CertificateConfig { chain, key, ocsp }) = CertificateConfig::read(reader, section) else {
            continue;
        };
        let files = CertificateFiles { chain, key, ocsp };
        out.extend(read_certificate(reader, section, &files));
    }
    out
}

fn clients<'a>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    tls: &TlsConfig,
) -> Option<ClientCheck> {
    let Some(file) = &tls.client_authorities else {
        if tls.client_certificates == ClientCertificates::None {
            return Some(ClientCheck::None);
        }
        let what = "nothing says whose certificates are good".to_owned();
        let remedy = "name a PEM file with the authorities as `client_authorities`".to_owned();
        reader.wrong(
            &section.key("client_certificates"),
            section.span_of("client_certificates"),
            (what, remedy),
        );
        return None;
    };
    let authorities = match TrustedAuthorities::read(file) {
        Ok(authorities) => authorities,
        Err(error) => {
            wrong_file(reader, section, "client_authorities", error);
            return None;
        }
    };
    Some(match tls.client_certificates {
        ClientCertificates::None => {
            let what = "has no effect with `client_certificates = \"none\"`".to_owned();
            let remedy = "remove it, or write \"optional\" or \"required\" there".to_owned();
            reader.wrong(
                &section.key("client_authorities"),
                section.span_of("client_authorities"),
                (what, remedy),
            );
            return None;
        }
        ClientCertificates::Optional => ClientCheck::Optional(authorities),
        ClientCertificates::Required => ClientCheck::Required(authorities),
    })
}

fn wrong_file<'a>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    name: &str,
    error: TlsFileError,
) {
    let what = format!("{}: {}", error.file.display(), error.what);
    reader.wrong(&section.key(name), section.span_of(name), (what, error.remedy));
}

/// A connection under TLS is more than its socket: another machine cannot go on with it, and a switch at layer 4 cannot read it.
fn check_mechanism(
    reader: &mut ConfigReader<'_>,
    listener: &PlacedListener,
    mechanism: MechanismKind,
    handoff: Option<&HandoffConfig>,
) {
    let (what, remedy) = match mechanism {
        MechanismKind::Proxy | MechanismKind::Auto => return,
        MechanismKind::Handoff if handoff.is_none_or(|handoff| handoff.fallback) => return,
        MechanismKind::Handoff => (
            "a connection under TLS cannot be handed off",
            "write `mechanism = \"auto\"`, or `fallback = \"proxy\"` in [handoff]: then it is proxied",
        ),
        MechanismKind::Direct => (
            "a switch at layer 4 passes packets on as they are",
            "remove it, and let the back-ends speak TLS; or choose another mechanism",
        ),
    };
    reader.wrong(
        &format!("{}.tls", listener.path),
        listener.tls_span.clone(),
        (what.to_owned(), remedy.to_owned()),
    );
}

/// How TLS is spoken to back-ends; ready for use where some back-end has it.
fn to_backends<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    backends: &[Answering],
    mechanism: MechanismKind,
) -> Option<(BackendTlsConfig, Option<ClientTls>)> {
    let section = one(reader, root, "backend_tls")?;
    let config = BackendTlsConfig::read(reader, &section)?;
    let Some(first) = backends.iter().find(|b| b.config.tls) else { return Some((config, None)) };
    if mechanism == MechanismKind::Direct {
        let what =
            "has no effect with `mechanism = \"direct\"`, which passes packets on as they are".to_owned();
        reader.wrong(&first.tls_path, first.tls_span.clone(), (what, "remove it".to_owned()));
        return None;
    }
    for backend in backends.iter().filter(|b| b.config.tls && b.config.tls_name.is_none()) {
        let Some(host) = backend.config.at.host().map(|at| &at.host) else { continue };
        if !plimsoll_tls::is_server_name(host) {
            let what = format!("{host} is no name that a certificate can be for");
            let remedy = "write the name in its certificate as `tls_name`".to_owned();
            reader.wrong(&backend.tls_path, backend.tls_span.clone(), (what, remedy));
        }
    }
    if mechanism.hands_off()
        && let Some(backend) = backends.iter().find(|b| b.config.tls && b.config.agent.is_some())
    {
        let what = "requests of plain connections would be handed to its agent without TLS".to_owned();
        let remedy = "remove `tls`, or `agent`".to_owned();
        reader.wrong(&backend.tls_path, backend.tls_span.clone(), (what, remedy));
        return None;
    }
    let check = match &config.authorities {
        _ if !config.verify => ServerCheck::None,
        None => ServerCheck::BySystem,
        Some(file) => match TrustedAuthorities::read(file) {
            Ok(authorities) => ServerCheck::By(authorities),
            Err(error) => {
                wrong_file(reader, &section, "authorities", error);
                return None;
            }
        },
    };
    let own = match (&config.chain, &config.key) {
        (None, None) => None,
        (Some(chain), Some(key)) => {
            let files = CertificateFiles { chain: chain.clone(), key: key.clone(), ocsp: None };
            Some(read_certificate(reader, &section, &files)?)
        }
        _ => {
            let what = "a certificate and its key belong together".to_owned();
            let remedy = "name both `chain` and `key`, or neither".to_owned();
            reader.wrong(&section.path, section.span.clone(), (what, remedy));
            return None;
        }
    };
    match ClientTls::new(check, own) {
        Ok(tls) => Some((config, Some(tls))),
        Err(what) => {
            let remedy =
                "name a PEM file with the authorities that sign the back-ends' certificates".to_owned();
            reader.wrong(&section.key("authorities"), section.span_of("authorities"), (what, remedy));
            None
        }
    }
}

fn read_certificate<'a>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    files: &CertificateFiles,
) -> Option<Certificate> {
    Certificate::read(files)
        .map_err(|error| {
            let name = match &error.file {
                file if Some(file) == files.ocsp.as_ref() => "ocsp",
                file if *file == files.key && *file != files.chain => "key",
                _ => "chain",
            };
            wrong_file(reader, section, name, error);
        })
        .ok()
}
