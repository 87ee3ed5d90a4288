//! Dispatch of all partitions: each has a policy, a cluster and a log of its own, so that no choice can leave its partition, whatever
//! the policy does. To a partition, back-ends that do not hold it are down; each has the same index in all of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use plimsoll_config::{BackendName, Config, LoadSource};
use plimsoll_policy::{BackendId, ClusterFull, Health, LoadReport, Nanos, TargetId, Tried, Weight};

use super::asks::{AsksBackends, PollNews};
use super::membership::BuiltAnew;
use super::{Assignment, BuildFailed, DataPart, Dispatch, Inspection, Offer, OfferedRequest};
use crate::membership::source::MemberSpec;
use crate::partitioning::{PartitionSet, Partitioning};

/// Dispatch of all partitions; of one, where the data is not divided.
pub(crate) struct PartitionedDispatch {
    parts: Box<[Arc<Dispatch>]>,
    /// What each back-end holds, by the index of its id.
    held: RwLock<Vec<PartitionSet>>,
    /// Whether partitions tell one another what they have assigned: some back-end holds several, and loads are own counts.
    tells: AtomicBool,
    counts_own: bool,
}

impl PartitionedDispatch {
    /// A dispatch whose cluster begins with the back-ends `first`, as [`Dispatch::of_part`].
    ///
    /// # Errors
    /// When the policy cannot be built or a decision log cannot be opened.
    pub(crate) fn new(config: &Config, first: &[MemberSpec], table_seed: u64) -> Result<Self, BuildFailed> {
        let count = Partitioning::of(config).map_or(1, Partitioning::count);
        let part = |number| Dispatch::of_part(config, first, table_seed, DataPart { number, count });
        let parts = (0..count).map(part).collect::<Result<_, _>>()?;
        let held: Vec<_> = first.iter().map(|spec| spec.partitions.below(count)).collect();
        let counts_own = config.load_information.from == LoadSource::Own;
        let tells = AtomicBool::new(counts_own && held.iter().any(|set| set.len() > 1));
        Ok(Self { parts, held: RwLock::new(held), tells, counts_own })
    }

    /// Each partition's own dispatch, by number.
    pub(crate) fn parts(&self) -> &[Arc<Dispatch>] {
        &self.parts
    }

    /// That of the first partition: where the data is not divided, of everything.
    pub(crate) fn first(&self) -> &Arc<Dispatch> {
        &self.parts[0]
    }

    /// That of this partition.
    pub(crate) fn part(&self, partition: u16) -> &Arc<Dispatch> {
        self.parts.get(usize::from(partition)).unwrap_or(&self.parts[0])
    }

    fn count(&self) -> u16 {
        // There are 64 at most.
        self.parts.len() as u16
    }

    /// What a back-end holds.
    pub(crate) fn held(&self, b: BackendId) -> PartitionSet {
        if self.parts.len() == 1 {
            return PartitionSet::ALL;
        }
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.get(b.index()).copied().unwrap_or(PartitionSet::NONE)
    }

    /// The partitions that a back-end holds, each with its dispatch.
    fn holding(&self, b: BackendId) -> impl Iterator<Item = &Arc<Dispatch>> {
        let held = self.held(b);
        (0..).zip(&self.parts).filter(move |&(partition, _)| held.has(partition)).map(|(_, part)| part)
    }

    /// Offers a request for this partition, as [`Dispatch::offer_again`].
    pub(crate) fn offer_again(
        &self,
        partition: u16,
        request: OfferedRequest,
        tried: Tried,
        asks: Option<&Arc<dyn AsksBackends>>,
    ) -> Offer {
        if self.tells.load(Ordering::Relaxed) {
            self.tell_of_others(partition);
        }
        self.part(partition).offer_again(request, tried, asks)
    }

