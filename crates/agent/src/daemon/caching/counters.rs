//! What a node counts of the documents that it fetches and sends.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The counters behind [`CacheCounts`].
        #[derive(Debug, Default)]
        pub(super) struct CacheCounters { $(pub(super) $name: Count,)+ }

        /// Counts of a node since its start.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct CacheCounts { $($(#[$doc])* pub $name: u64,)+ }

        impl CacheCounters {
            pub(super) fn snapshot(&self) -> CacheCounts {
                CacheCounts { $($name: self.$name.get(),)+ }
            }
        }

        impl CacheCounts {
            /// The counts with their names.
            #[must_use]
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+]
            }
        }
    };
}

counts! {
    /// Documents asked for.
    asked,
    /// Documents that came, and were used.
    fetched,
    /// Answers that the other node does not have the document; with hints, that the hint was out of date.
    absent,
    /// Documents that did not come in time.
    timed_out,
    /// Links that were lost while a document was waited for.
    lost,
    /// Documents thrown away because they are not what they should be.
    false_documents,
    /// Documents sent to others.
    sent,
    /// Questions of others without a document.
    not_sent,
    /// Hints that were not sent because too many waited.
    hints_dropped,
    /// Links of others.
    links,
    /// Links of others that were refused.
    refused_links,
    /// Links closed because a frame was not authentic or not understood.
    broken_links,
}
