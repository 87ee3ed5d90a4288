//! A heap with four children per entry, over (value, time) keys.

/// Children per entry: four keys side by side cost little more to compare than two, at half the
/// depth.
const ARITY: usize = 4;

/// Orders objects: the smaller value first, of equal values the earlier time.
///
/// The value is a non-negative `f64` kept as its bits, which then order like the numbers, so a
/// comparison is one of integers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    value_bits: u64,
    time: u64,
}

impl Key {
    #[inline]
    pub(crate) fn new(value: f64, time: u64) -> Self {
        debug_assert!(value >= 0.0);
        Self {
            value_bits: value.to_bits(),
            time,
        }
    }

    #[inline]
    pub(crate) fn value(self) -> f64 {
        f64::from_bits(self.value_bits)
    }

    /// The key with `offset` taken from its value, but not below 0.
    pub(crate) fn lowered(self, offset: f64) -> Self {
        Self::new((self.value() - offset).max(0.0), self.time)
    }
}

/// An object in the heap, under the key it had when it was put there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) slot: u32,
}

/// A min-heap. It does not know where a given slot is: see `RankedCache` for why it need not.
pub(crate) struct Heap {
    entries: Vec<Entry>,
}

impl Heap {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    #[inline]
    pub(crate) fn top(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent].key <= entry.key {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    /// Takes the least entry away.
    pub(crate) fn pop(&mut self) {
        if let Some(last) = self.entries.pop()
            && !self.entries.is_empty()
        {
            self.sink(0, last);
        }
    }

    /// Puts `entry` in the place of the least one.
    pub(crate) fn replace_top(&mut self, entry: Entry) {
        self.sink(0, entry);
    }

    /// Gives every entry the key `key_of` it, drops those that have none, and restores the order.
    pub(crate) fn rebuild(&mut self, mut key_of: impl FnMut(&Entry) -> Option<Key>) {
        self.entries.retain_mut(|entry| {
            let key = key_of(entry);
            entry.key = key.unwrap_or(entry.key);
            key.is_some()
        });
        for at in (0..self.entries.len().div_ceil(ARITY)).rev() {
            self.sink(at, self.entries[at]);
        }
    }

    /// Puts `entry` at `at` or, while a child there is smaller, below.
    fn sink(&mut self, mut at: usize, entry: Entry) {
        let len = self.entries.len();
        loop {
            let first = at * ARITY + 1;
            if first >= len {
                break;
            }
            let children = &self.entries[first..len.min(first + ARITY)];
            let mut least = 0;
            for child in 1..children.len() {
                if children[child].key < children[least].key {
                    least = child;
                }
            }
            if entry.key <= children[least].key {
                break;
            }
            self.entries[at] = children[least];
            at = first + least;
        }
        self.entries[at] = entry;
    }
}
