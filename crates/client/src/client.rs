//! The client of one service.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use plimsoll_policy::{
    AdmissionControl, BackendId, BuildContext, Candidates, Cluster, Core, Inquiries, LoadReport,
    PolicyChoice, TargetId, Tried,
};

use crate::access::ServiceAccess;
use crate::asker::{AskCounts, Asker, to_group};
use crate::budget::{CallCounts, TokenBucket};
use crate::chosen::ChosenBackend;
use crate::endpoint::Endpoint;
use crate::error::{ChooseError, ClientError};
use crate::group::{Chosen, Group};
use crate::hedging::{Hedging, ResponseTimes};
use crate::state::{EjectionRule, GroupState};

/// How calls are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallRules {
    /// Attempts of one call at most, the first included: 1 to 16.
    pub attempts: u32,
    /// How long an attempt may take, polls and waiting for room included; `None` for as long as it likes.
    pub attempt_timeout: Option<Duration>,
    /// Whether a second back-end is asked while the first is slow.
    pub hedging: Hedging,
}

impl Default for CallRules {
    /// Three attempts, without a time-out, not hedged.
    fn default() -> Self {
        Self { attempts: 3, attempt_timeout: None, hedging: Hedging::Off }
    }
}

/// Distributes accesses to one service over its replicas. Clones share everything.
#[derive(Clone)]
pub struct ServiceClient(Arc<ClientInner>);

pub(crate) struct ClientInner {
    pub(crate) settings: ClientSettings,
    pub(crate) rules: CallRules,
    pub(crate) bucket: Mutex<TokenBucket>,
    pub(crate) response_times: Mutex<ResponseTimes>,
    /// By partition; `""` for calls without one.
    groups: RwLock<BTreeMap<Box<str>, Arc<Group<Endpoint>>>>,
    asker: Option<Asker>,
    /// One change of replicas at a time.
    changing: Mutex<()>,
}

/// What each group is made of.
pub(crate) struct ClientSettings {
    pub(crate) service: String,
    pub(crate) policy: PolicyChoice,
    pub(crate) context: BuildContext,
    pub(crate) admission: AdmissionControl,
    pub(crate) patience: Option<Duration>,
    pub(crate) inquiries: Option<Inquiries>,
    pub(crate) ejection: EjectionRule,
}

impl ServiceClient {
    pub(crate) fn new(
        settings: ClientSettings,
        rules: CallRules,
        bucket: TokenBucket,
        asker: Option<Asker>,
    ) -> Self {
        Self(Arc::new(ClientInner {
            settings,
            rules,
            bucket: Mutex::new(bucket),
            response_times: Mutex::new(ResponseTimes::new()),
            groups: RwLock::default(),
            asker,
            changing: Mutex::default(),
        }))
    }

    pub(crate) fn inner(&self) -> &ClientInner {
        &self.0
    }

    pub(crate) fn downgrade(&self) -> Weak<ClientInner> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn upgraded(inner: &Weak<ClientInner>) -> Option<Self> {
        inner.upgrade().map(Self)
    }

