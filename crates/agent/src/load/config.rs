//! What tells a load, to whom, and what can go wrong.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plimsoll_wire::load::{AnswerLimits, LoadGauge};
use plimsoll_wire::{Key, MulticastInterface, needs_interface};

use super::api_address::{ApiAccess, ApiAddress};

/// Whose loads are told.
#[derive(Debug, Clone)]
pub enum LoadRole {
    /// That of this back-end.
    Answer(LoadGauge),
    /// Those of all back-ends, by these names: the load index manager.
    Index(Vec<String>),
}

/// Announcements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnounceConfig {
    /// Mean time between two; each is drawn from 0.5 to 1.5 times it. 1 ms to 1 h.
    pub interval: Duration,
    /// Who gets them: machines, or multicast groups.
    pub receivers: Vec<SocketAddr>,
    /// How many routers a multicast announcement may pass, and one: 1 stays in the local network.
    pub multicast_hops: u32,
    /// The interface by which multicast announcements leave; the system's choice by default.
    pub multicast_interface: Option<MulticastInterface>,
}

impl AnnounceConfig {
    /// Announces once in `interval` on average.
    #[must_use]
    pub fn new(interval: Duration, receivers: Vec<SocketAddr>) -> Self {
        Self { interval, receivers, multicast_hops: 1, multicast_interface: None }
    }
}

/// What is measured for whoever asks for host metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// The port at which the server of this back-end listens.
    pub server_port: u16,
    /// Where Apache tells its scoreboard, `mod_status` with `?auto`: address, and path with query.
    pub scoreboard: Option<(SocketAddr, String)>,
}

/// The configuration of what tells a load.
#[derive(Debug, Clone)]
pub struct LoadConfig {
    /// Where inquiries come in. Replies leave from there, so it should be an address that front-ends ask, not `0.0.0.0`, on a
    /// machine with several.
    pub listen: SocketAddr,
    /// The key that it shares with the front-ends.
    pub key: Key,
    /// Whose loads are told.
    pub role: LoadRole,
    /// Bounds of what is answered.
    pub limits: AnswerLimits,
    /// Host metrics, for who asks for them. Not for a load index.
    pub host: Option<HostConfig>,
    /// Announcements, besides answers. Not for a load index.
    pub announce: Option<AnnounceConfig>,
    /// Where servers that are not ours tell their loads, and where the counters are.
    pub api: Option<ApiAddress>,
    /// Who may use it, where it is a Unix socket.
    pub api_access: ApiAccess,
}

const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);
const MOST_RECEIVERS: usize = 64;
const MOST_BACKENDS: usize = 65_534;

impl LoadConfig {
    /// Answers inquiries, with the defaults.
    #[must_use]
    pub fn new(listen: SocketAddr, key: Key, role: LoadRole) -> Self {
        Self {
            listen,
            key,
            role,
            limits: AnswerLimits::default(),
            host: None,
            announce: None,
            api: None,
            api_access: ApiAccess::Owner,
        }
    }

    pub(super) fn check(&self) -> Result<(), LoadError> {
        let wrong = |what: String| Err(LoadError::Config(what));
        if let LoadRole::Index(names) = &self.role {
            if names.is_empty() || names.len() > MOST_BACKENDS {
                return wrong(format!(
                    "a load index of {} back-ends; name 1 to {MOST_BACKENDS}",
                    names.len()
                ));
            }
            if names.iter().any(String::is_empty) {
                return wrong(
                    "a back-end of the load index has no name; write NAME,NAME without gaps".to_owned(),
                );
            }
            if let Some(name) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
                return wrong(format!("the back-end {:?} is named twice; name each once", name.1));
            }
            if self.announce.is_some() {
                return wrong("a load index announces nothing; announce at the back-ends".to_owned());
            }
        }
        let Some(announce) = &self.announce else { return Ok(()) };
        if !INTERVALS.contains(&announce.interval) {
            return wrong(format!("announcements every {:?}; give 1 ms to 1 h", announce.interval));
        }
        if announce.receivers.is_empty() || announce.receivers.len() > MOST_RECEIVERS {
            return wrong(format!(
                "{} receivers of announcements; name 1 to {MOST_RECEIVERS}, or a multicast group",
                announce.receivers.len()
            ));
        }
        if let Some(nowhere) = announce.receivers.iter().find(|to| to.port() == 0 || to.ip().is_unspecified())
        {
            return wrong(format!("announcements to {nowhere} reach nobody; give an address and a port"));
        }
        let other = announce.receivers.iter().find(|to| to.is_ipv4() != self.listen.is_ipv4());
        if let Some(other) = other {
            return wrong(format!(
                "announcements leave from {}, which cannot reach {other}; give addresses of one family",
                self.listen
            ));
        }
        announce.check_interface().map_err(|what| LoadError::Config(what.to_owned()))
    }
}

