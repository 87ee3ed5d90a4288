//! `plimsoll check`: validates a configuration of the live system and shows its effective values.

mod system;
mod warnings;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use plimsoll_config::{
    AccessLogFormat, Config, DEFAULT_POOL, DiscoveryConfig, DiscoveryTransport, HashKey, HealthProbe,
    ListenerConfig, LoadInformationConfig, LoadSource, PartitionBy, PolicyConfig, Unmatched,
};
use plimsoll_datapath::privileges::PrivilegeError;
use plimsoll_datapath::system::{Question, Role};
use plimsoll_policy::{AdmissionLimit, BackendId, Cluster, Thresholds};
use plimsoll_report::{Align, Table};
use plimsoll_wire::interfaces_text;

use self::warnings::{missing_interfaces, warnings};
use super::{certificates, privileges};
use crate::error::CliError;
use crate::output;

/// Arguments of `check`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Configuration file to check
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["schema", "interface", "system"])]
    config: Option<PathBuf>,

    /// Also check whether this machine can do what the configuration asks: privileges, kernel, interfaces, back-ends. Needs
    /// a configuration, or, on a back-end, --interface and --vip
    #[arg(long)]
    system: bool,

    /// With --system on a back-end: the interface at which packets from the front-end arrive
    #[arg(long, value_name = "NAME", requires_all = ["system", "vip"], conflicts_with = "config")]
    interface: Option<String>,

    /// With --system on a back-end: the address that clients connect to; may be repeated
    #[arg(long, value_name = "ADDRESS", requires = "interface")]
    vip: Vec<IpAddr>,

    /// With --system on a back-end: the front-end's address; may be repeated
    #[arg(long, value_name = "ADDRESS", requires = "interface")]
    front_end: Vec<IpAddr>,

    /// Do not look up the host names in the configuration; --system then leaves out agents that have one
    #[arg(long)]
    no_resolve: bool,

    /// Print the configuration with all defaults as one JSON object; a token is not shown
    #[arg(long)]
    json: bool,

    /// Print the JSON schema of configuration files
    #[arg(long, conflicts_with_all = ["config", "json", "system", "no_resolve"])]
    schema: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if let Some(interface) = &args.interface {
        let (vips, peers) = (args.vip.clone(), args.front_end.clone());
        let interfaces = vec![interface.clone()];
        // The ports are the agent's to know.
        let (ports, unused, listeners) = (Vec::new(), Vec::new(), Vec::new());
        // It connects to nobody.
        let (destinations, shared) = (Vec::new(), Vec::new());
        let role = Role::Backend;
        let question =
            Question { role, interfaces, vips, ports, unused, listeners, peers, destinations, shared };
        return system::report(&question, args.json);
    }
    if args.schema {
        return output::print(&Config::json_schema());
    }
    let Some(path) = &args.config else {
        return Err(CliError::Usage(
            "--system: give --config of a front-end, or, on a back-end, --interface and --vip".to_owned(),
        ));
    };
    let config = Config::load(path).map_err(|errors| CliError::config(path, &errors))?;
    privileges::logs_have_a_place(&config, path)?;
    let user = user(&config, path)?;
    if !args.no_resolve {
        resolve(&config, path)?;
    }
    match (args.system, args.json) {
        (true, json) => {
            if !json {
                output::print(&summary(&config, path, &user))?;
            }
            system::report(&system::question(&config, !args.no_resolve)?, json)?;
            match missing_interfaces(&config).first() {
                None => Ok(()),
                Some((key, name)) => Err(CliError::Failed(format!(
                    "{key}: there is no network interface {name}; {}",
                    interfaces_text()
                ))),
            }
        }
        (false, true) => output::print(&config.to_json().to_string()),
        (false, false) => output::print(&summary(&config, path, &user)),
    }
}

/// As whom the front-end would run, were this user to start it.
///
/// # Errors
/// The configured user is none of this machine, or may not use a file that is needed.
fn user(config: &Config, path: &Path) -> Result<String, CliError> {
    let needs = privileges::needs_of_front_end(config, path, true);
    match privileges::front_end(config, &needs) {
        Ok(identity) => Ok(privileges::text(&identity)),
        // Whoever starts it will be.
        Err(PrivilegeError::NotRoot { name, .. }) => {
            Ok(format!("{name}; only root can check its access to files"))
        }
        Err(error) => Err(CliError::Failed(format!("{} is not good: user: {error}", path.display()))),
    }
}

