//! From the text of a file to a checked configuration.

mod direct;
mod discovery;
mod failover;
mod front_ends;
mod handoff;
mod partitions;
mod peers;
mod pools;
mod proxy_protocol;
mod routes;
mod sockets;
mod syntax;
mod tables;
mod tls;

use std::io::Read as _;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::config::Config;
use crate::error::ConfigErrors;
use crate::path::plain;
use crate::read::peers::{Answering, PlacedListener};
use crate::read::pools::ReadPool;
use crate::read::tables::{if_there, list, one, part, switched};
use crate::reader::{ConfigReader, DeclaredTable, escaped};
use crate::sections::{
    AccessLog, Admin, AdmissionConfig, ClassesConfig, CompressionConfig, DecisionLogConfig, EjectionConfig,
    Forwarded, HealthConfig, Http2Config, Limits, ListenerProtocol, LoadInformationConfig, MechanismKind,
    PolicyConfig, ProxyProtocol, RetryBudgetConfig, Root, RouteConfig, SECTIONS, ShadowConfig, StickyConfig,
    TargetConfig, Timeouts, Unmatched, section,
};

/// The most bytes of a configuration file.
const FILE_BYTES_MAX: u64 = 4 << 20;

impl Config {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// All errors: reading, syntax, keys and values.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        let read = std::fs::File::open(path).and_then(|f| f.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
        if let Err(error) = read {
            let remedy = "name a TOML file that this user may read";
            return Err(ConfigErrors::file(&name, format!("cannot be read: {error}"), remedy));
        }
        if bytes.len() as u64 > FILE_BYTES_MAX {
            let remedy = "name a configuration file";
            return Err(ConfigErrors::file(&name, "is larger than 4 MiB".to_owned(), remedy));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Self::parse(&text, &name),
            Err(error) => {
                let bytes = error.as_bytes();
                let valid = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(bytes);
                let mut reader = ConfigReader::new(&text, &name, SECTIONS);
                let wrong = ("is not UTF-8".to_owned(), "save the file as UTF-8".to_owned());
                reader.wrong("", valid..valid + 1, wrong);
                Err(ConfigErrors::new(reader.errors))
            }
        }
    }

    /// Checks the text of a configuration. Errors call it `file_name`; paths in it are relative to the directory of
    /// `file_name`, and a `token_file` is read.
    ///
    /// # Errors
    /// All errors: syntax, keys and values.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, ConfigErrors> {
        let mut reader = ConfigReader::new(text, file_name, SECTIONS);
        let (root, syntax) = DeTable::parse_recoverable(text);
        if !syntax.is_empty() {
            // A recovering parser could only guess at the rest.
            syntax::report(&mut reader, text, &syntax);
            return Err(ConfigErrors::new(reader.errors));
        }
        let config = read(&mut reader, root.get_ref());
        match config {
            Some(config) if reader.errors.is_empty() => Ok(config),
            _ => Err(ConfigErrors::new(reader.errors)),
        }
    }
}

fn read<'a>(reader: &mut ConfigReader<'a>, root: &'a DeTable<'a>) -> Option<Config> {
    let top = DeclaredTable { spec: section("")?, path: String::new(), table: Some(root), span: 0..0 };
    unknown_at_the_top(reader, &top);
    let keys = Root::read(reader, &top);
    let mechanism = keys.as_ref().map_or(MechanismKind::Proxy, |keys| keys.mechanism);
    let listener_sections = list(reader, root, "listener")?;
    let listeners = peers::listeners(reader, &listener_sections);
    let discovery_section = one(reader, root, "discovery")?;
    let discovery = discovery::read(reader, &discovery_section);
    let backend_sections = backend_list(reader, root, discovery_section.table.is_some())?;
    let answering = peers::backends(reader, &backend_sections);
    let routing = routing(reader, &top, keys.as_ref(), &answering)?;
    let partitions = partitions::read(reader, root, &of_default(&answering), mechanism)?;
    let backends: Vec<_> = answering.iter().map(|b| b.config.clone()).collect();
    let deciding = Deciding::read(reader, root, mechanism);
    check_places(reader, (&listeners, &answering), mechanism, &deciding);
    let handoff = handoff::read(reader, root, &top, mechanism, &listeners, (&backends, discovery.is_some()))?;
    let secured = tls::read(reader, root, (&listeners, &answering), (mechanism, handoff.as_ref()));
    let failover = failover::read(reader, root, mechanism, &listeners);
    let policies = (deciding.policy.as_ref(), deciding.shadow.as_ref());
    let beside = front_ends::OtherSections { mechanism, backends: &answering, policy: policies.0 };
    let peers = front_ends::read(reader, root, &beside)?;
    let chosen = direct::ChosenSections { mechanism, listeners: &listeners, policies };
    let direct = direct::read(reader, root, &chosen, deciding.load_information.as_ref())?;
    let (admin, access_log, decision_log) = outputs(reader, root, &listeners)?;
    let Root { workers, user, seccomp, .. } = keys?;
    let tls::ReadTls { tls, certificates, client_check, backend_tls, client_tls } = secured?;
    let config = Config {
        listeners: listeners.iter().map(PlacedListener::config).collect(),
        certificates,
        tls,
        client_check,
        http2: deciding.http2?,
        tells_clients: answering.iter().any(|b| b.config.proxy_protocol != ProxyProtocol::None),
        backends,
        pools: Vec::new(),
        routes: routing.routes,
        unmatched: routing.unmatched,
        taken: None,
        backend_tls,
        client_tls,
        discovery,
        partitions,
        policy: deciding.policy?,
        shadow: deciding.shadow,
        sticky: deciding.sticky,
        mechanism,
        handoff,
        direct,
        failover,
        peers,
        load_information: deciding.load_information?,
        target: deciding.target?,
        classes: deciding.classes,
        admission: deciding.admission?,
        health: deciding.health?,
        ejection: deciding.ejection?,
        retry_budget: deciding.retry_budget?,
        timeouts: deciding.timeouts?,
        limits: deciding.limits?,
        forwarded: deciding.forwarded?,
        compression: deciding.compression,
        admin,
        access_log,
        decision_log,
        workers,
        user,
        seccomp,
        files: std::mem::take(&mut reader.files),
    };
    Some(pools::complete(reader, config, routing.pools))
}

