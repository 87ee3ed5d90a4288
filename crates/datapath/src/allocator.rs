//! The memory of the program's Rust code: from mimalloc, and large pieces from the kernel, in huge pages where it gives them.
//!
//! A policy looks up one of a million targets, and a simulation a document in a cache, at places that nothing foretells: with pages of
//! 4 KiB the CPU waits for the address of the page as well. So large pieces begin at a multiple of 2 MiB, and the kernel is asked to give
//! them huge pages as far as those fill them. Small ones are in ordinary pages: otherwise a connection would hold memory that it never
//! writes (decision 86, and [`refuse_unasked_huge_pages`]).

#![expect(unsafe_code, reason = "memory is given and taken back by hand here")]

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr::null_mut;

use mimalloc::MiMalloc;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};

/// A huge page, where pages have 4 KiB.
const HUGE_BYTES: usize = 2 << 20;
/// What fills so much of one gets a whole one. Pieces from here on are large.
const LEAST_BYTES: usize = HUGE_BYTES / 4 * 3;

/// Gives the program its memory; see the module's documentation.
#[derive(Debug, Default)]
pub struct ProgramAllocator;

/// `PR_THP_DISABLE_EXCEPT_ADVISED` of Linux 6.18.
const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

/// Has the kernel give this process no huge pages but those that it asks for. With `always` in
/// `/sys/kernel/mm/transparent_hugepage/enabled` it gives others, too, and connections hold memory that they never write: half as much
/// again for one of HTTP/2. Kernels before 6.18 give no huge pages at all then.
pub fn refuse_unasked_huge_pages() {
    let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the call takes numbers, and changes nothing that memory holds.
    let refuse =
        |but: libc::c_ulong| unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, on, but, none, none) } == 0;
    if !refuse(EXCEPT_ADVISED) && gives_unasked() {
        refuse(0);
    }
}

fn gives_unasked() -> bool {
    let told = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    told.is_ok_and(|told| told.contains("[always]"))
}

fn is_large(layout: Layout) -> bool {
    layout.size() >= LEAST_BYTES && layout.align() <= HUGE_BYTES
}

/// How much is mapped for so many bytes, at most `isize::MAX`: whole pages, of at most 64 KiB, or a whole huge page for a last part of three
/// quarters of one.
fn in_pages(size_bytes: usize) -> usize {
    let rest = size_bytes % HUGE_BYTES;
    size_bytes - rest + if rest >= LEAST_BYTES { HUGE_BYTES } else { rest.next_multiple_of(64 << 10) }
}

/// Maps so many bytes, all 0, at a multiple of [`HUGE_BYTES`]; null where there is no room.
fn map(size_bytes: usize) -> *mut u8 {
    let size_bytes = in_pages(size_bytes);
    let mapped_bytes = size_bytes.saturating_add(HUGE_BYTES);
    let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a mapping of its own, at an address that the kernel chooses.
    let Ok(start) = (unsafe { rustix::mm::mmap_anonymous(null_mut(), mapped_bytes, access, kind) }) else {
        return null_mut();
    };
    let before = start.addr().next_multiple_of(HUGE_BYTES) - start.addr();
    let at = start.wrapping_byte_add(before);
    // SAFETY: both ranges lie in the mapping beside what is given, and nobody knows of them. The advice changes nothing that memory holds.
    unsafe {
        unmap(start, before);
        unmap(at.wrapping_byte_add(size_bytes), mapped_bytes - before - size_bytes);
        // A wish, which the kernel may not know. The whole piece stays one mapping, as `remap` needs it.
        let _ = rustix::mm::madvise(at, size_bytes, Advice::LinuxHugepage);
    }
    at.cast()
}

/// Gives so many bytes back.
///
/// # Safety
/// They are of mappings that nobody uses any more.
unsafe fn unmap(at: *mut c_void, size_bytes: usize) {
    // SAFETY: as promised. Where a process has all the mappings that it may have, it can still give back the pages of one.
    unsafe {
        if size_bytes > 0 && rustix::mm::munmap(at, size_bytes).is_err() {
            let _ = rustix::mm::madvise(at, size_bytes, Advice::LinuxDontNeed);
        }
    }
}

/// Gives a large piece another size, large as well, if that can be done without copying it; else null, and it stays as it is.
///
/// # Safety
/// `at` is from [`map`], with this size.
unsafe fn remap(at: *mut u8, size_bytes: usize, new_bytes: usize) -> *mut u8 {
    let (piece, old_bytes, all_bytes) = (at.cast::<c_void>(), in_pages(size_bytes), in_pages(new_bytes));
    if all_bytes <= old_bytes {
        // SAFETY: the end of the piece, which its owner gives back.
        unsafe { unmap(piece.wrapping_byte_add(all_bytes), old_bytes - all_bytes) };
        return at;
    }
    // SAFETY: the piece grows where it is.
    if unsafe { rustix::mm::mremap(piece, old_bytes, all_bytes, MremapFlags::empty()) }.is_ok() {
        return at;
    }
    let place = map(new_bytes);
    if place.is_null() {
        return place;
    }
    let flags = MremapFlags::MAYMOVE;
    // SAFETY: the pages of the piece move to `place`, a mapping that nobody else knows of and that is as large; the old one is gone then.
    let moved = unsafe { rustix::mm::mremap_fixed(piece, old_bytes, all_bytes, flags, place.cast()) };
    // After a failure `place` is left alone: the kernel may have given it to somebody else by now.
    moved.map_or(null_mut(), |moved| moved.cast())
}

