//! The contents of a decision log: runs, and every input of the core with the resulting decision.

use std::sync::Arc;

use plimsoll_policy::estimator::ClassCost;
use plimsoll_policy::{
    AdmissionControl, BackendId, BuildContext, BuildError, Cluster, Completion, Core, Decision, Health,
    HostMetrics, Inquiries, LoadReport, OfferOptions, Phase, Policy, PollAnswer, Request, SniffedRequest,
    Time, WaitingRequest, Weight, Witness,
};

/// Everything needed to start a fresh policy object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeader {
    /// Name of the policy in the registry.
    pub policy: String,
    /// Its settings as they were written.
    pub settings: Vec<(String, String)>,
    /// Seed it was built with.
    pub seed: u64,
    /// Replacement policy of the back-ends' caches, for policies that model them.
    pub cache: String,
    /// Memory cache of one back-end in bytes.
    pub cache_bytes: u64,
    /// What classes of requests cost, from class 1 on; empty where there are none.
    pub class_costs: Arc<[ClassCost]>,
    /// The back-ends in index order.
    pub backends: Vec<BackendEntry>,
    /// The admission limit and the length of the queue.
    pub admission: AdmissionControl,
    /// Requests of an earlier policy that wait, in the order in which they start.
    pub waiting: Vec<WaitingRequest>,
    /// How many back-ends the core asks for their load before each choice of a policy that does not poll by itself; 0 for none.
    pub inquiries: u8,
    /// Requests of an earlier policy that count against the admission limit without being load.
    pub reserved: u64,
    /// When the run started, in nanoseconds since 1970-01-01 00:00:00 UTC; for people only.
    pub started_unix_ns: u64,
}

/// A back-end as it was when a run started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendEntry {
    /// Its name in the configuration.
    pub name: String,
    /// Its identity for hashing.
    pub key: u64,
    /// Its weight.
    pub weight: Weight,
    /// Its health.
    pub health: Health,
    /// Requests assigned by an earlier policy and not completed.
    pub load: u32,
    /// What load information has added to it for requests of others.
    pub others: u32,
    /// The most requests that it may have at once; `None` for as many as come.
    pub most: Option<u32>,
    /// For a back-end that has left: its position in the order of leaving.
    pub left: Option<u32>,
}

impl BackendEntry {
    /// A back-end that has just joined.
    #[must_use]
    pub fn joined(name: &str, key: u64, weight: Weight) -> Self {
        let (name, health) = (name.to_owned(), Health::Up);
        Self { name, key, weight, health, load: 0, others: 0, most: None, left: None }
    }
}

/// Why a run cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The policy of the run cannot be built.
    #[error("{0}")]
    Policy(#[from] BuildError),
    /// Its cache is unknown.
    #[error("{0}")]
    Cache(#[from] plimsoll_cache::UnknownCache),
}

impl RunHeader {
    /// The build context of this run's policy.
    ///
    /// # Errors
    /// When there is no such cache.
    pub fn context(&self) -> Result<BuildContext, HeaderError> {
        Ok(BuildContext {
            seed: self.seed,
            cache_bytes: self.cache_bytes,
            cache: plimsoll_cache::find(&self.cache)?,
            class_costs: Arc::clone(&self.class_costs),
            ..BuildContext::default()
        })
    }

    /// The policy of this run, fresh.
    ///
    /// # Errors
    /// When there is no such policy or cache, or a setting cannot be used.
    pub fn build_policy(&self) -> Result<Box<dyn Policy>, HeaderError> {
        Ok(plimsoll_policy::build(&self.policy, &self.context()?, &self.settings)?)
    }

    /// The cluster at the start of this run.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        let mut cluster = Cluster::new(0);
        for entry in self.backends.iter().take(usize::from(u16::MAX)) {
            let b = cluster.join(entry.weight, entry.key);
            for _ in 0..entry.load {
                cluster.assign(b);
            }
            if entry.others > 0 {
                cluster.report(b, entry.load.saturating_add(entry.others));
            }
            if entry.health != Health::Up {
                cluster.set_health(b, entry.health);
            }
            if entry.most.is_some() {
                cluster.set_most_requests(b, entry.most);
            }
        }
        let mut left: Vec<(u32, BackendId)> = Vec::new();
        for (b, entry) in cluster.ids().zip(&self.backends) {
            left.extend(entry.left.filter(|_| entry.load == 0).map(|place| (place, b)));
        }
        left.sort_unstable();
        left.into_iter().for_each(|(_, b)| cluster.leave(b));
        cluster
    }

    /// The core as it was at the start of this run, with a fresh policy.
    ///
    /// # Errors
    /// Like [`RunHeader::build_policy`].
    pub fn core<W: Witness>(&self, witness: W) -> Result<Core<W>, HeaderError> {
        let mut core = Core::with_witness(self.build_policy()?, self.cluster(), self.admission, witness);
        let inquiries = Inquiries { size: self.inquiries, seed: self.seed };
        core.set_inquiries((self.inquiries > 0).then_some(inquiries));
        core.inherit(self.waiting.iter().cloned(), self.reserved);
        Ok(core)
    }
}