/// The tables by which requests are decided about; none where one is wrong or not there.
struct Deciding {
    policy: Option<PolicyConfig>,
    shadow: Option<ShadowConfig>,
    sticky: Option<StickyConfig>,
    http2: Option<Http2Config>,
    target: Option<TargetConfig>,
    classes: Option<ClassesConfig>,
    admission: Option<AdmissionConfig>,
    health: Option<HealthConfig>,
    ejection: Option<EjectionConfig>,
    retry_budget: Option<RetryBudgetConfig>,
    timeouts: Option<Timeouts>,
    limits: Option<Limits>,
    forwarded: Option<Forwarded>,
    compression: Option<CompressionConfig>,
    load_information: Option<LoadInformationConfig>,
}

impl Deciding {
    fn read<'a>(reader: &mut ConfigReader<'a>, root: &'a DeTable<'a>, mechanism: MechanismKind) -> Self {
        Self {
            policy: part(reader, root, PolicyConfig::read, "policy"),
            shadow: switched(reader, root, ShadowConfig::read, "shadow"),
            sticky: of_proxy(
                (reader, root),
                StickyConfig::read,
                "sticky",
                (mechanism, "the front-end cannot set cookies"),
            ),
            http2: part(reader, root, Http2Config::read, "http2"),
            target: part(reader, root, TargetConfig::read, "target"),
            classes: switched(reader, root, ClassesConfig::read, "classes"),
            admission: part(reader, root, AdmissionConfig::read, "admission"),
            health: part(reader, root, HealthConfig::read_checked, "health"),
            ejection: part(reader, root, EjectionConfig::read, "ejection"),
            retry_budget: part(reader, root, RetryBudgetConfig::read, "retry_budget"),
            timeouts: part(reader, root, Timeouts::read, "timeouts"),
            limits: part(reader, root, Limits::read, "limits"),
            forwarded: part(reader, root, Forwarded::read, "forwarded"),
            compression: of_proxy(
                (reader, root),
                CompressionConfig::read,
                "compression",
                (mechanism, "responses do not pass the front-end"),
            ),
            load_information: part(reader, root, LoadInformationConfig::read_checked, "load_information"),
        }
    }
}

/// Pools and what leads to them.
struct ReadRouting {
    pools: Vec<ReadPool>,
    routes: Vec<RouteConfig>,
    unmatched: Unmatched,
}

fn routing<'a>(
    reader: &mut ConfigReader<'a>,
    top: &DeclaredTable<'a>,
    keys: Option<&Root>,
    backends: &[Answering],
) -> Option<ReadRouting> {
    let mechanism = keys.map_or(MechanismKind::Proxy, |keys| keys.mechanism);
    let unmatched = keys.map_or(Unmatched::Pool(None), |keys| keys.unmatched.clone());
    let pools = pools::read(reader, top.table?, mechanism, backends)?;
    let compresses = top.table?.get("compression").is_some();
    let beside =
        routes::BesideRoutes { mechanism, pools: &pools, backends, unmatched: &unmatched, compresses };
    let routes = routes::read(reader, top.table?, top, &beside)?;
    Some(ReadRouting { pools, routes, unmatched })
}

