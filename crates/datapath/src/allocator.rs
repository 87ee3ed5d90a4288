//! The memory of the program: from mimalloc, and large pieces from the kernel, in huge pages where it gives them.
//!
//! A policy looks up one of a million targets, and a simulation a document in a cache, at places that nothing foretells: with pages of
//! 4 KiB the CPU waits for the address of the page as well. So large pieces begin at a multiple of 2 MiB, and the kernel is asked to give
//! them huge pages as far as those fill them. Small ones are in ordinary pages: otherwise a connection would hold memory that it never
//! writes (decision 86).

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

fn is_large(layout: Layout) -> bool {
    layout.size() >= LEAST_BYTES && layout.align() <= HUGE_BYTES
}

/// As much as is mapped for it: huge pages, and others, which have at most 64 KiB. At most `isize::MAX` comes in.
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
    let (behind, end) = (at.wrapping_byte_add(size_bytes), mapped_bytes - before - size_bytes);
    // SAFETY: both ranges lie in the mapping beside what is given, and nobody knows of them; a failure leaves address space unused. The
    // advice changes nothing that memory holds.
    unsafe {
        if before > 0 {
            let _ = rustix::mm::munmap(start, before);
        }
        if end > 0 {
            let _ = rustix::mm::munmap(behind, end);
        }
        // A wish, which the kernel may not know. The whole piece stays one mapping, as `remap` needs it.
        let _ = rustix::mm::madvise(at, size_bytes, Advice::LinuxHugepage);
    }
    at.cast()
}

/// Gives a large piece another size, large as well, without copying it; null where there is no room, and then it stays as it is.
///
/// # Safety
/// `at` is from [`map`], with this size.
unsafe fn remap(at: *mut u8, size_bytes: usize, new_bytes: usize) -> *mut u8 {
    let (old_bytes, all_bytes) = (in_pages(size_bytes), in_pages(new_bytes));
    if old_bytes == all_bytes {
        return at;
    }
    if all_bytes < old_bytes {
        // SAFETY: the end of the piece, which its owner gives back.
        let _ = unsafe { rustix::mm::munmap(at.wrapping_byte_add(all_bytes).cast(), old_bytes - all_bytes) };
        return at;
    }
    let place = map(new_bytes);
    if place.is_null() {
        return place;
    }
    let (piece, flags) = (at.cast::<c_void>(), MremapFlags::MAYMOVE);
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
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: from `map`, with this size, and nobody uses it any more.
            let _ = unsafe { rustix::mm::munmap(piece.cast(), in_pages(layout.size())) };
            return;
        }
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(piece, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size makes a layout.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (is_large(layout), is_large(new)) {
            // SAFETY: as above.
            (false, false) => unsafe { MiMalloc.realloc(piece, layout, new_size) },
            // SAFETY: from `map`, with this size.
            (true, true) => unsafe { remap(piece, layout.size(), new_size) },
            _ => {
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
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A piece whose first, middle and last bytes say what it is.
    struct Piece {
        at: *mut u8,
        layout: Layout,
    }

    impl Piece {
        fn new(size_bytes: usize, align: usize, is_zeroed: bool) -> Self {
            let layout = Layout::from_size_align(size_bytes, align).unwrap();
            // SAFETY: the size is not 0.
            let at = unsafe {
                match is_zeroed {
                    true => ProgramAllocator.alloc_zeroed(layout),
                    false => ProgramAllocator.alloc(layout),
                }
            };
            assert!(!at.is_null() && at.addr().is_multiple_of(align));
            Self { at, layout }
        }

        fn bytes(&mut self) -> &mut [u8] {
            // SAFETY: the piece is this long, and written as a whole before it is read, or zeroed.
            unsafe { std::slice::from_raw_parts_mut(self.at, self.layout.size()) }
        }

        fn resize(&mut self, size_bytes: usize) {
            // SAFETY: the size is not 0.
            self.at = unsafe { ProgramAllocator.realloc(self.at, self.layout, size_bytes) };
            self.layout = Layout::from_size_align(size_bytes, self.layout.align()).unwrap();
            assert!(!self.at.is_null() && self.at.addr().is_multiple_of(self.layout.align()));
        }
    }

    impl Drop for Piece {
        fn drop(&mut self) {
            // SAFETY: nobody uses it any more.
            unsafe { ProgramAllocator.dealloc(self.at, self.layout) }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Of any size, as large as before or not.
        #[test]
        fn what_was_written_is_there_after_each_change_of_size(
            sizes in prop::collection::vec(
                prop_oneof![1usize..100_000, 1_500_000usize..2_200_000, Just(2 << 20), Just(LEAST_BYTES - 1), 2usize << 20..20 << 20],
                1..6,
            ),
            align in prop_oneof![Just(1), Just(8), Just(64), Just(4096)],
        ) {
            let mut piece = Piece::new(sizes[0], align, false);
            piece.bytes().fill(7);
            for &size in &sizes[1..] {
                let kept = piece.bytes().len().min(size);
                piece.resize(size);
                prop_assert!(piece.bytes()[..kept].iter().all(|&byte| byte == 7));
                piece.bytes().fill(7);
            }
        }
    }

    #[test]
    fn zeroed_pieces_are_zero_wherever_pieces_lay_before() {
        for size in [100, LEAST_BYTES - 1, LEAST_BYTES, 2 << 20, 5 << 20] {
            Piece::new(size, 8, false).bytes().fill(7);
            assert!(Piece::new(size, 8, true).bytes().iter().all(|&byte| byte == 0), "{size}");
        }
    }

    #[test]
    fn what_there_is_no_room_for_is_null_and_the_piece_stays() {
        let mut piece = Piece::new(3 << 20, 8, true);
        piece.bytes()[5] = 5;
        let most = isize::MAX as usize - 8;
        // SAFETY: the size is not 0, and rounded up to the alignment it is at most `isize::MAX`.
        let larger = unsafe { ProgramAllocator.realloc(piece.at, piece.layout, most) };
        assert!(larger.is_null());
        assert_eq!(piece.bytes()[5], 5);
    }
}
