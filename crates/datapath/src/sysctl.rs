//! Kernel settings below `/proc/sys/net`, which each network namespace has separately.

use std::fs;
use std::path::PathBuf;

use crate::error::{DatapathError, NET_ADMIN};

fn path(family: &str, interface: &str, name: &str) -> PathBuf {
    ["/proc/sys/net", family, "conf", interface, name].iter().collect()
}

/// The value of an interface, as a number.
pub(crate) fn read(family: &str, interface: &str, name: &str) -> Result<u32, DatapathError> {
    let path = path(family, interface, name);
    let text = fs::read_to_string(&path)
        .map_err(|error| DatapathError::of(format!("cannot read {}", path.display()), NET_ADMIN, error))?;
    text.trim()
        .parse()
        .map_err(|_| DatapathError::Unexpected(format!("{} is no number: {:?}", path.display(), text.trim())))
}

/// Sets the value of an interface.
pub(crate) fn write(family: &str, interface: &str, name: &str, value: u32) -> Result<(), DatapathError> {
    let path = path(family, interface, name);
    fs::write(&path, value.to_string()).map_err(|error| {
        DatapathError::of(format!("cannot set {} to {value}", path.display()), NET_ADMIN, error)
    })
}

/// The smallest port that takes no privileges to bind, in this network namespace.
pub(crate) fn first_free_port() -> u32 {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024)
}
