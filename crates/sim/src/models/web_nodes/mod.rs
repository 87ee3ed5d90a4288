//! The nodes of the Socket Cloning study: a CPU, a network interface and a memory cache each, documents on a file server.
//!
//! Source: Sit, Wang and Lau, "Socket Cloning for cluster-based web servers", IEEE CLUSTER 2002, section 4. The policy chooses the node
//! that answers. In `nfs` and `cooperative_caching` that node has accepted the connection, too; a layer-4 switch before the nodes knows
//! nothing of content, so policies that do are of use in `cloning` only: there a switch deals connections to the nodes in turn, and the
//! policy is the mapping function by which a node finds the one to clone the socket to.
//!
//! ```text
//! the accepting node:  parse the request; in cloning, unless it answers itself: send the socket away
//! the answering node:  make the clone; look the document up
//!   memory             send it, chunk by chunk: CPU, then network interface
//!   another memory     cooperative_caching: messages take CPU here and there; then each chunk takes CPU and interface there and
//!                      the interface here, then it is sent
//!   neither            latency, then chunk by chunk from the file server, whose bandwidth all nodes share, through the interface
//! cloning:             the client's acknowledgments take CPU time of the accepting node
//! ```
//!
//! What the paper leaves open (decision 56): an interface either sends or receives, because the paper says that a node "cannot
//! forward a cache and send reply at the same time"; so what is read from the file server waits for it, too. Who holds a copy is known
//! at once and for nothing; of several nodes the one with the least to send is asked. Requests for a document that a node is fetching
//! join. A node that fails still does what it is doing for requests that others answer; the study has no failures.

mod as_model;
mod costs;
mod holders;
mod params;
mod specs;
mod station;
#[cfg(test)]
mod tests;
mod transfer;

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_cache::Cache;
use plimsoll_policy::{Nanos, Time};

use crate::config::CacheConfig;
use crate::model::{JobId, ModelContext, ModelEvent};
use crate::workload::Targets;
use costs::WebNodeCosts;
use holders::Holders;
pub use params::{CloneParams, NodeMechanism, PeerParams, WebNodeParams};
pub use specs::{CLONING_SPEC, COOPERATIVE_SPEC, NFS_SPEC};
use station::Station;
use transfer::{DocumentSource, Transfer, Work, WorkStep};

const CPU: u8 = 0;
const NIC: u8 = 1;
/// The file server's; the event names no node.
const FILE_SERVER: u8 = 2;
/// A document has been found there.
const FOUND: u8 = 3;

#[derive(Default)]
struct WebNode {
    cpu: Station<Work>,
    nic: Station<Work>,
    /// Documents that it fetches, with the requests that have joined. Looked up only, never iterated.
    fetching: HashMap<u32, Vec<JobId>, FixedState>,
    is_down: bool,
    read_count: u64,
    joined_count: u64,
}

/// See the module's documentation.
pub struct WebNodesModel<'t> {
    mechanism: NodeMechanism,
    params: WebNodeParams,
    costs: WebNodeCosts,
    targets: &'t Targets,
    nodes: Vec<WebNode>,
    caches: Vec<Box<dyn Cache>>,
    holders: Holders,
    /// By job.
    transfers: Vec<Transfer>,
    file_server: Station<Work>,
    /// What the file server looks for, in order; each takes equally long.
    looking: VecDeque<Work>,
    /// The node to which the next connection is dealt.
    turn: usize,
    evicted: Vec<u64>,
}

impl<'t> WebNodesModel<'t> {
    /// `backends` idle nodes with empty caches.
    #[must_use]
    pub fn new(
        mechanism: NodeMechanism,
        params: WebNodeParams,
        backends: usize,
        cache: CacheConfig,
        targets: &'t Targets,
    ) -> Self {
        Self {
            mechanism,
            params,
            costs: WebNodeCosts::new(&params, mechanism),
            targets,
            nodes: (0..backends).map(|_| WebNode::default()).collect(),
            caches: (0..backends).map(|_| cache.build()).collect(),
            holders: Holders::new(targets.len()),
            transfers: Vec::new(),
            file_server: Station::default(),
            looking: VecDeque::new(),
            turn: 0,
            evicted: Vec::new(),
        }
    }

