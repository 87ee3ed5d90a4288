//! What a packet of an established connection costs the layer-4 switch, with 100 connections and with 1,000,000, beside a program that
//! only looks a connection up and rewrites two MAC addresses.
//!
//! ```text
//! cargo run --release -p plimsoll-datapath --example switch_speed -- [CONNECTIONS [ROUNDS]]
//! ```
//!
//! The kernel runs the programs on frames and takes the time of each run (`BPF_PROG_TEST_RUN`), which is within the times; nothing is
//! sent. *same*: packets of one connection. *by turns*: of another connection each time, so that the CPU's caches do not have it.
//! *forwarded*: packets of one connection that the kernel makes in groups of 64 and really sends on, into a virtual cable at whose other
//! end a program drops them (`BPF_F_TEST_XDP_LIVE_FRAMES`), all of which is within the times; a table has few connections then.
//! Needs root, `ip` and `unshare`, and clang for the other programs. All goes on in a network namespace of its own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed measurement")]

use std::process::Command;
use std::time::Duration;

use libbpf_rs::libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES;
use libbpf_rs::{Link, MapCore as _, MapFlags, Object, ObjectBuilder, ProgramInput, ProgramMut};
use plimsoll_datapath::NextHop;
use plimsoll_datapath::switch::{
    ConnHolder, ConnTable, PreparedChoice, Switch, SwitchConfig, SwitchHook, TABLE_SLOTS, Transport,
};

const SERVER: [u8; 6] = [10, 0, 0, 1, 0, 80];
const FEW: u32 = 100;
const BACKENDS: u16 = 4;
/// Packets in one round.
const PACKETS: u32 = 200_000;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// The cable's end at the switch, its MAC address, and the other end.
const NEAR: (&str, [u8; 6]) = ("near", [2, 0, 0, 0, 0, 10]);
const FAR: &str = "far";
/// Frames that the kernel makes and sends on in one round.
const FORWARDED: u32 = 2_000_000;
/// Set where the network namespace is our own.
const INSIDE: &str = "IN_OWN_NAMESPACE";

/// A frame of a connection.
fn frame(number: u32, flags: u8) -> [u8; 64] {
    let mut frame = [0; 64];
    // For the loopback interface, at which programs are tried and whose address is zero.
    frame[..14].copy_from_slice(&[0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0]);
    let [client, port] = client(number);
    frame[14..26].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame[26..30].copy_from_slice(&client.to_be_bytes());
    frame[30..34].copy_from_slice(&SERVER[..4]);
    frame[34..36].copy_from_slice(&(port as u16).to_be_bytes());
    frame[36..38].copy_from_slice(&SERVER[4..]);
    if flags == SYN {
        // The number before those of the other packets, which are 0.
        frame[38..42].fill(0xff);
    }
    (frame[46], frame[47]) = (0x50, flags);
    frame
}

/// Address and port.
fn client(number: u32) -> [u32; 2] {
    [0x0a01_0000 + number / 50_000, 1024 + number % 50_000]
}

fn hop(backend: u16) -> NextHop {
    NextHop { ifindex: 1, mac: [2, 0, 0, 0, 1, backend as u8], own_mac: [2, 0, 0, 0, 0, 10] }
}

/// A switch at these interfaces that knows these connections, all of which go to this place.
fn switch(connections: u32, interfaces: &[&str], hop: impl Fn(u16) -> NextHop) -> Switch {
    let config = SwitchConfig {
        instance: format!("speed-{}-{connections}", std::process::id()),
        interfaces: interfaces.iter().map(|&name| name.to_owned()).collect(),
        hook: SwitchHook::Auto,
        connections: connections + connections / 4 + 1000,
        opening: 10_000,
        sample_bytes: 0,
    };
    let switch = Switch::open_for(&config, None).unwrap();
    switch.set_services(&[("10.0.0.1:80".parse().unwrap(), Transport::Tcp)]).unwrap();
    for backend in 0..BACKENDS {
        let holder = ConnHolder { backend, generation: 0 };
        switch.set_backend(holder, u64::from(backend) + 1, Some(&hop(backend))).unwrap();
    }
    let table: Vec<_> = (0..TABLE_SLOTS).map(|slot| Some((slot % usize::from(BACKENDS)) as u16)).collect();
    switch.set_table(&table).unwrap();
    let mut rings = switch.choices().unwrap();
    for number in 0..connections {
        let backend = (number % u32::from(BACKENDS)) as u16;
        for cpu in 0..rings.cpus() {
            // A full ring has choices enough.
            let _ = rings.put(cpu, PreparedChoice { number: u64::from(number) + 1, backend });
        }
        switch.try_frame(SwitchHook::Xdp, &frame(number, SYN), 1).unwrap();
        switch.try_frame(SwitchHook::Xdp, &frame(number, ACK), 1).unwrap();
    }
    switch
}

