//! Derives findings from facts. Pure.

use std::net::{IpAddr, SocketAddr};

use super::diagnosis;
use super::facts::{Interface, ProgramsTried, SystemFacts};
use super::finding::Finding;
use super::question::Role;
use crate::switch::{SwitchProcess, Transport};

pub(super) fn judge(facts: &SystemFacts) -> Vec<Finding> {
    let mut findings = vec![kernel(facts)];
    findings.extend(capabilities(facts));
    findings.push(bpf_fs(facts));
    findings.extend(facts.pins.as_ref().map(pins));
    findings.push(programs(facts));
    findings.push(repair(facts));
    findings.extend(facts.diagnosis.as_ref().map(diagnosis::judge));
    findings.extend(facts.tracks_loosely.map(tracking));
    for (name, interface) in &facts.interfaces {
        match interface {
            Some(interface) => judge_interface(facts, name, interface, &mut findings),
            None => findings.push(Finding::missing(
                format!("interface {name}"),
                "there is no such interface",
                "name one that `ip link` lists",
            )),
        }
    }
    findings.extend(facts.vips.iter().map(|(vip, holders)| judge_vip(facts, *vip, holders)));
    findings.extend(facts.unused.iter().map(|&(address, by, is_used)| judge_unused(address, by, is_used)));
    findings.extend(judge_taken(&facts.taken));
    findings.extend(facts.peers.iter().map(|(peer, found)| judge_peer(*peer, found)));
    findings.extend(facts.sources.iter().map(|(to, source)| judge_source(facts, *to, source)));
    findings
}

/// Programs of type `syscall` came with 5.14, addresses that say who made them with 5.18.
fn kernel(facts: &SystemFacts) -> Finding {
    let (least, what) = match facts.role {
        Role::FrontEnd => ((5, 14), "leads flows elsewhere in one step"),
        Role::Backend => ((5, 18), "tells who made an address"),
    };
    let mut numbers =
        facts.kernel.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let meaning = format!("Linux {}; {}.{} is the first that {what}", facts.kernel, least.0, least.1);
    if found >= least {
        Finding::ok("kernel", meaning)
    } else {
        Finding::missing("kernel", meaning, "install a newer kernel")
    }
}

/// One finding for each capability.
fn capabilities(facts: &SystemFacts) -> Vec<Finding> {
    let needed = |name: &str, has: bool, what: &str| {
        let remedy = format!("run as root, or grant it (systemd: AmbientCapabilities={name})");
        match has {
            true => Finding::ok(name, format!("this process may {what}")),
            false => Finding::missing(name, format!("this process may not {what}"), remedy),
        }
    };
    vec![
        needed("CAP_NET_ADMIN", facts.net_admin, "attach programs to interfaces and repair sockets"),
        needed("CAP_BPF", facts.bpf, "load programs and use their maps"),
        needed(
            "CAP_PERFMON",
            facts.perfmon,
            "load programs that the kernel would otherwise find too complex",
        ),
        capability_bind(facts),
    ]
}

/// A connection that comes back is bound to its port too.
fn capability_bind(facts: &SystemFacts) -> Finding {
    let name = "CAP_NET_BIND_SERVICE";
    let least = facts.first_free_port;
    let is_low = |port: &&u16| u32::from(**port) < least;
    let remedy = "run as root, or grant it (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE)";
    if facts.bind_service {
        return Finding::ok(name, "this process may listen at any port");
    }
    match (facts.role, facts.ports.iter().find(is_low)) {
        (_, Some(port)) => Finding::missing(
            name,
            format!("this process may not bind port {port}, which is below {least}"),
            remedy,
        ),
        (Role::FrontEnd, None) => Finding::ok(name, format!("not needed for ports from {least} on")),
        (Role::Backend, None) if least == 0 => Finding::ok(name, "not needed: anybody may bind any port"),
        (Role::Backend, None) => Finding::warning(
            name,
            format!("connections to ports below {least} cannot be taken over"),
            format!("none where clients connect to ports from {least} on; otherwise {remedy}"),
        ),
    }
}

fn pins(found: &Result<(), String>) -> Finding {
    let name = "pinned maps";
    match found {
        Ok(()) => Finding::ok(name, "connections in progress outlive a restart of the process"),
        Err(error) => Finding::warning(
            name,
            format!("connections in progress do not outlive a restart of the process: {error}"),
            "start as root and let the process become its user, or let that user make directories there (chmod 1777 /sys/fs/bpf, \
             the kernel's own default)",
        ),
    }
}

fn bpf_fs(facts: &SystemFacts) -> Finding {
    let name = "BPF file system";
    let remedy = "mount -t bpf bpf /sys/fs/bpf";
    match (facts.bpf_fs, facts.sys_admin) {
        (true, _) => Finding::ok(name, "mounted"),
        (false, true) => Finding::ok(name, "not mounted; it will be, as this process may do that"),
        (false, false) => {
            let meaning = "not mounted, and this process may not do that: connections in progress do not outlive its restart";
            Finding::warning(name, meaning, remedy)
        }
    }
}

