//! The map from partitions of services to their replicas: announcements in, changes out. Without input or output; the time is
//! passed in.
//!
//! An entry is *repeated*: whoever offers it has to say so again within the time to live; or *leased*: the directory itself
//! watches over it, and says when it is gone. Where nothing at all is heard, nobody can tell a dead node from a dead network.
//! So a repeated entry expires only if somebody else was heard when it should have been; otherwise it is *held*, until something
//! is heard again and it has had its time to come back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_wire::ServiceKey;

use crate::announcement::{Announcement, Said};
use crate::drop_reason::DropReason;
use crate::map_bounds::MapBounds;
pub use crate::map_change::{LeaveReason, MapChange, Replica, ReplicaId};
use crate::scope::ServiceScope;

/// Part of the time to live after which a node that is alive has been heard again, even if one announcement was lost.
const HEARD_AGAIN: f64 = 0.75;

/// The time, as the two clocks of a machine tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryTime {
    /// For intervals.
    pub at: Instant,
    /// Milliseconds since 1970, to compare with other machines.
    pub unix_ms: u64,
}

/// Who sees to it that a replica goes when its node is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// The node: it repeats what it says.
    Repeated,
    /// The same, for a node on this machine: that it is heard says nothing of the network.
    RepeatedHere,
    /// The directory: it has a lease, and says when that is over.
    Leased,
}

/// What is remembered of a node.
#[derive(Debug)]
struct KnownNode {
    boot: u64,
    sequence: u64,
    /// How often an earlier process of its name was heard since.
    earlier_heard: u32,
    /// Until when an announcement that was heard before could be taken for a fresh one.
    keep_until: Instant,
}

#[derive(Debug)]
struct MapEntry {
    replica: Arc<Replica>,
    /// Process and number of the announcement.
    version: (u64, u64),
    heard: Instant,
    ttl: Duration,
    end: EntryEnd,
    /// Whether its node is on this machine.
    is_here: bool,
}

/// When an entry ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryEnd {
    /// At this time, if it should have been heard meanwhile.
    Repeat(Instant),
    /// Nothing was heard of anybody.
    Held,
    /// When the directory says so.
    Lease,
    /// The directory does not know it, but was away: at this time.
    Unconfirmed(Instant),
}

/// The map.
#[derive(Debug)]
pub struct ServiceMap {
    bounds: MapBounds,
    /// This node's own name: what it says comes back to it whatever the network does.
    own: Option<String>,
    /// The only partitions that are of interest.
    only: Option<ServiceScope>,
    nodes: BTreeMap<String, KnownNode>,
    /// Names that two processes have, and that were not asked for yet.
    doubled: Vec<String>,
    entries: BTreeMap<ReplicaId, MapEntry>,
    /// When any node was heard last.
    last_heard: Option<Instant>,
    /// When one on another machine was.
    last_heard_afar: Option<Instant>,
    /// Until when a directory that has come back may not know everything yet.
    settling_until: Option<Instant>,
    /// Whether an entry is held.
    any_held: bool,
    /// Nothing ends before this; it is exact only when entries are looked through, as hearing one must not take that long.
    wake_at: Option<Instant>,
}

impl ServiceMap {
    /// An empty one, for the node called `own`, of the partitions `only` or of all.
    #[must_use]
    pub fn new(bounds: MapBounds, own: Option<String>, only: Option<ServiceScope>) -> Self {
        Self {
            bounds,
            own,
            only,
            nodes: BTreeMap::new(),
            doubled: Vec::new(),
            entries: BTreeMap::new(),
            last_heard: None,
            last_heard_afar: None,
            settling_until: None,
            any_held: false,
            wake_at: None,
        }
    }

    /// All replicas, by partition and node.
    pub fn replicas(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.entries.values().map(|entry| &entry.replica)
    }

