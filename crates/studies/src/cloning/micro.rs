//! The micro-benchmark of figure 8: two nodes, one document, and the mechanism for each request, from published costs.
//!
//! What is not published is a reading: a fetch has two messages, each of which costs what a clone does; the back-end of a handoff
//! parses the request once more (section 1), tears the connection down, and pays for an acknowledgment what the front-end does ("in
//! both of the front-end and the handed off node", section 4.1).

use plimsoll_cache::caches::lru;
use plimsoll_policy::params::GivenValue;

use super::published::{
    CLONE_US, CONNECT_US, FORWARD_ACK_US, HANDOFF_US, SLOW_CLONE_US, TEARDOWN_US, TRANSMIT_PER_KIB_US,
};
use crate::scenario::{Admission, Scenario, ScenarioError, Strategy, find_model};

/// Sizes of the document in bytes: powers of two from 64 B to 1 MiB.
pub(super) const SIZES_BYTES: [u64; 15] =
    [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576];

/// From this size on a document is large: the product's own bar for clones.
pub(super) const LARGE_BYTES: u64 = 65_536;

/// Up to this size CF's efficiency stays about the same.
pub(super) const SMALL_BYTES: u64 = 1024;

/// Requests of a run, and those before it is measured: of [`SATURATING`] both a multiple, as so many may end in a burst.
const REQUESTS: u32 = 6_720;
const WARMUP: u64 = 320;

/// Requests at once that saturate the nodes.
const SATURATING: u64 = 32;

/// What takes each request to the other node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MicroMechanism {
    /// Socket Cloning.
    Cloning,
    /// Cache forwarding.
    Forwarding,
    /// LARD's handoff.
    Handoff,
    /// Socket Cloning on the older machine of the paper.
    SlowCloning,
    /// LARD's handoff with acknowledgments that cost more.
    DearHandoff,
}

/// Costs in µs with which an acknowledgment of [`MicroMechanism::DearHandoff`] is rewritten: that of a whole segment more.
pub(super) const DEAR_ACK_US: f64 = 90.0;

impl MicroMechanism {
    /// Those of the figure.
    pub const FIGURE: [Self; 3] = [Self::Cloning, Self::Forwarding, Self::Handoff];
    pub(super) const ALL: [Self; 5] =
        [Self::Cloning, Self::Forwarding, Self::Handoff, Self::SlowCloning, Self::DearHandoff];

    /// Its name in the paper, or what sets it apart.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Cloning => "SC",
            Self::Forwarding => "CF",
            Self::Handoff => "LARD",
            Self::SlowCloning => "SC, Pentium II",
            Self::DearHandoff => "LARD, dear acknowledgments",
        }
    }

    fn model(self) -> &'static str {
        if self == Self::Forwarding { "cooperative_caching" } else { "cloning" }
    }

    /// Costs of a single web server on the same machine.
    fn machine(self) -> Vec<(&'static str, f64)> {
        let older = SLOW_CLONE_US / CLONE_US;
        match self {
            Self::Cloning | Self::Forwarding => Vec::new(),
            Self::SlowCloning => vec![("parse_us", PARSE_US * older), ("send_per_kib_us", SEND_US * older)],
            Self::Handoff | Self::DearHandoff => {
                vec![("parse_us", CONNECT_US + TEARDOWN_US), ("send_per_kib_us", TRANSMIT_PER_KIB_US)]
            }
        }
    }

    /// Costs of the mechanism, over those of the machine.
    fn costs(self) -> Vec<(&'static str, f64)> {
        let half_us = HANDOFF_US / 2.0;
        let rewrite_ack_us = if self == Self::DearHandoff { DEAR_ACK_US } else { FORWARD_ACK_US };
        match self {
            Self::Cloning | Self::Forwarding => Vec::new(),
            Self::SlowCloning => vec![
                ("clone_send_us", SLOW_CLONE_US / 2.0),
                ("clone_make_us", SLOW_CLONE_US / 2.0),
                ("route_ack_us", ROUTE_ACK_US * SLOW_CLONE_US / CLONE_US),
            ],
            Self::Handoff | Self::DearHandoff => vec![
                ("parse_us", CONNECT_US),
                ("clone_send_us", half_us),
                ("clone_make_us", half_us + CONNECT_US + TEARDOWN_US),
                ("route_ack_us", FORWARD_ACK_US),
                ("rewrite_ack_us", rewrite_ack_us),
            ],
        }
    }
}

/// Defaults of the models, which the older machine has multiplied.
const PARSE_US: f64 = 150.0;
const SEND_US: f64 = 12.0;
const ROUTE_ACK_US: f64 = 5.0;

/// How many requests are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MicroLoad {
    /// So many that what is needed most is always busy.
    Saturated,
    /// One after the other.
    Single,
}

impl MicroLoad {
    pub(super) const ALL: [Self; 2] = [Self::Saturated, Self::Single];

    /// In words.
    pub(super) fn title(self) -> &'static str {
        if self == Self::Saturated { "32 requests at a time" } else { "one request at a time" }
    }
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MicroRun {
    pub(super) mechanism: MicroMechanism,
    /// A single web server on the same machine in place of the mechanism.
    pub(super) alone: bool,
    pub(super) load: MicroLoad,
    pub(super) size_bytes: u64,
}

impl MicroRun {
    /// All runs of documents of a size.
    pub(super) fn of_size(size_bytes: u64) -> Vec<Self> {
        let mechanisms = MicroMechanism::ALL.into_iter();
        let each = mechanisms.flat_map(|mechanism| MicroLoad::ALL.map(|load| (mechanism, load)));
        each.flat_map(|(mechanism, load)| {
            [false, true].map(|alone| Self { mechanism, alone, load, size_bytes })
        })
        .collect()
    }

    /// Requests of a run, its warm-up included.
    pub(super) const fn requests() -> u32 {
        REQUESTS
    }

    /// The scenario. Nothing in it is drawn.
    pub(super) fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let nodes = if self.alone { 1 } else { 2 };
        let model = if self.alone { "nfs" } else { self.mechanism.model() };
        let saturated = self.load == MicroLoad::Saturated;
        let mut scenario = Scenario {
            model: find_model(model)?,
            admission: Admission::Fixed(if saturated { SATURATING } else { 1 }),
            cache: &lru::SPEC,
            cache_bytes: 320 << 20,
            warmup: WARMUP,
            ..Scenario::lard(Strategy::find("uri_hash")?, nodes, 1)
        };
        let mut params: Vec<(&str, GivenValue)> =
            self.mechanism.machine().into_iter().map(|(key, us)| (key, us.into())).collect();
        if !self.alone {
            params.extend(self.mechanism.costs().into_iter().map(|(key, us)| (key, us.into())));
            params.push(("always", 1_u32.into()));
        }
        scenario.set_model(params)?;
        Ok(scenario)
    }
}