fn programs(facts: &SystemFacts) -> Finding {
    let name = "packet programs";
    match &facts.programs {
        ProgramsTried::Attached => Finding::ok(name, "load, and can be attached with tc (clsact)"),
        ProgramsTried::Loaded => Finding::ok(
            name,
            "load; attaching was not tried, as this process may not make a network to try it in",
        ),
        ProgramsTried::Failed(error) => Finding::missing(
            name,
            error,
            "grant the capabilities above; the kernel needs BPF_SYSCALL, BPF_JIT, NET_CLS_BPF, NET_CLS_ACT and NET_SCH_INGRESS",
        ),
    }
}

fn repair(facts: &SystemFacts) -> Finding {
    let name = "TCP_REPAIR";
    match &facts.repair {
        Ok(()) => Finding::ok(name, "sockets can be taken out of the kernel and put back"),
        Err(error) => {
            let meaning = format!("sockets cannot be taken out of the kernel: {error}");
            Finding::missing(name, meaning, "it needs CAP_NET_ADMIN in the network namespace")
        }
    }
}

fn judge_interface(facts: &SystemFacts, name: &str, interface: &Interface, findings: &mut Vec<Finding>) {
    findings.push(if interface.ethernet {
        Finding::ok(format!("interface {name}"), "Ethernet")
    } else {
        let meaning = "no Ethernet: packets are sent on by MAC address";
        Finding::missing(format!("interface {name}"), meaning, "name the interface of the Ethernet segment")
    });
    match facts.role {
        Role::FrontEnd => {
            findings.push(merging(name, interface));
            findings.extend(large_packets(name, interface));
            findings.extend(local_sources(facts, name, interface));
        }
        Role::Backend => {
            findings.push(reverse_path(name, interface));
            findings.push(address_resolution(facts, name, interface));
        }
    }
}

/// A connection that is handed off begins on another machine.
fn tracking(loosely: bool) -> Finding {
    let label = "nf_conntrack_tcp_loose";
    match loosely {
        true => Finding::ok(label, "1: connection tracking takes connections up that were handed off"),
        false => Finding::warning(
            label,
            "0: to connection tracking, packets of connections that were handed off are `invalid`; if a rule drops those, such \
             connections hang",
            "sysctl -w net.netfilter.nf_conntrack_tcp_loose=1, or `notrack` for the virtual addresses",
        ),
    }
}

fn merging(name: &str, interface: &Interface) -> Finding {
    let label = format!("{name}: large receive offload");
    match interface.large_receive {
        Some(true) => Finding::warning(
            label,
            "on: packets that the hardware has merged cannot be sent on, and are lost",
            format!("ethtool -K {name} lro off"),
        ),
        _ => Finding::ok(label, "off; what the kernel merges (GRO) is cut up again when it is sent on"),
    }
}

fn large_packets(name: &str, interface: &Interface) -> Option<Finding> {
    let bytes = interface.merged_bytes.filter(|bytes| *bytes > 65536)?;
    Some(Finding::warning(
        format!("{name}: gro_max_size"),
        format!("{bytes}: IPv6 packets merged beyond 64 KiB have an extension header, and are not sent on"),
        format!("ip link set dev {name} gro_max_size 65536"),
    ))
}

/// Answers that pass through the front-end come from its own address.
fn local_sources(facts: &SystemFacts, name: &str, interface: &Interface) -> Option<Finding> {
    if !facts.routes {
        return None;
    }
    let label = format!("{name}: accept_local");
    Some(match interface.accept_local {
        0 => Finding::warning(
            label,
            "0, and this machine routes: if back-ends reach clients through it, their answers, which come from its own \
             address, are dropped",
            format!(
                "give back-ends another route to clients, or sysctl -w net.ipv4.conf.{name}.accept_local=1"
            ),
        ),
        _ => Finding::ok(label, "1: answers of back-ends may pass through this machine"),
    })
}

fn reverse_path(name: &str, interface: &Interface) -> Finding {
    let label = format!("{name}: rp_filter");
    match interface.rp_filter {
        1 => Finding::warning(
            label,
            "1 (strict): packets of clients to whom the route is another interface are dropped",
            format!("if {name} is not the default route: sysctl -w net.ipv4.conf.{name}.rp_filter=2"),
        ),
        value => {
            Finding::ok(label, format!("{value}: clients' packets are taken whatever the route to them"))
        }
    }
}

fn address_resolution(facts: &SystemFacts, name: &str, interface: &Interface) -> Finding {
    let label = format!("{name}: arp_ignore, arp_announce");
    let (ignore, announce) = (interface.arp_ignore, interface.arp_announce);
    let has_vip = facts.vips.iter().any(|(vip, holders)| vip.is_ipv4() && !holders.is_empty());
    if has_vip && (ignore < 1 || announce < 2) {
        return Finding::missing(
            label,
            format!(
                "{ignore} and {announce}: this machine answers for the virtual address, and takes it from the front-end"
            ),
            format!("sysctl -w net.ipv4.conf.{name}.arp_ignore=1 net.ipv4.conf.{name}.arp_announce=2"),
        );
    }
    Finding::ok(
        label,
        format!("{ignore} and {announce}; the agent sets 1 and 2 while it has virtual addresses"),
    )
}