/// Where clients connect and who answers, against one another and the rest of the file.
fn check_places(
    reader: &mut ConfigReader<'_>,
    (listeners, backends): (&[PlacedListener], &[Answering]),
    mechanism: MechanismKind,
    deciding: &Deciding,
) {
    peers::check(reader, listeners, backends);
    let loads = deciding.load_information.as_ref().map(|loads| loads.from);
    sockets::check_beside(reader, backends.iter().map(Answering::placed), mechanism, loads);
}

/// The back-ends of the pool `default`.
fn of_default(backends: &[Answering]) -> Vec<Answering> {
    backends.iter().filter(|b| b.config.pool.is_none()).cloned().collect()
}

/// A table that needs requests and responses to pass the front-end; `otherwise` says why.
fn of_proxy<'a, T>(
    (reader, root): (&mut ConfigReader<'a>, &'a DeTable<'a>),
    read: fn(&mut ConfigReader<'a>, &DeclaredTable<'a>) -> Option<T>,
    name: &'static str,
    (mechanism, otherwise): (MechanismKind, &str),
) -> Option<T> {
    let section = one(reader, root, name)?;
    let read = if_there(reader, &section, read)?;
    if mechanism != MechanismKind::Proxy {
        let what = format!("with `mechanism = \"{mechanism}\"` {otherwise}");
        let remedy = format!("write `mechanism = \"proxy\"`, or remove [{name}]");
        reader.wrong(&section.path, section.span.clone(), (what, remedy));
    }
    Some(read)
}

/// Where the front-end tells about itself: admin API, access log, decision log.
fn outputs<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    listeners: &[PlacedListener],
) -> Option<(Option<Admin>, Option<AccessLog>, Option<DecisionLogConfig>)> {
    let admin_section = one(reader, root, "admin")?;
    let admin = Admin::read(reader, &admin_section);
    let access_log = switched(reader, root, AccessLog::read, "access_log");
    let decision_section = one(reader, root, "decision_log")?;
    let decision_log = if_there(reader, &decision_section, DecisionLogConfig::read);
    separate_admin(reader, &admin_section, admin.as_ref(), listeners);
    separate_logs(reader, &decision_section, decision_log.as_ref(), access_log.as_ref());
    Some((admin, access_log, decision_log))
}

/// The back-ends; those that a directory tells may be all that there are.
fn backend_list<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    others: bool,
) -> Option<Vec<DeclaredTable<'a>>> {
    if others && root.get("backend").is_none() { Some(Vec::new()) } else { list(reader, root, "backend") }
}

fn unknown_at_the_top(reader: &mut ConfigReader<'_>, top: &DeclaredTable<'_>) {
    let Some(table) = top.table else { return };
    let known: Vec<&str> =
        top.spec.keys().map(|k| k.name).chain(SECTIONS.iter().skip(1).map(|s| s.name)).collect();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        if known.contains(&name) {
            continue;
        }
        let what = match value.get_ref() {
            DeValue::Table(_) | DeValue::Array(_) => "there is no such table",
            _ => "there is no such key",
        };
        let remedy = reader.unknown_remedy(name, &known, &top.spec.header());
        reader.wrong(&escaped(name), key.span(), (what.to_owned(), remedy));
    }
}

/// The admin API and a listener cannot share a port.
fn separate_admin(
    reader: &mut ConfigReader<'_>,
    section: &DeclaredTable<'_>,
    admin: Option<&Admin>,
    listeners: &[PlacedListener],
) {
    let Some(admin) = admin else { return };
    let is_taken =
        |l: &PlacedListener| l.protocol == ListenerProtocol::Tcp && peers::collide(l.address, admin.address);
    let Some(other) = listeners.iter().find(|l| is_taken(l)) else { return };
    let what = format!("{} collides with {} on {}", admin.address, other.path, other.address);
    let remedy = "choose another port, or write `enabled = false` in [admin]".to_owned();
    // If the admin API has its default address, point at the listener.
    let span = section.found("address").map_or_else(|| other.span.clone(), |found| found.span);
    reader.wrong(&section.key("address"), span, (what, remedy));
}

/// The decision log owns its directory and must not delete the access log.
fn separate_logs(
    reader: &mut ConfigReader<'_>,
    section: &DeclaredTable<'_>,
    decisions: Option<&DecisionLogConfig>,
    access: Option<&AccessLog>,
) {
    let (Some(decisions), Some(file)) = (decisions, access.and_then(|a| a.file.as_ref())) else { return };
    if plain(file).starts_with(plain(&decisions.directory)) {
        let what = format!("holds the access log {}", file.display());
        let remedy = "choose a directory of its own for the decision log".to_owned();
        reader.wrong(&section.key("directory"), section.span_of("directory"), (what, remedy));
    }
}
