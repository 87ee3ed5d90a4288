//! The class table.

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds::{CLASSES_MOST, PARAMETERS_MOST, PATTERNS_MOST, SEGMENTS_MOST, WILD_SEGMENTS_MOST};
use crate::builder::TreeBuilder;
use crate::classifier::RequestParts;
use crate::content_class::{ContentClass, MergedClass};
use crate::parameters::{KnownParameters, ParameterNames};
use crate::path_pattern::PathSegment;
use crate::pattern::ClassPattern;
use crate::tree::TreeNode;
use crate::uri::{PathSegments, path_and_query_of};

/// From requests to classes, and what classes cost.
///
/// Of the patterns that match a request, the one with the deepest path wins; among equals the one that names the application, then the
/// one with more parameters, with more values of parameters, with a method, and at last the earlier one. A named segment goes before
/// `*` at the leftmost place where two paths differ.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClassTable {
    classes: Vec<ContentClass>,
    merged: Vec<MergedClass>,
    patterns: Vec<ClassPattern>,
    names: ParameterNames,
    root: TreeNode,
}

/// Why classes and patterns make no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClassTableError {
    /// There are too many classes or patterns.
    #[error("there are more than {most} {what}; merge some")]
    TooMany {
        /// Of what: `classes` or `patterns`.
        what: &'static str,
        /// The most that are possible.
        most: usize,
    },
    /// A pattern is beyond a bound, or names a class that there is not.
    #[error("pattern {place}: {what}")]
    Pattern {
        /// The pattern's place among the patterns, from 0.
        place: usize,
        /// What is wrong, and what would be right.
        what: &'static str,
    },
    /// Two patterns match the same requests.
    #[error("patterns {first} and {second} match the same requests; remove one of them")]
    Duplicate {
        /// The place of the earlier pattern, from 0.
        first: usize,
        /// The place of the later one.
        second: usize,
    },
}

impl ClassTable {
    /// A table of classes, in order of their numbers from 1, and patterns. `merged` are further names of classes.
    ///
    /// # Errors
    /// The first error: a bound is exceeded, a class number is none, or two patterns are equal.
    pub fn new(
        classes: Vec<ContentClass>,
        merged: Vec<MergedClass>,
        patterns: Vec<ClassPattern>,
    ) -> Result<Self, ClassTableError> {
        for (what, count, most) in
            [("classes", classes.len(), CLASSES_MOST), ("patterns", patterns.len(), PATTERNS_MOST)]
        {
            if count > most {
                return Err(ClassTableError::TooMany { what, most });
            }
        }
        let names: BTreeSet<&Vec<u8>> =
            patterns.iter().flat_map(|pattern| pattern.parameters.keys()).collect();
        let names = ParameterNames::new(names.into_iter());
        let mut root = TreeBuilder::default();
        let mut seen = BTreeMap::new();
        for (place, pattern) in patterns.iter().enumerate() {
            check(pattern, classes.len()).map_err(|what| ClassTableError::Pattern { place, what })?;
            if let Some(first) = seen.insert(pattern.conditions(), place) {
                return Err(ClassTableError::Duplicate { first, second: place });
            }
            let added = root.add(pattern, place as u32, &names);
            added.map_err(|_| ClassTableError::Pattern { place, what: TOO_MANY_SHAPES })?;
        }
        drop(seen);
        Ok(Self { classes, merged, names, root: root.finish(), patterns })
    }

    /// The number of the class of a request, from 1; 0 if no pattern matches. The target is path and query, or a URL. Neither the
    /// order of parameters nor percent-encoding matters, and the work is bounded for any target.
    #[must_use]
    pub fn class_of(&self, method: &[u8], path_and_query: &[u8]) -> u16 {
        self.class_of_named(method, path_and_query, None)
    }

    /// As [`ClassTable::class_of`], of a GraphQL request whose operation is named elsewhere than in its URI: the name counts as the
    /// parameter `operationName` if the URI has none.
    #[must_use]
    pub fn class_of_named(&self, method: &[u8], path_and_query: &[u8], operation: Option<&[u8]>) -> u16 {
        let Some((path, query)) = path_and_query_of(path_and_query) else { return 0 };
        let path = PathSegments::of(path);
        let known = KnownParameters::of(&self.names, query, operation);
        let request = RequestParts { method, application: path.last, known: &known };
        let mut best = None;
        self.root.search(0, &path, &request, &mut best);
        best.map_or(0, |(_, class)| class)
    }

    /// The classes in order of their numbers: the first is class 1.
    #[must_use]
    pub fn classes(&self) -> &[ContentClass] {
        &self.classes
    }

    /// The class of a number, as [`ClassTable::class_of`] gives it; `None` for 0.
    #[must_use]
    pub fn class(&self, number: u16) -> Option<&ContentClass> {
        self.classes.get(usize::from(number).checked_sub(1)?)
    }

    /// Names of classes that were merged into others.
    #[must_use]
    pub fn merged(&self) -> &[MergedClass] {
        &self.merged
    }

    /// The patterns in the order in which they were given.
    #[must_use]
    pub fn patterns(&self) -> &[ClassPattern] {
        &self.patterns
    }

    /// Whether no request has a class.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }
}

pub(crate) const TOO_MANY_SHAPES: &str =
    "there are too many different sets of parameter names at this path; name fewer parameters";

fn check(pattern: &ClassPattern, classes: usize) -> Result<(), &'static str> {
    let wild = pattern.path.segments.iter().filter(|segment| **segment == PathSegment::Any).count();
    if pattern.class == 0 || usize::from(pattern.class) > classes {
        Err("there is no class of this number; the first is 1")
    } else if pattern.path.segments.len() > SEGMENTS_MOST || wild > WILD_SEGMENTS_MOST {
        Err("the path is too long; use at most 16 segments and 3 `*`")
    } else if pattern.parameters.len() > PARAMETERS_MOST {
        Err("there are too many parameters; use at most 8")
    } else if pattern.application.is_some() && !pattern.path.below {
        Err("an application goes with a path that ends with `/**`")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
