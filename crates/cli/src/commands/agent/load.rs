//! The options by which an agent tells its load.

use std::net::SocketAddr;
use std::time::Duration;

use plimsoll_agent::load::{
    AnnounceConfig, ApiAccess, ApiAddress, HostConfig, LoadConfig, LoadError, LoadRole, LoadService,
    PreparedLoad,
};
use plimsoll_wire::load::LoadGauge;
use plimsoll_wire::{Key, MulticastInterface};

use crate::error::CliError;
use crate::values;

/// A time that configuration files accept too: above 0 and at most a day.
pub(super) fn seconds(option: &str, value_s: f64) -> Result<Duration, CliError> {
    let time = Duration::try_from_secs_f64(value_s).ok();
    time.filter(|time| !time.is_zero() && *time <= Duration::from_secs(86_400)).ok_or_else(|| {
        CliError::Usage(format!("{option} {value_s}: give seconds above 0 and at most 86400, a day"))
    })
}

/// The address and path of `http://ADDRESS:PORT/PATH`.
fn scoreboard(url: &str) -> Result<(SocketAddr, String), String> {
    let wrong = || format!("expected http://ADDRESS:PORT/PATH?auto with an IP address, not `{url}`");
    let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
    let slash = rest.find('/').ok_or_else(wrong)?;
    let address = match rest[..slash].parse() {
        Ok(address) => address,
        Err(_) => format!("{}:80", &rest[..slash]).parse().map_err(|_| wrong())?,
    };
    if rest.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
        return Err(wrong());
    }
    Ok((address, rest[slash..].to_owned()))
}

/// Options of load information.
#[derive(clap::Args, Debug)]
pub(crate) struct LoadArgs {
    /// Answer front-ends' inquiries about the load at this address, over UDP
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = values::address)]
    load_listen: Option<SocketAddr>,

    /// Where servers that are not ours tell their loads, and where the counters are: an address of loopback, or unix:PATH
    #[arg(long, value_name = "WHERE", requires = "load_listen")]
    load_api: Option<ApiAddress>,

    /// Let a group, by name or number, use the Unix socket of --load-api as well; otherwise only the user that starts the agent may
    #[arg(long, value_name = "GROUP", requires = "load_api")]
    load_api_group: Option<String>,

    /// Also announce the load to this receiver, or multicast group; may be repeated
    #[arg(long = "load-announce", value_name = "ADDRESS:PORT", requires = "load_listen", value_parser = values::address)]
    load_receivers: Vec<SocketAddr>,

    /// Mean time between two announcements, in seconds; each is drawn from 0.5 to 1.5 times it
    #[arg(long, value_name = "S", default_value = "0.1", value_parser = values::positive)]
    load_interval: f64,

    /// Network interface by which multicast announcements leave, by name; for IPv4 groups, by its address as well
    #[arg(long, value_name = "NAME", requires = "load_receivers")]
    load_interface: Option<MulticastInterface>,

    /// Tell host metrics to front-ends that ask for them, for the policy weighted_round_robin_host: connections that wait to be
    /// accepted at this port, processes that wait for the disk, and requests that are being answered
    #[arg(long, value_name = "PORT", requires = "load_listen", value_parser = clap::value_parser!(u16).range(1..))]
    host_metrics: Option<u16>,

    /// Take the requests that are being answered from Apache's scoreboard, such as http://127.0.0.1:80/server-status?auto
    #[arg(long, value_name = "URL", requires = "host_metrics", value_parser = scoreboard)]
    scoreboard: Option<(SocketAddr, String)>,

    /// Inquiries in a second that one source may send
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    load_rate: u32,

    /// Be the load index manager of these back-ends instead: clients ask it for the one with the shortest queue
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "load_listen")]
    load_index: Vec<String>,
}

impl LoadArgs {
    /// Whether this is the load index manager.
    pub(super) fn is_index(&self) -> bool {
        !self.load_index.is_empty()
    }

    /// Those of a load that is its own, with which it cannot be that.
    pub(super) fn of_own_load(&self) -> Option<&'static str> {
        let announces = (!self.load_receivers.is_empty()).then_some("--load-announce");
        announces.or_else(|| self.host_metrics.map(|_| "--host-metrics"))
    }

    /// Whether a load is told at all.
    pub(super) fn is_told(&self) -> bool {
        self.load_listen.is_some()
    }

    /// Whether no server can tell its load.
    pub(super) fn has_no_source(&self) -> bool {
        self.load_api.is_none() && !self.is_index()
    }

    /// Where the load of this back-end is told: nowhere by a load index manager, which tells of others.
    pub(super) fn told_at(&self, load: &PreparedLoad) -> Option<SocketAddr> {
        (!self.is_index()).then(|| load.address()).flatten()
    }

    /// The mean time between two announcements.
    pub(super) fn interval(&self) -> Result<Duration, CliError> {
        seconds("--load-interval", self.load_interval)
    }

    /// What they say, for the load in `gauge`.
    pub(super) fn config(&self, key: &Key, gauge: &LoadGauge) -> Result<Option<LoadConfig>, CliError> {
        let Some(listen) = self.load_listen else { return Ok(None) };
        let role = if self.is_index() {
            LoadRole::Index(self.load_index.clone())
        } else {
            LoadRole::Answer(gauge.clone())
        };
        let mut config = LoadConfig::new(listen, key.clone(), role);
        config.limits.per_source_s = self.load_rate;
        config.host = self
            .host_metrics
            .map(|server_port| HostConfig { server_port, scoreboard: self.scoreboard.clone() });
        config.api.clone_from(&self.load_api);
        if let Some(group) = &self.load_api_group {
            let wrong = |what: &str| CliError::Usage(format!("--load-api-group {group}: {what}"));
            if !matches!(self.load_api, Some(ApiAddress::Unix(_))) {
                return Err(wrong("only a Unix socket has a group; give --load-api unix:PATH"));
            }
            config.api_access = ApiAccess::of_group(group).map_err(|error| wrong(&error))?;
        }
        if !self.load_receivers.is_empty() {
            let interval = seconds("--load-interval", self.load_interval)?;
            let mut announce = AnnounceConfig::new(interval, self.load_receivers.clone());
            announce.multicast_interface.clone_from(&self.load_interface);
            config.announce = Some(announce);
        }
        Ok(Some(config))
    }
}

/// Says where the load is told.
pub(super) fn tell(service: &LoadService) {
    tracing::info!("telling the load at {}", service.address());
    if let Some(address) = service.api_address() {
        tracing::info!("taking loads on http://{address}");
    }
}

impl From<LoadError> for CliError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Config(_) => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scoreboards() {
        let (address, path) = scoreboard("http://127.0.0.1/server-status?auto").unwrap();
        assert_eq!((address, &*path), ("127.0.0.1:80".parse().unwrap(), "/server-status?auto"));
        assert_eq!(scoreboard("http://[::1]:8080/s").unwrap().0, "[::1]:8080".parse().unwrap());
        for bad in [
            "127.0.0.1/s",
            "http://127.0.0.1",
            "http://localhost:80/s",
            "http://127.0.0.1/a b",
            "https://1.2.3.4/s",
        ] {
            assert!(scoreboard(bad).unwrap_err().contains("expected http://"), "{bad}");
        }
    }
}
