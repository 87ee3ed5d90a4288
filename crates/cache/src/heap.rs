//! A 4-ary heap over (value, time) keys.

/// Orders objects: the smaller value first, of equal values the earlier time.
///
/// The value is a non-negative `f64` kept as its bits, which sort like the numbers, so that a comparison
/// compares integers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HeapKey {
    value_bits: u64,
    time: u32,
}

impl HeapKey {
    #[inline]
    pub(crate) fn new(value: f64, time: u32) -> Self {
        debug_assert!(value >= 0.0);
        Self { value_bits: value.to_bits(), time }
    }

    #[inline]
    pub(crate) fn value(self) -> f64 {
        f64::from_bits(self.value_bits)
    }
}

/// An object in the heap with the key it was inserted under. Value, time and slot are packed from high to low
/// bits into one number, so that one comparison suffices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HeapEntry(u128);

impl HeapEntry {
    #[inline]
    pub(crate) fn new(key: HeapKey, slot: u32) -> Self {
        Self(u128::from(key.value_bits) << 64 | u128::from(key.time) << 32 | u128::from(slot))
    }

    #[inline]
    pub(crate) fn key(self) -> HeapKey {
        HeapKey { value_bits: (self.0 >> 64) as u64, time: (self.0 >> 32) as u32 }
    }

    #[inline]
    pub(crate) fn slot(self) -> u32 {
        self.0 as u32
    }
}

/// Children per entry. Four entries fill a cache line.
const ARITY: usize = 4;

/// Padding of the last group; not less than any entry.
const NOTHING: HeapEntry = HeapEntry(u128::MAX);

/// The children of one entry, side by side in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Siblings([HeapEntry; ARITY]);

/// A min-heap that does not track where a slot is; `RankedCache` tells why it need not.
///
/// The root is on its own; the children of the root are group 0, and those of the `i`-th entry of
/// group `g` are group `4 g + i + 1`.
pub(crate) struct Heap {
    root: HeapEntry,
    groups: Vec<Siblings>,
    /// Number of entries, the root included.
    len: usize,
}

impl Heap {
    pub(crate) fn new() -> Self {
        Self { root: NOTHING, groups: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    #[inline]
    pub(crate) fn top(&self) -> Option<HeapEntry> {
        (self.len > 0).then_some(self.root)
    }

    pub(crate) fn push(&mut self, entry: HeapEntry) {
        self.len += 1;
        if self.len == 1 {
            self.root = entry;
            return;
        }
        // The position below the root: groups in order, four to each.
        let mut at = self.len - 2;
        if at / ARITY == self.groups.len() {
            self.groups.push(Siblings([NOTHING; ARITY]));
        }
        loop {
            let group = at / ARITY;
            if group == 0 {
                if self.root <= entry {
                    self.groups[0].0[at % ARITY] = entry;
                } else {
                    self.groups[0].0[at % ARITY] = self.root;
                    self.root = entry;
                }
                return;
            }
            let above = group - 1;
            let parent = self.groups[above / ARITY].0[above % ARITY];
            if parent <= entry {
                self.groups[group].0[at % ARITY] = entry;
                return;
            }
            self.groups[group].0[at % ARITY] = parent;
            at = above;
        }
    }

    /// Removes the least entry.
    pub(crate) fn pop(&mut self) {
        if self.len <= 1 {
            self.clear();
            return;
        }
        let at = self.len - 2;
        let last = std::mem::replace(&mut self.groups[at / ARITY].0[at % ARITY], NOTHING);
        if at.is_multiple_of(ARITY) {
            self.groups.pop();
        }
        self.len -= 1;
        self.replace_top(last);
    }

    /// Replaces the least entry by `entry`.
    pub(crate) fn replace_top(&mut self, entry: HeapEntry) {
        let Some(first) = self.groups.first() else {
            self.root = entry;
            return;
        };
        let (which, least) = first.least();
        if entry <= least {
            self.root = entry;
        } else {
            self.root = least;
            self.sink(which, entry);
        }
    }

    /// Re-keys every entry by `key_of`, drops those for which it returns `None`, and restores the order.
    pub(crate) fn rebuild(&mut self, mut key_of: impl FnMut(HeapEntry) -> Option<HeapKey>) {
        let mut entries = Vec::with_capacity(self.len);
        let below = self.groups.iter().flat_map(|group| group.0);
        for entry in std::iter::once(self.root).chain(below).take(self.len) {
            if let Some(key) = key_of(entry) {
                entries.push(HeapEntry::new(key, entry.slot()));
            }
        }
        // A sorted sequence is a heap.
        entries.sort_unstable();
        self.clear();
        for entry in entries {
            self.push(entry);
        }
    }

    /// Puts `entry` at the position `at` below the root or, while a child there is smaller,
    /// further down.
    fn sink(&mut self, mut at: usize, entry: HeapEntry) {
        while let Some(children) = self.groups.get(at + 1) {
            let (which, least) = children.least();
            if entry <= least {
                break;
            }
            self.groups[at / ARITY].0[at % ARITY] = least;
            at = (at + 1) * ARITY + which;
        }
        self.groups[at / ARITY].0[at % ARITY] = entry;
    }
}

impl Siblings {
    /// The least of the four and its place.
    #[inline]
    fn least(&self) -> (usize, HeapEntry) {
        let [a, b, c, d] = self.0;
        let left = if b < a { (1, b) } else { (0, a) };
        let right = if d < c { (3, d) } else { (2, c) };
        if right.1 < left.1 { right } else { left }
    }
}
