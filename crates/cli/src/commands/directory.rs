//! What the commands share that take part in the directory of services.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use plimsoll_directory::{
    DEFAULT_GROUP, DirectoryError, DirectorySettings, EtcdSettings, MulticastSettings, ServiceDirectory,
    ServiceOffer, TransportSettings,
};
use plimsoll_wire::{Key, ServiceKey, check_service_name};

use crate::error::CliError;
use crate::values;

/// Most bytes of a node's name.
const MOST_NAME_BYTES: usize = 64;

/// How to reach the directory.
#[derive(clap::Args, Debug)]
pub(crate) struct DirectoryArgs {
    /// Multicast group and port of announcements
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = DEFAULT_GROUP, conflicts_with = "etcd", value_parser = values::address)]
    group: SocketAddr,

    /// Network interface of announcements; by default the one that the routes choose
    #[arg(long, value_name = "NAME", conflicts_with = "etcd")]
    directory_interface: Option<String>,

    /// Use etcd instead of multicast: one of its members, such as http://10.0.0.5:2379; may be repeated
    #[arg(long, value_name = "URL")]
    etcd: Vec<String>,

    /// What the keys in etcd begin with
    #[arg(long, value_name = "PATH", default_value = EtcdSettings::DEFAULT_PREFIX)]
    etcd_prefix: String,

    /// Time to live of an announcement, in seconds: 0.4 to 3600, with etcd at least 3
    #[arg(long, value_name = "S", default_value = "3", value_parser = values::positive)]
    ttl: f64,
}

/// What is published of a replica.
#[derive(clap::Args, Debug)]
pub(crate) struct ReplicaArgs {
    /// Share of requests relative to other replicas
    #[arg(long, value_name = "W", default_value_t = 1.0)]
    weight: f64,

    /// Address and port at which load inquiries are answered; an agent publishes that of --load-listen by default
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = values::address)]
    load_inquiry: Option<SocketAddr>,

    /// A method or path that can be called, as a part of the access interface; may be repeated
    #[arg(long = "method", value_name = "NAME")]
    methods: Vec<String>,
}

impl DirectoryArgs {
    /// How long an announcement counts.
    pub(crate) fn ttl(&self) -> Result<Duration, CliError> {
        Duration::try_from_secs_f64(self.ttl)
            .map_err(|_| CliError::Usage(format!("--ttl {}: give at most 3600 seconds", self.ttl)))
    }

    /// The settings of a node of this name; without one it only listens.
    pub(crate) fn settings(&self, key: &Path, node: Option<String>) -> Result<DirectorySettings, CliError> {
        let key = Key::load(key).map_err(|error| CliError::Failed(error.to_string()))?;
        let transport = if self.etcd.is_empty() {
            let (group, interface) = (self.group, self.directory_interface.clone());
            TransportSettings::Multicast(MulticastSettings {
                group,
                interface,
                ..MulticastSettings::default()
            })
        } else {
            let endpoints = self.etcd.iter().map(|url| endpoint(url)).collect::<Result<_, _>>()?;
            let prefix = self.etcd_prefix.trim_end_matches('/').to_owned();
            TransportSettings::Etcd(EtcdSettings { endpoints, prefix })
        };
        Ok(DirectorySettings { key, transport, node, ttl: self.ttl()?, only: None })
    }
}

impl ReplicaArgs {
    /// A replica of each of these partitions, at this address; its load is told at `load` where nothing else is given.
    pub(crate) fn offers(
        &self,
        partitions: &[ServiceKey],
        address: SocketAddr,
        agent: Option<SocketAddr>,
        load: Option<SocketAddr>,
    ) -> Result<Vec<ServiceOffer>, CliError> {
        if !(0.0..=65_536.0).contains(&self.weight) {
            return Err(CliError::Usage(format!("--weight {}: give 0 to 65536", self.weight)));
        }
        if let Some((_, key)) =
            partitions.iter().enumerate().find(|(at, key)| partitions[..*at].contains(key))
        {
            return Err(CliError::Usage(format!("{key} is named twice; name each partition once")));
        }
        // An agent that answers at all addresses answers at that of its server.
        let load =
            load.map(|at| if at.ip().is_unspecified() { (address.ip(), at.port()).into() } else { at });
        let unreachable = |at: &SocketAddr| at.ip().is_loopback() && !address.ip().is_loopback();
        if let Some(at) = load.filter(unreachable).filter(|_| self.load_inquiry.is_none()) {
            let at_all = SocketAddr::new(address.ip(), at.port());
            return Err(CliError::Usage(format!(
                "--load-listen {at}: other machines do not reach this address; give one that they reach, e.g. {at_all}"
            )));
        }
        // Checked above: it is far from the bounds of the type.
        let weight_steps = (self.weight * 256.0).round() as u32;
        let offers: Vec<ServiceOffer> = partitions
            .iter()
            .map(|key| ServiceOffer {
                weight_steps,
                inquiry: self.load_inquiry.or(load),
                agent,
                methods: self.methods.clone(),
                ..ServiceOffer::new(key.clone(), address)
            })
            .collect();
        offers.iter().try_for_each(ServiceOffer::check).map_err(DirectoryError::from)?;
        Ok(offers)
    }
}

