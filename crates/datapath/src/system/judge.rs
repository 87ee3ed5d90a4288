//! Derives findings from facts. Pure.

use std::net::IpAddr;

use super::diagnosis;
use super::facts::{Interface, SystemFacts};
use super::finding::Finding;
use super::question::Role;

pub(super) fn judge(facts: &SystemFacts) -> Vec<Finding> {
    let mut findings = vec![kernel(facts), capability_net(facts), capability_bpf(facts), bpf_fs(facts)];
    findings.push(programs(facts));
    findings.push(repair(facts));
    findings.extend(facts.diagnosis.as_ref().map(diagnosis::judge));
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
    findings.extend(facts.peers.iter().map(|(peer, found)| judge_peer(*peer, found)));
    findings
}

/// Programs of type `syscall` came with 5.14, frames that a test run has received with 5.18.
fn kernel(facts: &SystemFacts) -> Finding {
    let (least, what) = match facts.role {
        Role::FrontEnd => ((5, 14), "leads flows elsewhere in one step"),
        Role::Backend => ((5, 18), "takes held packets back in"),
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

fn capability_net(facts: &SystemFacts) -> Finding {
    let name = "CAP_NET_ADMIN";
    if facts.net_admin {
        return Finding::ok(name, "this process may attach programs and repair sockets");
    }
    let meaning = "this process may neither attach programs to interfaces nor repair sockets";
    Finding::missing(name, meaning, "run as root, or grant it (systemd: AmbientCapabilities=CAP_NET_ADMIN)")
}

fn capability_bpf(facts: &SystemFacts) -> Finding {
    let name = "CAP_BPF, CAP_PERFMON";
    if facts.bpf {
        return Finding::ok(name, "this process may load programs");
    }
    let remedy =
        "run as root, or grant both (systemd: AmbientCapabilities=CAP_BPF CAP_PERFMON CAP_NET_ADMIN)";
    Finding::missing(name, "this process may not load programs", remedy)
}

fn bpf_fs(facts: &SystemFacts) -> Finding {
    let name = "BPF file system";
    let remedy = "mount -t bpf bpf /sys/fs/bpf";
    match (facts.bpf_fs, facts.sys_admin) {
        (true, _) => Finding::ok(name, "mounted; connections in progress outlive a restart of the process"),
        (false, true) => Finding::ok(name, "not mounted; it will be, as this process may do that"),
        (false, false) => Finding::missing(name, "not mounted, and this process may not do that", remedy),
    }
}

fn programs(facts: &SystemFacts) -> Finding {
    let name = "packet programs";
    match &facts.programs {
        Some(Ok(())) => Finding::ok(name, "load, and can be attached with tc (clsact)"),
        Some(Err(error)) => Finding::missing(
            name,
            error,
            "the kernel needs BPF_SYSCALL, BPF_JIT, NET_CLS_BPF, NET_CLS_ACT and NET_SCH_INGRESS",
        ),
        None => Finding::warning(
            name,
            "not tried: this process may not make a network namespace to try them in",
            "repeat this as root",
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

fn judge_peer(peer: IpAddr, found: &Result<(), String>) -> Finding {
    let name = format!("peer {peer}");
    match found {
        Ok(()) => Finding::ok(name, "on the same segment, and its MAC address is known"),
        Err(error) => {
            Finding::missing(name, error, "connect both machines to one Ethernet segment (or VLAN)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Status;

    fn facts(role: Role) -> SystemFacts {
        let interface = Interface {
            ethernet: true,
            merged_bytes: Some(65536),
            large_receive: Some(false),
            rp_filter: 0,
            arp_ignore: 0,
            arp_announce: 0,
            accept_local: 0,
        };
        SystemFacts {
            role,
            net_admin: true,
            bpf: true,
            sys_admin: true,
            kernel: "6.1.0-13-amd64".to_owned(),
            bpf_fs: true,
            programs: Some(Ok(())),
            repair: Ok(()),
            diagnosis: Some(diagnosis::Diagnosis::Answers),
            routes: false,
            interfaces: vec![("eth0".to_owned(), Some(interface))],
            vips: vec![],
            peers: vec![("10.0.0.2".parse().unwrap(), Ok(()))],
        }
    }

    /// What is not in order, by the beginning of its name.
    fn complaints(facts: &SystemFacts) -> Vec<(String, Status)> {
        let bad = judge(facts).into_iter().filter(|finding| finding.status != Status::Ok);
        bad.map(|finding| {
            assert!(finding.remedy.is_some() && !finding.meaning.is_empty(), "{finding:?}");
            (finding.name, finding.status)
        })
        .collect()
    }

    fn one(name: &str, status: Status) -> Vec<(String, Status)> {
        vec![(name.to_owned(), status)]
    }

    #[test]
    fn a_machine_in_order_has_no_complaints() {
        for role in [Role::FrontEnd, Role::Backend] {
            assert_eq!(complaints(&facts(role)), []);
            assert!(judge(&facts(role)).len() >= 8);
        }
    }

    #[test]
    fn kernels() {
        let with = |role, kernel: &str| {
            let facts = SystemFacts { kernel: kernel.to_owned(), ..facts(role) };
            complaints(&facts)
        };
        assert_eq!(with(Role::FrontEnd, "5.14.0"), []);
        assert_eq!(with(Role::Backend, "5.18"), []);
        for old in ["5.13.9", "4.19", "", "x"] {
            assert_eq!(with(Role::FrontEnd, old), one("kernel", Status::Missing), "{old}");
        }
        assert_eq!(with(Role::Backend, "5.17.3-arch1"), one("kernel", Status::Missing));
    }

    #[test]
    fn privileges() {
        let none = SystemFacts {
            net_admin: false,
            bpf: false,
            sys_admin: false,
            bpf_fs: false,
            programs: None,
            repair: Err("Operation not permitted".to_owned()),
            ..facts(Role::Backend)
        };
        let expected = [
            ("CAP_NET_ADMIN", Status::Missing),
            ("CAP_BPF, CAP_PERFMON", Status::Missing),
            ("BPF file system", Status::Missing),
            ("packet programs", Status::Warning),
            ("TCP_REPAIR", Status::Missing),
        ];
        assert_eq!(complaints(&none), expected.map(|(name, status)| (name.to_owned(), status)));
        let may_mount = SystemFacts { bpf_fs: false, ..facts(Role::FrontEnd) };
        assert_eq!(complaints(&may_mount), []);
    }

    fn change(role: Role, change: impl FnOnce(&mut Interface)) -> SystemFacts {
        let mut facts = facts(role);
        change(facts.interfaces[0].1.as_mut().unwrap());
        facts
    }

    #[test]
    fn interfaces() {
        let lro = change(Role::FrontEnd, |interface| interface.large_receive = Some(true));
        assert_eq!(complaints(&lro), one("eth0: large receive offload", Status::Warning));
        let big = change(Role::FrontEnd, |interface| interface.merged_bytes = Some(200_000));
        assert_eq!(complaints(&big), one("eth0: gro_max_size", Status::Warning));
        let strict = change(Role::Backend, |interface| interface.rp_filter = 1);
        assert_eq!(complaints(&strict), one("eth0: rp_filter", Status::Warning));
        let tunnel = change(Role::Backend, |interface| interface.ethernet = false);
        assert_eq!(complaints(&tunnel), one("interface eth0", Status::Missing));
        let router = SystemFacts { routes: true, ..facts(Role::FrontEnd) };
        assert_eq!(complaints(&router), one("eth0: accept_local", Status::Warning));
        let mut none = facts(Role::FrontEnd);
        none.interfaces[0].1 = None;
        assert_eq!(complaints(&none), one("interface eth0", Status::Missing));
    }

    #[test]
    fn virtual_addresses() {
        let with = |role, holders: &[&str]| {
            let holders = holders.iter().map(ToString::to_string).collect();
            SystemFacts { vips: vec![("10.0.0.1".parse().unwrap(), holders)], ..facts(role) }
        };
        let name = "virtual address 10.0.0.1";
        assert_eq!(complaints(&with(Role::FrontEnd, &["eth0"])), []);
        assert_eq!(complaints(&with(Role::FrontEnd, &[])), one(name, Status::Missing));
        assert_eq!(complaints(&with(Role::FrontEnd, &["lo"])), one(name, Status::Warning));
        assert_eq!(complaints(&with(Role::Backend, &[])), []);
        let arp = "eth0: arp_ignore, arp_announce";
        assert_eq!(complaints(&with(Role::Backend, &["lo"])), one(arp, Status::Missing));
        let announced = complaints(&with(Role::Backend, &["eth0"]));
        assert!(announced.contains(&(name.to_owned(), Status::Missing)), "{announced:?}");
    }

    #[test]
    fn peers() {
        let mut far = facts(Role::Backend);
        far.peers[0].1 = Err("reached through a gateway".to_owned());
        assert_eq!(complaints(&far), one("peer 10.0.0.2", Status::Missing));
    }
}
