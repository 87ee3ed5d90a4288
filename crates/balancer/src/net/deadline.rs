//! Deadlines of connections, looked at twenty times a second: setting one is two stores, where a timer of its own for
//! each step of each request would cost more than the step.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use slab::Slab;

pub(crate) use super::fired::Fired;
use super::watched_backend::WatchedBackend;

/// How often deadlines are looked at, and so how late one may fire.
pub(crate) const SWEEP: Duration = Duration::from_millis(50);

/// A connection makes room only after it has waited this long: one that was just opened may have sent its request.
const ROOM_AFTER_MS: u64 = 300;

/// To make room, one of so many connections without a request is ended at once, and at most this many.
const ROOM_SHARE: usize = 64;
const MOST_ROOM: usize = 32;

#[derive(Debug, Default)]
struct DeadlineEntry {
    due_ms: u64,
    waker: Option<Waker>,
    watched: Option<WatchedBackend>,
    fired: Option<Fired>,
    /// Between two requests.
    idle: bool,
    /// There is the head of a request, and its connection is not idle again.
    serving: bool,
    /// It was told that the front-end stops.
    told: bool,
    /// Since when a request's head, or more of a body that is held, is waited for, in milliseconds; `None` while there is a whole one.
    incomplete_since_ms: Option<u64>,
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
            } else if let Some(watched) = &mut entry.watched {
                watched.waits(now_ms, late_ms);
                if let Some(why) = watched.lost() {
                    entry.fire(why);
                }
            }
        }
    }

    /// Ends the connections that have waited longest for a request's head or more of a body, as other clients need their
    /// places: a few at a time, because finding them looks at all. Returns how many, of which some may get their request in
    /// that moment.
    pub(crate) fn make_room(&self) -> usize {
        let mut entries = self.entries.borrow_mut();
        let Some(due_ms) = self.now_ms.get().checked_sub(ROOM_AFTER_MS) else { return 0 };
        let waiting = |(key, e): (usize, &DeadlineEntry)| {
            let since_ms = e.incomplete_since_ms.filter(|&ms| e.fired.is_none() && ms <= due_ms);
            since_ms.map(|since_ms| (since_ms, key))
        };
        let mut oldest: Vec<(u64, usize)> = entries.iter().filter_map(waiting).collect();
        let most = oldest.len().div_ceil(ROOM_SHARE).min(MOST_ROOM);
        if most < oldest.len() {
            oldest.select_nth_unstable(most);
            oldest.truncate(most);
        }
        oldest.iter().for_each(|&(_, key)| entries[key].fire(Fired::MadeRoom));
        oldest.len()
    }

    /// Wakes every connection that waits for a request, because the front-end stops.
    pub(crate) fn stop_idle(&self) {
        self.stop(|entry| entry.idle);
    }

    /// Wakes every request that is under way, because the front-end does not wait for it any longer.
    pub(crate) fn stop_serving(&self) {
        self.stop(|entry| entry.serving);
    }

    /// Whether a request is under way.
    pub(crate) fn is_serving(&self) -> bool {
        self.entries.borrow().iter().any(|(_, entry)| entry.serving)
    }

    fn stop(&self, which: impl Fn(&DeadlineEntry) -> bool) {
        for (_, entry) in self.entries.borrow_mut().iter_mut().filter(|(_, e)| which(e) && !e.told) {
            entry.told = true;
            // A time that was over before may have been waited for by nobody.
            entry.fired = None;
            entry.fire(Fired::Stopped);
        }
    }
}

