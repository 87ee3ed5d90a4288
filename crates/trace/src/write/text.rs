//! What encoders of text share.

use std::io::Write as _;

use crate::targets::TargetTable;
use crate::time::NS_PER_S;

/// Appends seconds with as many decimals as needed.
pub(super) fn put_seconds(line: &mut Vec<u8>, ns: u64) {
    // Writing to a vector cannot fail.
    let _ = write!(line, "{}", ns / NS_PER_S);
    let fraction = ns % NS_PER_S;
    if fraction > 0 {
        let _ = write!(line, ".{fraction:09}");
        while line.last() == Some(&b'0') {
            line.pop();
        }
    }
}

/// Whether every target passes `test`.
pub(super) fn all_targets(targets: &TargetTable, test: impl Fn(&[u8]) -> bool) -> bool {
    (0..targets.len()).all(|id| test(targets.name(id as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_exactly() {
        for (ns, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (1_500_000_000, "1.5"),
            (10_000_000_000, "10"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            let mut line = Vec::new();
            put_seconds(&mut line, ns);
            assert_eq!(line, text.as_bytes());
        }
    }
}
