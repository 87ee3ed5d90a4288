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
        perfmon: true,
        bind_service: true,
        sys_admin: true,
        first_free_port: 1024,
        ports: vec![80],
        kernel: "6.1.0-13-amd64".to_owned(),
        bpf_fs: true,
        pins: Some(Ok(())),
        programs: ProgramsTried::Attached,
        repair: Ok(()),
        diagnosis: Some(diagnosis::Diagnosis::Answers),
        tracks_loosely: Some(true),
        routes: false,
        interfaces: vec![("eth0".to_owned(), Some(interface))],
        vips: vec![],
        unused: vec![("10.0.0.1:80".parse().unwrap(), Transport::Tcp, false)],
        taken: Ok(vec![]),
        peers: vec![("10.0.0.2".parse().unwrap(), Ok(()))],
        sources: vec![("10.0.0.2".parse().unwrap(), Ok("10.0.0.9".parse().unwrap()))],
        shared: vec![],
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
fn somebody_listens_where_packets_are_distributed() {
    for (by, name) in [(Transport::Tcp, "listener 10.0.0.1:80"), (Transport::Udp, "listener 10.0.0.1:80/udp")]
    {
        let unused = vec![("10.0.0.1:80".parse().unwrap(), by, true)];
        let found = complaints(&SystemFacts { unused, ..facts(Role::FrontEnd) });
        assert_eq!(found, one(name, Status::Warning));
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
        perfmon: false,
        bind_service: false,
        sys_admin: false,
        bpf_fs: false,
        pins: None,
        programs: ProgramsTried::Failed("Operation not permitted".to_owned()),
        repair: Err("Operation not permitted".to_owned()),
        ..facts(Role::Backend)
    };
    let expected = [
        ("CAP_NET_ADMIN", Status::Missing),
        ("CAP_BPF", Status::Missing),
        ("CAP_PERFMON", Status::Missing),
        ("CAP_NET_BIND_SERVICE", Status::Missing),
        ("BPF file system", Status::Warning),
        ("packet programs", Status::Missing),
        ("TCP_REPAIR", Status::Missing),
    ];
    assert_eq!(complaints(&none), expected.map(|(name, status)| (name.to_owned(), status)));
    let may_mount = SystemFacts { bpf_fs: false, ..facts(Role::FrontEnd) };
    assert_eq!(complaints(&may_mount), []);
}

#[test]
fn a_plain_user_with_capabilities_only() {
    let plain = SystemFacts { sys_admin: false, programs: ProgramsTried::Loaded, ..facts(Role::FrontEnd) };
    assert_eq!(complaints(&plain), []);
    let no_pins = SystemFacts { pins: Some(Err("Permission denied".to_owned())), ..plain };
    assert_eq!(complaints(&no_pins), one("pinned maps", Status::Warning));
    for (name, change) in [
        ("CAP_NET_ADMIN", (|facts| facts.net_admin = false) as fn(&mut SystemFacts)),
        ("CAP_BPF", |facts| facts.bpf = false),
        ("CAP_PERFMON", |facts| facts.perfmon = false),
        ("CAP_NET_BIND_SERVICE", |facts| facts.bind_service = false),
    ] {
        let mut facts = facts(Role::FrontEnd);
        change(&mut facts);
        assert_eq!(complaints(&facts), one(name, Status::Missing));
    }
}

#[test]
fn connection_tracking() {
    let with = |tracks_loosely| complaints(&SystemFacts { tracks_loosely, ..facts(Role::Backend) });
    assert_eq!(with(None), []);
    assert_eq!(with(Some(false)), one("nf_conntrack_tcp_loose", Status::Warning));
}

#[test]
fn low_ports() {
    let with = |role, ports: &[u16], first_free_port| {
        let ports = ports.to_vec();
        complaints(&SystemFacts { bind_service: false, ports, first_free_port, ..facts(role) })
    };
    let name = "CAP_NET_BIND_SERVICE";
    assert_eq!(with(Role::FrontEnd, &[8080, 443], 1024), one(name, Status::Missing));
    assert_eq!(with(Role::FrontEnd, &[8080], 1024), []);
    assert_eq!(with(Role::FrontEnd, &[80], 80), []);
    assert_eq!(with(Role::Backend, &[], 1024), one(name, Status::Warning));
    assert_eq!(with(Role::Backend, &[], 0), []);
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
fn listeners_whose_packets_a_switch_takes() {
    let with = |process| {
        let taken = Ok(vec![("10.0.0.1:80".parse().unwrap(), process)]);
        complaints(&SystemFacts { taken, ..facts(Role::FrontEnd) })
    };
    let (name, own) = ("listener 10.0.0.1:80", || "switch".to_owned());
    assert_eq!(with(SwitchProcess::Runs(own())), one(name, Status::Missing));
    assert_eq!(with(SwitchProcess::Unseen), one(name, Status::Missing));
    assert_eq!(with(SwitchProcess::Ended(own())), one(name, Status::Warning));
    let unknown = SystemFacts { taken: Err("it may not".to_owned()), ..facts(Role::FrontEnd) };
    assert_eq!(complaints(&unknown), one("packet programs at interfaces", Status::Warning));
}

#[test]
fn peers() {
    let mut far = facts(Role::Backend);
    far.peers[0].1 = Err("reached through a gateway".to_owned());
    assert_eq!(complaints(&far), one("peer 10.0.0.2", Status::Missing));
}

/// The kernel may choose the virtual address to connect from, above all one of IPv6 that came last.
#[test]
fn connections_from_a_virtual_address() {
    for (vip, remedy) in [("10.0.0.80", "ip route change … src"), ("2001:db8::80", "preferred_lft 0")] {
        let vip: IpAddr = vip.parse().unwrap();
        let mut from_it = facts(Role::FrontEnd);
        from_it.vips = vec![(vip, vec!["eth0".to_owned()])];
        from_it.shared = vec![vip];
        assert_eq!(complaints(&from_it), []);
        from_it.sources[0].1 = Ok(vip);
        assert_eq!(complaints(&from_it), one("connections to 10.0.0.2", Status::Missing));
        let told = judge(&from_it).pop().and_then(|finding| finding.remedy).unwrap();
        assert!(told.contains(remedy) && told.contains("eth0"), "{told}");
    }
    let mut nowhere = facts(Role::Backend);
    nowhere.sources[0].1 = Err("there is no route to 10.0.0.2".to_owned());
    assert_eq!(complaints(&nowhere), one("connections to 10.0.0.2", Status::Missing));
}
