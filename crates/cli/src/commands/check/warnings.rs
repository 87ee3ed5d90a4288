//! What is allowed, and probably not meant.

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use plimsoll_config::Config;
use plimsoll_wire::{MulticastInterface, interfaces_text};

use crate::commands::certificates;

/// What a front-end with this configuration would warn of here, or not start for, and what is probably a mistake.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let unused = plimsoll_balancer::unused_loads(config).map(str::to_owned);
    let missing = missing_interfaces(config).into_iter().map(|(key, name)| {
        format!("there is no network interface {name} here ({key}); {}", interfaces_text())
    });
    let mut all: Vec<String> = unused.into_iter().chain(missing).collect();
    all.extend(patterns(config));
    all.extend(missing_list(config));
    all.extend(missing_sockets(config));
    all.extend(certificates::warnings(config));
    all
}

/// Paths of routes that look like patterns of other proxies.
fn patterns(config: &Config) -> impl Iterator<Item = String> + '_ {
    config.routes.iter().enumerate().filter(|(_, route)| route.path.contains('*')).map(|(index, route)| {
        format!(
            "route[{index}].path: {:?} takes only paths that have the asterisk in them; {:?} takes all that begin so",
            route.path,
            route.path.split('*').next().unwrap_or_default().trim_end_matches('/')
        )
    })
}

/// A list of documents that is not there: sizes would not be known.
fn missing_list(config: &Config) -> Option<String> {
    let list = config.direct.as_ref()?.file_list.as_ref()?;
    let error = std::fs::File::open(list).err()?;
    let make = "`plimsoll classify --root DIRECTORY -o FILE` writes one";
    Some(format!(
        "direct.file_list: {} cannot be read: {error}; sizes are not known until it can be ({make})",
        list.display()
    ))
}

/// Back-ends at whose path there is no Unix socket now.
fn missing_sockets(config: &Config) -> impl Iterator<Item = String> + '_ {
    config.all_backends().filter_map(|backend| {
        let path = backend.at.socket()?;
        let what = match path.metadata() {
            Ok(found) if found.file_type().is_socket() => return None,
            Ok(_) => format!("{} is no socket", path.display()),
            Err(error) => format!("no socket is to be seen at {}: {error}", path.display()),
        };
        Some(format!("back-end {}: {what}; it is down until a server listens there", backend.name))
    })
}

/// The network interfaces of multicast groups that this machine does not have, each with its key.
pub(super) fn missing_interfaces(config: &Config) -> Vec<(&'static str, &str)> {
    let group = match &config.load_information.group_interface {
        Some(MulticastInterface::Name(name)) => Some(name),
        _ => None,
    };
    let directory = config.discovery.as_ref().and_then(|discovery| discovery.interface.as_ref());
    let named = [("load_information.group_interface", group), ("discovery.interface", directory)];
    let named = named.into_iter().filter_map(|(key, name)| Some((key, name?.as_str())));
    named.filter(|(_, name)| !Path::new("/sys/class/net").join(name).exists()).collect()
}
