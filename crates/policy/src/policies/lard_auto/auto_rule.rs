//! The rules, which a study leaves out one by one.

/// A rule that can be left out, to see what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoRule {
    /// Documents may have been evicted.
    Evictions = 1,
    /// Reads may hold up hits.
    HoldUp = 2,
    /// Requests for a document under read wait for the read, and not in the queue.
    Joining = 4,
    /// Back-ends differ by chance.
    Noise = 8,
    /// A read evicts what may be read again.
    Room = 16,
    /// Later requests share the price of a move.
    Share = 32,
    /// A move must save as much as requests wait on average.
    Margin = 64,
    /// What was learned of one back-end is mixed with what was learned of all.
    Mixing = 128,
    /// Hits that take long have waited for something else.
    LongHits = 256,
    /// Large documents hold up others, where requests are served one after the other.
    Content = 512,
}
