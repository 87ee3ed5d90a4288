//! What a decision log holds: runs, and every input of the policy with the decision taken.

use plimsoll_policy::{
    AdmissionControl, BackendId, BuildContext, BuildError, Cluster, Completion, Core, Decision, Health,
    LoadReport, OfferOptions, Phase, Policy, PollAnswer, Request, Time, WaitingRequest, Weight, Witness,
};

/// Everything that a fresh policy object starts from.
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
    /// The back-ends in index order.
    pub backends: Vec<BackendEntry>,
    /// The admission limit and the length of the queue.
    pub admission: AdmissionControl,
    /// Requests of an earlier policy that wait, in the order in which they start.
    pub waiting: Vec<WaitingRequest>,
    /// Requests of an earlier policy that take room without being load.
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
    /// For a back-end that has left: its place among those that have, in the order in which they did.
    pub left: Option<u32>,
}

/// A log cannot be carried out: the text says why.
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
    /// What a policy of this run is built from.
    ///
    /// # Errors
    /// When there is no such cache.
    pub fn context(&self) -> Result<BuildContext, HeaderError> {
        Ok(BuildContext {
            seed: self.seed,
            cache_bytes: self.cache_bytes,
            cache: plimsoll_cache::find(&self.cache)?,
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
            if entry.health != Health::Up {
                cluster.set_health(b, entry.health);
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
        core.inherit(self.waiting.iter().cloned(), self.reserved);
        Ok(core)
    }
}

/// One input of the core, with the decision that it led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, on the front-end's clock.
    pub now: Time,
    /// What happened.
    pub what: What,
}

/// What happened: the inputs of [`Core`], in the words of [`Witness`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A fresh policy object begins.
    Run(Box<RunHeader>),
    /// A request was offered; `Wait` means that it waits for room.
    Offered {
        /// What the policy was asked about.
        request: Request,
        /// What else was said of it.
        options: OfferOptions,
        /// What was decided.
        decision: Decision,
    },
    /// The answers to a request's poll came, or its time was up.
    Answered {
        /// [`Request::number`].
        number: u64,
        /// The answers that came in time.
        answers: Vec<PollAnswer>,
        /// What was decided.
        decision: Decision,
    },
    /// A request that waited came to its turn, or to its deadline.
    Started {
        /// [`Request::number`].
        number: u64,
        /// What was decided.
        decision: Decision,
    },
    /// A request that waited, or whose poll was under way, was given up by its client.
    GaveUp {
        /// [`Request::number`].
        number: u64,
    },
    /// A request came into another phase.
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
    /// A prepared choice was taken by this request.
    Taken {
        /// The number of the choice.
        number: u64,
        /// What took it.
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
    /// A back-end has a further request on its connection, about which the policy is not asked.
    Stayed {
        /// Who has it.
        backend: BackendId,
    },
    /// A request ended that the present policy did not assign: of an earlier policy, or one that stayed.
    CompletedForeign {
        /// Who had it.
        backend: BackendId,
        /// The phase in which it ended.
        phase: Phase,
    },
    /// A back-end reported its load.
    Reported(LoadReport),
    /// What several front-ends have seen came, added up.
    Shared(Vec<(u64, u64)>),
    /// The health of a back-end is now this.
    Health {
        /// Whose.
        backend: BackendId,
        /// What it is.
        health: Health,
    },
    /// The weight of a back-end is now this.
    Weight {
        /// Whose.
        backend: BackendId,
        /// What it is.
        weight: Weight,
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
    /// Another admission limit or queue length applies.
    Admission(AdmissionControl),
    /// The policy's tick.
    Ticked,
}
