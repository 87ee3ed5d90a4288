//! Makes frames.

use std::net::IpAddr;

use plimsoll_wire::ipv6_mapped;

use super::{ACK, HEADER_BYTES, IPV4, IPV6, TCP, complete};
use crate::Flow;

/// An acknowledgment without data from the virtual address of `flow` to its client, with these numbers and a window of 0, and MAC
/// addresses still to be set.
pub(crate) fn acknowledgment_to(flow: &Flow, seq: u32, ack: u32) -> Vec<u8> {
    let mut frame = vec![0; 12];
    match (flow.vip.ip(), flow.client.ip()) {
        (IpAddr::V4(vip), IpAddr::V4(client)) => {
            frame.extend(IPV4.to_be_bytes());
            // Version and length; total length, still to be set; number; not to be fragmented; time to live, protocol and checksum.
            frame.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP, 0, 0]);
            frame.extend(vip.octets().into_iter().chain(client.octets()));
        }
        (vip, client) => {
            frame.extend(IPV6.to_be_bytes());
            // Version and labels; length, still to be set; protocol and hop limit.
            frame.extend([0x60, 0, 0, 0, 0, 0, TCP, 64]);
            frame.extend(ipv6_mapped(vip).octets().into_iter().chain(ipv6_mapped(client).octets()));
        }
    }
    let start = frame.len();
    frame.extend(flow.vip.port().to_be_bytes().into_iter().chain(flow.client.port().to_be_bytes()));
    frame.extend(seq.to_be_bytes().into_iter().chain(ack.to_be_bytes()));
    frame.extend([0x50, ACK, 0, 0, 0, 0, 0, 0]);
    complete(&mut frame, start, HEADER_BYTES).expect("its headers are whole");
    frame
}

#[cfg(test)]
mod tests {
    use super::super::{fold, is_of_stream, reset_seq, sum_of, with_checksum};
    use super::*;

    #[test]
    fn an_acknowledgment_is_made() {
        for (vip, client) in [("10.0.0.2:80", "10.0.0.1:1000"), ("[2001:db8::2]:80", "[2001:db8::1]:1000")] {
            let flow = Flow::new(client.parse().unwrap(), vip.parse().unwrap());
            let made = acknowledgment_to(&flow, 7, u32::MAX);
            assert_eq!(with_checksum(&made).unwrap(), made, "a right checksum");
            assert!(!is_of_stream(&made) && reset_seq(&made).is_none());
            let tcp = &made[made.len() - 20..];
            assert_eq!(tcp[..12], [0, 80, 3, 232, 0, 0, 0, 7, 255, 255, 255, 255]);
            if flow.vip.is_ipv4() {
                assert_eq!((made.len(), fold(sum_of(&made[14..34]))), (54, 0xffff));
            }
        }
    }
}