    /// The service.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.0.settings.service
    }

    /// Chooses a back-end for an access, which counts as its load until what is returned ends. Asks replicas for their load before,
    /// where policy and settings say so; answers that are slow are not waited for.
    ///
    /// # Errors
    /// When no replica can take it.
    pub async fn choose(&self, access: impl Into<ServiceAccess<'_>>) -> Result<ChosenBackend, ChooseError> {
        self.choose_without(&access.into(), Tried::NONE).await
    }

    /// [`ServiceClient::choose`] without these, as long as there are others.
    pub(crate) async fn choose_without(
        &self,
        access: &ServiceAccess<'_>,
        tried: Tried,
    ) -> Result<ChosenBackend, ChooseError> {
        let group = self.group(access.partition).ok_or(ChooseError::UnknownPartition)?;
        let patience = self.0.settings.patience;
        let (number, mut chosen, probes) = group.offer(access, tried, patience);
        self.probe(&group, probes);
        let mut undecided = Undecided { group: &group, number, armed: true };
        loop {
            chosen = match chosen {
                Chosen::Assigned(held) => {
                    undecided.armed = false;
                    return Ok(ChosenBackend::new(held));
                }
                Chosen::Rejected(why) => {
                    undecided.armed = false;
                    return Err(why);
                }
                Chosen::Poll(asked) => {
                    let (answers, silent) = match &self.0.asker {
                        // Who was asked for this access once knows enough.
                        Some(asker) if tried == Tried::NONE => asker.ask(&agents(&group, asked)).await,
                        _ => (group.with(|state, _| state.own_answers(asked)), Candidates::NONE),
                    };
                    let (chosen, probes) = group.answer(number, answers, silent);
                    self.probe(&group, probes);
                    chosen
                }
                Chosen::Waits(told) => {
                    let waited = match patience {
                        Some(patience) => tokio::time::timeout(patience, told).await,
                        None => Ok(told.await),
                    };
                    match waited {
                        Ok(Ok(chosen)) => chosen,
                        _ => return Err(ChooseError::WaitedTooLong),
                    }
                }
            };
        }
    }

    /// Asks those that the policy wants to be asked ahead of accesses.
    fn probe(&self, group: &Arc<Group<Endpoint>>, probes: Candidates) {
        if probes.as_slice().is_empty() {
            return;
        }
        let Some(asker) = &self.0.asker else {
            return group.with(|state, now| state.report_own(probes, now));
        };
        let take = |group: &Arc<Group<Endpoint>>, answer: plimsoll_policy::PollAnswer| {
            let plimsoll_policy::PollAnswer { backend, load, latency } = answer;
            group.report(&LoadReport { backend, load, latency });
        };
        let silent = asker.probe(&agents(group, probes), to_group(Arc::downgrade(group), take));
        if !silent.as_slice().is_empty() {
            group.with(|state, now| state.report_neutral(silent, now));
        }
    }

    fn group(&self, partition: &str) -> Option<Arc<Group<Endpoint>>> {
        let groups = self.0.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.get(partition).cloned()
    }

    /// These are the replicas from now on. One that is not among them gets nothing new and finishes what it has. One whose name is
    /// known stays the same to the policy, also at another address.
    ///
    /// # Errors
    /// When two have one name, or there are too many. Nothing is changed in the first case.
    pub fn set_endpoints(&self, endpoints: &[Endpoint]) -> Result<(), ClientError> {
        let changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let by_partition = self.by_partition(endpoints)?;
        for (&partition, wanted) in &by_partition {
            self.group_made(partition)?.with(|state, now| -> Result<(), ClientError> {
                let known: Vec<(BackendId, Endpoint, bool)> = state
                    .with_leaving()
                    .map(|(b, endpoint, leaving)| (b, endpoint.clone(), leaving))
                    .collect();
                for (b, endpoint, leaving) in &known {
                    match wanted.get(endpoint.name()) {
                        Some(&changed) if changed != endpoint || *leaving => {
                            state.change(*b, changed.clone(), changed.weight(), now);
                        }
                        Some(_) => {}
                        None => state.remove(*b, now),
                    }
                }
                for (&name, &endpoint) in wanted {
                    if known.iter().all(|(_, known, _)| known.name() != name) {
                        let key = TargetId::from_key(name.as_bytes()).0;
                        let joined = state.join(endpoint.clone(), name, key, endpoint.weight(), now);
                        joined.map_err(|_| ClientError::TooMany { service: self.service().to_owned() })?;
                    }
                }
                Ok(())
            })?;
        }
        self.clear_others(&by_partition);
        if let Some(asker) = &self.0.asker {
            asker.retain(|agent| endpoints.iter().any(|endpoint| endpoint.load_address() == Some(*agent)));
        }
        drop(changing);
        Ok(())
    }

    fn by_partition<'e>(&self, endpoints: &'e [Endpoint]) -> Result<ByPartition<'e>, ClientError> {
        let mut by_partition = ByPartition::new();
        for endpoint in endpoints {
            let named = endpoint.partitions();
            for partition in named {
                insert(&mut by_partition, partition, endpoint, self.service())?;
            }
            if named.is_empty() {
                insert(&mut by_partition, "", endpoint, self.service())?;
            }
        }
        Ok(by_partition)
    }

    /// Partitions that nobody serves any more: their replicas leave. A partition stays while accesses wait for one to come.
    fn clear_others(&self, wanted: &ByPartition<'_>) {
        let mut groups = self.0.groups.write().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|partition, group| {
            let is_wanted = wanted.contains_key(&**partition);
            let waits = |group: &Arc<Group<Endpoint>>| {
                group.with(|state, now| {
                    let present: Vec<BackendId> = state.present().map(|(b, _)| b).collect();
                    present.into_iter().for_each(|b| state.remove(b, now));
                    state.core.waiting() > 0
                })
            };
            is_wanted || waits(group)
        });
    }

    fn group_made(&self, partition: &str) -> Result<Arc<Group<Endpoint>>, ClientError> {
        if let Some(group) = self.group(partition) {
            return Ok(group);
        }
        let settings = &self.0.settings;
        let policy = settings.policy.build(&settings.context).map_err(|error| ClientError::Policy {
            service: settings.service.clone(),
            error: plimsoll_policy::ChoiceError::Policy(error),
        })?;
        let mut core = Core::new(policy, Cluster::new(0), settings.admission);
        core.set_inquiries(settings.inquiries);
        let group = Group::new(GroupState::new(core, settings.ejection));
        let mut groups = self.0.groups.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(groups.entry(partition.into()).or_insert(group)))
    }

    /// The partitions that replicas serve.
    #[must_use]
    pub fn partitions(&self) -> Vec<String> {
        let groups = self.0.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.keys().map(|partition| partition.to_string()).collect()
    }

    /// The replicas of a partition, each with the accesses that this client has there.
    #[must_use]
    pub fn loads(&self, partition: &str) -> Vec<(Endpoint, u32)> {
        let Some(group) = self.group(partition) else { return Vec::new() };
        group.with(|state, _| {
            let view = state.core.view();
            state.present().map(|(b, endpoint)| (endpoint.clone(), view.own_load(b))).collect()
        })
    }

    /// What was counted of calls.
    #[must_use]
    pub fn counts(&self) -> CallCounts {
        self.bucket().counts
    }

    /// What was counted of inquiries; zeros where nobody is asked.
    #[must_use]
    pub fn ask_counts(&self) -> AskCounts {
        self.0.asker.as_ref().map(Asker::counts).unwrap_or_default()
    }

    pub(crate) fn bucket(&self) -> MutexGuard<'_, TokenBucket> {
        self.0.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_token(&self) -> bool {
        self.bucket().take(Instant::now())
    }
}

