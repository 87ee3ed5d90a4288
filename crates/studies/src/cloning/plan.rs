//! The runs of figure 9.

use plimsoll_cache::CacheSpec;
use plimsoll_cache::caches::{lfu, lru};
use plimsoll_policy::params::GivenValue;

use super::perfect_lfu;
use crate::scenario::{Admission, Scenario, ScenarioError, Strategy, find_model};

/// Memory cache of a node: of its 384 MB, what the system leaves.
pub(super) const CACHE_BYTES: u64 = 320 << 20;

/// Nineteen clients with two connections each.
const CONNECTIONS: u64 = 38;

/// How nodes share their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeStrategy {
    /// Not at all.
    RoundRobin,
    /// Cooperative caching with LRU.
    CfLru,
    /// And with LFU.
    CfLfu,
    /// Socket Cloning, as in the paper: a hash maps requests to nodes with LRU.
    Sc,
    /// With LFU: not in the figure, but expected to be better.
    ScLfu,
    /// Mapped by LARD with replication: not of this paper.
    ScLardR,
}

impl NodeStrategy {
    /// Those of figure 9, and the one that is expected to be better.
    pub const FIGURE: [Self; 5] = [Self::RoundRobin, Self::CfLru, Self::CfLfu, Self::Sc, Self::ScLfu];

    /// Its name in the paper, or what sets it apart.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::RoundRobin => "RR",
            Self::CfLru => "CF-LRU",
            Self::CfLfu => "CF-LFU",
            Self::Sc => "SC",
            Self::ScLfu => "SC with LFU",
            Self::ScLardR => "SC by LARD/R",
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::RoundRobin => "nfs",
            Self::CfLru | Self::CfLfu => "cooperative_caching",
            Self::Sc | Self::ScLfu | Self::ScLardR => "cloning",
        }
    }

    fn policy(self) -> &'static str {
        match self {
            Self::RoundRobin | Self::CfLru | Self::CfLfu => "round_robin",
            Self::Sc | Self::ScLfu => "uri_hash",
            Self::ScLardR => "lard_r",
        }
    }

    /// That which is the same with so many nodes: a single one has none to share with.
    #[must_use]
    pub const fn with_nodes(self, nodes: usize) -> Self {
        match self {
            Self::CfLru | Self::Sc if nodes == 1 => Self::RoundRobin,
            Self::ScLfu if nodes == 1 => Self::CfLfu,
            _ => self,
        }
    }

    /// Whether its nodes replace by LFU, and otherwise by LRU.
    #[must_use]
    pub const fn is_lfu(self) -> bool {
        matches!(self, Self::CfLfu | Self::ScLfu)
    }

    /// Whether its nodes clone sockets to one another.
    #[must_use]
    pub const fn clones(self) -> bool {
        matches!(self, Self::Sc | Self::ScLfu | Self::ScLardR)
    }

    /// Whether its nodes fetch documents from one another.
    #[must_use]
    pub const fn fetches(self) -> bool {
        matches!(self, Self::CfLru | Self::CfLfu)
    }
}

/// What the paper leaves open, as it is read everywhere or with one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeReading {
    AsElsewhere,
    /// What comes from the file server does not wait for the interface.
    ReadsBeside,
    /// A document that was fetched from another node is not kept.
    OneCopy,
    /// The messages of a fetch cost nothing.
    FreeMessages,
    /// LFU forgets the uses of a document that it evicts.
    CountsForgotten,
    /// 256 MiB for each node.
    SmallMemory,
    /// A file server twice as fast.
    FastFileServer,
    /// Twice as many connections.
    ManyConnections,
}

impl NodeReading {
    /// Those with a change.
    pub(super) const CHANGED: [Self; 7] = [
        Self::ReadsBeside,
        Self::OneCopy,
        Self::FreeMessages,
        Self::CountsForgotten,
        Self::SmallMemory,
        Self::FastFileServer,
        Self::ManyConnections,
    ];

