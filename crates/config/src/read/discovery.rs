//! Reads the table `[discovery]` and checks its keys against one another.

use std::time::Duration;

use plimsoll_wire::needs_interface;

use crate::reader::{ConfigReader, DeclaredTable};
use crate::sections::{DiscoveryConfig, DiscoveryTransport};

/// What leases of etcd can keep.
const LEAST_ETCD_TTL: Duration = Duration::from_secs(3);

/// Where back-ends are told, if at all.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
) -> Option<DiscoveryConfig> {
    section.table?;
    let discovery = DiscoveryConfig::read(reader, section)?;
    let mut wrong = |name: &str, what: &str, remedy: &str| {
        let span = section.found(name).map_or_else(|| section.span.clone(), |found| found.span);
        reader.wrong(&section.key(name), span, (what.to_owned(), remedy.to_owned()));
    };
    let (others, remedy) = match discovery.transport {
        DiscoveryTransport::Multicast => {
            (["endpoints", "prefix"], "remove it, or write `transport = \"etcd\"`")
        }
        DiscoveryTransport::Etcd => {
            (["group", "interface"], "remove it, or write `transport = \"multicast\"`")
        }
    };
    for other in others.iter().filter(|name| section.found(name).is_some()) {
        wrong(other, "is not used with this transport", remedy);
    }
    match discovery.transport {
        DiscoveryTransport::Etcd if discovery.endpoints.is_empty() => {
            wrong(
                "endpoints",
                "names no member of etcd",
                "write e.g. `endpoints = [\"http://10.0.0.5:2379\"]`",
            );
        }
        DiscoveryTransport::Etcd if discovery.ttl < LEAST_ETCD_TTL => {
            wrong("ttl", "is shorter than a lease of etcd can be", "write at least \"3s\"");
        }
        DiscoveryTransport::Multicast
            if discovery.interface.is_none() && needs_interface(discovery.group.ip()) =>
        {
            wrong("interface", "has to say in which network this group is", "write the name of an interface");
        }
        _ => {}
    }
    Some(discovery)
}
