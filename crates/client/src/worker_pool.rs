//! A server's side: threads that work, and a queue before them that is bounded.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use plimsoll_wire::load::{ActiveAccess, LoadGauge};
use tokio::sync::oneshot;

/// How large a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSizes {
    /// Threads; at least one.
    pub workers: usize,
    /// Accesses that wait for one of them at most.
    pub queue: usize,
}

/// Why an access was not worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkerPoolError {
    /// As many wait as may wait. The client may try another replica.
    #[error("the queue is full; try another replica")]
    Full,
    /// The work has panicked.
    #[error("the work on this access has failed")]
    Panicked,
}

type Work = Box<dyn FnOnce() + Send>;

struct QueuedWork {
    work: Work,
    access: ActiveAccess,
    since: Instant,
}

#[derive(Default)]
struct PoolQueue {
    waiting: VecDeque<QueuedWork>,
    /// Threads that work.
    busy: usize,
    stopping: bool,
}

struct PoolShared {
    queue: Mutex<PoolQueue>,
    wake: Condvar,
    sizes: PoolSizes,
    gauge: LoadGauge,
}

/// Threads that work on accesses, with a bounded queue. Its load, those that wait and those in service, is in a [`LoadGauge`] from the
/// moment an access comes until its work is done. Dropped, it finishes what it has.
pub struct WorkerPool {
    shared: Arc<PoolShared>,
    threads: Vec<JoinHandle<()>>,
}

impl WorkerPool {
    /// Starts the threads. `gauge` is told the load: that of an agent, of a [`LoadResponder`](crate::LoadResponder), or a new one.
    ///
    /// # Errors
    /// When the system provides no thread.
    pub fn new(sizes: PoolSizes, gauge: LoadGauge) -> io::Result<Self> {
        let sizes = PoolSizes { workers: sizes.workers.max(1), ..sizes };
        let shared = Arc::new(PoolShared { queue: Mutex::default(), wake: Condvar::new(), sizes, gauge });
        let mut pool = Self { shared, threads: Vec::new() };
        for number in 0..sizes.workers {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new().name(format!("worker-{number}"));
            // Should one not start, those that did end with the pool.
            pool.threads.push(thread.spawn(move || shared.work())?);
        }
        Ok(pool)
    }

    /// Queues work.
    ///
    /// # Errors
    /// When the queue is full.
    pub fn submit(&self, work: impl FnOnce() + Send + 'static) -> Result<(), WorkerPoolError> {
        let shared = &self.shared;
        let mut queue = shared.lock();
        let PoolSizes { workers, queue: most } = shared.sizes;
        if queue.busy + queue.waiting.len() >= workers.saturating_add(most) {
            return Err(WorkerPoolError::Full);
        }
        let queued = QueuedWork { work: Box::new(work), access: shared.gauge.begin(), since: Instant::now() };
        queue.waiting.push_back(queued);
        drop(queue);
        shared.wake.notify_one();
        Ok(())
    }

    /// Queues work, and waits for its result in a task. The work is done also if nobody waits any more.
    ///
    /// # Errors
    /// When the queue is full, at once, or when the work panics.
    pub fn run<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, WorkerPoolError>> + Send + use<T, W> {
        let (sender, result) = oneshot::channel();
        let submitted = self.submit(move || drop(sender.send(work())));
        async move {
            submitted?;
            result.await.map_err(|_| WorkerPoolError::Panicked)
        }
    }

    /// The number of accesses that wait or are in service.
    #[must_use]
    pub fn load(&self) -> u32 {
        self.shared.gauge.load()
    }

    /// Finishes what waits, and ends the threads.
    pub fn stop(mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a worker has failed");
            }
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl PoolShared {
    fn work(&self) {
        let mut queue = self.lock();
        loop {
            let Some(QueuedWork { work, access, since }) = queue.waiting.pop_front() else {
                if queue.stopping {
                    return;
                }
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.busy += 1;
            drop(queue);
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("the work on an access has panicked");
            }
            access.answered(u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX));
            queue = self.lock();
            queue.busy -= 1;
        }
    }

    fn stop(&self) {
        self.lock().stopping = true;
        self.wake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, PoolQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").field("sizes", &self.shared.sizes).finish_non_exhaustive()
    }
}
