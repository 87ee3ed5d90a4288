//! The interface every cache offers.

/// A cache of whole objects, each known by a number and a size; it holds no contents.
///
/// What every implementation promises:
/// - the sizes of the objects present never add up to more than [`Cache::capacity_bytes`];
/// - the same calls give the same answers, on every machine;
/// - no object leaves but through `insert`, `request`, `remove` or `clear`, and `insert` and
///   `request` name each object that left on their account.
///
/// Objects of size 0 are held like others. They take no room, so they never force another object
/// out, but they leave in their turn.
pub trait Cache: Send {
    /// The room in bytes.
    fn capacity_bytes(&self) -> u64;

    /// The sum of the sizes in bytes of the objects present.
    fn used_bytes(&self) -> u64;

    /// The number of objects present.
    fn len(&self) -> usize;

    /// Whether no object is present.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the object is present. The order of eviction stays as it is.
    fn contains(&self, id: u64) -> bool;

    /// Records a use of the object and says whether it was a hit, that is, whether the object is
    /// present. A miss changes nothing: fetch the object, then [`Cache::insert`] it.
    fn access(&mut self, id: u64) -> bool;

    /// Puts an object of `size_bytes` into the cache and appends to `evicted` the objects that were
    /// present before and had to go, in the order in which they went.
    ///
    /// Returns whether the object is present afterwards. It is not admitted if it is larger than
    /// the capacity or than the cache's object limit; then nothing is evicted for it. A cache may
    /// also, while it makes room, find the new object to be of less value than the next victim, and
    /// stop (only Greedy-Dual-Size-Frequency does).
    ///
    /// Of an object already present with this size nothing changes: its uses are recorded by
    /// [`Cache::access`] alone. With another size, the object has a new version: the old version
    /// leaves and the new one enters like a new object, its count of uses kept where the cache
    /// counts them. If the new version is not admitted, the object itself is appended to `evicted`.
    fn insert(&mut self, id: u64, size_bytes: u64, evicted: &mut Vec<u64>) -> bool;

    /// Like [`Cache::access`], followed after a miss by [`Cache::insert`], in one go; returns
    /// whether it was a hit. A hit does not look at `size_bytes`.
    fn request(&mut self, id: u64, size_bytes: u64, evicted: &mut Vec<u64>) -> bool {
        let hit = self.access(id);
        if !hit {
            self.insert(id, size_bytes, evicted);
        }
        hit
    }

    /// Drops the object, and says whether it was present.
    fn remove(&mut self, id: u64) -> bool;

    /// The object that would be evicted next, if any is present.
    fn victim(&mut self) -> Option<u64>;

    /// What [`Cache::victim`] is worth to this cache: of several caches of one kind under like
    /// load, the one with the smallest value loses least by giving up its victim.
    ///
    /// The unit is the cache's own, so only values of the same kind of cache compare: LRU and FIFO
    /// give minus the number of uses and insertions the cache has seen since the victim's last use
    /// (FIFO: since its insertion); Greedy-Dual-Size and Greedy-Dual-Size-Frequency the victim's
    /// credit above the inflation value, H − L ≥ 0; LFU its number of uses.
    fn victim_value(&mut self) -> Option<f64>;

    /// Drops every object and forgets all history, as if the cache were new.
    fn clear(&mut self);
}
