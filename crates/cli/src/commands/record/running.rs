//! Records what a running switch sees, which its admin API tells.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use plimsoll_config::{Admin, Config, MechanismKind};
use serde::Deserialize;

use super::collected::{Collected, RecordedRequest};
use super::ending::{Losses, RecordEnd};
use crate::commands::flows;
use crate::error::CliError;

/// How often the front-end is asked. It keeps 100,000 requests meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Deserialize)]
struct Batch {
    next: u64,
    missed: u64,
    samples_lost: u64,
    requests: Vec<Passed>,
}

#[derive(Deserialize)]
struct Passed {
    time_unix_ns: u64,
    client: String,
    method: String,
    target: String,
    http11: bool,
    size_bytes: Option<u64>,
}

/// A front-end that distributes connections at layer 4.
pub(super) struct RunningSwitch {
    admin: Admin,
    name: String,
}

impl RunningSwitch {
    /// That of this configuration.
    pub(super) fn of(path: &Path) -> Result<Self, CliError> {
        let config = Config::load(path).map_err(|errors| CliError::config(path, &errors))?;
        let name = path.display().to_string();
        if config.mechanism != MechanismKind::Direct {
            return Err(CliError::Failed(format!(
                "{name} has `mechanism = \"{}\"`, and only `direct` reads what passes; --observe records from a network interface",
                config.mechanism
            )));
        }
        let admin = config.admin.ok_or_else(|| {
            CliError::Failed(format!("{name} switches the admin API off, which tells what passes"))
        })?;
        Ok(Self { admin, name })
    }

    fn ask(&self, after: u64) -> Result<Batch, CliError> {
        let text = flows::ask(&self.admin, &format!("/passed?after={after}"))?;
        serde_json::from_str(&text).map_err(|error| {
            CliError::Failed(format!("{} answers in an unknown way: {error}", self.admin.address))
        })
    }
}

pub(super) fn record(
    switch: &RunningSwitch,
    ending: &RecordEnd,
    collected: &mut Collected,
) -> Result<Losses, CliError> {
    let first = switch.ask(u64::MAX)?;
    eprintln!("Recording what the switch of {} sees.", switch.name);
    let (mut next, mut losses) = (first.next, Losses::default());
    loop {
        let is_last = ending.has_come() || collected.is_full();
        let batch = switch.ask(next)?;
        next = batch.next;
        for passed in &batch.requests {
            take(collected, passed);
        }
        losses.packets += batch.requests.len() as u64 + batch.missed;
        losses.lost += batch.missed;
        if is_last {
            let lost = batch.samples_lost.saturating_sub(first.samples_lost);
            return Ok(Losses { packets: losses.packets + lost, lost: losses.lost + lost, ..losses });
        }
        if batch.requests.is_empty() {
            std::thread::sleep(PAUSE);
        }
    }
}

fn take(collected: &mut Collected, passed: &Passed) {
    collected.take(&RecordedRequest {
        at_ns: passed.time_unix_ns,
        client: passed.client.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        method: passed.method.as_bytes(),
        target: passed.target.as_bytes(),
        http11: passed.http11,
        status: None,
        size_bytes: passed.size_bytes,
        unread: false,
        first_byte_ns: None,
    });
}