/// One input of the core with the resulting decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, on the front-end's clock.
    pub now: Time,
    /// What happened.
    pub what: What,
}

/// The inputs of [`Core`], named as in [`Witness`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A fresh policy object begins.
    Run(Box<RunHeader>),
    /// A request was offered; `Wait` means that it waits for room.
    Offered {
        /// The request.
        request: Request,
        /// Its options.
        options: OfferOptions,
        /// The decision.
        decision: Decision,
    },
    /// A request's poll ended, with answers or by time-out.
    Answered {
        /// [`Request::number`].
        number: u64,
        /// The answers that came in time.
        answers: Vec<PollAnswer>,
        /// The decision.
        decision: Decision,
    },
    /// A waiting request got its turn or reached its deadline.
    Started {
        /// [`Request::number`].
        number: u64,
        /// The decision.
        decision: Decision,
    },
    /// The client gave up a request that was waiting or polling.
    GaveUp {
        /// [`Request::number`].
        number: u64,
    },
    /// A request changed its phase.
    Moved {
        /// [`Request::number`].
        number: u64,
        /// Who has it.
        backend: BackendId,
        /// Its phase before.
        from: Phase,
        /// Its phase now; `None` for a prepared choice that was withdrawn.
        to: Option<Phase>,
        /// Whether the present policy assigned it.
        own: bool,
    },
    /// This request took a prepared choice.
    Taken {
        /// The number of the choice.
        number: u64,
        /// The request that took it.
        request: Request,
    },
    /// A request ended.
    Completed {
        /// [`Request::number`].
        number: u64,
        /// The phase in which it ended.
        phase: Phase,
        /// How it ended.
        completion: Completion,
    },
    /// A further request stayed with its connection's back-end; the policy was not asked.
    Stayed {
        /// Who has it.
        backend: BackendId,
    },
    /// A request ended that an earlier policy assigned, or that stayed with its connection.
    CompletedForeign {
        /// Who had it.
        backend: BackendId,
        /// The phase in which it ended.
        phase: Phase,
    },
    /// A back-end reported its load.
    Reported(LoadReport),
    /// A request passed on a connection whose back-end was chosen before.
    Sniffed(SniffedRequest),
    /// A back-end was measured.
    HostMetrics(HostMetrics),
    /// The sum over all front-ends came.
    Shared(Vec<(u64, u64)>),
    /// A back-end's health changed.
    Health {
        /// The back-end.
        backend: BackendId,
        /// The new value.
        health: Health,
    },
    /// A back-end's weight changed.
    Weight {
        /// The back-end.
        backend: BackendId,
        /// The new value.
        weight: Weight,
    },
    /// How many requests a back-end may have at once.
    MostRequests {
        /// The back-end.
        backend: BackendId,
        /// The new value; `None` for as many as come.
        most: Option<u32>,
    },
    /// A back-end joined.
    Joined {
        /// The index that it got.
        backend: BackendId,
        /// Its name in the configuration.
        name: String,
        /// Its identity for hashing.
        key: u64,
        /// Its weight.
        weight: Weight,
    },
    /// A back-end left; its index may be given to another one.
    Left {
        /// Who.
        backend: BackendId,
    },
    /// Admission limit or queue length changed.
    Admission(AdmissionControl),
    /// The policy's tick.
    Ticked,
}
