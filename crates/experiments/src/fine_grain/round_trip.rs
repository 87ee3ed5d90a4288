//! The round trip of an inquiry between idle nodes, as the paper's ping-pong test (section 3.2).

use std::io;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use plimsoll_lab::Node;
use plimsoll_wire::load::{DATAGRAM_BYTES, InquiryLimits, LoadInquirer, LoadKeys, LoadTaken};
use plimsoll_wire::random;

use super::choosing::failed;
use super::node_cluster::NodeCluster;
use super::wire::since_ns;
use crate::ExperimentError;

const INQUIRIES: usize = 1000;

/// Pause between inquiries, as between those of a client.
const PAUSE: Duration = Duration::from_micros(500);

/// The median of many, in microseconds; from the first client to the first server.
pub(super) fn measure(cluster: NodeCluster<'_>) -> Result<f64, ExperimentError> {
    let prepared = cluster.prepare(0)?;
    let failed = failed("the round trip of an inquiry cannot be measured");
    let (_, agent) = prepared.addresses().map_err(&failed)?;
    let server = prepared.start(0, cluster.key, None, 0).map_err(&failed)?;
    let keys = LoadKeys::new(cluster.key);
    let ask = || -> io::Result<Vec<u64>> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.connect(agent)?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut inquirer = LoadInquirer::new(keys, random()?, InquiryLimits::default());
        let (origin, mut buffer, mut times_ns) = (Instant::now(), [0; DATAGRAM_BYTES + 1], Vec::new());
        for _ in 0..INQUIRIES {
            let Some((_, datagram)) = inquirer.ask(0, since_ns(origin)) else { break };
            socket.send(&datagram)?;
            let bytes = socket.recv(&mut buffer)?;
            if let Ok(LoadTaken::Load { round_trip_ns, .. }) =
                inquirer.take(&buffer[..bytes], since_ns(origin))
            {
                times_ns.push(round_trip_ns);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(times_ns)
    };
    let node = cluster.lab.node(Node::Backend(cluster.servers))?;
    let asked = node.run(ask)?;
    server.stop().map_err(&failed)?;
    let mut times_ns = asked.map_err(&failed)?;
    times_ns.sort_unstable();
    let median_ns = times_ns.get(times_ns.len() / 2).copied();
    median_ns.map(|ns| ns as f64 / 1e3).ok_or_else(|| failed(io::Error::other("nobody answered")))
}
