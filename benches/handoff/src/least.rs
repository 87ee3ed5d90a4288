//! The least that distributes connections at layer 4: a packet program that keeps nothing. What it costs no switch can go below.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use plimsoll_lab::{Lab, Node};

use crate::configs::PLIMSOLL_PORT;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/least_forwarder.bpf.c");
const COMPILERS: [&str; 4] = ["clang", "clang-19", "clang-16", "clang-14"];

/// Compiles it for this lab, whose first two back-ends get the connections, and puts it where packets arrive at the front-end.
pub fn attach(lab: &Lab) -> Result<()> {
    let object = lab.node(Node::FrontEnd)?.root().join("run/least.o");
    let macs = [Node::FrontEnd, Node::Backend(0), Node::Backend(1)].map(|node| mac(lab, node));
    let [own, first, second] = macs;
    let options = [
        format!("-DVIRTUAL_ADDRESS={}u", u32::from(lab.virtual_address())),
        format!("-DPORT={PLIMSOLL_PORT}"),
        format!("-DOWN_MAC={}", own?),
        format!("-DFIRST_MAC={}", first?),
        format!("-DSECOND_MAC={}", second?),
    ];
    ensure!(COMPILERS.iter().any(|clang| compile(clang, &options, &object)), "no clang compiles {SOURCE}");
    for words in [
        "qdisc add dev eth0 clsact",
        "filter add dev eth0 ingress bpf direct-action object-file /run/least.o section classifier",
    ] {
        let output = lab.node(Node::FrontEnd)?.command("tc").args(words.split(' ')).output()?;
        ensure!(output.status.success(), "tc {words}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn compile(clang: &str, options: &[String], object: &Path) -> bool {
    let headers = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(clang);
    command
        .args(["-O2", "-g", "-target", "bpf", &headers])
        .args(options)
        .args(["-c", SOURCE, "-o"])
        .arg(object);
    command.status().is_ok_and(|status| status.success())
}

/// The address of a node's interface, as C has it.
fn mac(lab: &Lab, node: Node) -> Result<String> {
    let file = lab.node(node)?.root().join("sys/class/net/eth0/address");
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let bytes: Vec<String> = text.trim().split(':').map(|byte| format!("0x{byte}")).collect();
    Ok(format!("{{{}}}", bytes.join(",")))
}
