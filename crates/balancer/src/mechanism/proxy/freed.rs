//! Requests that a back-end does not let in with a new connection, and that wait for a kept one to become free meanwhile.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::backend::Backend;

/// A connection that is not there after so long is slow: perhaps the back-end's queue of connections is full, and what the system has sent
/// was dropped. It tries again after a second.
pub(super) const SLOW_CONNECT: Duration = Duration::from_millis(100);

/// A back-end to which somebody waits for a connection.
struct Awaited {
    backend: Arc<Backend>,
    freed: Rc<Turns>,
}

#[derive(Default)]
struct Turns {
    next: Notify,
    /// How many were woken and did not have their turn yet.
    woken: Cell<usize>,
}

impl Awaited {
    /// Whether anybody waits who was not woken. Each that waits has one of these, and so has this.
    fn has_unwoken(&self) -> bool {
        Rc::strong_count(&self.freed) - 1 > self.freed.woken.get()
    }
}

/// The back-ends to which requests of one worker wait for a connection. They are few, and mostly none.
#[derive(Default)]
pub(super) struct Freed(RefCell<Vec<Awaited>>);

impl Freed {
    /// Begins to wait for connections to `backend`.
    pub(super) fn begin(&self, backend: &Arc<Backend>) -> FreedWait<'_> {
        let mut awaited = self.0.borrow_mut();
        let is_known = awaited.iter().find(|awaited| Arc::ptr_eq(&awaited.backend, backend));
        let freed = is_known.map(|awaited| Rc::clone(&awaited.freed)).unwrap_or_else(|| {
            let freed = Rc::<Turns>::default();
            awaited.push(Awaited { backend: Arc::clone(backend), freed: Rc::clone(&freed) });
            freed
        });
        FreedWait { all: self, freed }
    }

    /// Whether anybody waits for a connection to `backend` for whom there is none yet.
    pub(super) fn is_awaited(&self, backend: &Arc<Backend>) -> bool {
        let awaited = self.0.borrow();
        let of_this = awaited.iter().find(|awaited| Arc::ptr_eq(&awaited.backend, backend));
        of_this.is_some_and(Awaited::has_unwoken)
    }

    /// Wakes whoever has waited longest for a connection to `backend`. Those woken before look at all that are free.
    pub(super) fn wake(&self, backend: &Arc<Backend>) {
        let awaited = self.0.borrow();
        let of_this = awaited.iter().find(|awaited| Arc::ptr_eq(&awaited.backend, backend));
        if let Some(awaited) = of_this.filter(|awaited| awaited.has_unwoken()) {
            awaited.freed.woken.update(|woken| woken + 1);
            awaited.freed.next.notify_one();
        }
    }
}

/// One that waits.
pub(super) struct FreedWait<'a> {
    all: &'a Freed,
    freed: Rc<Turns>,
}

impl FreedWait<'_> {
    /// Waits until it is this one's turn. Another request may take the connection first. Whoever is dropped in its turn leaves it to the next.
    pub(super) async fn turn(&self) {
        self.freed.next.notified().await;
        self.freed.woken.update(|woken| woken.saturating_sub(1));
    }
}

impl Drop for FreedWait<'_> {
    fn drop(&mut self) {
        // The list has one, and this is one.
        if Rc::strong_count(&self.freed) == 2 {
            self.all.0.borrow_mut().retain(|awaited| !Rc::ptr_eq(&awaited.freed, &self.freed));
        }
    }
}
