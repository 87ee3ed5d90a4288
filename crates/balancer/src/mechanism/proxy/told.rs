//! Idle connections for which a back-end was told whose they are: each is for requests on one connection of a client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::idle::{BackendKey, Idle, key};
use crate::backend::Backend;
use crate::net::halves::BackendIo;
use crate::net::proxy_protocol::ConnectionEnds;

struct Told<B> {
    idle: Idle<B>,
    /// Grows with each that is kept.
    number: u64,
}

/// Those of one worker.
pub(super) struct ToldConnections<B> {
    by_client: BTreeMap<ConnectionEnds, Vec<Told<B>>>,
    /// Whose they are, by back-end and number: first the one that has been idle longest.
    by_age: BTreeMap<BackendKey, BTreeMap<u64, ConnectionEnds>>,
    next: u64,
}

impl<B> Default for ToldConnections<B> {
    fn default() -> Self {
        Self { by_client: BTreeMap::new(), by_age: BTreeMap::new(), next: 0 }
    }
}

impl<B: BackendIo> ToldConnections<B> {
    pub(super) fn is_empty(&self) -> bool {
        self.by_client.is_empty()
    }

    pub(super) fn put(&mut self, client: ConnectionEnds, idle: Idle<B>) {
        let number = self.next;
        self.next += 1;
        self.by_age.entry(key(&idle.connection.backend)).or_default().insert(number, client);
        self.by_client.entry(client).or_default().push(Told { idle, number });
    }

    /// One to `backend` for this client that is still open, the one used last.
    pub(super) fn take(
        &mut self,
        backend: &Arc<Backend>,
        client: &ConnectionEnds,
        surely: bool,
        now_ms: u64,
    ) -> Option<Idle<B>> {
        loop {
            let of_client = self.by_client.get(client)?;
            let of_backend =
                of_client.iter().rev().find(|t| Arc::ptr_eq(&t.idle.connection.backend, backend))?;
            let number = of_backend.number;
            let idle = self.remove(client, number)?;
            if idle.connection.stream.is_open(surely) {
                return Some(idle);
            }
            idle.note_closed(now_ms);
        }
    }

    /// Closes those of a client's connection.
    pub(super) fn client_ended(&mut self, client: &ConnectionEnds) {
        for told in self.by_client.remove(client).unwrap_or_default() {
            self.forget(key(&told.idle.connection.backend), told.number);
        }
    }

    /// Closes as many to `backend` as this, those first that have been idle longest; how many there were.
    pub(super) fn make_room(&mut self, backend: &Arc<Backend>, wanted: u32) -> u32 {
        let mut closed = 0;
        while closed < wanted {
            let oldest = self.by_age.get(&key(backend)).and_then(|ages| ages.first_key_value());
            let Some((number, client)) = oldest.map(|(&number, &client)| (number, client)) else { break };
            // One of a removed back-end in whose place this one is would be closed soon anyway.
            let is_its = |idle: &Idle<B>| Arc::ptr_eq(&idle.connection.backend, backend);
            closed += u32::from(self.remove(&client, number).as_ref().is_some_and(is_its));
        }
        closed
    }

    /// Closes those that are not to be kept, and of each back-end as many as others wait for.
    pub(super) fn sweep(&mut self, is_kept: impl Fn(&Idle<B>) -> bool) {
        let mut over = Vec::new();
        let mut waiting: BTreeMap<BackendKey, (Arc<Backend>, u32)> = BTreeMap::new();
        for (client, of_client) in &self.by_client {
            for told in of_client {
                let backend = &told.idle.connection.backend;
                if !is_kept(&told.idle) {
                    over.push((*client, told.number));
                } else if let wanted @ 1.. = backend.waiting.load(Ordering::Relaxed) {
                    waiting.insert(key(backend), (Arc::clone(backend), wanted));
                }
            }
        }
        for (client, number) in over {
            drop(self.remove(&client, number));
        }
        for (backend, wanted) in waiting.into_values() {
            self.make_room(&backend, wanted);
        }
    }

    fn remove(&mut self, client: &ConnectionEnds, number: u64) -> Option<Idle<B>> {
        let of_client = self.by_client.get_mut(client)?;
        let at = of_client.iter().position(|told| told.number == number)?;
        let Told { idle, .. } = of_client.remove(at);
        if of_client.is_empty() {
            self.by_client.remove(client);
        }
        self.forget(key(&idle.connection.backend), number);
        Some(idle)
    }

    fn forget(&mut self, backend: BackendKey, number: u64) {
        if let Some(ages) = self.by_age.get_mut(&backend) {
            ages.remove(&number);
            if ages.is_empty() {
                self.by_age.remove(&backend);
            }
        }
    }
}
