//! Requests that clones answer, as the mapping function and the counters see them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::super::head::Outline;
use super::access::{AccessBegin, RequestEnd};
use super::counters::CloneCounters;
use super::mapping::{MappedEnd, MappedRequest};
use super::peer_link::PeerLink;
use super::shared::CloneShared;

/// A request behind the one that is to be answered now, for another node.
pub(super) struct NextClone {
    /// Bytes of its head.
    pub(super) bytes: usize,
    pub(super) link: Rc<PeerLink>,
}

/// Requests of one connection that clones answer one after the other. Dropped, those that are left have failed: they were not
/// answered by their nodes.
pub(super) struct UnderWay<'a> {
    shared: &'a CloneShared,
    left: VecDeque<(Outline, MappedRequest)>,
    /// What the access log is to tell of the first one.
    told: Rc<Cell<RequestEnd>>,
    /// What the others began with, if there is an access log.
    begun: VecDeque<(AccessBegin, RequestEnd)>,
    /// Content that the original has sent before, if it has begun the answer.
    begun_bytes: Option<u64>,
    answered: u64,
}

impl<'a> UnderWay<'a> {
    /// The answer of this request, of which the original may have sent so many bytes.
    pub(super) fn new(
        shared: &'a CloneShared,
        outline: Outline,
        mapped: MappedRequest,
        begun_bytes: Option<u64>,
        told: Rc<Cell<RequestEnd>>,
    ) -> Self {
        let left = VecDeque::from([(outline, mapped)]);
        Self { shared, left, told, begun: VecDeque::new(), begun_bytes, answered: 0 }
    }

    /// One more, behind the others.
    pub(super) fn push(
        &mut self,
        outline: Outline,
        mapped: MappedRequest,
        begun: Option<(AccessBegin, RequestEnd)>,
    ) {
        self.left.push_back((outline, mapped));
        self.begun.extend(begun);
    }

    /// The client has the answer of the first one that is left.
    pub(super) fn answered(&mut self, status: u16, content_bytes: u64) {
        let Some((outline, mapped)) = self.left.pop_front() else { return };
        let (content_bytes, whole) = match self.begun_bytes {
            Some(begun_bytes) => (content_bytes + begun_bytes, true),
            None => (content_bytes, outline.has_whole(status)),
        };
        self.shared.mapping.ended(&mapped, MappedEnd::Answered { content_bytes, whole });
        let counters = &self.shared.counters;
        counters.clone_content_bytes.add(content_bytes);
        self.tell(status, content_bytes);
        CloneCounters::count(&counters.clone_answers);
        if self.begun_bytes.is_some() {
            CloneCounters::count(&counters.rests);
        }
        if self.answered > 0 {
            CloneCounters::count(&counters.ahead);
            // The first one is counted by those who lead the connection.
            CloneCounters::count(&counters.requests);
        }
        self.answered += 1;
    }

    /// Tells the access log, or who writes its line of the first request.
    fn tell(&mut self, status: u16, content_bytes: u64) {
        if self.answered == 0 {
            return self.told.set(RequestEnd { status, content_bytes, ..self.told.get() });
        }
        if let (Some(log), Some((begun, end))) = (&self.shared.access_log, self.begun.pop_front()) {
            log.end(&begun, &RequestEnd { status, content_bytes, ..end }, &self.shared.config);
        }
    }

    /// Whether none is left.
    pub(super) fn all_answered(&self) -> bool {
        self.left.is_empty()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        for (_, mapped) in self.left.drain(..) {
            self.shared.mapping.ended(&mapped, MappedEnd::Failed);
        }
    }
}
