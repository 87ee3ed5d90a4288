//! Patterns that no request can reach.

use crate::path_pattern::{PathPattern, PathSegment};
use crate::pattern::ClassPattern;

/// A pattern that is never reached, and the two that take all of its requests, by their places in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shadowed {
    pub(crate) pattern: usize,
    pub(crate) by: [usize; 2],
}

/// The patterns that others shadow. More narrow patterns win, so only two together can take all: for `/a/**`, one of `/a/*` takes what is
/// one segment below, and one of `/a/*/**` takes the rest.
pub(crate) fn shadowed(patterns: &[ClassPattern]) -> Vec<Shadowed> {
    let unconditional: std::collections::BTreeMap<&PathPattern, usize> = patterns
        .iter()
        .enumerate()
        .filter(|(_, pattern)| pattern.is_unconditional())
        .map(|(place, pattern)| (&pattern.path, place))
        .collect();
    let shadow = |(place, pattern): (usize, &ClassPattern)| {
        if !pattern.path.below {
            return None;
        }
        let mut segments = pattern.path.segments.clone();
        segments.push(PathSegment::Any);
        let mut path = PathPattern { segments, below: false };
        let one = *unconditional.get(&path)?;
        path.below = true;
        let rest = *unconditional.get(&path)?;
        Some(Shadowed { pattern: place, by: [one, rest] })
    };
    patterns.iter().enumerate().filter_map(shadow).collect()
}
