//! Traffic counts of interfaces and between nodes.

use crate::node::Node;

/// Counts of a node's interface, Ethernet headers included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Packets received. The kernel passes several segments of a connection as one packet.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

impl InterfaceCounters {
    /// The traffic since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            received_packets: self.received_packets.saturating_sub(earlier.received_packets),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            sent_packets: self.sent_packets.saturating_sub(earlier.sent_packets),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
        }
    }
}

/// What the switch has forwarded from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// The sender.
    pub from: Node,
    /// The receiver.
    pub to: Node,
    /// Packets; the kernel passes several segments of a connection as one.
    pub packets: u64,
    /// Bytes, without the headers of Ethernet.
    pub bytes: u64,
}

/// The elements of a set as `nft` prints them: `"client" . "b0" counter packets 3 bytes 252`, with a comma between two.
pub(crate) fn parse(printed: &str) -> Vec<Traffic> {
    let Some((_, elements)) = printed.split_once("elements = {") else { return Vec::new() };
    let elements = elements.split_once('}').map_or(elements, |(elements, _)| elements);
    elements.split(',').filter_map(parse_element).collect()
}

fn parse_element(element: &str) -> Option<Traffic> {
    let mut words = element.split_whitespace();
    let from = words.next()?.trim_matches('"').parse().ok()?;
    let to = words.by_ref().find(|word| *word != ".")?.trim_matches('"').parse().ok()?;
    let mut number_after = |name| {
        words.find(|word| *word == name)?;
        words.next()?.parse().ok()
    };
    Some(Traffic { from, to, packets: number_after("packets")?, bytes: number_after("bytes")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_a_set() {
        let printed = "table bridge counts {\n\tset pairs {\n\t\ttypeof iifname . oifname\n\t\telements = { \"client\" . \
                       \"front-end\" counter packets 3 bytes 252,\n\t\t\t     \"b10\" . \"client\" counter packets 1 \
                       bytes 84 }\n\t}\n}\n";
        let first = Traffic { from: Node::Client, to: Node::FrontEnd, packets: 3, bytes: 252 };
        let second = Traffic { from: Node::Backend(10), to: Node::Client, packets: 1, bytes: 84 };
        assert_eq!(parse(printed), [first, second]);
        assert_eq!(parse("table bridge counts {\n\tset pairs {\n\t}\n}\n"), []);
        assert_eq!(parse("elements = { \"x\" . \"client\" counter packets 1 bytes 2, nonsense }"), []);
    }

    #[test]
    fn differences() {
        let counters =
            |n| InterfaceCounters { received_packets: n, received_bytes: n, sent_packets: n, sent_bytes: n };
        assert_eq!(counters(5).since(counters(3)), counters(2));
        assert_eq!(counters(3).since(counters(5)), counters(0));
    }
}
