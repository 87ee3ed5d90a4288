//! Makes a client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_policy::{AdmissionControl, AdmissionLimit, BuildContext, Inquiries, Nanos, PolicyChoice};
use plimsoll_wire::random;
use tokio::sync::watch;

use crate::asker::{Asker, LoadPolling};
use crate::budget::{RetryBudget, TokenBucket};
use crate::client::{CallRules, ClientSettings, ServiceClient};
use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::hedging::Hedging;
use crate::state::EjectionRule;

/// Makes a [`ServiceClient`]. Nothing is checked before [`ClientBuilder::build`].
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    service: String,
    policy: String,
    polling: Option<LoadPolling>,
    endpoints: Vec<Endpoint>,
    subscription: Option<Subscription>,
    rules: CallRules,
    budget: RetryBudget,
    limit: Option<(u64, usize, Duration)>,
    eject_after: u32,
    seed: Option<u64>,
}

type Follow = dyn Fn(&ServiceClient) -> Result<(), ClientError> + Send + Sync;

/// Has a client follow a subscription.
#[derive(Clone)]
struct Subscription(Arc<Follow>);

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Subscription(…)")
    }
}

impl ServiceClient {
    /// A builder with the defaults: `random_polling` by own counts, no replicas.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            service: "service".to_owned(),
            policy: "random_polling".to_owned(),
            polling: None,
            endpoints: Vec::new(),
            subscription: None,
            rules: CallRules::default(),
            budget: RetryBudget::default(),
            limit: None,
            eject_after: 5,
            seed: None,
        }
    }
}

/// First pause of a back-end that has failed several times in a row.
const PAUSE: Nanos = Nanos::from_secs(1);

impl ClientBuilder {
    /// The service's name, for messages.
    #[must_use]
    pub fn service(mut self, name: impl Into<String>) -> Self {
        self.service = name.into();
        self
    }

    /// The policy, such as `random_polling:size=2`: any that is registered.
    #[must_use]
    pub fn policy(mut self, policy: impl Into<String>) -> Self {
        self.policy = policy.into();
        self
    }

    /// Asks replicas for their load, instead of counting the client's own accesses alone. The client must then be built inside a
    /// tokio runtime.
    #[must_use]
    pub fn load_polling(mut self, polling: LoadPolling) -> Self {
        self.polling = Some(polling);
        self
    }

    /// The replicas. [`ServiceClient::set_endpoints`] changes them later.
    #[must_use]
    pub fn endpoints(mut self, endpoints: impl IntoIterator<Item = Endpoint>) -> Self {
        self.endpoints = endpoints.into_iter().collect();
        self
    }

