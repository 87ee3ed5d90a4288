//! Makes the tree from patterns.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::bounds::SHAPES_MOST;
use crate::classifier::{ConditionSet, NodeClassifier, ParameterShape, ShapeEntry};
use crate::parameters::ParameterNames;
use crate::path_pattern::PathSegment;
use crate::pattern::{ApplicationPattern, ClassPattern};
use crate::tree::TreeNode;

/// A node while patterns are added.
#[derive(Default)]
pub(crate) struct TreeBuilder {
    children: BTreeMap<PathSegment, TreeBuilder>,
    exact: Option<ClassifierBuilder>,
    below: Option<ClassifierBuilder>,
}

type ClassifierBuilder = BTreeMap<Option<ApplicationPattern>, SetBuilder>;

#[derive(Default)]
struct SetBuilder {
    plain: BTreeMap<Option<Vec<u8>>, u16>,
    shapes: BTreeMap<ShapeKey, Vec<ShapeEntry>>,
    /// How many shapes begin with each name.
    per_name: BTreeMap<u32, usize>,
}

/// Names whose values matter, names that have to be there, and the method.
type ShapeKey = (Vec<u32>, Vec<u32>, Option<Vec<u8>>);

/// There are too many sets of parameter names at the path of a pattern.
pub(crate) struct TooManyShapes;

impl TreeBuilder {
    /// Adds the pattern at a place of the table.
    pub(crate) fn add(
        &mut self,
        pattern: &ClassPattern,
        place: u32,
        names: &ParameterNames,
    ) -> Result<(), TooManyShapes> {
        let mut node = self;
        for segment in &pattern.path.segments {
            node = node.children.entry(segment.clone()).or_default();
        }
        let classifier = if pattern.path.below { &mut node.below } else { &mut node.exact };
        let set = classifier.get_or_insert_default().entry(pattern.application.clone()).or_default();
        set.add(pattern, place, names)
    }

    /// The finished tree.
    pub(crate) fn finish(self) -> TreeNode {
        let mut out = TreeNode::default();
        for (segment, child) in self.children {
            match segment {
                PathSegment::Named(name) => out.named.push((name.into(), child.finish())),
                PathSegment::Any => out.any = Some(Box::new(child.finish())),
            }
        }
        out.exact = self.exact.map(|found| Box::new(finish(found)));
        out.below = self.below.map(|found| Box::new(finish(found)));
        out
    }
}

fn finish(classifier: ClassifierBuilder) -> NodeClassifier {
    let mut out = NodeClassifier::default();
    for (application, set) in classifier {
        match application {
            None => out.any = set.finish(),
            Some(ApplicationPattern::Named(name)) => out.named.push((name.into(), set.finish())),
            Some(ApplicationPattern::Ending(name)) => out.endings.push((name.into(), set.finish())),
        }
    }
    out
}

impl SetBuilder {
    fn add(
        &mut self,
        pattern: &ClassPattern,
        place: u32,
        names: &ParameterNames,
    ) -> Result<(), TooManyShapes> {
        if pattern.parameters.is_empty() {
            self.plain.entry(pattern.method.clone()).or_insert(pattern.class);
            return Ok(());
        }
        let (mut exact, mut present, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in &pattern.parameters {
            let Some(number) = names.number(name) else { continue };
            match value {
                Some(value) => {
                    exact.push(number);
                    values.push(value.as_slice().into());
                }
                None => present.push(number),
            }
        }
        let first = exact.iter().chain(&present).min().copied().unwrap_or(0);
        let key = (exact, present, pattern.method.clone());
        if !self.shapes.contains_key(&key) {
            let count = self.per_name.entry(first).or_default();
            if *count >= SHAPES_MOST {
                return Err(TooManyShapes);
            }
            *count += 1;
        }
        self.shapes.entry(key).or_default().push(ShapeEntry { values, place, class: pattern.class });
        Ok(())
    }

    fn finish(self) -> ConditionSet {
        let mut by_name: BTreeMap<u32, Vec<ParameterShape>> = BTreeMap::new();
        for ((exact, present, method), mut entries) in self.shapes {
            let first = exact.iter().chain(&present).min().copied().unwrap_or(0);
            entries.sort();
            let rank = ((exact.len() + present.len()) as u8, exact.len() as u8, method.is_some());
            let method = method.map(Into::into);
            by_name.entry(first).or_default().push(ParameterShape { rank, method, exact, present, entries });
        }
        for shapes in by_name.values_mut() {
            shapes.sort_by_key(|shape| Reverse(shape.rank));
        }
        // `None` is the least: those with a method come first.
        let plain =
            self.plain.into_iter().rev().map(|(method, class)| (method.map(Into::into), class)).collect();
        ConditionSet { plain, by_name: by_name.into_iter().collect() }
    }
}