/// Takes part in the directory, on the runtime that this is called on, and offers these.
pub(crate) fn take_part(
    settings: DirectorySettings,
    offers: &[ServiceOffer],
) -> Result<ServiceDirectory, CliError> {
    let directory = ServiceDirectory::start(settings)?;
    directory.publish(offers)?;
    Ok(directory)
}

/// The name of a node that offers these: the one that is given, or one that follows from the machine's and from what is offered, so that no
/// other node of this machine has it.
pub(crate) fn node_name(given: Option<&str>, offers: &[ServiceOffer]) -> Result<String, CliError> {
    if let Some(name) = given {
        return match check_service_name(name.trim()) {
            Ok(name) => Ok(name.to_owned()),
            Err(error) => Err(CliError::Usage(error.to_string())),
        };
    }
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = own_name(machine.trim(), offers);
    check_service_name(&name).map_err(|error| {
        CliError::Usage(format!("the name of this machine cannot be used, name the node: {error}"))
    })?;
    Ok(name)
}

/// `MACHINE-PORT-` and four letters that tell nodes apart which offer other partitions, or offer them at another address.
fn own_name(machine: &str, offers: &[ServiceOffer]) -> String {
    let port = offers.first().map_or(0, |offer| offer.address.port());
    let mut offered: Vec<String> =
        offers.iter().map(|offer| format!("{} {}", offer.key, offer.address)).collect();
    offered.sort();
    // FNV-1a (Fowler, Noll and Vo): no secret depends on it.
    let hash = offered.join("\n").bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let letter = |place: u32| char::from(b'a' + u8::try_from(hash / 26_u64.pow(place) % 26).unwrap_or(0));
    let letters: String = (0..4).map(letter).collect();
    let room = MOST_NAME_BYTES - format!("-{port}-{letters}").len();
    let machine: String = machine.chars().take(room).collect();
    format!("{machine}-{port}-{letters}")
}

/// A service and its partition.
pub(crate) fn partition(text: &str) -> Result<ServiceKey, String> {
    text.parse().map_err(|error| format!("give SERVICE or SERVICE/PARTITION: {error}"))
}

fn endpoint(url: &str) -> Result<String, CliError> {
    let usable = url.strip_prefix("http://").is_some_and(|rest| rest.contains(':') && !rest.contains(' '));
    if !usable {
        return Err(CliError::Usage(format!(
            "--etcd {url}: give http://HOST:PORT, such as http://10.0.0.5:2379"
        )));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

impl From<DirectoryError> for CliError {
    fn from(error: DirectoryError) -> Self {
        match error {
            DirectoryError::Transport(_) => Self::Failed(error.to_string()),
            _ => Self::Usage(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_members_of_etcd() {
        assert_eq!(node_name(Some("n1"), &[]).unwrap(), "n1");
        assert!(node_name(Some("a b"), &[]).is_err());
        assert_eq!(endpoint("http://a:2379/").unwrap(), "http://a:2379");
        for bad in ["a:2379", "https://a:2379", "http://a"] {
            assert!(endpoint(bad).unwrap_err().to_string().contains("http://HOST:PORT"), "{bad}");
        }
        assert_eq!(partition("a").unwrap().to_string(), "a/0");
        assert!(partition("a/b/c").unwrap_err().contains("SERVICE/PARTITION"));
    }

    #[test]
    fn nodes_of_one_machine_have_different_names_that_stay() {
        let of = |machine: &str, services: &[&str], address: &str| {
            let offer = |name: &&str| ServiceOffer::new(partition(name).unwrap(), address.parse().unwrap());
            let name = own_name(machine, &services.iter().map(offer).collect::<Vec<_>>());
            assert!(check_service_name(&name).is_ok(), "{name}");
            name
        };
        let name = of("web1", &["a"], "10.0.0.1:8080");
        assert!(name.starts_with("web1-8080-"), "{name}");
        assert_eq!(name, of("web1", &["a/0"], "10.0.0.1:8080"), "the same again");
        assert_eq!(of("web1", &["a", "b"], "10.0.0.1:80"), of("web1", &["b", "a"], "10.0.0.1:80"));
        for other in [
            of("web1", &["a"], "10.0.0.1:8081"),
            of("web1", &["a"], "10.0.0.2:8080"),
            of("web1", &["b"], "10.0.0.1:8080"),
            of("web1", &["a/1"], "10.0.0.1:8080"),
            of("web1", &["a", "b"], "10.0.0.1:8080"),
            of("web2", &["a"], "10.0.0.1:8080"),
        ] {
            assert_ne!(name, other);
        }
        assert_eq!(of(&"m".repeat(64), &["a"], "10.0.0.1:65535").len(), 64);
    }

    #[test]
    fn a_partition_is_published_once() {
        let replica = ReplicaArgs { weight: 1.0, load_inquiry: None, methods: Vec::new() };
        let offers = |partitions: &[&str]| {
            let partitions: Vec<_> = partitions.iter().map(|text| partition(text).unwrap()).collect();
            replica.offers(&partitions, "10.0.0.1:80".parse().unwrap(), None, None)
        };
        assert_eq!(offers(&["a", "a/1"]).unwrap().len(), 2);
        let said = offers(&["a", "b", "a/0"]).unwrap_err().to_string();
        assert!(said.contains("a/0 is named twice"), "{said}");
    }
}