    /// The node that accepts a connection whose request `server` answers.
    fn accepting(&mut self, server: u16) -> u16 {
        match self.mechanism {
            NodeMechanism::Cloning(_) if self.mechanism.is_forced() => return self.neighbour(server),
            NodeMechanism::Cloning(_) => {}
            NodeMechanism::Alone | NodeMechanism::CooperativeCaching(_) => return server,
        }
        let count = self.nodes.len();
        let mut next = || {
            let node = self.turn;
            self.turn = (node + 1) % count;
            node
        };
        let up = (0..count).map(|_| next()).find(|&node| !self.nodes[node].is_down);
        up.map_or(server, |node| node as u16)
    }

    fn neighbour(&self, node: u16) -> u16 {
        ((usize::from(node) + 1) % self.nodes.len()) as u16
    }

    fn use_cpu(&mut self, node: u16, work: Work, span: Nanos, context: &mut ModelContext<'_>) {
        let at = &mut self.nodes[usize::from(node)];
        let ends = at.cpu.add(work, span, context.now);
        schedule(ends, (node, CPU), context);
    }

    fn use_nic(&mut self, node: u16, work: Work, context: &mut ModelContext<'_>) {
        let at = &mut self.nodes[usize::from(node)];
        let ends = at.nic.add(work, self.costs.nic(work.bytes), context.now);
        schedule(ends, (node, NIC), context);
    }

    fn read(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let span = self.costs.file_server(work.bytes);
        let ends = self.file_server.add(work, span, context.now);
        schedule(ends, (0, FILE_SERVER), context);
    }

    /// The transfer that this work is part of, unless its request was lost.
    fn live(&mut self, work: Work) -> Option<&mut Transfer> {
        self.transfers.get_mut(work.job as usize).filter(|transfer| transfer.life == work.life)
    }

    /// The request has been read.
    fn parsed(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let Some(&mut Transfer { server, accepted_by, .. }) = self.live(work) else { return };
        if accepted_by == server {
            self.look_up(work, context);
        } else {
            self.use_cpu(server, work.next(WorkStep::MakeClone, 0), self.costs.clone_make, context);
        }
    }

    /// Where the document comes from.
    fn look_up(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let Some(&mut Transfer { server, target, bytes, dynamic, .. }) = self.live(work) else { return };
        let may_fetch = matches!(self.mechanism, NodeMechanism::CooperativeCaching(_));
        let forced = may_fetch && self.mechanism.is_forced();
        let in_memory =
            !forced && (bytes == 0 || dynamic || self.caches[usize::from(server)].access(u64::from(target)));
        if in_memory {
            self.has_all(work, context);
            return;
        }
        let peer = match may_fetch {
            true if forced => Some(self.neighbour(server)),
            true => {
                let others = self.holders.of(target).filter(|&node| node != server);
                others.min_by_key(|&node| (self.nodes[usize::from(node)].nic.len(), node))
            }
            false => None,
        };
        let node = &mut self.nodes[usize::from(server)];
        if !forced {
            if let Some(joined) = node.fetching.get_mut(&target) {
                joined.push(work.job);
                node.joined_count += 1;
                return;
            }
            node.fetching.insert(target, Vec::new());
        }
        let source = peer.map_or(DocumentSource::FileServer, DocumentSource::Peer);
        self.transfers[work.job as usize].source = source;
        match source {
            DocumentSource::FileServer => self.ask_file_server(work, context),
            DocumentSource::Peer(_) => {
                self.use_cpu(server, work.next(WorkStep::AskPeer, 0), self.costs.fetch, context);
            }
        }
    }

    fn ask_file_server(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let Some(&mut Transfer { server, .. }) = self.live(work) else { return };
        self.nodes[usize::from(server)].read_count += 1;
        self.looking.push_back(work.next(WorkStep::Read, 0));
        schedule(Some(context.now + self.costs.file_server_latency), (0, FOUND), context);
    }

    /// Begins with the next chunk.
    fn fetch(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let chunk_bytes = self.params.chunk_bytes;
        let Some(&mut transfer) = self.live(work) else { return };
        let bytes = (transfer.size_bytes - transfer.fetched_bytes).min(chunk_bytes);
        match transfer.source {
            DocumentSource::Peer(peer) if self.nodes[usize::from(peer)].is_down => {
                self.transfers[work.job as usize].source = DocumentSource::FileServer;
                self.ask_file_server(work, context);
            }
            DocumentSource::Peer(peer) => {
                let messages = if transfer.fetched_bytes == 0 { self.costs.fetch } else { Nanos::ZERO };
                let span = messages + self.costs.send(bytes);
                self.use_cpu(peer, work.next(WorkStep::PeerSend, bytes), span, context);
            }
            DocumentSource::FileServer => self.read(work.next(WorkStep::Read, bytes), context),
        }
    }

