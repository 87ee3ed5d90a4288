//! What a decision log holds: runs, and every input of the policy with the decision taken.

use plimsoll_policy::{
    BackendId, BuildContext, BuildError, Cluster, Completion, Decision, Health, Policy, PollAnswer, Request,
    Time, Weight,
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
        cluster
    }
}

/// One input of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, on the front-end's clock.
    pub now: Time,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A fresh policy object begins.
    Run(Box<RunHeader>),
    /// The policy was asked about a request; `Wait` means that the admission limit kept it from being asked.
    Offered {
        /// What it was asked about.
        request: Request,
        /// What was decided.
        decision: Decision,
    },
    /// The policy was given the answers to its poll.
    Polled {
        /// What it was asked about.
        request: Request,
        /// The answers that came.
        answers: Vec<PollAnswer>,
        /// What was decided.
        decision: Decision,
    },
    /// A request ended.
    Completed {
        /// [`Request::number`].
        number: u64,
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
    },
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
    /// The policy's tick.
    Ticked,
}
