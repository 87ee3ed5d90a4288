//! Totals of World Cup logs, in the layout of the archive's own `.check` files.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::worldcup_record::WorldCupRecord;

/// Totals over all records of a World Cup log, counted or not.
///
/// Transfers of unknown size are left out of the sum and of the extremes of sizes, but count as
/// requests, so that the mean is the sum over all requests; thus do the published totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldCupCheck {
    requests: u64,
    bytes: u64,
    client: Range,
    object: Range,
    size: Range,
    time_s: Range,
    start_s: u32,
    finish_s: u32,
    out_of_order: u64,
    servers: [u64; 256],
}

/// Smallest and largest value seen; 0 and 0 before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Range(Option<(u32, u32)>);

impl Range {
    fn add(&mut self, value: u32) {
        let (low, high) = self.0.unwrap_or((value, value));
        self.0 = Some((low.min(value), high.max(value)));
    }

    fn min(self) -> u32 {
        self.0.map_or(0, |range| range.0)
    }

    fn max(self) -> u32 {
        self.0.map_or(0, |range| range.1)
    }
}

impl Default for WorldCupCheck {
    fn default() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            client: Range::default(),
            object: Range::default(),
            size: Range::default(),
            time_s: Range::default(),
            start_s: 0,
            finish_s: 0,
            out_of_order: 0,
            servers: [0; 256],
        }
    }
}

impl WorldCupCheck {
    pub(crate) fn add(&mut self, raw: &WorldCupRecord) {
        if self.requests == 0 {
            self.start_s = raw.time_s;
        } else if raw.time_s < self.finish_s {
            self.out_of_order += 1;
        }
        self.finish_s = raw.time_s;
        self.requests += 1;
        if let Some(size) = raw.size() {
            self.bytes += u64::from(size);
            self.size.add(size);
        }
        self.client.add(raw.client);
        self.object.add(raw.object);
        self.time_s.add(raw.time_s);
        self.servers[usize::from(raw.server)] += 1;
    }

    /// Number of records.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Sum of the known sizes in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn used_servers(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.servers.iter().copied().enumerate().filter(|s| s.1 > 0)
    }
}

impl fmt::Display for WorldCupCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = if self.requests == 0 { 0.0 } else { self.bytes as f64 / self.requests as f64 };
        let servers = self.used_servers().count();
        writeln!(f, "    Total Requests: {}", self.requests)?;
        writeln!(f, "       Total Bytes: {}", self.bytes)?;
        writeln!(f, "Mean Transfer Size: {mean:.6}")?;
        writeln!(f, "     Min Client ID: {}", self.client.min())?;
        writeln!(f, "     Max Client ID: {}", self.client.max())?;
        writeln!(f, "     Min Object ID: {}", self.object.min())?;
        writeln!(f, "     Max Object ID: {}", self.object.max())?;
        writeln!(f, "          Min Size: {}", self.size.min())?;
        writeln!(f, "          Max Size: {}", self.size.max())?;
        writeln!(f, "          Min Time: {}", self.time_s.min())?;
        writeln!(f, "          Max Time: {}", self.time_s.max())?;
        writeln!(f, "        Start Time: {}", self.start_s)?;
        writeln!(f, "       Finish Time: {}", self.finish_s)?;
        writeln!(f, "      Out of Order: {}", self.out_of_order)?;
        writeln!(f, "    Unique Servers: {servers}")?;
        for (server, requests) in self.used_servers() {
            writeln!(f, "Server {server}: {requests}")?;
        }
        writeln!(f, "Check:")?;
        // The archive adds the servers' requests up again, as its own check of the tool.
        let sum: u64 = self.used_servers().map(|server| server.1).sum();
        writeln!(f, "Total Requests: {sum}")?;
        writeln!(f, "Unique Servers: {servers}")
    }
}

impl Serialize for WorldCupCheck {
    /// As the lines of the `.check` file, one string.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
