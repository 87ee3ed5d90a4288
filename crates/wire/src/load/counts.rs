//! Why a datagram is dropped, and how often that has happened.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a datagram is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadRefusal {
    /// It has another length: truncated, or too long.
    Length,
    /// It is none that is expected here: random bytes, another version, another kind.
    Form,
    /// It was not made with the shared key, or was changed.
    Forged,
    /// It is too old, or ahead of the clock.
    Stale,
    /// It came before.
    Replayed,
    /// It is from a boot id that is not known (announcements).
    UnknownBoot,
    /// There are as many clients, or leases, as there may be.
    Full,
    /// Its source asks too often.
    Limited,
    /// Nobody waits for it any more.
    Late,
    /// It tells a load that no back-end has.
    Implausible,
}

impl LoadRefusal {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Length,
        Self::Form,
        Self::Forged,
        Self::Stale,
        Self::Replayed,
        Self::UnknownBoot,
        Self::Full,
        Self::Limited,
        Self::Late,
        Self::Implausible,
    ];

    /// The word for metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Form => "form",
            Self::Forged => "forged",
            Self::Stale => "stale",
            Self::Replayed => "replayed",
            Self::UnknownBoot => "unknown_boot",
            Self::Full => "full",
            Self::Limited => "limited",
            Self::Late => "late",
            Self::Implausible => "implausible",
        }
    }
}

/// Counters that one thread counts up and others read.
#[derive(Debug, Default)]
pub struct LoadCounters {
    taken: AtomicU64,
    renewed: AtomicU64,
    announced: AtomicU64,
    refused: [AtomicU64; LoadRefusal::ALL.len()],
}

impl LoadCounters {
    /// Something was accepted: an inquiry that was answered, or a reply or announcement that was used.
    pub fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// A renewal was sent or taken.
    pub fn renew(&self) {
        self.renewed.fetch_add(1, Ordering::Relaxed);
    }

    /// An announcement was sent to a receiver.
    pub fn announce(&self) {
        self.announced.fetch_add(1, Ordering::Relaxed);
    }

    /// A datagram was dropped.
    pub fn refuse(&self, why: LoadRefusal) {
        self.refused[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Datagrams so far that nobody with the key has made.
    #[must_use]
    pub fn unauthentic(&self) -> u64 {
        let made_without = [LoadRefusal::Length, LoadRefusal::Form, LoadRefusal::Forged];
        made_without.iter().map(|&why| self.refused[why as usize].load(Ordering::Relaxed)).sum()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> LoadCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LoadCounts {
            taken: of(&self.taken),
            renewed: of(&self.renewed),
            announced: of(&self.announced),
            refused: LoadRefusal::ALL.map(|why| (why, of(&self.refused[why as usize]))),
        }
    }
}

/// What [`LoadCounters`] have counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadCounts {
    /// Inquiries that were answered with a load, or replies and announcements that were used.
    pub taken: u64,
    /// Renewals.
    pub renewed: u64,
    /// Announcements sent, each receiver counted.
    pub announced: u64,
    /// Dropped datagrams by reason.
    pub refused: [(LoadRefusal, u64); LoadRefusal::ALL.len()],
}

impl LoadCounts {
    /// How many were dropped for this reason.
    #[must_use]
    pub fn refused_for(&self, why: LoadRefusal) -> u64 {
        self.refused[why as usize].1
    }

    /// How many were dropped for any reason.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().map(|&(_, count)| count).sum()
    }
}