impl std::fmt::Debug for ServiceClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceClient").field("service", &self.service()).finish_non_exhaustive()
    }
}

/// Replicas by partition and name.
type ByPartition<'e> = BTreeMap<&'e str, BTreeMap<&'e str, &'e Endpoint>>;

fn insert<'e>(
    by_partition: &mut ByPartition<'e>,
    partition: &'e str,
    endpoint: &'e Endpoint,
    service: &str,
) -> Result<(), ClientError> {
    match by_partition.entry(partition).or_default().insert(endpoint.name(), endpoint) {
        None => Ok(()),
        Some(_) => {
            Err(ClientError::SameName { service: service.to_owned(), name: endpoint.name().to_owned() })
        }
    }
}

/// Those of them that tell their load.
fn agents(group: &Arc<Group<Endpoint>>, asked: Candidates) -> Vec<(BackendId, std::net::SocketAddr)> {
    group.with(|state, _| {
        let address = |&b: &BackendId| Some((b, state.member(b)?.load_address()?));
        asked.as_slice().iter().filter_map(address).collect()
    })
}

/// An access about which nothing is decided: given up if its future is dropped.
struct Undecided<'g> {
    group: &'g Arc<Group<Endpoint>>,
    number: u64,
    armed: bool,
}

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.group.give_up(self.number);
        }
    }
}
