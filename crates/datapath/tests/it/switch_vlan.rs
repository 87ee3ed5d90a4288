//! Clients' frames come in one VLAN and back-ends are in another: real kernels, which know no VLANs.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use plimsoll_datapath::switch::{
    ConnHolder, FrameTag, Switch, SwitchConfig, SwitchHook, TABLE_SLOTS, Transport,
};
use plimsoll_datapath::{NextHop, VlanEnd};
use plimsoll_testkit::{PATIENCE, uninterrupted};

use crate::network::{Instance, Machine, opened};
use crate::switch::config;

const VIPS: [&str; 2] = ["10.61.0.80", "fd61::80"];
const BYTES: usize = 200_000;
/// The number of the VLAN in which a router sends to the switch, and of the one in which back-ends are.
const FRONT: u16 = 10;
const BACK: u16 = 20;

/// A client behind a router that is in both VLANs, and a switch and a back-end on one wire with it.
struct World {
    client: Machine,
    router: Machine,
    switch: Machine,
    back_end: Machine,
    hub: Machine,
    instance: Instance,
}

impl World {
    fn new() -> Self {
        let [client, router, switch, back_end, hub] = [(); 5].map(|()| Machine::new());
        router.ip(&format!("link add out type veth peer name eth0 netns {}", client.name));
        hub.ip("link add hub type bridge");
        hub.ip("link set hub up");
        // (machine, its interface, network, host)
        let ends = [
            (&client, "eth0", 1, 2),
            (&router, "out", 1, 1),
            (&router, "front", FRONT, 1),
            (&router, "back", BACK, 1),
            (&switch, "eth0", FRONT, 2),
            (&back_end, "eth0", BACK, 3),
        ];
        for (number, (machine, interface, network, host)) in ends.into_iter().enumerate() {
            if number > 1 {
                hub.ip(&format!("link add n{number} type veth peer name {interface} netns {}", machine.name));
                hub.ip(&format!("link set n{number} master hub up"));
            }
            machine.ip(&format!("addr add 10.61.{network}.{host}/24 dev {interface}"));
            machine.ip(&format!("addr add fd61:{network}::{host}/64 dev {interface} nodad"));
            machine.ip(&format!("link set {interface} up"));
        }
        for (machine, network) in [(&client, 1), (&switch, FRONT), (&back_end, BACK)] {
            machine.ip(&format!("route add default via 10.61.{network}.1"));
            machine.ip(&format!("route add default via fd61:{network}::1"));
        }
        router.sysctl("net/ipv4/ip_forward", "1");
        router.sysctl("net/ipv6/conf/all/forwarding", "1");
        for name in ["all", "out", "front", "back"] {
            router.sysctl(&format!("net/ipv4/conf/{name}/rp_filter"), "0");
        }
        router.ip(&format!("route add {}/32 via 10.61.{FRONT}.2", VIPS[0]));
        router.ip(&format!("route add {}/128 via fd61:{FRONT}::2", VIPS[1]));
        for machine in [&switch, &back_end] {
            machine.ip(&format!("addr add {}/32 dev lo", VIPS[0]));
            machine.ip(&format!("addr add {}/128 dev lo nodad", VIPS[1]));
        }
        let world = Self { client, router, switch, back_end, hub, instance: Instance::new() };
        for (machine, interface, number) in
            [(&world.router, "front", FRONT), (&world.router, "back", BACK), (&world.back_end, "eth0", BACK)]
        {
            world.put(machine, interface, number);
        }
        // Frames of XDP have checksums and are not merged, and their tags are in them: so it is on a real wire.
        world.ethtool(&world.client, "eth0", "tx off tso off gso off");
        world.ethtool(&world.router, "front", "tx off tso off gso off gro off txvlan off");
        for port in ["n2", "n4"] {
            world.ethtool(&world.hub, port, "gro on tx off txvlan off");
        }
        world
    }

    fn put(&self, machine: &Machine, interface: &str, number: u16) -> VlanEnd {
        machine.run(|| VlanEnd::attach(&self.instance.0, interface, number)).unwrap()
    }