/// The other programs, with these connections, all of which go to this place.
fn bare(connections: u32, hop: &NextHop) -> Object {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bare_forwarder.bpf.c");
    let object = std::env::temp_dir().join(format!("bare-{}.o", std::process::id()));
    let headers = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let compile = |clang: &&str| {
        let mut command = Command::new(clang);
        command.args(["-O2", "-g", "-target", "bpf", &headers, "-c", source, "-o"]).arg(&object);
        command.status().is_ok_and(|status| status.success())
    };
    assert!(["clang", "clang-19", "clang-16", "clang-14"].iter().any(compile), "no clang compiles {source}");
    let object = ObjectBuilder::default().open_file(&object).unwrap().load().unwrap();
    let map = object.maps().find(|map| map.name() == "bare_conns").unwrap();
    for number in 0..connections {
        let frame = frame(number, ACK);
        let mut value = [hop.mac, hop.own_mac].concat();
        value.extend(hop.ifindex.to_ne_bytes());
        map.update(&frame[26..38], &value, MapFlags::ANY).unwrap();
    }
    object
}

/// Nanoseconds of one run, for the same connection and by turns.
fn measure(connections: u32, mut run: impl FnMut(&[u8]) -> u64) -> [f64; 2] {
    let same = frame(connections / 2, ACK);
    let sum: u64 = (0..PACKETS).map(|_| run(&same)).sum();
    let mut number = 1_u32;
    let by_turns: u64 = (0..PACKETS)
        .map(|_| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            run(&frame(((u64::from(number) * u64::from(connections)) >> 32) as u32, ACK))
        })
        .sum();
    [sum, by_turns].map(|sum| sum as f64 / f64::from(PACKETS))
}

fn program<'object>(object: &'object Object, name: &str) -> ProgramMut<'object> {
    object.progs_mut().find(|program| program.name() == name).unwrap()
}

fn run_command(command: &str) {
    let words: Vec<_> = command.split(' ').collect();
    assert!(Command::new(words[0]).args(&words[1..]).status().unwrap().success(), "{command}");
}

/// The cable, with what drops what arrives at its other end.
fn lay_cable(programs: &Object) -> (u32, Link) {
    run_command(&format!("ip link add {} type veth peer name {FAR}", NEAR.0));
    run_command(&format!("ip link set {} address 02:00:00:00:00:0a up", NEAR.0));
    run_command(&format!("ip link set {FAR} up"));
    let link = program(programs, "take_in").attach_xdp(ifindex(FAR).cast_signed()).unwrap();
    (ifindex(NEAR.0), link)
}

