//! Notices a flood of datagrams that nobody with the key has made, so that they are not looked at before all else that this machine does.

/// So many of them in a window are a flood: 20,000 in a second, which take about 3 % of a CPU.
const FLOOD: u64 = 2000;
const WINDOW_NS: u64 = 100_000_000;
/// Windows in a row without a flood after which it is over.
const QUIET: u32 = 10;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct FloodWatch {
    until_ns: u64,
    /// What was counted when the window began.
    before: u64,
    /// Windows without a flood that are left; above 0 while there is one.
    left: u32,
    /// Whether the priority was lowered for it.
    pub(super) lowered: bool,
}

impl FloodWatch {
    /// So many had come at this time. Whether there is a flood, when that has changed.
    pub(super) fn saw(&mut self, unauthentic: u64, now_ns: u64) -> Option<bool> {
        let was = self.left > 0;
        if unauthentic.saturating_sub(self.before) >= FLOOD {
            (self.left, self.before, self.until_ns) = (QUIET, unauthentic, now_ns.saturating_add(WINDOW_NS));
        } else if now_ns >= self.until_ns {
            // Windows in which nothing came were quiet as well.
            let windows = 1 + now_ns.saturating_sub(self.until_ns) / WINDOW_NS;
            self.left = self.left.saturating_sub(u32::try_from(windows).unwrap_or(u32::MAX));
            (self.before, self.until_ns) = (unauthentic, now_ns.saturating_add(WINDOW_NS));
        }
        let is = self.left > 0;
        (is != was).then_some(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_flood_begins_at_once_and_is_over_after_a_second() {
        let mut watch = FloodWatch::default();
        // 19,000 in a second are none.
        for number in 0..19_000 {
            assert_eq!(watch.saw(number, number * 1000 * MS / 19_000), None);
        }
        // 200,000 in a second are.
        let began =
            (0..4000).filter_map(|n| watch.saw(19_000 + n, 1000 * MS + n * MS / 200)).collect::<Vec<_>>();
        assert_eq!(began, [true]);
        assert_eq!(watch.saw(23_000, 1500 * MS), None);
        assert_eq!(watch.saw(23_000, 3000 * MS), Some(false));
        assert_eq!(watch.saw(23_000, 9000 * MS), None);
    }
}