// SAFETY: every piece comes from mimalloc or from a mapping of its own, as its layout alone says, and goes back to where it came from. Nothing
// unwinds here.
unsafe impl GlobalAlloc for ProgramAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: from `map`, with this size, and nobody uses it any more.
            return unsafe { unmap(piece.cast(), in_pages(layout.size())) };
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.dealloc(piece, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size makes a layout.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if !is_large(layout) && !is_large(new) {
            // SAFETY: the caller's promises are passed on.
            return unsafe { MiMalloc.realloc(piece, layout, new_size) };
        }
        if is_large(layout) && is_large(new) {
            // SAFETY: from `map`, with this size.
            let resized = unsafe { remap(piece, layout.size(), new_size) };
            if !resized.is_null() {
                return resized;
            }
        }
        // SAFETY: two pieces, each as long as what is copied; the old one goes back to where it came from.
        unsafe {
            let other = self.alloc(new);
            if !other.is_null() {
                piece.copy_to_nonoverlapping(other, layout.size().min(new_size));
                self.dealloc(piece, layout);
            }
            other
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A piece of memory, which is written as a whole.
    struct Piece {
        at: *mut u8,
        layout: Layout,
    }

    impl Piece {
        fn new(size_bytes: usize, align: usize) -> Self {
            let layout = Layout::from_size_align(size_bytes, align).unwrap();
            // SAFETY: the size is not 0.
            let at = unsafe { ProgramAllocator.alloc_zeroed(layout) };
            assert!(!at.is_null() && at.addr().is_multiple_of(align));
            Self { at, layout }
        }

        fn bytes(&mut self) -> &mut [u8] {
            // SAFETY: the piece is this long, and of bytes that are written.
            unsafe { std::slice::from_raw_parts_mut(self.at, self.layout.size()) }
        }

        /// Each byte says where it is, and in which piece.
        fn fill(&mut self, from: usize, number: usize) {
            for (at, byte) in self.bytes().iter_mut().enumerate().skip(from) {
                *byte = Self::byte(at, number);
            }
        }

        fn byte(at: usize, number: usize) -> u8 {
            (at % 251 + at / 4096 + number) as u8
        }

        fn resize(&mut self, size_bytes: usize, number: usize) {
            let kept = self.layout.size().min(size_bytes);
            // SAFETY: the size is not 0; what is behind the old one is written before it is read.
            unsafe {
                self.at = ProgramAllocator.realloc(self.at, self.layout, size_bytes);
                assert!(!self.at.is_null() && self.at.addr().is_multiple_of(self.layout.align()));
                self.at.add(kept).write_bytes(0, size_bytes - kept);
            }
            self.layout = Layout::from_size_align(size_bytes, self.layout.align()).unwrap();
            assert!((0..kept).all(|at| self.bytes()[at] == Self::byte(at, number)));
            self.fill(kept, number);
        }
    }

    impl Drop for Piece {
        fn drop(&mut self) {
            // SAFETY: nobody uses it any more.
            unsafe { ProgramAllocator.dealloc(self.at, self.layout) }
        }
    }

    fn size() -> impl Strategy<Value = usize> {
        let below = LEAST_BYTES - 1;
        prop_oneof![
            1usize..100_000,
            1_500_000usize..2_200_000,
            Just(2 << 20),
            Just(below),
            2usize << 20..8 << 20
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Several pieces beside one another, of any sizes.
        #[test]
        fn each_byte_stays_where_it_is_while_pieces_change_their_sizes(
            first in prop::collection::vec((size(), 0u32..23), 1..4),
            changes in prop::collection::vec((0usize..4, size()), 0..10),
        ) {
            let mut pieces: Vec<Piece> = first.iter().map(|&(size, align)| Piece::new(size, 1 << align)).collect();
            for (number, piece) in pieces.iter_mut().enumerate() {
                piece.fill(0, number);
            }
            for (number, size) in changes {
                let number = number % pieces.len();
                pieces[number].resize(size, number);
            }
            for (number, piece) in pieces.iter_mut().enumerate() {
                piece.resize(1, number);
            }
        }
    }

    #[test]
    fn where_all_memory_would_be_in_huge_pages_it_is_not() {
        refuse_unasked_huge_pages();
        let none: libc::c_ulong = 0;
        // SAFETY: the call takes numbers.
        let is_refused = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, none, none, none, none) } > 0;
        assert!(is_refused || !gives_unasked());
    }

    #[test]
    fn zeroed_pieces_are_zero_wherever_pieces_lay_before() {
        for size in [100, LEAST_BYTES - 1, LEAST_BYTES, 2 << 20, 5 << 20] {
            Piece::new(size, 8).bytes().fill(7);
            assert!(Piece::new(size, 8).bytes().iter().all(|&byte| byte == 0), "{size}");
        }
    }

    #[test]
    fn what_there_is_no_room_for_is_null_and_the_piece_stays() {
        let mut piece = Piece::new(3 << 20, 8);
        piece.bytes()[5] = 5;
        let most = isize::MAX as usize - 8;
        // SAFETY: the size is not 0, and rounded up to the alignment it is at most `isize::MAX`.
        let larger = unsafe { ProgramAllocator.realloc(piece.at, piece.layout, most) };
        assert!(larger.is_null());
        assert_eq!(piece.bytes()[5], 5);
    }
}
