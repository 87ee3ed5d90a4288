//! Where front-ends' loads come from, when there are several of them or loads are not known at once.
//!
//! Source: Shen, Yang and Chu, "Cluster load balancing for fine-grain network services", IPDPS 2002.

use std::fmt;

use plimsoll_policy::Nanos;
use plimsoll_policy::params::{ParamSet, ParamSpec, Params as _};

use crate::partitions::Partitions;

plimsoll_policy::params! {
    /// How back-ends announce their loads (section 2.2).
    pub struct BroadcastParams {
        /// Mean time between two announcements of a back-end.
        interval_s: Nanos = Nanos::from_millis(100), 0.000001..=1000.0, "s";
        /// 1 draws each interval from 0.5 to 1.5 times the mean; with 0 all are equal, and all back-ends announce at once.
        jittered: u32 = 1, 0..=1, "";
        /// 1 has a front-end add what it sends between two announcements; with 0 all its requests go to the back-end that seemed
        /// least loaded.
        counts_own: u32 = 1, 0..=1, "";
        /// Time of an announcement from a back-end to the front-ends.
        latency_s: Nanos = Nanos::new(145_000), 0.0..=10.0, "s";
        /// CPU time of an announcement at its back-end.
        cpu_s: Nanos = Nanos::ZERO, 0.0..=1.0, "s";
        /// CPU time of an announcement at each front-end, which is only counted.
        receive_cpu_s: Nanos = Nanos::ZERO, 0.0..=1.0, "s";
    }
}

plimsoll_policy::params! {
    /// How a front-end asks back-ends for their load (sections 2.3 and 3.2).
    pub struct PollParams {
        /// Back-ends asked before each choice of a policy that does not say itself whom to ask.
        size: u32 = 2, 1..=8, "";
        /// Time of an inquiry from a front-end to a back-end, and of the answer back: half a round trip.
        latency_s: Nanos = Nanos::new(145_000), 0.0..=10.0, "s";
        /// Answers that take longer are discarded; 0 waits for all.
        discard_after_s: Nanos = Nanos::from_millis(10), 0.0..=100.0, "s";
        /// A load that was told no longer ago is not asked for again: the front-end counts its own requests since; 0 asks always.
        max_age_s: Nanos = Nanos::ZERO, 0.0..=1.0, "s";
        /// Probability with which a back-end that serves a request reads an inquiry late.
        late_share: f64 = 0.0, 0.0..=1.0, "";
        /// Mean of the exponential time by which it reads such an inquiry late.
        late_mean_s: Nanos = Nanos::new(26_400_000), 0.0..=100.0, "s";
        /// CPU time of an inquiry at its back-end.
        cpu_s: Nanos = Nanos::ZERO, 0.0..=1.0, "s";
    }
}

plimsoll_policy::params! {
    /// How a load index manager is asked, which chooses for all front-ends (section 4).
    pub struct CentralParams {
        /// Time from a front-end to the manager, and back: half a round trip.
        latency_s: Nanos = Nanos::new(169_500), 0.0..=10.0, "s";
    }
}

/// Where a front-end's loads come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadInformation {
    /// Every front-end knows all loads at once and for nothing.
    Exact,
    /// What this front-end has assigned and has not seen completed.
    Own,
    /// Back-ends announce their loads.
    Broadcast(BroadcastParams),
    /// A front-end asks some back-ends before each choice.
    Poll(PollParams),
    /// A load index manager chooses for all front-ends, and counts what it has assigned.
    Central(CentralParams),
}

impl LoadInformation {
    /// Whether its messages take CPU time of back-ends.
    #[must_use]
    pub fn costs_cpu(&self) -> bool {
        match self {
            Self::Broadcast(how) => !how.cpu_s.is_zero(),
            Self::Poll(how) => !how.cpu_s.is_zero(),
            Self::Exact | Self::Own | Self::Central(_) => false,
        }
    }
}

/// One kind of load information as registered.
pub struct LoadInformationSpec {
    /// Name, also the prefix of its parameters.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Declared parameters.
    pub params: &'static [ParamSpec],
    /// Makes it of these parameters.
    pub build: fn(&ParamSet) -> LoadInformation,
}

impl fmt::Debug for LoadInformationSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadInformationSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Every kind of load information, in the order in which help and documentation list them.
pub static LOAD_INFORMATION: &[&LoadInformationSpec] = &[
    &LoadInformationSpec {
        name: "exact",
        summary: "all loads, at once and for nothing",
        params: &[],
        build: |_| LoadInformation::Exact,
    },
    &LoadInformationSpec {
        name: "own",
        summary: "what the front-end itself has assigned and has not seen completed",
        params: &[],
        build: |_| LoadInformation::Own,
    },
    &LoadInformationSpec {
        name: "broadcast",
        summary: "back-ends announce their loads at intervals",
        params: BroadcastParams::SPECS,
        build: |params| LoadInformation::Broadcast(BroadcastParams::of(params)),
    },
    &LoadInformationSpec {
        name: "poll",
        summary: "the front-end asks some back-ends before each choice",
        params: PollParams::SPECS,
        build: |params| LoadInformation::Poll(PollParams::of(params)),
    },
    &LoadInformationSpec {
        name: "central",
        summary: "a load index manager chooses for all front-ends",
        params: CentralParams::SPECS,
        build: |params| LoadInformation::Central(CentralParams::of(params)),
    },
];

/// How requests are dealt to front-ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dealing {
    /// All requests of a client to one front-end.
    #[default]
    ByClient,
    /// Each one at random.
    AtRandom,
}

/// Several front-ends, or one that does not know all loads at once, or back-ends that do not host all targets.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontEndsSetup {
    /// Where their loads come from.
    pub load_information: LoadInformation,
    /// How many there are.
    pub count: u16,
    /// How requests are dealt to them.
    pub dealing: Dealing,
    /// Time for which a request is on its way from the back-end on which its front-end runs to another one: front-end `f` runs
    /// on back-end `f` modulo their number (`AdaptLoad`'s two-level form). Zero where front-ends run on machines of their own; without effect where a load index
    /// manager chooses.
    pub hop: Nanos,
    /// How often front-ends exchange what they have seen, for policies that share it; zero for never.
    pub exchange_interval: Nanos,
    /// The partitions of the targets. Each front-end has a core for each: number `front_end * partitions.count() + partition`.
    pub partitions: Partitions,
}