fn judge_vip(facts: &SystemFacts, vip: IpAddr, holders: &[String]) -> Finding {
    let name = format!("virtual address {vip}");
    let elsewhere = holders.iter().find(|holder| *holder != "lo");
    match (facts.role, elsewhere, holders.is_empty()) {
        (Role::FrontEnd, None, true) => Finding::missing(
            name,
            "no interface of this machine has it",
            format!("ip address add {vip} dev INTERFACE"),
        ),
        (Role::FrontEnd, None, false) => Finding::warning(
            name,
            "only the loopback interface has it, so nobody finds it unless a router leads there",
            "add it to the interface at which clients' packets arrive",
        ),
        (Role::FrontEnd, Some(holder), _) => Finding::ok(name, format!("{holder} has it")),
        (Role::Backend, Some(holder), _) => Finding::missing(
            name,
            format!("{holder} has it, and announces it to the segment: it is the front-end's there"),
            format!("ip address del {vip} dev {holder}; the agent puts it on lo"),
        ),
        (Role::Backend, None, true) => Finding::ok(name, "not there yet; the agent puts it on lo"),
        (Role::Backend, None, false) => Finding::ok(name, "on lo"),
    }
}

/// A socket there would answer clients of a back-end that is gone, and back-ends' connections would be unknown to it.
fn judge_unused(address: SocketAddr, by: Transport, is_used: bool) -> Finding {
    let (name, told, sockets) = match by {
        Transport::Tcp => (format!("listener {address}"), "are reset", "-ltnp"),
        Transport::Udp => {
            (format!("listener {address}/udp"), "are told that the port is unreachable", "-lunp")
        }
    };
    match is_used {
        false => Finding::ok(
            name,
            format!("nobody of this machine listens there: clients of a back-end that is gone {told}"),
        ),
        true => Finding::warning(
            name,
            "a process of this machine listens there, and gets what no back-end is there for",
            format!(
                "stop it, or have it listen at other addresses (`ss {sockets} 'sport = {}'`)",
                address.port()
            ),
        ),
    }
}

/// A switch sends packets on before any socket sees them.
fn judge_taken(taken: &Result<Vec<(SocketAddr, SwitchProcess)>, String>) -> Vec<Finding> {
    let of = |(listener, process): &(SocketAddr, SwitchProcess)| {
        let name = format!("listener {listener}");
        let stop = "stop that front-end with `mechanism = \"direct\"`, or listen elsewhere";
        match process {
            SwitchProcess::Runs(switch) => {
                Finding::missing(name, format!("the switch `{switch}` takes all packets to it"), stop)
            }
            SwitchProcess::Unseen => Finding::missing(
                name,
                "a switch whose process cannot be seen from here takes all packets to it",
                stop,
            ),
            SwitchProcess::Ended(switch) => Finding::warning(
                name,
                format!(
                    "the switch `{switch}`, which has ended, left its packet program, and it takes new connections"
                ),
                "start this front-end, which takes them back",
            ),
        }
    };
    match taken {
        Ok(taken) => taken.iter().map(of).collect(),
        Err(error) => vec![Finding::warning(
            "packet programs at interfaces",
            format!(
                "{error}: a front-end with mechanism = \"direct\" may have left one that takes this one's packets"
            ),
            "check as root",
        )],
    }
}

fn judge_peer(peer: IpAddr, found: &Result<(), String>) -> Finding {
    let name = format!("peer {peer}");
    match found {
        Ok(()) => Finding::ok(name, "on the same segment, and its MAC address is known"),
        Err(error) => {
            Finding::missing(name, error, "connect both machines to one Ethernet segment (or VLAN)")
        }
    }
}

/// Machines that have a virtual address themselves keep answers to it.
fn judge_source(facts: &SystemFacts, to: IpAddr, source: &Result<IpAddr, String>) -> Finding {
    let name = format!("connections to {to}");
    let source = match source {
        Ok(source) => *source,
        Err(error) => return Finding::missing(name, error, "give an interface an address, and a route"),
    };
    if !facts.shared.contains(&source) {
        return Finding::ok(name, format!("come from {source}"));
    }
    let holders = facts.vips.iter().find(|(vip, _)| *vip == source).map(|(_, holders)| holders);
    let holder = holders.and_then(|holders| holders.first()).map_or("INTERFACE", String::as_str);
    let remedy = match source {
        IpAddr::V4(_) => {
            format!(
                "give {holder} its own address before {source}, or name it in the route: ip route change … src ADDRESS"
            )
        }
        IpAddr::V6(_) => format!("ip address change {source}/128 dev {holder} preferred_lft 0"),
    };
    let meaning =
        format!("come from the virtual address {source}, which {to} has, too: its answers never leave it");
    Finding::missing(name, meaning, remedy)
}

#[cfg(test)]
mod tests;