/// Looks the host names up.
///
/// # Errors
/// Some lead to no address.
fn resolve(config: &Config, path: &Path) -> Result<(), CliError> {
    let unresolved = plimsoll_balancer::unresolved_hosts(config);
    if unresolved.is_empty() {
        return Ok(());
    }
    let s = if unresolved.len() == 1 { "" } else { "s" };
    let mut text = format!("{} is not good: {} error{s}", path.display(), unresolved.len());
    let any_backend = unresolved.iter().any(|(key, _)| key.starts_with("backend["));
    for (key, error) in unresolved {
        text += &format!("\n{key}: {error}");
    }
    text += "\nCorrect the name, or have the name server know it; --no-resolve checks the rest without names. The front-end \
             starts nevertheless";
    if any_backend {
        text += ", and takes a back-end for down until its name leads to an address";
    }
    Err(CliError::Failed(text))
}

/// A listener with what is special of it.
fn listener(listener: &ListenerConfig) -> String {
    match (listener.tls, listener.redirect) {
        (true, _) => format!("{listener} (TLS)"),
        (false, Some(to)) => format!("{listener} (sends clients to HTTPS at port {})", to.port),
        (false, None) => listener.to_string(),
    }
}

fn summary(config: &Config, path: &Path, user: &str) -> String {
    let mut out = format!("{} is good.\n\n", path.display());
    let listeners: Vec<String> = config.listeners.iter().map(listener).collect();
    let workers = config.workers;
    let mut line = |what: &str, text: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{what:<16}{text}");
    };
    line("listeners", &listeners.join(", "));
    for summary in certificates::summaries(config) {
        line("certificate", &summary);
    }
    line("workers", &workers.to_string());
    line("user", user);
    line("policy", &policy(&config.policy));
    if let Some(shadow) = &config.shadow {
        line("shadow policy", &policy(&shadow.policy));
    }
    if let Some(discovery) = &config.discovery {
        line("discovery", &discovered(discovery, config.partitions.is_some()));
    }
    if let Some(partitions) = &config.partitions {
        let by = match partitions.by {
            PartitionBy::Target => "the target",
            PartitionBy::Segment => "the first segment of the path",
        };
        line(
            "partitions",
            &format!("{}, by {by}; each has a policy, a limit and a log of its own", partitions.count),
        );
    }
    if let Some(text) = loads(&config.load_information) {
        line("loads", &text);
    }
    for warning in warnings(config) {
        line("warning", &warning);
    }
    line("mechanism", &mechanism(config));
    line("target", &target(config));
    line("admission", &admission(config));
    line("health checks", &health(config));
    for pool in &config.pools {
        let of_pool = config.of_pool(pool);
        let (policy, admission) = (policy(&pool.policy), admission(&of_pool));
        let count = pool.backends.len();
        let back_ends = if count == 1 { "back-end" } else { "back-ends" };
        line("pool", &format!("{}: {count} {back_ends}, {policy}; {admission}", pool.name));
    }
    if !config.routes.is_empty() {
        let rest = match &config.unmatched {
            Unmatched::NotFound => "what none takes is answered with 404".to_owned(),
            Unmatched::Pool(name) => {
                format!("what none takes goes to the pool {}", name.as_deref().unwrap_or(DEFAULT_POOL))
            }
        };
        line("routes", &format!("{}; {rest}", config.routes.len()));
    }
    line("admin API", &admin(config));
    line("access log", &access_log(config));
    line("decision log", &decision_log(config));
    out.push('\n');
    out += &backends(config);
    out
}

/// The policy with every parameter.
fn policy(policy: &PolicyConfig) -> String {
    let params: Vec<String> = policy.params.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let mut out = policy.spec.name.to_owned();
    if !params.is_empty() {
        out += &format!(": {}", params.join(", "));
    }
    out
}

/// The target, and how long its hash stays the same.
fn target(config: &Config) -> String {
    let hash = match &config.target.hash_key {
        HashKey::Random if config.peers.is_some() => "hashed with a key derived from that of the peers",
        HashKey::Random => "hashed with a key made at each start: policies that hash then place targets anew",
        HashKey::None => "hashed without a key: clients can choose targets that meet",
        HashKey::Given(_) => "hashed with the key in a file",
    };
    format!("{}; {hash}", config.target.key)
}

/// Who tells of further back-ends.
fn discovered(discovery: &DiscoveryConfig, all: bool) -> String {
    let DiscoveryConfig { service, partition, group, interface, .. } = discovery;
    let what = if all { format!("all partitions of {service}") } else { format!("{service}/{partition}") };
    let by = match discovery.transport {
        DiscoveryTransport::Multicast => {
            let at = interface.as_ref().map_or_else(String::new, |name| format!(" at {name}"));
            format!("multicast to {group}{at}")
        }
        DiscoveryTransport::Etcd => format!("etcd at {}", discovery.endpoints.join(", ")),
    };
    format!("{what} by {by}; a replica counts for {} s at most", discovery.ttl.as_secs_f64())
}

