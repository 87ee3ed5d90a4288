//! Puts an emulator into the cable between a node and the switch, and takes it out.
//!
//! A node's `eth0` is one end of a pair of interfaces; the other end is a port of the switch's bridge and has the node's
//! name. With an emulator in between, two TAP interfaces have their places:
//!
//! ```text
//! node:    eth0
//!            │ pair of interfaces
//! switch:  NODE.w ─ bridge NODE.b ─ NODE.t ··· emulator ··· NODE ─ bridge br0
//!                                    TAP                    TAP
//! ```
//!
//! So `eth0` and all that is attached to it stay as they are, and the port of the bridge keeps its name. The small bridge
//! floods each frame to its other port.

use std::fs::File;

use crate::commands;
use crate::error::LabError;
use crate::node::Node;
use crate::node_handle::{NodeHandle, enter};
use crate::tap;

/// Frames that the kernel keeps for the emulator to read: those of 15 MB, so that none is lost while the emulator does not
/// run.
const QUEUE_FRAMES: u32 = 10_000;
/// The largest MTU of a TAP interface. The nodes' interfaces bound what passes.
const MTU: u32 = 65_521;

/// The interface at the other end of the node's `eth0` while an emulator is in between.
pub(crate) fn wire(node: Node) -> String {
    format!("{node}.w")
}

/// The TAP interface that has the frames of the node.
fn inner(node: Node) -> String {
    format!("{node}.t")
}

/// The TAP interfaces by which frames come from the node and from the switch.
pub(crate) fn taps(node: Node) -> [String; 2] {
    [inner(node), node.to_string()]
}

/// Cuts the cable of `node` and puts two TAP interfaces in. Returns what reads and writes the frames at the node's side and at
/// the switch's.
pub(crate) fn insert(switch: NodeHandle<'_>, node: Node) -> Result<[File; 2], LabError> {
    let (wire, bridge) = (wire(node), format!("{node}.b"));
    rename(switch, &node.to_string(), &wire)?;
    let made = || {
        let [inner, port] = taps(node);
        Ok([tap::create(&inner)?, tap::create(&port)?])
    };
    let done = switch.run(made)?.and_then(|files| {
        let mut script = format!(
            "link set {wire} nomaster\n\
             link add {bridge} type bridge stp_state 0 mcast_snooping 0\n\
             link set {bridge} addrgenmode none\n\
             link set {bridge} up\n\
             link set {wire} master {bridge}\n"
        );
        for (tap, master) in taps(node).iter().zip([bridge.as_str(), "br0"]) {
            script += &format!(
                "link set {tap} mtu {MTU} txqueuelen {QUEUE_FRAMES} addrgenmode none\n\
                 link set {tap} master {master}\n"
            );
        }
        for port in [&wire, &inner(node)] {
            script += &format!("link set {port} type bridge_slave learning off\n");
        }
        script += &format!("link set {} up\nlink set {node} up\n", inner(node));
        in_batch(switch, &script).map(|()| files)
    });
    if done.is_err() {
        // As it was, as far as that is possible. The error above is the one that counts.
        let _ = remove(switch, node);
    }
    done
}

/// Puts the cable back. The files of the TAP interfaces must be closed already.
pub(crate) fn remove(switch: NodeHandle<'_>, node: Node) -> Result<(), LabError> {
    let (wire, port) = (wire(node), node.to_string());
    // It may not be there yet when putting in has failed.
    let _ = in_batch(switch, &format!("link del {node}.b\n"));
    // A program that another thread is just starting has their files until it runs, and they would stay so long.
    for tap in taps(node) {
        let _ = in_batch(switch, &format!("link del {tap}\n"));
    }
    rename(switch, &wire, &port)?;
    in_batch(switch, &format!("link set {port} master br0\n"))
}

/// Renames an interface, if possible without taking it down: its other end would lose its carrier for a moment.
fn rename(switch: NodeHandle<'_>, from: &str, to: &str) -> Result<(), LabError> {
    in_batch(switch, &format!("link set {from} name {to}\n")).or_else(|_| {
        // Before Linux 6.2 it has to be down.
        in_batch(switch, &format!("link set {from} down\nlink set {from} name {to}\nlink set {to} up\n"))
    })
}

fn in_batch(switch: NodeHandle<'_>, script: &str) -> Result<(), LabError> {
    commands::run(enter(switch.pid(), "ip").args(["-batch", "-"]), script).map(drop)
}
