//! A second front-end that takes the virtual address over.

use std::net::IpAddr;
use std::time::Duration;

use crate::declare::{KeyForm, keys};
use crate::keys::Default::{Is, Required};
use crate::keys::KeyKind::{self, Text};
use crate::reader::{ConfigReader, DeclaredTable, Wrong, quoted};
use crate::sections::handoff::NotTooShort;
use crate::value::ConfigValue;

keys! {
    /// Several front-ends of one `handoff.name`, of which the one that has the virtual address is active; the others are standbys.
    /// Without this table a front-end is always active. For `mechanism = "handoff"`.
    ["failover"] pub struct FailoverConfig {
        /// The virtual address that decides: the front-end on whose machine it is, is the active one. One of those at which a
        /// listener listens.
        "address" address: IpAddr = Required, Text("an IP address, e.g. \"192.0.2.80\"") => VirtualAddress, restart;
        /// How long, at most, packets of connections that the front-end does not know are dropped after it has got the
        /// address, until all agents have offered theirs; then their clients are reset. At least 50ms.
        "settle_timeout" settle_timeout: Duration = Is("1500ms"), KeyKind::Duration => NotTooShort, restart;
    }
}

/// An address without a port, not the unspecified one.
struct VirtualAddress;

impl KeyForm<IpAddr> for VirtualAddress {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<IpAddr> {
        reader.text(section, name, virtual_address)
    }

    fn show(address: &IpAddr) -> Option<ConfigValue> {
        Some(ConfigValue::Text(address.to_string()))
    }
}

fn virtual_address(text: &str) -> Result<IpAddr, Wrong> {
    let address = text.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    address.filter(|address| !address.is_unspecified()).ok_or_else(|| {
        let what = format!("{} is no address that a machine can have", quoted(text));
        (what, "write the IP address of a listener, without a port, e.g. \"192.0.2.80\"".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::virtual_address;

    #[test]
    fn addresses() {
        for (text, address) in
            [("192.0.2.80", "192.0.2.80"), ("::ffff:192.0.2.80", "192.0.2.80"), ("fd00::1", "fd00::1")]
        {
            assert_eq!(virtual_address(text), Ok(address.parse().unwrap()));
        }
        for bad in ["", "0.0.0.0", "::", "192.0.2.80:80", "[fd00::1]", "vip"] {
            assert!(virtual_address(bad).is_err(), "{bad:?}");
        }
    }
}
