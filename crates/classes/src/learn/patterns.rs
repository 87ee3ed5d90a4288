//! From groups with classes to the patterns of a table.

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds::{PATTERNS_MOST, SHAPES_MOST, WILD_SEGMENTS_MOST};
use crate::learn::collapse::CollapsedPaths;
use crate::learn::combinations::{Combinations, METHOD};
use crate::learn::groups::{GroupCondition, RequestGroup};
use crate::path_pattern::{PathPattern, PathSegment};
use crate::pattern::ClassPattern;

/// Patterns, and how many were left out.
pub(crate) struct MadePatterns {
    /// With the number of requests that each was made for.
    pub(crate) patterns: Vec<(ClassPattern, f64)>,
    /// Patterns for which there was no room.
    pub(crate) left_out: u64,
}

/// Requests by class, which is counted from 0.
type ClassCounts = BTreeMap<usize, f64>;

/// Makes patterns.
pub(crate) struct PatternMaker<'a> {
    paths: &'a CollapsedPaths,
    combinations: &'a Combinations,
    /// The groups of each node with their classes.
    groups: BTreeMap<u32, Vec<(&'a RequestGroup, usize)>>,
    /// By node, the requests of all that is below.
    below: BTreeMap<u32, ClassCounts>,
    out: MadePatterns,
}

/// A node on the way through the tree.
struct PlacedNode {
    node: u32,
    segments: Vec<PathSegment>,
    /// The class that wider patterns give; `None` where a pattern is needed in any case.
    inherited: Option<usize>,
    /// Whether patterns with `*` may match what is below, too, so that wider patterns do not count.
    beside_any: bool,
}

impl<'a> PatternMaker<'a> {
    pub(crate) fn new(
        paths: &'a CollapsedPaths,
        combinations: &'a Combinations,
        groups: &'a [RequestGroup],
        class_of: &[usize],
    ) -> Self {
        let mut by_node: BTreeMap<u32, Vec<(&RequestGroup, usize)>> = BTreeMap::new();
        for (group, class) in groups.iter().zip(class_of) {
            by_node.entry(group.node).or_default().push((group, *class));
        }
        let out = MadePatterns { patterns: Vec::new(), left_out: 0 };
        Self { paths, combinations, groups: by_node, below: BTreeMap::new(), out }
    }

    /// The patterns. Together they give every request the class of its group, as far as there is room.
    pub(crate) fn make(mut self) -> MadePatterns {
        self.count(0);
        self.node(PlacedNode { node: 0, segments: Vec::new(), inherited: None, beside_any: false });
        let mut out = self.out;
        if out.patterns.len() > PATTERNS_MOST {
            // Those of most requests stay, in their order.
            let mut counts: Vec<f64> = out.patterns.iter().map(|(_, count)| *count).collect();
            counts.sort_by(|a, b| b.total_cmp(a));
            let least = counts[PATTERNS_MOST];
            let before = out.patterns.len();
            out.patterns.retain(|(_, count)| *count > least);
            out.left_out += (before - out.patterns.len()) as u64;
        }
        out
    }

    fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        let seen = &self.paths.tree.nodes[node as usize];
        seen.named.values().chain(&seen.any).chain(&seen.rest).copied()
    }

    /// Counts what is below a node, and returns that together with its own requests.
    fn count(&mut self, node: u32) -> ClassCounts {
        let mut counts = ClassCounts::new();
        let children: Vec<u32> = self.children(node).collect();
        for child in children {
            for (class, count) in self.count(child) {
                *counts.entry(class).or_default() += count;
            }
        }
        let mut all = counts.clone();
        self.below.insert(node, counts);
        for (group, class) in self.groups.get(&node).into_iter().flatten() {
            *all.entry(*class).or_default() += group.sums.count;
        }
        all
    }

    fn node(&mut self, placed: PlacedNode) {
        let PlacedNode { node, segments, inherited, beside_any } = placed;
        let seen = &self.paths.tree.nodes[node as usize];
        let wild = segments.iter().filter(|segment| **segment == PathSegment::Any).count();
        let (any, has_below) =
            (seen.any, !seen.named.is_empty() || seen.any.is_some() || seen.rest.is_some());
        let named: Vec<(Vec<u8>, u32)> =
            seen.named.iter().map(|(name, child)| (name.to_vec(), *child)).collect();
        self.exact(node, &segments, inherited);
        if !has_below {
            return;
        }
        let most = self.below.get(&node).and_then(most);
        let below = most.map(|(class, _)| class).or(inherited);
        if let Some((class, count)) = most
            && (Some(class) != inherited || beside_any)
        {
            let path = PathPattern { segments: segments.clone(), below: true };
            self.push(ClassPattern::of_path(class as u16 + 1, path), count);
        }
        let child = |segment: PathSegment| segments.iter().cloned().chain([segment]).collect::<Vec<_>>();
        let forced = beside_any || any.is_some();
        for (name, node) in named {
            let segments = child(PathSegment::Named(name));
            self.node(PlacedNode {
                node,
                segments,
                inherited: below.filter(|_| !forced),
                beside_any: forced,
            });
        }
        if let Some(node) = any.filter(|_| wild < WILD_SEGMENTS_MOST) {
            let inherited = below.filter(|_| !beside_any);
            self.node(PlacedNode { node, segments: child(PathSegment::Any), inherited, beside_any });
        }
    }

    /// Patterns of exactly the path of a node.
    fn exact(&mut self, node: u32, segments: &[PathSegment], inherited: Option<usize>) {
        let Some(groups) = self.groups.get(&node) else { return };
        let mut counts = ClassCounts::new();
        for (group, class) in groups {
            *counts.entry(*class).or_default() += group.sums.count;
        }
        let plain = groups.iter().find(|(group, _)| group.conditions.is_empty()).map(|(_, class)| *class);
        let Some(base) = plain.or(most(&counts).map(|(class, _)| class)) else { return };
        let path = PathPattern { segments: segments.to_vec(), below: false };
        let mut made = Vec::new();
        if Some(base) != inherited {
            let count =
                groups.iter().filter(|(_, class)| *class == base).map(|(group, _)| group.sums.count).sum();
            made.push((ClassPattern::of_path(base as u16 + 1, path.clone()), count));
        }
        // Wider conditions first, so that narrower ones of the same class are left out.
        let mut groups: Vec<&(&RequestGroup, usize)> =
            groups.iter().filter(|(group, _)| !group.conditions.is_empty()).collect();
        groups.sort_by_key(|(group, _)| {
            (group.conditions.len(), group.conditions.iter().filter(|(_, value)| value.is_some()).count())
        });
        let mut known: BTreeMap<Vec<GroupCondition>, usize> = BTreeMap::new();
        let mut shapes: BTreeSet<Vec<(u32, bool)>> = BTreeSet::new();
        for (group, class) in groups {
            let wider = wider(&group.conditions, &known).unwrap_or(base);
            known.insert(group.conditions.clone(), *class);
            if wider == *class {
                continue;
            }
            shapes.insert(group.conditions.iter().map(|(name, value)| (*name, value.is_some())).collect());
            // Half, because the method makes two shapes of one.
            if shapes.len() > SHAPES_MOST / 2 {
                self.out.left_out += 1;
                continue;
            }
            let mut pattern = ClassPattern::of_path(*class as u16 + 1, path.clone());
            for (name, value) in &group.conditions {
                let seen = &self.combinations.names[*name as usize];
                let text = value.and_then(|value| seen.texts.get(value as usize)).map(|text| text.to_vec());
                if *name == METHOD {
                    pattern.method = text;
                } else {
                    pattern.parameters.insert(seen.name.clone(), text);
                }
            }
            made.push((pattern, group.sums.count));
        }
        for (pattern, count) in made {
            self.push(pattern, count);
        }
    }

    fn push(&mut self, pattern: ClassPattern, count: f64) {
        self.out.patterns.push((pattern, count));
    }
}

/// The class with most requests, and how many these are; of equals the first.
fn most(counts: &ClassCounts) -> Option<(usize, f64)> {
    let by_count = |a: &(&usize, &f64), b: &(&usize, &f64)| a.1.total_cmp(b.1).then(b.0.cmp(a.0));
    counts.iter().max_by(by_count).map(|(class, count)| (*class, *count))
}

/// The class that a wider pattern at the same path gives: the same conditions with any value for the last, or without the last.
fn wider(conditions: &[GroupCondition], known: &BTreeMap<Vec<GroupCondition>, usize>) -> Option<usize> {
    let mut conditions = conditions.to_vec();
    while let Some((name, value)) = conditions.pop() {
        if value.is_some() {
            conditions.push((name, None));
            if let Some(class) = known.get(&conditions) {
                return Some(*class);
            }
            conditions.pop();
        }
        if let Some(class) = known.get(&conditions) {
            return Some(*class);
        }
    }
    None
}