    /// A chunk is there.
    fn fetched(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let Some(transfer) = self.live(work) else { return };
        transfer.fetched_bytes += work.bytes;
        if transfer.fetched_bytes < transfer.size_bytes {
            self.fetch(work, context);
        } else {
            self.fetched_all(work, context);
        }
        self.send_on(work, context);
    }

    fn fetched_all(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let Some(&mut Transfer { server, target, source, .. }) = self.live(work) else { return };
        let is_copy = matches!(source, DocumentSource::Peer(_));
        let keeps =
            !matches!(self.mechanism, NodeMechanism::CooperativeCaching(peer) if peer.replicates == 0);
        if keeps || !is_copy {
            self.store(server, target);
        }
        let joined = self.nodes[usize::from(server)].fetching.remove(&target).unwrap_or_default();
        for job in joined {
            let life = self.transfers[job as usize].life;
            self.has_all(Work { job, life, ..work }, context);
        }
    }

    fn store(&mut self, node: u16, target: u32) {
        let size_bytes = self.targets.size_bytes[target as usize];
        if self.caches[usize::from(node)].insert(u64::from(target), size_bytes, &mut self.evicted) {
            self.holders.add(target, node);
        }
        for gone in self.evicted.drain(..) {
            self.holders.remove(gone as u32, node);
        }
    }

    /// The node has the whole document.
    fn has_all(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let Some(transfer) = self.live(work) else { return };
        transfer.fetched_bytes = transfer.size_bytes.max(transfer.bytes);
        self.send_on(work, context);
    }

    /// Sends the next chunk that is there, unless one is being sent.
    fn send_on(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let chunk_bytes = self.params.chunk_bytes;
        let Some(transfer) = self.live(work) else { return };
        let there = transfer.fetched_bytes.min(transfer.bytes) - transfer.sent_bytes;
        if transfer.sending || (there == 0 && transfer.bytes > 0) {
            return;
        }
        transfer.sending = true;
        let (server, bytes) = (transfer.server, there.min(chunk_bytes));
        let span = self.costs.send(bytes) + std::mem::take(&mut self.transfers[work.job as usize].service);
        self.use_cpu(server, work.next(WorkStep::Send, bytes), span, context);
    }

    /// A chunk has left.
    fn sent(&mut self, work: Work, context: &mut ModelContext<'_>) {
        let Some(transfer) = self.live(work) else { return };
        transfer.sending = false;
        transfer.sent_bytes += work.bytes;
        let Transfer { server, accepted_by, .. } = *transfer;
        let is_over = transfer.is_over();
        if is_over {
            transfer.life = transfer.life.wrapping_add(1);
            context.done.push(work.job);
        }
        if server != accepted_by {
            let (route, rewrite) = self.costs.acks(work.bytes);
            for (node, span) in [(accepted_by, route), (server, rewrite)] {
                if !span.is_zero() && !self.nodes[usize::from(node)].is_down {
                    self.use_cpu(node, work.next(WorkStep::Acks, 0), span, context);
                }
            }
        }
        if !is_over {
            self.send_on(work, context);
        }
    }

    fn done(&mut self, node: u16, work: Work, context: &mut ModelContext<'_>) {
        let server = self.live(work).map(|transfer| transfer.server);
        match (work.step, server) {
            (WorkStep::Parse, _) => self.parsed(work, context),
            (WorkStep::MakeClone, _) => self.look_up(work, context),
            (WorkStep::AskPeer, _) => self.fetch(work, context),
            (WorkStep::PeerSend, _) => {
                self.use_nic(node, work.next(WorkStep::PeerOut, work.bytes), context);
            }
            (WorkStep::PeerOut, Some(server)) => {
                self.use_nic(server, work.next(WorkStep::FetchIn, work.bytes), context);
            }
            (WorkStep::Read, Some(server)) if self.params.reads_use_nic == 1 => {
                self.use_nic(server, work.next(WorkStep::FetchIn, work.bytes), context);
            }
            (WorkStep::FetchIn | WorkStep::Read, _) => self.fetched(work, context),
            (WorkStep::Send, _) => {
                self.use_nic(node, work.next(WorkStep::Out, work.bytes), context);
            }
            (WorkStep::Out, _) => self.sent(work, context),
            (WorkStep::PeerOut | WorkStep::Acks, _) => {}
        }
    }
}

fn schedule(ends: Option<Time>, (backend, kind): (u16, u8), context: &mut ModelContext<'_>) {
    if let Some(ends) = ends {
        context.queue.push(ends, ModelEvent { backend, kind, unit: 0, epoch: 0 });
    }
}