fn ifindex(name: &str) -> u32 {
    let output = Command::new("ip").args(["-o", "link", "show", "dev", name]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(':').next().unwrap().trim().parse().unwrap()
}

/// That so many frames have come at the other end.
fn assert_arrived(programs: &Object, frames: u32) {
    let map = programs.maps().find(|map| map.name() == "taken_in").unwrap();
    let of_cpus = map.lookup_percpu(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    let arrived: u64 = of_cpus.iter().map(|of_cpu| u64::from_ne_bytes(of_cpu[..8].try_into().unwrap())).sum();
    assert_eq!(arrived, frames.into(), "frames were lost");
}

/// Nanoseconds for a frame that is forwarded: by the bare forwarder and by the switch, medians.
fn measure_forwarded(rounds: u32) -> [f64; 2] {
    // The frames' memory is used again as the programs leave it, so they are for the interface afterwards, too.
    let hop = |ifindex| NextHop { ifindex, mac: NEAR.1, own_mac: [2, 0, 0, 0, 0, 1] };
    let programs = bare(0, &hop(1));
    let (near, _link) = lay_cable(&programs);
    let (switch, bare) = (switch(FEW, &[NEAR.0], |_| hop(near)), bare(FEW, &hop(near)));
    let mut frame = frame(FEW / 2, ACK);
    frame[..6].copy_from_slice(&NEAR.1);
    let mut samples = [const { Vec::new() }; 2];
    let mut all = 0;
    for _ in 0..rounds {
        let mut context = [0, frame.len() as u32, 0, near, 0, 0].map(u32::to_ne_bytes).concat();
        let input = ProgramInput {
            context_in: Some(&mut context),
            data_in: Some(&frame),
            repeat: FORWARDED,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            ..ProgramInput::default()
        };
        let of_bare = program(&bare, "bare_forwarder").test_run(input).unwrap().duration;
        all += FORWARDED;
        assert_arrived(&programs, all);
        let of_switch = switch.forward_frames(near, &frame, FORWARDED).unwrap();
        all += FORWARDED;
        assert_arrived(&programs, all);
        for (samples, time) in samples.iter_mut().zip([of_bare, of_switch]) {
            samples.push(Duration::as_nanos(&time) as f64);
        }
    }
    switch.clear_and_detach().unwrap();
    samples.map(median)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    if std::env::var_os(INSIDE).is_none() {
        let mut command = Command::new("unshare");
        command.arg("--net").args(std::env::args_os()).env(INSIDE, "1");
        assert!(command.status().unwrap().success(), "the measurement failed");
        return;
    }
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u32>().unwrap());
    let (many, rounds) = (args.next().unwrap_or(1_000_000), args.next().unwrap_or(5));
    println!("{:<24}{:>14}{:>12}{:>14}", "", "connections", "same ns", "by turns ns");
    let mut medians = Vec::new();
    for connections in [FEW, many] {
        let (switch, bare) = (switch(connections, &[], hop), bare(connections, &hop(0)));
        let mut known = 0_u32;
        switch.for_each(ConnTable::Established, |_, _| known += 1).unwrap();
        assert!(known >= connections / 100 * 99, "{known} of {connections} connections are known");
        let program = program(&bare, "bare_forwarder");
        let of_switch = |hook| {
            let switch = &switch;
            move |frame: &[u8]| switch.try_frame(hook, frame, 1).unwrap().time.as_nanos() as u64
        };
        let mut samples = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            samples[0].push(measure(connections, |frame| {
                let input = ProgramInput { data_in: Some(frame), repeat: 1, ..ProgramInput::default() };
                program.test_run(input).unwrap().duration.as_nanos() as u64
            }));
            samples[1].push(measure(connections, of_switch(SwitchHook::Xdp)));
            samples[2].push(measure(connections, of_switch(SwitchHook::Tc)));
        }
        for (name, of_one) in ["bare XDP forwarder", "switch by XDP", "switch by tc"].iter().zip(&samples) {
            let [same, turns] = [0, 1].map(|part| median(of_one.iter().map(|sample| sample[part]).collect()));
            println!("{name:<24}{connections:>14}{same:>12.0}{turns:>14.0}");
            medians.push([same, turns]);
        }
        switch.clear_and_detach().unwrap();
    }
    let [of_bare, of_switch] = measure_forwarded(rounds);
    println!("{:<24}{:>14}{:>14}", "", "connections", "forwarded ns");
    println!("{:<24}{FEW:>14}{of_bare:>14.0}", "bare XDP forwarder");
    println!("{:<24}{FEW:>14}{of_switch:>14.0}", "switch by XDP");
    println!("switch / bare, by XDP, {FEW} connections: forwarded {:.2} (goal 1.3)", of_switch / of_bare);
    let ratio = |a: usize, b: usize, part: usize| medians[a][part] / medians[b][part];
    println!(
        "switch / bare, by XDP, {FEW} connections: same {:.2}, by turns {:.2} (goal 1.3)",
        ratio(1, 0, 0),
        ratio(1, 0, 1)
    );
    println!(
        "switch / bare, by XDP, {many} connections: same {:.2}, by turns {:.2}",
        ratio(4, 3, 0),
        ratio(4, 3, 1)
    );
    println!(
        "switch, {many} / {FEW} connections: XDP {:.2}, tc {:.2} (goal 1.5); bare {:.2}",
        ratio(4, 1, 1),
        ratio(5, 2, 1),
        ratio(3, 0, 1)
    );
}