impl AnnounceConfig {
    /// Whether the interface says by which way the groups are reached.
    fn check_interface(&self) -> Result<(), &'static str> {
        let mut groups = self.receivers.iter().map(SocketAddr::ip).filter(IpAddr::is_multicast);
        let name_it = "give the name of a network interface, such as eth0";
        match &self.multicast_interface {
            Some(_) if groups.clone().next().is_none() => {
                Err("an interface is for multicast groups, and no receiver is one; leave it out")
            }
            Some(MulticastInterface::Address(_)) if groups.any(|group| group.is_ipv6()) => Err(name_it),
            None if groups.any(needs_interface) => Err(name_it),
            _ => Ok(()),
        }
    }
}

/// Why a load cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}; give an address of this machine and a port that is free")]
    Listen {
        /// The address as it was given.
        address: String,
        /// What the system says.
        error: io::Error,
    },
    /// The Unix socket at which loads are told cannot be made.
    #[error(
        "cannot make the Unix socket {path}: {error}; give a path in a directory that is there and may be written to"
    )]
    Socket {
        /// The path as it was given.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// The system provides no thread or random number, or refuses a setting.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> LoadError {
    move |error| LoadError::System { what, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let refused = |role: LoadRole, announce: Option<AnnounceConfig>| {
            let mut config = LoadConfig::new("127.0.0.1:0".parse().unwrap(), Key::new([1; 32]), role);
            config.announce = announce;
            config.check().unwrap_err().to_string()
        };
        let answer = || LoadRole::Answer(LoadGauge::new());
        let names = |names: &[&str]| LoadRole::Index(names.iter().map(|&name| name.to_owned()).collect());
        let to = |text: &str| vec![text.parse().unwrap()];
        assert!(refused(names(&[]), None).contains("name 1 to"));
        assert!(refused(names(&["a", "b", "a"]), None).contains("\"a\" is named twice"));
        let each = Duration::from_millis(100);
        let good = AnnounceConfig::new(each, to("127.0.0.1:9"));
        assert!(refused(names(&["a"]), Some(good)).contains("announces nothing"));
        assert!(refused(answer(), Some(AnnounceConfig::new(each, Vec::new()))).contains("receivers"));
        assert!(refused(answer(), Some(AnnounceConfig::new(each, to("[::1]:9")))).contains("one family"));
        let often = AnnounceConfig::new(Duration::from_micros(1), to("127.0.0.1:9"));
        assert!(refused(answer(), Some(often)).contains("1 ms"));
        assert!(refused(names(&["a", "", "b"]), None).contains("has no name"));
        for nowhere in ["127.0.0.1:0", "0.0.0.0:9"] {
            assert!(refused(answer(), Some(AnnounceConfig::new(each, to(nowhere)))).contains("reach nobody"));
        }
        let by = |group: &str, interface: Option<&str>| AnnounceConfig {
            multicast_interface: interface.map(|name| name.parse().unwrap()),
            ..AnnounceConfig::new(each, to(group))
        };
        assert!(by("10.0.0.1:9", Some("eth0")).check_interface().unwrap_err().contains("no receiver is one"));
        for (group, interface) in [("[ff05::1]:9", Some("10.0.0.1")), ("[ff02::1]:9", None)] {
            assert!(by(group, interface).check_interface().unwrap_err().contains("such as eth0"));
        }
        for (group, interface) in [
            ("239.1.1.1:9", Some("10.0.0.1")),
            ("239.1.1.1:9", Some("eth0")),
            ("[ff02::1]:9", Some("eth0")),
            ("[ff05::1]:9", None),
        ] {
            assert_eq!(by(group, interface).check_interface(), Ok(()));
        }
    }
}