    fn ethtool(&self, machine: &Machine, interface: &str, features: &str) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &machine.name, "ethtool", "-K", interface]);
        let output = command.args(features.split(' ')).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn mac(&self, machine: &Machine, interface: &str) -> [u8; 6] {
        let said = machine.ask(&format!("-o link show {interface}"));
        let text = said.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
        let bytes: Vec<u8> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        bytes.try_into().unwrap()
    }

    /// The switch before the one back-end, whose frames have this tag.
    fn open(&self, hook: SwitchHook, tag: FrameTag) -> Switch {
        let config = SwitchConfig { interfaces: vec!["eth0".to_owned()], hook, ..config(&self.instance) };
        let own_mac = self.mac(&self.switch, "eth0");
        let mac = self.mac(&self.back_end, "eth0");
        let said = self.switch.ask("-o link show eth0");
        let ifindex = said.split(':').next().unwrap().parse().unwrap();
        self.switch.run(|| {
            let switch = opened(|| Switch::open_for(&config, None)).expect("these tests need root");
            let hop = NextHop { ifindex, mac, own_mac };
            let services = VIPS.map(|vip| (SocketAddr::new(vip.parse().unwrap(), 80), Transport::Tcp));
            switch.set_services(&services).unwrap();
            switch.set_table(&vec![Some(0); TABLE_SLOTS]).unwrap();
            let holder = ConnHolder { backend: 0, generation: 0 };
            switch.set_tagged_backend(holder, 1, Some(&hop), tag).unwrap();
            switch
        })
    }

    fn exchange(&self, vip: &str) -> std::io::Result<()> {
        let to = SocketAddr::new(vip.parse::<IpAddr>().unwrap(), 80);
        let wait = std::time::Duration::from_secs(2);
        let mut stream = self.client.run(|| TcpStream::connect_timeout(&to, wait))?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&vec![1; BYTES])?;
        let mut answer = Vec::new();
        uninterrupted(|| stream.read_to_end(&mut answer))?;
        assert!(answer == vec![2; BYTES]);
        Ok(())
    }
}

fn serve(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let mut uploaded = vec![0; BYTES];
        if stream.read_exact(&mut uploaded).is_ok() {
            let _ = stream.write_all(&vec![2; BYTES]);
        }
    }
}

#[test]
fn frames_change_their_vlan_on_the_way() {
    let world = World::new();
    world.back_end.run(|| {
        for vip in VIPS {
            let listener = TcpListener::bind((vip.parse::<IpAddr>().unwrap(), 80)).unwrap();
            std::thread::spawn(move || serve(&listener));
        }
    });
    // The router asks for the switch's MAC address in its VLAN, which the switch has left when its program is tried without.
    let end = world.put(&world.switch, "eth0", FRONT);
    let own: Vec<String> =
        world.mac(&world.switch, "eth0").iter().map(|byte| format!("{byte:02x}")).collect();
    for address in [format!("10.61.{FRONT}.2"), format!("fd61:{FRONT}::2")] {
        world.router.ip(&format!("neigh replace {address} dev front lladdr {}", own.join(":")));
    }
    let switch = world.open(SwitchHook::Tc, FrameTag::Vlan(BACK));
    VIPS.iter().for_each(|vip| world.exchange(vip).unwrap_or_else(|error| panic!("{vip}: {error}")));
    let taken = end.counters().unwrap();
    assert!(taken.taken > 100 && taken.failed == 0, "{taken:?}");
    // With the tag that they have, they come to nobody.
    drop(switch);
    let switch = world.open(SwitchHook::Tc, FrameTag::Kept);
    assert!(world.exchange(VIPS[0]).is_err());
    drop(switch);
    world.switch.run(|| VlanEnd::remove(&world.instance.0, "eth0")).unwrap();
    assert_eq!(world.switch.filters("eth0", "egress"), "");
    for hook in [SwitchHook::Tc, SwitchHook::Xdp] {
        let switch = world.open(hook, FrameTag::Vlan(BACK));
        for vip in VIPS {
            world.exchange(vip).unwrap_or_else(|error| panic!("{vip} by {hook:?}: {error}"));
        }
        assert!(switch.counters().unwrap().forwarded_packets > 100, "{hook:?}");
    }
}