    /// Whether a replica is there only because nothing is heard of anybody.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.any_held
    }

    /// When [`ServiceMap::expire`] has something to do.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        self.wake_at
    }

    /// Takes in an authentic announcement.
    ///
    /// # Errors
    /// Why it is dropped. One of which a part found no room is [`DropReason::Full`]; the rest was taken in.
    pub fn hear(
        &mut self,
        announcement: Announcement,
        liveness: Liveness,
        now: DirectoryTime,
    ) -> (Result<(), DropReason>, Vec<MapChange>) {
        let mut changes = Vec::new();
        let outcome = match liveness {
            Liveness::Repeated | Liveness::RepeatedHere => self.admit(&announcement, now),
            Liveness::Leased => self.admit_leased(&announcement, now),
        };
        if outcome.is_err() {
            return (outcome, changes);
        }
        let is_here = liveness == Liveness::RepeatedHere || self.own.as_deref() == Some(&*announcement.node);
        self.last_heard = Some(now.at);
        if !is_here {
            self.last_heard_afar = Some(now.at);
        }
        self.release_held(now.at, is_here);
        let ttl = announcement.ttl().min(self.bounds.most_ttl);
        let Announcement { node, boot, sequence, said, .. } = announcement;
        let mut taken = Ok(());
        match said {
            Said::Goodbye => {
                let gone: Vec<_> = self.entries.keys().filter(|(_, of)| *of == node).cloned().collect();
                changes.extend(gone.iter().filter_map(|id| self.remove(id, LeaveReason::Goodbye)));
            }
            Said::Offers(offers) => {
                for offer in offers {
                    if self.only.as_ref().is_some_and(|only| !only.covers(&offer.key)) {
                        continue;
                    }
                    let end = match liveness {
                        Liveness::Leased => EntryEnd::Lease,
                        _ => EntryEnd::Repeat(now.at + ttl),
                    };
                    let replica = Replica { node: node.clone(), offer };
                    match self.put(replica, (boot, sequence), (now.at, ttl), end, is_here) {
                        Ok(change) => changes.extend(change),
                        Err(reason) => taken = Err(reason),
                    }
                }
            }
        }
        (taken, changes)
    }

    /// Names that two living processes have, each told once for the later process. Only what that one says counts.
    pub fn take_doubled(&mut self) -> Vec<String> {
        std::mem::take(&mut self.doubled)
    }

    /// A process says something whose name a later one has. Once or twice that may have been under way when the later one began.
    fn hear_earlier(&mut self, node: &str) {
        let Some(known) = self.nodes.get_mut(node) else { return };
        known.earlier_heard = known.earlier_heard.saturating_add(1);
        if known.earlier_heard == 3 {
            self.doubled.push(node.to_owned());
        }
    }

    /// Removes what was not heard of in time.
    pub fn expire(&mut self, now: Instant) -> Vec<MapChange> {
        if self.settling_until.is_some_and(|until| until <= now) {
            self.settling_until = None;
        }
        let (last_heard, last_heard_afar) = (self.last_heard, self.last_heard_afar);
        let mut gone = Vec::new();
        for (id, entry) in &mut self.entries {
            match entry.end {
                EntryEnd::Repeat(at) if at <= now => {
                    // Had the network carried anything, something would have been heard by then; within this machine, likewise.
                    let last_heard = if entry.is_here { last_heard } else { last_heard_afar };
                    let should_be_heard = entry.heard + entry.ttl.mul_f64(HEARD_AGAIN);
                    if last_heard.is_some_and(|heard| heard >= should_be_heard) {
                        gone.push(id.clone());
                    } else {
                        entry.end = EntryEnd::Held;
                    }
                }
                EntryEnd::Unconfirmed(at) if at <= now => gone.push(id.clone()),
                _ => {}
            }
        }
        let gone = gone.iter().filter_map(|id| self.remove(id, LeaveReason::Expired)).collect();
        self.look_through();
        gone
    }

    /// The directory has come, or come back, and has just these. Others, which it may have lost, get their time to live to be published again.
    pub fn listed(&mut self, listed: &BTreeSet<ReplicaId>, now: Instant) {
        let least = self.bounds.least_settling;
        let mut longest = Duration::ZERO;
        for (id, entry) in &mut self.entries {
            longest = longest.max(entry.ttl);
            if !listed.contains(id) && entry.end == EntryEnd::Lease {
                entry.end = EntryEnd::Unconfirmed(now + entry.ttl.max(least));
            }
        }
        self.settling_until = Some(now + longest);
        self.look_through();
    }

    /// The directory says that a lease is over.
    pub fn withdrawn(&mut self, id: &ReplicaId, now: Instant) -> Option<MapChange> {
        let entry = self.entries.get_mut(id)?;
        if self.settling_until.is_some_and(|until| now < until) {
            // Its node may have had no way to extend it while the directory was away.
            if entry.end == EntryEnd::Lease {
                entry.end = EntryEnd::Unconfirmed(now + entry.ttl.max(self.bounds.least_settling));
                self.look_through();
            }
            return None;
        }
        self.remove(id, LeaveReason::Goodbye)
    }

    /// Decides about an announcement that is repeated: it must be newer than all that its node has said.
    fn admit(&mut self, announcement: &Announcement, now: DirectoryTime) -> Result<(), DropReason> {
        self.check_fresh(announcement, now)?;
        let keep_until = now.at + self.bounds.freshness * 2;
        let Announcement { node, boot, sequence, .. } = announcement;
        match self.remembered(node, now.at) {
            Some(known) if *boot < known.boot => {
                self.hear_earlier(node);
                Err(DropReason::Stale)
            }
            Some(known) if *boot == known.boot && *sequence <= known.sequence => Err(DropReason::Replayed),
            _ => self.remember(node, (*boot, *sequence), (keep_until, now.at)),
        }
    }

    /// Decides about what the directory has: each replica stands for itself, in no order, and may be told again.
    fn admit_leased(&mut self, announcement: &Announcement, now: DirectoryTime) -> Result<(), DropReason> {
        let Announcement { node, boot, sequence, said, .. } = announcement;
        let Said::Offers(offers) = said else { return Err(DropReason::Malformed) };
        let version = (*boot, *sequence);
        let known = offers.iter().filter_map(|offer| self.entries.get(&(offer.key.clone(), node.clone())));
        let newest = known.map(|entry| entry.version).max();
        // What is in use already may be old: a directory that was away has nothing newer.
        if newest == Some(version) {
            return Ok(());
        }
        // What a later process has said counts while that may be alive: the clock may have been set back since.
        let is_remembered = self.remembered(node, now.at).is_some();
        if is_remembered && newest.is_some_and(|newest| version < newest) {
            return Err(DropReason::Replayed);
        }
        self.check_fresh(announcement, now)?;
        let keep_until = now.at + self.bounds.freshness * 2;
        match self.remembered(node, now.at) {
            Some(known) if *boot < known.boot => Err(DropReason::Stale),
            _ => self.remember(node, (*boot, 0), (keep_until, now.at)),
        }
    }

    /// What is known of a node, while something that it has said could still be taken for fresh.
    fn remembered(&self, node: &str, now: Instant) -> Option<&KnownNode> {
        self.nodes.get(node).filter(|known| known.keep_until > now)
    }

    fn check_fresh(&self, announcement: &Announcement, now: DirectoryTime) -> Result<(), DropReason> {
        let apart_ms = u128::from(announcement.sent_ms.abs_diff(now.unix_ms));
        if apart_ms > self.bounds.freshness.as_millis() { Err(DropReason::Stale) } else { Ok(()) }
    }

    fn remember(
        &mut self,
        name: &str,
        (boot, sequence): (u64, u64),
        (keep_until, now): (Instant, Instant),
    ) -> Result<(), DropReason> {
        if self.nodes.len() >= self.bounds.nodes && !self.nodes.contains_key(name) {
            let present: BTreeSet<&str> = self.entries.keys().map(|(_, node)| &**node).collect();
            self.nodes.retain(|name, node| node.keep_until > now || present.contains(&**name));
            if self.nodes.len() >= self.bounds.nodes {
                return Err(DropReason::Full);
            }
        }
        let before = self.nodes.get(name).filter(|known| known.boot == boot);
        let earlier_heard = before.map_or(0, |known| known.earlier_heard);
        self.nodes.insert(name.to_owned(), KnownNode { boot, sequence, earlier_heard, keep_until });
        Ok(())
    }

    fn put(
        &mut self,
        replica: Replica,
        version: (u64, u64),
        (heard, ttl): (Instant, Duration),
        end: EntryEnd,
        is_here: bool,
    ) -> Result<Option<MapChange>, DropReason> {
        let id = (replica.offer.key.clone(), replica.node.clone());
        if let EntryEnd::Repeat(at) = end {
            self.wake_at = Some(self.wake_at.map_or(at, |before| before.min(at)));
        }
        if let Some(entry) = self.entries.get_mut(&id) {
            (entry.version, entry.heard, entry.ttl) = (version, heard, ttl);
            (entry.end, entry.is_here) = (end, is_here);
            if *entry.replica == replica {
                return Ok(None);
            }
            entry.replica = Arc::new(replica);
            return Ok(Some(MapChange::Changed(Arc::clone(&entry.replica))));
        }
        if self.entries.len() >= self.bounds.replicas || self.is_full_of_services(&id.0) {
            return Err(DropReason::Full);
        }
        let replica = Arc::new(replica);
        self.entries
            .insert(id, MapEntry { replica: Arc::clone(&replica), version, heard, ttl, end, is_here });
        Ok(Some(MapChange::Joined(replica)))
    }

    /// Whether this partition is one more than there may be.
    fn is_full_of_services(&self, key: &ServiceKey) -> bool {
        // There are at most as many as there are replicas, so that most maps need no count.
        if self.entries.len() < self.bounds.services {
            return false;
        }
        let mut keys: Vec<&ServiceKey> = self.entries.keys().map(|(key, _)| key).collect();
        keys.dedup();
        keys.len() >= self.bounds.services && keys.binary_search(&key).is_err()
    }

    fn remove(&mut self, id: &ReplicaId, reason: LeaveReason) -> Option<MapChange> {
        self.entries.remove(id).map(|entry| MapChange::Left(entry.replica, reason))
    }

    /// Something is heard again: what was held has its time to be heard, too, on this machine if that is where it was heard.
    fn release_held(&mut self, now: Instant, only_here: bool) {
        if !self.any_held {
            return;
        }
        let released = |entry: &&mut MapEntry| entry.end == EntryEnd::Held && (entry.is_here || !only_here);
        for entry in self.entries.values_mut().filter(released) {
            entry.heard = now;
            entry.end = EntryEnd::Repeat(now + entry.ttl);
        }
        self.look_through();
    }

    /// Finds out what is to be known of all entries.
    fn look_through(&mut self) {
        let ends = self.entries.values().filter_map(|entry| match entry.end {
            EntryEnd::Repeat(at) | EntryEnd::Unconfirmed(at) => Some(at),
            EntryEnd::Held | EntryEnd::Lease => None,
        });
        self.wake_at = ends.min();
        self.any_held = self.entries.values().any(|entry| entry.end == EntryEnd::Held);
    }
}

#[cfg(test)]
mod tests;