    /// A back-end that holds several partitions has the requests of all of them.
    fn tell_of_others(&self, partition: u16) {
        let shared: Vec<(BackendId, PartitionSet)> = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            let several = held.iter().enumerate().filter(|(_, set)| set.has(partition) && set.len() > 1);
            several.map(|(index, &set)| (BackendId::new(index), set)).collect()
        };
        let mut elsewhere: Vec<(BackendId, u32)> = shared.iter().map(|&(b, _)| (b, 0)).collect();
        for (number, part) in (0..).zip(&self.parts).filter(|&(number, _)| number != partition) {
            part.inspect(|i| {
                for (&(b, set), (_, load)) in shared.iter().zip(&mut elsewhere) {
                    *load += if set.has(number) { i.view.own_load(b) } else { 0 };
                }
            });
        }
        self.part(partition).others_have(&elsewhere);
    }

    /// As [`Dispatch::stay`].
    pub(crate) fn stay(&self, partition: u16, backend: BackendId, target: TargetId) -> Assignment {
        self.part(partition).stay(backend, target)
    }

    /// As [`Dispatch::assign_trial`].
    pub(crate) fn assign_trial(&self, partition: u16, backend: BackendId, target: TargetId) -> Assignment {
        self.part(partition).assign_trial(backend, target)
    }

    /// As [`Dispatch::take_in`]: each partition takes what concerns it, which a request's number tells.
    pub(crate) fn take_in(&self, news: &[PollNews]) {
        if let [whole] = &*self.parts {
            return whole.take_in(news.iter().copied());
        }
        for (partition, part) in (0..).zip(&self.parts) {
            let concerns = |one: &PollNews| match one {
                PollNews::Told(report) => self.held(report.backend).has(partition),
                PollNews::Ended { number, .. } => number % self.parts.len() as u64 == u64::from(partition),
            };
            if news.iter().any(concerns) {
                part.take_in(news.iter().copied().filter(concerns));
            }
        }
    }

    /// A back-end has told its load.
    pub(crate) fn report(&self, report: &LoadReport) {
        self.holding(report.backend).for_each(|part| part.report(report));
    }

    /// As [`Dispatch::report_mean`].
    pub(crate) fn report_mean(&self, backend: BackendId) -> bool {
        self.holding(backend).fold(false, |changed, part| part.report_mean(backend) | changed)
    }

    /// Starts waiting requests where only time has passed.
    pub(crate) fn serve_waiting_now(&self) {
        self.parts.iter().for_each(Dispatch::serve_waiting_now);
    }

    /// Sets a back-end's health.
    pub(crate) fn set_health(&self, b: BackendId, health: Health) {
        let held = self.held(b);
        for (partition, part) in (0..).zip(&self.parts) {
            part.set_health(b, if held.has(partition) { health } else { Health::Down });
        }
    }

    /// Sets a back-end's weight.
    pub(crate) fn set_weight(&self, b: BackendId, weight: Weight) {
        self.parts.iter().for_each(|part| part.set_weight(b, weight));
    }

    /// Sets how many requests a back-end may have at once, in each partition.
    pub(crate) fn set_most_requests(&self, b: BackendId, most: Option<u32>) {
        self.parts.iter().for_each(|part| part.set_most_requests(b, most));
    }

    /// A back-end of this health holds these from now on.
    pub(crate) fn set_held(&self, b: BackendId, partitions: PartitionSet, health: Health) {
        if self.parts.len() > 1 && self.note_held(b, partitions) {
            self.set_health(b, health);
        }
    }

    /// Returns whether that is a change.
    fn note_held(&self, b: BackendId, partitions: PartitionSet) -> bool {
        let partitions = partitions.below(self.count());
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.len() <= b.index() {
            held.resize(b.index() + 1, PartitionSet::NONE);
        }
        let changed = std::mem::replace(&mut held[b.index()], partitions) != partitions;
        self.tells.store(self.counts_own && held.iter().any(|set| set.len() > 1), Ordering::Relaxed);
        changed
    }

    /// As [`Dispatch::join`]. One at a time: the caller sees to that.
    ///
    /// # Errors
    /// When there are as many back-ends as there can be.
    pub(crate) fn join(
        &self,
        name: &BackendName,
        weight: Weight,
        health: Health,
        partitions: PartitionSet,
    ) -> Result<BackendId, ClusterFull> {
        let partitions = partitions.below(self.count());
        let mut joined = None;
        for (partition, part) in (0..).zip(&self.parts) {
            let health = if partitions.has(partition) { health } else { Health::Down };
            let id = part.join(name, weight, health)?;
            debug_assert!(joined.is_none_or(|before| before == id), "one index in all partitions");
            joined = Some(id);
        }
        let id = joined.ok_or(ClusterFull)?;
        self.note_held(id, partitions);
        Ok(id)
    }

    /// As [`Dispatch::release`].
    pub(crate) fn release(&self, departed: impl Iterator<Item = BackendId>, most: usize) -> Vec<BackendId> {
        Dispatch::release_from(&self.parts, departed, most)
    }

    /// As [`Dispatch::members_with`].
    pub(crate) fn members_with<'a>(&self, names: impl Iterator<Item = &'a BackendName>) -> usize {
        self.first().members_with(names)
    }

    /// What another configuration needs of all partitions, built before anything is changed.
    ///
    /// # Errors
    /// When something cannot be built.
    pub(crate) fn build_anew(&self, old: &Config, new: &Config) -> Result<Vec<BuiltAnew>, BuildFailed> {
        self.parts.iter().map(|part| part.build_anew(old, new)).collect()
    }

    /// Applies another configuration with what was built for it.
    pub(crate) fn apply(&self, built: Vec<BuiltAnew>, old: &Config, new: &Config) {
        self.parts.iter().zip(built).for_each(|(part, built)| part.apply(built, old, new));
    }

    /// Whether a back-end other than this one takes requests of each partition that this one holds.
    pub(crate) fn others_can_do_without(&self, b: BackendId) -> bool {
        self.holding(b).all(|part| part.inspect(|i| i.view.eligible_ids().any(|other| other != b)))
    }

    /// The partitions of which no back-end takes requests.
    pub(crate) fn bare(&self) -> PartitionSet {
        let bare = (0..).zip(&self.parts).filter(|(_, part)| part.inspect(|i| i.view.eligible() == 0));
        PartitionSet::of(bare.map(|(partition, _)| partition))
    }

    /// Requests assigned to back-ends so far.
    pub(crate) fn assigned(&self) -> u64 {
        self.parts.iter().map(|part| part.inspect(|i| i.counts.assigned)).sum()
    }

    /// Requests assigned to back-ends and not completed.
    pub(crate) fn load(&self) -> u64 {
        self.parts.iter().map(|part| part.inspect(|i| i.view.total_own_load())).sum()
    }

    /// Looks at what does not differ between partitions: members and weights.
    pub(crate) fn inspect_members<T>(&self, look: impl FnOnce(&Inspection<'_>) -> T) -> T {
        self.first().inspect(look)
    }

    /// How often the policies want their tick.
    pub(crate) fn tick_interval(&self) -> Option<Nanos> {
        self.first().tick_interval()
    }

    /// Calls the policies' tick.
    pub(crate) fn tick(&self) {
        self.parts.iter().for_each(|part| part.tick());
    }

    /// Passes the decision logs' recorded bytes to their writers.
    pub(crate) fn flush_log(&self) {
        self.parts.iter().for_each(|part| part.flush_log());
    }

    /// Ends the decision logs: everything recorded is on disk when this returns.
    pub(crate) fn close_log(&self) {
        self.parts.iter().for_each(|part| part.close_log());
    }

    /// Flushes the decision logs to disk; false when there are none.
    pub(crate) fn sync_log(&self) -> bool {
        self.parts.iter().fold(false, |any, part| part.sync_log() | any)
    }
}
