//! Machines that track connections, as firewalls do, and drop what does not fit one.

use plimsoll_lab::Node;

use super::bed::{Bed, Options};
use super::http::{Client, content};

/// Drops what connection tracking calls invalid, in and out, of clients' connections. Not of the link: it was there before the
/// tracking began.
fn strict(bed: &Bed) -> String {
    let vip = bed.vip().ip();
    format!(
        "nft add table inet f
nft 'add chain inet f in {{ type filter hook input priority 0; }}'
nft 'add chain inet f out {{ type filter hook output priority 0; }}'
nft add rule inet f in ip daddr {vip} ct state invalid counter drop
nft add rule inet f out ip saddr {vip} ct state invalid counter drop"
    )
}

const SIZE: usize = 300_000;

fn bed() -> Bed {
    let options = Options { is_quiet: true, backends: 1, ..Options::default() };
    Bed::new(options, &[("a", content(1, SIZE))])
}

/// Runs commands in a node, which must succeed, and returns what they print.
fn run(bed: &Bed, node: Node, commands: &str) -> String {
    let mut shell = bed.lab.node(node).unwrap().command("sh");
    let output = shell.args(["-ec", commands]).output().unwrap();
    assert!(output.status.success(), "{commands}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Three requests on one connection, all answered by the back-end.
fn ask(bed: &Bed) {
    let taken = bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}");
    bed.client(|| {
        let mut client = Client::connect(bed.vip()).unwrap();
        for _ in 0..3 {
            assert!(client.get("/a").unwrap().body == content(1, SIZE));
        }
    });
    assert_eq!(bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}"), taken.map(|n| n + 1.0));
}

#[test]
fn connections_pass_machines_that_drop_invalid_packets() {
    let bed = bed();
    run(&bed, Node::Backend(0), &strict(&bed));
    ask(&bed);
    run(&bed, Node::FrontEnd, &strict(&bed));
    ask(&bed);
    let rules = run(&bed, Node::Backend(0), "nft list table inet f");
    assert_eq!(rules.matches("counter packets 0 bytes 0 drop").count(), 2, "{rules}");
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn tracking_that_knows_only_what_it_has_seen_begin_is_told_and_can_be_switched_off() {
    let bed = bed();
    let backend = Node::Backend(0);
    run(&bed, backend, &strict(&bed));
    run(&bed, backend, "echo 0 >/proc/sys/net/netfilter/nf_conntrack_tcp_loose");
    let vip = bed.vip().ip();
    let check = format!(
        "{} check --system --interface eth0 --vip {vip} --front-end {} || true",
        env!("CARGO_BIN_EXE_plimsoll"),
        bed.lab.node(Node::FrontEnd).unwrap().address()
    );
    let said = run(&bed, backend, &check);
    assert!(said.contains("nf_conntrack_tcp_loose"), "{said}");
    let notrack = format!(
        "nft 'add chain inet f raw {{ type filter hook prerouting priority raw; }}'
nft 'add chain inet f rawout {{ type filter hook output priority raw; }}'
nft add rule inet f raw ip daddr {vip} notrack
nft add rule inet f rawout ip saddr {vip} notrack"
    );
    run(&bed, backend, &notrack);
    ask(&bed);
    bed.assert_quiet();
    bed.stop();
}
