//! A cell of the stress matrix: what is asked, of how many back-ends, how loaded, of which kind. Data that can be sent elsewhere.

use serde::{Deserialize, Serialize};

/// Which part of the workloads a cell belongs to: policies are designed on one half of them and judged on the other, and on real traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Half {
    /// Policies may be tuned on it.
    Design,
    /// No policy was tuned on it.
    Judging,
    /// Real traces, as they were given; no policy was tuned on them either.
    Traces,
}

impl Half {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Design => "design",
            Self::Judging => "judging",
            Self::Traces => "traces",
        }
    }
}

/// How much is asked of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Saturation: always so many requests under way for each back-end.
    Closed {
        /// Requests under way for each back-end, above 0; at least one in all.
        under_way: f64,
    },
    /// Independent arrivals.
    Poisson {
        /// Arrivals as a share of what the cluster can serve.
        share: f64,
    },
    /// Arrivals in bursts: gamma-distributed times between them.
    Bursts {
        /// Arrivals as a share of what the cluster can serve.
        share: f64,
        /// Coefficient of variation of the times between arrivals.
        cv: f64,
    },
}

/// What the back-ends are like, and what happens to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClusterShape {
    /// All alike.
    Equal,
    /// The first half has half the speed, which no weight tells.
    TwoSpeeds,
    /// The first half has a third of the memory of the others.
    TwoMemories,
    /// A third into the run one becomes four times as slow.
    OneSlows,
    /// A third into the run one fails; at half it returns with an empty memory.
    OneReturns,
    /// The last quarter joins, with empty memories, when a third of the run is over.
    Grows,
}

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixCell {
    /// Its number in the matrix.
    pub number: u32,
    /// Its half.
    pub half: Half,
    /// Name of its workload, see [`super::workloads`].
    pub workload: String,
    /// Requests of the workload.
    pub requests: u64,
    /// Number of back-ends.
    pub backends: usize,
    /// Memory of all back-ends together, as a multiple of the bytes of all targets.
    pub memory: f64,
    /// How much is asked.
    pub load: Load,
    /// What the back-ends are like.
    pub cluster: ClusterShape,
    /// Name of their hardware, as in [`plimsoll_sim::hardware::HARDWARE`].
    pub hardware: String,
    /// Seed of workload and run.
    pub seed: u64,
}

impl MatrixCell {
    /// One line that tells it from the others.
    #[must_use]
    pub fn title(&self) -> String {
        let load = match self.load {
            Load::Closed { under_way } => format!("{under_way} under way each"),
            Load::Poisson { share } => format!("Poisson {:.0} %", 100.0 * share),
            Load::Bursts { share, cv } => format!("bursts (cv {cv}) {:.0} %", 100.0 * share),
        };
        let cluster = match self.cluster {
            ClusterShape::Equal => "",
            ClusterShape::TwoSpeeds => ", two speeds",
            ClusterShape::TwoMemories => ", two memories",
            ClusterShape::OneSlows => ", one slows",
            ClusterShape::OneReturns => ", one returns cold",
            ClusterShape::Grows => ", grows",
        };
        let Self { workload, backends, memory, hardware, .. } = self;
        format!("{workload}, {backends} × {hardware}, memory {memory}, {load}{cluster}")
    }

    /// Whether throughput is what counts: below saturation it is slowdown.
    #[must_use]
    pub const fn is_saturated(&self) -> bool {
        matches!(self.load, Load::Closed { .. })
    }
}
