//! The cells: settings in which one way of choosing is known to lose.

use crate::loopback;

/// What loses in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellLoser {
    /// Hashing.
    Hashing,
    /// Hashing with bounded loads.
    BoundedHashing,
    /// LARD/R with the thresholds of its paper.
    LardR,
}

impl CellLoser {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Hashing => "hashing loses",
            Self::BoundedHashing => "bounded hashing loses",
            Self::LardR => "LARD/R loses",
        }
    }
}

/// A setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareCell {
    /// Number, from 1 on.
    pub number: u16,
    /// What loses there.
    pub loser: CellLoser,
    /// Why, in a few words.
    pub why: &'static str,
    /// Synthetic workload, at a twentieth of its size.
    pub workload: &'static str,
    /// Number of back-ends.
    pub backends: usize,
    /// Requests under way for each back-end.
    pub under_way: usize,
    /// Memory of each back-end in bytes.
    pub cache_bytes: u64,
}

impl CompareCell {
    /// One line that tells it from the others.
    #[must_use]
    pub fn title(&self) -> String {
        format!(
            "{}, {} back-ends with {:.1} MiB, {} requests under way for each",
            self.workload,
            self.backends,
            self.cache_bytes as f64 / f64::from(1 << 20),
            self.under_way
        )
    }

    /// Connections of the clients, each with one request under way.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.backends * self.under_way
    }
}

const fn cell(
    number: u16,
    loser: CellLoser,
    why: &'static str,
    workload: &'static str,
    backends: usize,
    under_way: usize,
    cache_bytes: u64,
) -> CompareCell {
    CompareCell { number, loser, why, workload, backends, under_way, cache_bytes }
}

/// That of the LARD study at the scale of the demo.
const FULL: u64 = loopback::CACHE_BYTES;

/// All cells: of each kind three in which the simulator says that it is at least a seventh behind.
pub const CELLS: &[CompareCell] = &[
    cell(1, CellLoser::Hashing, "a hot document is more than the part of one back-end", "hot", 8, 30, FULL),
    cell(
        2,
        CellLoser::Hashing,
        "more memory and more clients: only the busiest back-end limits",
        "hot",
        8,
        60,
        2 * FULL,
    ),
    cell(
        3,
        CellLoser::Hashing,
        "parts are unequal, and requests wait for the busiest one",
        "rice",
        8,
        16,
        2 * FULL,
    ),
    cell(4, CellLoser::BoundedHashing, "what the bound moves is read again elsewhere", "rice", 8, 16, FULL),
    cell(
        5,
        CellLoser::BoundedHashing,
        "few requests under way: the bound moves many of them",
        "rice",
        8,
        4,
        2 * FULL,
    ),
    cell(
        6,
        CellLoser::BoundedHashing,
        "small memories: what is moved drives out what is there",
        "rice",
        16,
        8,
        FULL / 2,
    ),
    cell(7, CellLoser::LardR, "hot documents, and thresholds that never fire", "hot", 8, 8, 2 * FULL),
    cell(8, CellLoser::LardR, "the same with fewer requests under way", "hot", 8, 4, 2 * FULL),
    cell(9, CellLoser::LardR, "the same on more back-ends", "hot", 16, 4, FULL),
];