    /// The replicas are those that `endpoints_of` finds in what a subscription shows, such as that to a service directory. The client
    /// must then be built inside a tokio runtime. When the other side ends, the last ones stay.
    #[must_use]
    pub fn subscribe<V: Send + Sync + 'static>(
        mut self,
        subscription: watch::Receiver<V>,
        endpoints_of: impl Fn(&V) -> Vec<Endpoint> + Send + Sync + 'static,
    ) -> Self {
        let endpoints_of = Arc::new(endpoints_of);
        let follow =
            move |client: &ServiceClient| follow(client, subscription.clone(), Arc::clone(&endpoints_of));
        self.subscription = Some(Subscription(Arc::new(follow)));
        self
    }

    /// How calls are made.
    #[must_use]
    pub fn rules(mut self, rules: CallRules) -> Self {
        self.rules = rules;
        self
    }

    /// Bounds retries and hedges.
    #[must_use]
    pub fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// At most so many accesses at a time to each partition; `queue` more wait for up to `patience`. Without this there is no limit,
    /// and nothing waits.
    #[must_use]
    pub fn limit(mut self, in_flight: u64, queue: usize, patience: Duration) -> Self {
        self.limit = Some((in_flight, queue, patience));
        self
    }

    /// After so many failures in a row a replica gets nothing for a second, then for two, up to half a minute; 0 for never. At most half
    /// of the replicas are out at a time. 5 by default.
    #[must_use]
    pub fn eject_after(mut self, failures: u32) -> Self {
        self.eject_after = failures;
        self
    }

    /// Seed of random choices; random by default.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the client.
    ///
    /// # Errors
    /// When the policy is unknown or takes no such parameter, when a setting cannot be used, or when the system refuses a socket.
    pub fn build(self) -> Result<ServiceClient, ClientError> {
        self.check()?;
        let policy: PolicyChoice = self
            .policy
            .parse()
            .map_err(|error| ClientError::Policy { service: self.service.clone(), error })?;
        let chance = || random::<8>().map(u64::from_le_bytes);
        let system = |error| ClientError::System { what: "there are no random numbers", error };
        let seed = self.seed.map_or_else(chance, Ok).map_err(system)?;
        let context = BuildContext { seed, table_seed: chance().map_err(system)?, ..BuildContext::default() };
        let size = self.polling.as_ref().and_then(|polling| polling.size);
        let (admission, patience) = match self.limit {
            Some((limit, queue, patience)) => {
                (AdmissionControl { limit: AdmissionLimit::Fixed(limit), queue }, Some(patience))
            }
            None => (AdmissionControl::UNLIMITED, None),
        };
        let settings = ClientSettings {
            service: self.service.clone(),
            policy,
            context,
            admission,
            patience,
            inquiries: size.map(|size| Inquiries { size, seed }),
            ejection: EjectionRule { after: self.eject_after, pause: PAUSE },
        };
        let asker = self.polling.as_ref().map(Asker::new).transpose()?;
        let bucket = TokenBucket::new(self.budget, Instant::now());
        let client = ServiceClient::new(settings, self.rules, bucket, asker);
        client.set_endpoints(&self.endpoints)?;
        if let Some(Subscription(follow)) = self.subscription {
            follow(&client)?;
        }
        Ok(client)
    }

    fn check(&self) -> Result<(), ClientError> {
        let wrong = |what: String| Err(ClientError::Setting { service: self.service.clone(), what });
        if !(1..=16).contains(&self.rules.attempts) {
            return wrong(format!("`attempts` is {}; give 1 to 16", self.rules.attempts));
        }
        let RetryBudget { share, least_per_s } = self.budget;
        if !(0.0..=1.0).contains(&share) {
            return wrong(format!("the budget's `share` is {share}; give 0 to 1"));
        }
        if !(0.0..=1e6).contains(&least_per_s) {
            return wrong(format!("the budget's `least_per_s` is {least_per_s}; give 0 to 1,000,000"));
        }
        if let Hedging::Quantile(quantile) = self.rules.hedging
            && !(0.5..1.0).contains(&quantile)
        {
            return wrong(format!("the quantile for hedging is {quantile}; give 0.5 to below 1"));
        }
        if let Some((0, ..)) = self.limit {
            return wrong("at most 0 accesses at a time; give at least 1".to_owned());
        }
        if let Some(polling) = &self.polling {
            if polling.discard_after.is_zero() {
                return wrong("answers are discarded after 0 ms; give more".to_owned());
            }
            if let Some(size @ (0 | 9..)) = polling.size {
                return wrong(format!("{size} replicas are asked before each choice; give 1 to 8"));
            }
        }
        Ok(())
    }
}

fn follow<V: Send + Sync + 'static>(
    client: &ServiceClient,
    mut subscription: watch::Receiver<V>,
    endpoints_of: Arc<impl Fn(&V) -> Vec<Endpoint> + Send + Sync + 'static>,
) -> Result<(), ClientError> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| ClientError::System {
        what: "a subscription needs a tokio runtime",
        error: std::io::Error::other("the client was not built inside one"),
    })?;
    let first = endpoints_of(&subscription.borrow_and_update());
    client.set_endpoints(&first)?;
    let weak = client.downgrade();
    runtime.spawn(async move {
        while subscription.changed().await.is_ok() {
            let Some(client) = ServiceClient::upgraded(&weak) else { return };
            let now = endpoints_of(&subscription.borrow_and_update());
            if let Err(error) = client.set_endpoints(&now) {
                tracing::error!(%error, "the replicas stay as they were");
            }
        }
    });
    Ok(())
}