    /// In words.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::AsElsewhere => "as read",
            Self::ReadsBeside => "reads beside what is sent",
            Self::OneCopy => "one copy of each document",
            Self::FreeMessages => "fetches without messages",
            Self::CountsForgotten => "LFU that forgets",
            Self::SmallMemory => "256 MiB for each node",
            Self::FastFileServer => "a file server of 58 MB/s",
            Self::ManyConnections => "76 connections",
        }
    }

    /// Whether a strategy is another one with it.
    const fn concerns(self, strategy: NodeStrategy) -> bool {
        match self {
            Self::OneCopy | Self::FreeMessages => strategy.fetches(),
            Self::CountsForgotten => strategy.is_lfu(),
            _ => true,
        }
    }

    fn params(self) -> Option<(&'static str, GivenValue)> {
        match self {
            Self::ReadsBeside => Some(("reads_use_nic", 0_u32.into())),
            Self::OneCopy => Some(("replicates", 0_u32.into())),
            Self::FreeMessages => Some(("fetch_us", 0.0.into())),
            Self::FastFileServer => Some(("file_server_bytes_per_s", 58e6.into())),
            _ => None,
        }
    }
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeRun {
    pub(super) strategy: NodeStrategy,
    pub(super) nodes: usize,
    pub(super) reading: NodeReading,
}

/// How many requests a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodesExtent {
    /// Before it is measured.
    pub(super) warmup: u64,
    /// Until its end.
    pub(super) requests: u64,
}

/// Requests after which the throughput of all mechanisms is about steady.
const WARM_REQUESTS: u64 = 200_000;

impl NodesExtent {
    /// Why verdicts of runs of this length over so many seeds say little, if so.
    pub(super) fn caution(&self, seeds: usize) -> Option<String> {
        let cold = (self.warmup < WARM_REQUESTS)
            .then(|| format!("{} requests of warm-up leave caches cold", self.warmup));
        let few = (seeds < 3).then(|| {
            let plural = if seeds == 1 { "" } else { "s" };
            format!("{seeds} seed{plural} show little of the spread")
        });
        let why: Vec<String> = cold.into_iter().chain(few).collect();
        (!why.is_empty()).then(|| {
            format!(
                "Do not rely on these verdicts: {}. Run the full form, with --seeds 3 or more.",
                why.join(", and ")
            )
        })
    }
}

impl NodeRun {
    /// A run of figure 9.
    pub(super) const fn new(strategy: NodeStrategy, nodes: usize) -> Self {
        Self { strategy, nodes, reading: NodeReading::AsElsewhere }
    }

    /// The same with something read otherwise, if that concerns it.
    pub(super) const fn with(self, reading: NodeReading) -> Self {
        if reading.concerns(self.strategy) { Self { reading, ..self } } else { self }
    }

    fn cache(&self) -> &'static CacheSpec {
        match self.strategy.is_lfu() {
            true if self.reading == NodeReading::CountsForgotten => &lfu::SPEC,
            true => &perfect_lfu::SPEC,
            false => &lru::SPEC,
        }
    }

    /// The scenario.
    pub(super) fn scenario(&self, extent: &NodesExtent, seed: u64) -> Result<Scenario, ScenarioError> {
        let many = self.reading == NodeReading::ManyConnections;
        let small = self.reading == NodeReading::SmallMemory;
        let mut scenario = Scenario {
            model: find_model(self.strategy.model())?,
            admission: Admission::Fixed(if many { 2 * CONNECTIONS } else { CONNECTIONS }),
            cache: self.cache(),
            cache_bytes: if small { 256 << 20 } else { CACHE_BYTES },
            warmup: extent.warmup,
            ..Scenario::lard(Strategy::find(self.strategy.policy())?, self.nodes, seed)
        };
        scenario.set_model(self.reading.params())?;
        Ok(scenario)
    }
}
