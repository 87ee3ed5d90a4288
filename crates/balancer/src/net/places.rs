//! Places for connections of clients: a limit that can change while they are taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A number of places.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    /// Places that are taken and will not be free again, because there are fewer now.
    owed: AtomicUsize,
}

/// A place that is taken; free again when dropped.
#[derive(Debug)]
pub(crate) struct TakenPlace {
    permit: Option<OwnedSemaphorePermit>,
    places: Arc<Places>,
}

impl Places {
    pub(crate) fn new(places: usize) -> Arc<Self> {
        Arc::new(Self { free: Arc::new(Semaphore::new(places)), owed: AtomicUsize::new(0) })
    }

    /// Takes a place as soon as there is one.
    pub(crate) async fn take(self: &Arc<Self>) -> Option<TakenPlace> {
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(TakenPlace { permit: Some(permit), places: Arc::clone(self) })
    }

    /// Takes a place if there is one now.
    pub(crate) fn try_take(self: &Arc<Self>) -> Option<TakenPlace> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(TakenPlace { permit: Some(permit), places: Arc::clone(self) })
    }

    /// Changes the number of places from `old` to `new`. Not called concurrently.
    pub(crate) fn resize(&self, old: usize, new: usize) {
        if new < old {
            let fewer = old - new;
            let gone = self.free.forget_permits(fewer);
            self.owed.fetch_add(fewer - gone, Ordering::Relaxed);
        } else {
            let more = new - old;
            let paid = (0..more).take_while(|_| self.pay()).count();
            self.free.add_permits(more - paid);
        }
    }

    /// Pays one owed place; false when none is owed.
    fn pay(&self) -> bool {
        self.owed.try_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1)).is_ok()
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take()
            && self.places.pay()
        {
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_places_while_they_are_taken() {
        let places = Places::new(3);
        let mut taken: Vec<_> = std::iter::from_fn(|| places.try_take()).collect();
        assert_eq!(taken.len(), 3);
        places.resize(3, 1);
        taken.truncate(1);
        assert!(places.try_take().is_none(), "one of one is taken");
        places.resize(1, 2);
        assert_eq!(std::iter::from_fn(|| places.try_take()).collect::<Vec<_>>().len(), 1);
        drop(taken);
        assert_eq!(std::iter::from_fn(|| places.try_take()).collect::<Vec<_>>().len(), 2);
    }
}
