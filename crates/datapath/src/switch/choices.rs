//! The rings of choices, which the packet programs of the CPUs take choices from. They are in memory that we share with the
//! kernel, so that to put a choice there takes no system call.

#![allow(unsafe_code, reason = "the rings are in memory that is shared with the kernel")]

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::{MapCore, MapHandle};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::layout::PreparedChoice;
use crate::error::{BPF_CAPABILITIES, DatapathError};

/// Slots of a ring, `RING_SLOTS`.
const SLOTS: usize = 128;
/// Most choices in a ring. There are more slots, so that none is put into the one that the program is just emptying: it moves on
/// before it takes a choice.
pub(crate) const MOST_CHOICES: usize = 64;
/// Words before the slots of `struct choice_ring`.
const HEAD_WORDS: usize = 16;
const RING_WORDS: usize = HEAD_WORDS + SLOTS;
/// Where `tail` is.
const TAIL_WORD: usize = 8;
/// Bytes of `struct choice_ring`.
pub(crate) const RING_BYTES: usize = RING_WORDS * 8;

/// One ring for each CPU. Choices are put in by one thread at a time, which the `&mut` sees to.
#[derive(Debug)]
pub struct ChoiceRings {
    words: NonNull<AtomicU64>,
    cpus: usize,
    /// Positions of choices that were withdrawn and that no packet has passed yet, by CPU.
    holes: Vec<BTreeSet<u64>>,
    /// Keeps the map while it is mapped.
    _map: MapHandle,
}

// SAFETY: `words` is memory of this value alone, of atomic words, which any thread may use.
unsafe impl Send for ChoiceRings {}

impl ChoiceRings {
    pub(crate) fn new(map: MapHandle) -> Result<Self, DatapathError> {
        let cpus = map.max_entries() as usize;
        if map.value_size() as usize != RING_BYTES {
            return Err(DatapathError::Unexpected(format!(
                "the rings of choices have {} bytes each, and are to have {RING_BYTES}",
                map.value_size()
            )));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place, so no memory of ours is replaced; the map is as long as that at least, and the
        // mapping ends with this value.
        let mapped =
            unsafe { mmap(ptr::null_mut(), cpus * RING_BYTES, protection, MapFlags::SHARED, map.as_fd(), 0) };
        let mapped = mapped.map_err(|errno| {
            DatapathError::of("cannot map the rings of choices", BPF_CAPABILITIES, errno.into())
        })?;
        let words = NonNull::new(mapped.cast())
            .ok_or_else(|| DatapathError::Unexpected("the rings of choices are mapped nowhere".to_owned()))?;
        Ok(Self { words, cpus, holes: vec![BTreeSet::new(); cpus], _map: map })
    }

    /// Number of rings: CPUs that this machine can have.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    fn word(&self, cpu: usize, at: usize) -> &AtomicU64 {
        assert!(cpu < self.cpus && at < RING_WORDS, "there is no such word");
        // SAFETY: the mapping has `cpus * RING_WORDS` words, is aligned to pages, and lives as long as `self`; the kernel's side
        // changes the words by atomic or single stores alone.
        unsafe { self.words.add(cpu * RING_WORDS + at).as_ref() }
    }

    fn slot(&self, cpu: usize, position: u64) -> &AtomicU64 {
        self.word(cpu, HEAD_WORDS + position as usize % SLOTS)
    }

    /// The position from which the program takes the next choice. It moves on before it takes one.
    fn head(&self, cpu: usize) -> u64 {
        self.word(cpu, 0).load(Ordering::SeqCst)
    }

    fn tail(&self, cpu: usize) -> u64 {
        self.word(cpu, TAIL_WORD).load(Ordering::Relaxed)
    }

    /// Choices in the ring of this CPU.
    #[must_use]
    pub fn len(&self, cpu: usize) -> usize {
        let (head, tail) = (self.head(cpu), self.tail(cpu));
        let holes = self.holes[cpu].range(head..).count();
        usize::try_from(tail.saturating_sub(head))
            .unwrap_or(MOST_CHOICES)
            .min(MOST_CHOICES)
            .saturating_sub(holes)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self, cpu: usize) -> bool {
        self.len(cpu) == 0
    }

    /// Puts a choice into the ring of this CPU, in the place of the first one that was withdrawn, or else last; false where it is
    /// full.
    pub fn put(&mut self, cpu: usize, choice: PreparedChoice) -> bool {
        while let Some(hole) = self.holes[cpu].pop_first() {
            let slot = self.slot(cpu, hole);
            if hole < self.head(cpu) {
                continue;
            }
            slot.store(choice.word(), Ordering::SeqCst);
            // A packet that has passed the hole meanwhile has taken the choice or left it.
            let passed = hole < self.head(cpu);
            let left = passed
                && slot.compare_exchange(choice.word(), 0, Ordering::SeqCst, Ordering::Relaxed).is_ok();
            if !left {
                return true;
            }
        }
        let tail = self.tail(cpu);
        if tail.saturating_sub(self.head(cpu)) >= MOST_CHOICES as u64 {
            return false;
        }
        self.slot(cpu, tail).store(choice.word(), Ordering::Release);
        self.word(cpu, TAIL_WORD).store(tail + 1, Ordering::Release);
        true
    }

    /// Withdraws choices that no packet has taken, as `which` says, and calls `visit` with each.
    pub fn withdraw(
        &mut self,
        which: impl Fn(PreparedChoice) -> bool,
        mut visit: impl FnMut(PreparedChoice),
    ) {
        for cpu in 0..self.cpus {
            let tail = self.tail(cpu);
            for position in self.head(cpu).max(tail.saturating_sub(SLOTS as u64))..tail {
                let slot = self.slot(cpu, position);
                let word = slot.load(Ordering::Acquire);
                let Some(choice) = PreparedChoice::of(word).filter(|&choice| which(choice)) else { continue };
                // The program may take it in the same moment.
                if slot.compare_exchange(word, 0, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                    self.holes[cpu].insert(position);
                    visit(choice);
                }
            }
        }
    }

    /// The numbers of the choices that wait, in order.
    #[must_use]
    pub fn numbers(&self) -> Vec<u64> {
        let slots = (0..self.cpus).flat_map(|cpu| (0..SLOTS as u64).map(move |at| (cpu, at)));
        let words = slots.map(|(cpu, at)| self.slot(cpu, at).load(Ordering::Acquire));
        let mut numbers: Vec<u64> =
            words.filter_map(PreparedChoice::of).map(|choice| choice.number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// As [`ChoiceRings::withdraw`] of all choices, by whoever takes the rings over: those of an earlier process.
    pub fn clear(&mut self, visit: impl FnMut(PreparedChoice)) {
        for cpu in 0..self.cpus {
            // That process knew its holes.
            let empty = |position: &u64| self.slot(cpu, *position).load(Ordering::Acquire) == 0;
            let tail = self.tail(cpu);
            let known = self.head(cpu).max(tail.saturating_sub(SLOTS as u64))..tail;
            self.holes[cpu] = known.filter(empty).collect();
        }
        self.withdraw(|_| true, visit);
    }
}

impl Drop for ChoiceRings {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no reference into it outlives `self`. An error changes nothing.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), self.cpus * RING_BYTES) };
    }
}