impl DeadlineEntry {
    /// Wakes this task when it fires.
    fn wakes(&mut self, cx: &Context<'_>) {
        if !self.waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
    }

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
        (entry.serving, entry.told) = (false, false);
        if entry.fired == Some(Fired::Stopped) {
            entry.fired = None;
        }
    }

    /// A request is under way, until the connection is idle again.
    pub(crate) fn set_serving(&self) {
        self.all.entries.borrow_mut()[self.key].serving = true;
    }

    /// Fires this long from now, also where the front-end stops: it has an answer of its own to send.
    pub(crate) fn set_for_last_words(&self, after: Duration) {
        self.set(after);
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        if entry.fired == Some(Fired::Stopped) {
            entry.fired = None;
        }
    }

    /// Whether the front-end does not wait any longer. Wakes this task when that comes.
    pub(crate) fn is_stopped(&self, cx: &Context<'_>) -> bool {
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        entry.wakes(cx);
        entry.fired == Some(Fired::Stopped)
    }

    /// Sets whether a request's head, or the rest of a body that is held, is waited for. What was there when the connection was to
    /// make room is served.
    pub(crate) fn set_incomplete(&self, incomplete: bool) {
        let now_ms = self.all.now_ms.get();
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        entry.incomplete_since_ms = incomplete.then(|| entry.incomplete_since_ms.unwrap_or(now_ms));
        if entry.fired == Some(Fired::MadeRoom) && !incomplete {
            entry.fired = None;
        }
    }

    /// Sets that the rest of a body is waited for, since now.
    pub(crate) fn set_incomplete_anew(&self) {
        self.set_incomplete(false);
        self.set_incomplete(true);
    }

    /// Fires as well when the back-end goes down, or has been since.
    pub(crate) fn watch(&self, watched: WatchedBackend) {
        self.all.entries.borrow_mut()[self.key].watched = Some(watched);
    }

    /// Goes on waiting for the back-end that is watched, though it is in doubt.
    pub(crate) fn stay(&self) {
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        if let Some(watched) = &mut entry.watched {
            watched.lapses = None;
        }
        if entry.fired == Some(Fired::InDoubt) {
            entry.fired = None;
        }
    }

    /// Watches no back-end any longer, which has answered or not.
    pub(crate) fn unwatch(&self, answered: bool) {
        let mut entries = self.all.entries.borrow_mut();
        let entry = &mut entries[self.key];
        if let Some(watched) = entry.watched.take().filter(|_| answered) {
            watched.answered(self.all.now_ms.get());
        }
        if matches!(entry.fired, Some(Fired::BackendDown | Fired::InDoubt)) {
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
        entry.wakes(cx);
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
    fn what_is_under_way_is_stopped_for_good() {
        let all = Deadlines::new();
        let (waits, busy) = (all.add(), all.add());
        busy.set_serving();
        all.entries.borrow_mut()[busy.key].fire(Fired::TimedOut);
        all.stop_serving();
        let cx = Context::from_waker(Waker::noop());
        assert_eq!((busy.is_stopped(&cx), waits.is_stopped(&cx)), (true, false));
        busy.set(Duration::from_secs(1));
        assert!(busy.is_stopped(&cx), "a later step has no time either");
    }

    #[test]
    fn those_who_waited_longest_for_a_head_make_room() {
        let all = Deadlines::new();
        let deadlines: Vec<Deadline> = (0..130u64)
            .map(|n| {
                all.now_ms.set(1000 - n);
                let deadline = all.add();
                deadline.set_incomplete(n != 129);
                deadline
            })
            .collect();
        all.now_ms.set(870 + ROOM_AFTER_MS);
        assert_eq!(all.make_room(), 0, "none has waited long");
        all.now_ms.set(2000);
        assert_eq!(all.make_room(), 3);
        let gone: Vec<usize> = (0..130).filter(|&n| fired(&deadlines[n]).is_some()).collect();
        assert_eq!(gone, [126, 127, 128], "the one with a request stays");
        assert_eq!(all.make_room(), 2);
        // A head came at the same moment: it is served.
        deadlines[127].set_incomplete(false);
        assert_eq!(fired(&deadlines[127]), None);
        drop(deadlines);
        assert_eq!(all.make_room(), 0);
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
