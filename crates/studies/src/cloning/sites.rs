//! Workloads that meet what is published of the paper's log equally well.

/// The workload `berkeley`, with what is not published as it is by default or with one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Site {
    Berkeley,
    /// Popularity falls more slowly.
    Flat,
    /// Popularity falls faster.
    Steep,
    /// Sizes differ less.
    Narrow,
    /// Sizes differ more.
    Wide,
    /// All but the 500 most popular documents are asked for in a quarter of the month only.
    Windowed,
}

impl Site {
    pub(super) const ALL: [Self; 6] =
        [Self::Berkeley, Self::Flat, Self::Steep, Self::Narrow, Self::Wide, Self::Windowed];

    /// Its name in results.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Berkeley => "berkeley",
            Self::Flat => "Zipf 0.75",
            Self::Steep => "Zipf 0.95",
            Self::Narrow => "sigma 1.0",
            Self::Wide => "sigma 1.6",
            Self::Windowed => "windows of a quarter",
        }
    }

    /// Parameters of `berkeley` that are not as by default.
    pub(super) fn parameters(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Berkeley => &[],
            Self::Flat => &[("exponent", "0.75")],
            Self::Steep => &[("exponent", "0.95")],
            Self::Narrow => &[("size_sigma", "1.0")],
            Self::Wide => &[("size_sigma", "1.6")],
            Self::Windowed => &[("window_min", "0.25"), ("window_max", "0.25")],
        }
    }
}
