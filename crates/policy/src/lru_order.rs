//! The order in which slots of a [`PlaceTable`] were used: a list through the slots themselves.
//!
//! A slot that is still in the newest quarter of the list stays where it is: with a million targets, moving it would touch two more places
//! that are not in the CPU's cache. While there are fewer than 16 slots the order is exact.

use crate::place_table::{NONE, PlaceTable};

/// Slots are linked from the most to the least recently used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LruOrder {
    pub(crate) newest: u32,
    pub(crate) oldest: u32,
    /// Moves to the front: at most as many slots are ahead of one as moves came after its own.
    pub(crate) moves: u32,
}

impl LruOrder {
    /// Of no slots.
    pub(crate) const EMPTY: Self = Self { newest: NONE, oldest: NONE, moves: 0 };

    /// The target in this slot is used.
    #[inline]
    pub(crate) fn touch<V: Default, A>(&mut self, table: &mut PlaceTable<V, A>, at: u32) {
        // A wrapped counter can only make the distance look shorter once in 2^32 moves, and the order coarser then.
        let ahead_at_most = self.moves.wrapping_sub(table.slot(at).moved) as usize;
        let near = if table.len() < 16 { 1 } else { table.len() / 4 };
        if ahead_at_most >= near {
            self.unlink(table, at);
            self.link_newest(table, at);
        }
    }

    /// Takes a slot out of the list.
    #[inline]
    pub(crate) fn unlink<V: Default, A>(&mut self, table: &mut PlaceTable<V, A>, at: u32) {
        let slot = table.slot(at);
        let (prev, next) = (slot.prev, slot.next);
        self.set_next(table, prev, next);
        self.set_prev(table, next, prev);
    }

    /// Puts a slot that is in no list to the front.
    #[inline]
    pub(crate) fn link_newest<V: Default, A>(&mut self, table: &mut PlaceTable<V, A>, at: u32) {
        self.moves = self.moves.wrapping_add(1);
        let slot = table.slot_mut(at);
        (slot.prev, slot.next, slot.moved) = (NONE, self.newest, self.moves);
        self.set_prev(table, self.newest, at);
        self.newest = at;
    }

    /// A slot has this number, and had another one before.
    pub(crate) fn moved<V: Default, A>(&mut self, table: &mut PlaceTable<V, A>, at: u32) {
        let slot = table.slot(at);
        let (prev, next) = (slot.prev, slot.next);
        self.set_next(table, prev, at);
        self.set_prev(table, next, at);
    }

    /// `next` comes after the slot at `at`, or is the newest one if that is none.
    #[inline]
    fn set_next<V: Default, A>(&mut self, table: &mut PlaceTable<V, A>, at: u32, next: u32) {
        match at {
            NONE => self.newest = next,
            at => table.slot_mut(at).next = next,
        }
    }

    /// `prev` comes before the slot at `at`, or is the oldest one if that is none.
    #[inline]
    fn set_prev<V: Default, A>(&mut self, table: &mut PlaceTable<V, A>, at: u32, prev: u32) {
        match at {
            NONE => self.oldest = prev,
            at => table.slot_mut(at).prev = prev,
        }
    }
}