/// Where loads come from, if not from this front-end alone.
fn loads(information: &LoadInformationConfig) -> Option<String> {
    let LoadInformationConfig { size, timeout, interval, header, metric, .. } = information;
    let interval_s = interval.as_secs_f64();
    Some(match information.from {
        LoadSource::Own => return None,
        LoadSource::Poll => format!(
            "{size} agents are asked for each request, for {} ms at most",
            timeout.as_secs_f64() * 1e3
        ),
        LoadSource::Broadcast => {
            let at = information.listen.map_or_else(String::new, |at| format!(" to {at}"));
            let group = information.group.map_or_else(String::new, |group| format!(" in the group {group}"));
            let most_s = interval_s * 10.0;
            format!(
                "announced{at}{group}; an agent's own interval counts up to {most_s} s, and silence for three of them is noticed"
            )
        }
        LoadSource::Header => {
            format!("{metric} in {header} of responses; silence for {} s is noticed", 3.0 * interval_s)
        }
    })
}

fn mechanism(config: &Config) -> String {
    if let Some(direct) = &config.direct {
        return format!(
            "direct at {}, {} choices ahead for each CPU",
            direct.interfaces.join(", "),
            direct.choices
        );
    }
    let Some(handoff) = &config.handoff else { return "proxy".to_owned() };
    let with_agent = config.backends.iter().filter(|b| b.agent.is_some()).count();
    let fallback = if handoff.fallback { "; proxy where that is not possible" } else { "" };
    format!(
        "handoff at {}, to {with_agent} of {} back-ends{fallback}",
        handoff.interfaces.join(", "),
        config.backends.len()
    )
}

/// The limit that results when all back-ends are up.
fn admission(config: &Config) -> String {
    if config.backends.is_empty() && config.discovery.is_none() {
        return format!("the pool {DEFAULT_POOL} has no back-ends");
    }
    let mut cluster = Cluster::new(config.backends.len());
    for (index, backend) in config.backends.iter().enumerate() {
        cluster.set_weight(BackendId(u16::try_from(index).unwrap_or(u16::MAX)), backend.weight);
    }
    let limit = config.admission_limit();
    let a = &config.admission;
    let bound = match limit {
        AdmissionLimit::Unlimited => return "no limit".to_owned(),
        AdmissionLimit::Fixed(n) => format!("at most {n} requests"),
        AdmissionLimit::Lard(t) | AdmissionLimit::Adaptive(t) => {
            let more = if let AdmissionLimit::Adaptive(_) = limit {
                ", more when they are not overloaded"
            } else {
                ""
            };
            let Thresholds { t_low, t_high } = t;
            // Nobody knows how many a directory or a name server will tell of.
            let bound = if config.discovery.is_some() || config.backends.iter().any(|b| b.resolve.is_some()) {
                "as many requests as the back-ends that are up allow".to_owned()
            } else {
                format!("at most {} requests while all back-ends are up", limit.requests(&cluster))
            };
            format!("{bound} (t_low = {t_low}, t_high = {t_high}){more}")
        }
    };
    format!("{bound}; {} may wait for {} s", a.queue, a.queue_timeout.as_secs_f64())
}

fn health(config: &Config) -> String {
    let h = &config.health;
    let what = match &h.probe {
        HealthProbe::None => return "none; back-ends are taken to be up".to_owned(),
        HealthProbe::Tcp => "TCP connection".to_owned(),
        HealthProbe::Http { path, status_min, status_max, .. } => {
            format!("GET {path}, good with status {status_min} to {status_max}")
        }
    };
    format!(
        "{what}; every {} s, up after {} good, down after {} bad",
        h.interval.as_secs_f64(),
        h.rise,
        h.fall
    )
}

fn admin(config: &Config) -> String {
    match &config.admin {
        None => "off".to_owned(),
        Some(admin) if admin.token.is_some() => format!("{}, with a token", admin.address),
        Some(admin) => format!("{}, without a token", admin.address),
    }
}

fn access_log(config: &Config) -> String {
    let Some(log) = &config.access_log else { return "none".to_owned() };
    let file = log.file.as_ref().map_or_else(|| "standard output".to_owned(), |f| f.display().to_string());
    match log.format {
        AccessLogFormat::Combined => format!("{file}, combined format"),
        AccessLogFormat::Json => format!("{file}, JSON lines"),
    }
}

fn decision_log(config: &Config) -> String {
    let Some(log) = &config.decision_log else { return "none".to_owned() };
    let (directory, files) = (log.directory.display(), log.files);
    format!("{directory}, at most {files} files of {}", plimsoll_report::format::bytes(log.file_bytes as f64))
}

fn backends(config: &Config) -> String {
    let mut table = Table::new([
        ("Back-end", Align::Left),
        ("Address", Align::Left),
        ("Weight", Align::Right),
        ("Connections", Align::Right),
    ]);
    if config.all_backends().next().is_none() {
        return String::new();
    }
    for b in config.all_backends() {
        table.row([&*b.name, &b.address(), &b.weight.as_f64().to_string(), &b.max_connections.to_string()]);
    }
    table.to_text()
}
