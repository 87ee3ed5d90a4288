//! Deadlines of connections, looked at twenty times a second: setting one is two stores, where a timer of its own for
//! each step of each request would cost more than the step.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use slab::Slab;

use crate::backend::Backend;

/// How often deadlines are looked at, and so how late one may fire.
pub(crate) const SWEEP: Duration = Duration::from_millis(50);

/// Why a wait ended before what was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fired {
    /// The time is over.
    TimedOut,
    /// The back-end that was watched is down.
    BackendDown,
    /// The front-end stops and does not wait any longer.
    Stopped,
}

#[derive(Debug, Default)]
struct DeadlineEntry {
    due_ms: u64,
    waker: Option<Waker>,
    watched: Option<(Arc<Backend>, u32)>,
    fired: Option<Fired>,
    /// Between two requests.
    idle: bool,
}

/// All deadlines of one worker.
#[derive(Debug)]
pub(crate) struct Deadlines {
    origin: Instant,
    now_ms: Cell<u64>,
    entries: RefCell<Slab<DeadlineEntry>>,
}

impl Deadlines {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self { origin: Instant::now(), now_ms: Cell::new(0), entries: RefCell::default() })
    }

    /// A deadline that is not set.
    pub(crate) fn add(self: &Rc<Self>) -> Deadline {
        let entry = DeadlineEntry { due_ms: u64::MAX, ..DeadlineEntry::default() };
        Deadline { key: self.entries.borrow_mut().insert(entry), all: Rc::clone(self) }
    }

    /// Milliseconds since the worker started, at the last sweep.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// Wakes the waiters whose time is over or whose watched back-end went down.
    pub(crate) fn sweep(&self) {
        let now_ms = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        // A worker that was held up sweeps late; deadlines that were set since the last sweep counted from that one, so
        // what was late is granted to all.
        let late_ms = now_ms.saturating_sub(self.now_ms.get()).saturating_sub(2 * SWEEP.as_millis() as u64);
        self.now_ms.set(now_ms);
        for (_, entry) in self.entries.borrow_mut().iter_mut() {
            entry.due_ms = entry.due_ms.saturating_add(late_ms);
            if entry.due_ms <= now_ms {
                entry.fire(Fired::TimedOut);
            } else if entry.watched.as_ref().is_some_and(|(b, before)| b.went_down_since(*before)) {
                entry.fire(Fired::BackendDown);
            }
        }
    }

    /// Wakes every connection that waits for a request, because the front-end stops.
    pub(crate) fn stop_idle(&self) {
        for (_, entry) in self.entries.borrow_mut().iter_mut().filter(|(_, e)| e.idle) {
            entry.fire(Fired::Stopped);
        }
    }
}

impl DeadlineEntry {
    fn fire(&mut self, why: Fired) {
        if self.fired.is_none() {
            self.fired = Some(why);
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }
}

/// The deadline of one connection: at most one wait at a time.
#[derive(Debug)]
pub(crate) struct Deadline {
    key: usize,
    all: Rc<Deadlines>,
}

impl Deadline {
    /// Fires this long from now, at the earliest.
    pub(crate) fn set(&self, after: Duration) {
        // One sweep more, because the time of the last one may be that old.
        let after_ms = u64::try_from((after + SWEEP).as_millis()).unwrap_or(u64::MAX);
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        entry.due_ms = self.all.now_ms.get().saturating_add(after_ms);
        if entry.fired == Some(Fired::TimedOut) {
            entry.fired = None;
        }
    }

    /// The worker's time, as of the last sweep, in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.all.now_ms.get()
    }

    /// Sets whether the connection waits for a request. A request that came just as the front-end stopped is
    /// served.
    pub(crate) fn set_idle(&self, idle: bool) {
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        entry.idle = idle;
        if entry.fired == Some(Fired::Stopped) {
            entry.fired = None;
        }
    }

    /// Fires as well when `backend` goes down, or has been down since it had turned `before` times.
    pub(crate) fn watch(&self, backend: &Arc<Backend>, before: u32) {
        let mut entries = self.all.entries.borrow_mut();
        entries[self.key].watched = Some((Arc::clone(backend), before));
    }

    /// Watches no back-end any longer.
    pub(crate) fn unwatch(&self) {
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        entry.watched = None;
        if entry.fired == Some(Fired::BackendDown) {
            entry.fired = None;
        }
    }

    /// Waits for `poll` to be ready, or for the deadline.
    pub(crate) async fn guard<T>(
        &self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Fired> {
        poll_fn(|cx| match poll(cx) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            Poll::Pending => self.poll_fired(cx).map(Err),
        })
        .await
    }

    fn poll_fired(&self, cx: &Context<'_>) -> Poll<Fired> {
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        if let Some(fired) = entry.fired {
            return Poll::Ready(fired);
        }
        if !entry.waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            entry.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.all.entries.borrow_mut().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(deadline: &Deadline) -> Option<Fired> {
        match deadline.poll_fired(&Context::from_waker(Waker::noop())) {
            Poll::Ready(fired) => Some(fired),
            Poll::Pending => None,
        }
    }

    #[test]
    fn stopping_ends_only_what_is_idle() {
        let all = Deadlines::new();
        let (idle, busy) = (all.add(), all.add());
        idle.set_idle(true);
        all.stop_idle();
        assert_eq!((fired(&idle), fired(&busy)), (Some(Fired::Stopped), None));
        // A request came at the same moment: it is waited for as any other.
        idle.set_idle(false);
        assert_eq!(fired(&idle), None);
    }

    #[test]
    fn a_deadline_fires_once_its_time_is_over_and_no_earlier() {
        let all = Deadlines::new();
        let deadline = all.add();
        deadline.set(Duration::from_millis(5));
        all.sweep();
        assert_eq!(fired(&deadline), None);
        plimsoll_testkit::pace(SWEEP + Duration::from_millis(10), plimsoll_testkit::Why::TimeIsUp);
        all.sweep();
        assert_eq!(fired(&deadline), Some(Fired::TimedOut));
        deadline.set(Duration::from_secs(1));
        assert_eq!(fired(&deadline), None);
        drop(deadline);
        assert!(all.entries.borrow().is_empty());
    }
}
