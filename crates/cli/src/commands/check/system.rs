//! `plimsoll check --system`: checks whether this machine meets the requirements.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use plimsoll_config::{BackendConfig, Config, DirectVia, HostPort, ListenerConfig, ListenerProtocol};
use plimsoll_datapath::switch::Transport;
use plimsoll_datapath::system::{self, Finding, Question, Role, Status};
use serde_json::json;

use crate::error::CliError;
use crate::output;

/// The requirements of a configuration on the front-end's machine. Without `resolve`, agents and back-ends that have a
/// name are left out.
pub(super) fn question(config: &Config, resolve: bool) -> Result<Question, CliError> {
    let direct = config.direct.as_ref();
    // With `direct`, packets go to the back-ends themselves; in tunnels, over routers.
    let peer = |b: &'_ BackendConfig| match direct.map(|direct| direct.via) {
        None => b.agent.clone(),
        Some(DirectVia::Ethernet) => b.at.host().cloned(),
        Some(DirectVia::Ipip | DirectVia::Gue) => None,
    };
    let peers = addresses_of(config.backends.iter().filter_map(|b| Some((&*b.name, peer(b)?))), resolve)?;
    // Those that have the virtual addresses, too: all of a switch, and agents' machines. Health checks go to the back-ends' addresses.
    let answering = config.backends.iter().filter(|b| direct.is_some() || b.agent.is_some());
    let connected = answering.flat_map(|b| {
        let at = [b.at.host().cloned(), b.agent.clone().filter(|_| direct.is_none())];
        at.into_iter().flatten().map(|at| (&*b.name, at))
    });
    let mut destinations = addresses_of(connected, resolve)?;
    destinations.sort_unstable();
    destinations.dedup();
    // Where front-ends share the address, only the active one's machine has it.
    let is_shared = config.failover.is_some();
    let addresses = config.listeners.iter().map(|l| l.address);
    // A proxy needs no virtual address, so its back-ends have none.
    let interfaces = direct
        .map(|direct| &direct.interfaces)
        .or_else(|| config.handoff.as_ref().map(|handoff| &handoff.interfaces));
    let ports = addresses.clone().map(|address| address.port()).filter(|port| *port != 0);
    Ok(Question {
        role: Role::FrontEnd,
        interfaces: interfaces.cloned().unwrap_or_default(),
        vips: if is_shared { Vec::new() } else { addresses.clone().map(|address| address.ip()).collect() },
        ports: if direct.is_some() { Vec::new() } else { ports.collect() },
        unused: if direct.is_some() { config.listeners.iter().map(unused).collect() } else { Vec::new() },
        listeners: if direct.is_some() { Vec::new() } else { addresses.clone().collect() },
        peers,
        destinations: if interfaces.is_some() { destinations } else { Vec::new() },
        shared: addresses.map(|address| address.ip().to_canonical()).collect(),
    })
}

/// The addresses of these back-ends. Without `resolve`, those that have a name are left out.
fn addresses_of<'a>(
    named: impl Iterator<Item = (&'a str, HostPort)>,
    resolve: bool,
) -> Result<Vec<IpAddr>, CliError> {
    let asked = named.filter(|(_, at)| resolve || at.host.parse::<IpAddr>().is_ok());
    let find = |(name, at): (&str, HostPort)| {
        let found = (&*at.host, at.port).to_socket_addrs().ok().and_then(|mut all| all.next());
        found.map(|address| address.ip()).ok_or_else(|| {
            CliError::Failed(format!("back-end `{name}`: cannot find the address of {}", at.host))
        })
    };
    asked.map(find).collect()
}

/// With `direct` back-ends listen there, and this machine does not.
fn unused(listener: &ListenerConfig) -> (SocketAddr, Transport) {
    let by = match listener.protocol {
        ListenerProtocol::Tcp => Transport::Tcp,
        ListenerProtocol::Udp => Transport::Udp,
    };
    (listener.address, by)
}

/// Prints the findings; fails when something is missing.
pub(super) fn report(question: &Question, as_json: bool) -> Result<(), CliError> {
    let findings = system::check(question);
    if as_json {
        let entry = |f: &Finding| json!({ "name": f.name, "status": word(f.status), "meaning": f.meaning, "remedy": f.remedy });
        output::print(&json!(findings.iter().map(entry).collect::<Vec<_>>()).to_string())?;
    } else {
        output::print(&findings.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    }
    let missing = findings.iter().filter(|f| f.status == Status::Missing).count();
    match missing {
        0 => Ok(()),
        1 => Err(CliError::Failed("1 thing is missing on this machine".to_owned())),
        n => Err(CliError::Failed(format!("{n} things are missing on this machine"))),
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Warning => "warning",
        Status::Missing => "missing",
    }
}

fn text(finding: &Finding) -> String {
    let mut out = format!("{:<8} {}: {}", word(finding.status), finding.name, finding.meaning);
    if let Some(remedy) = &finding.remedy {
        out += &format!("\n         {remedy}");
    }
    out
}
