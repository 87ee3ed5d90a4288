//! The string tree over the segments of paths.

use crate::classifier::{NodeClassifier, RequestParts};
use crate::uri::{PathSegments, UriDecoded};

/// A node of the tree: what patterns say of the paths that lead to it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TreeNode {
    /// Nodes of named segments, in order of the decoded names.
    pub(crate) named: Vec<(Box<[u8]>, TreeNode)>,
    /// The node of any segment.
    pub(crate) any: Option<Box<TreeNode>>,
    /// Patterns of exactly this path.
    pub(crate) exact: Option<Box<NodeClassifier>>,
    /// Patterns of all that is below.
    pub(crate) below: Option<Box<NodeClassifier>>,
}

/// The best match so far: how deep its path is, and the class.
pub(crate) type DeepestMatch = Option<(usize, u16)>;

impl TreeNode {
    /// Looks below this node, which is `depth` segments deep, for a deeper match than `best`.
    pub(crate) fn search(
        &self,
        depth: usize,
        path: &PathSegments<'_>,
        request: &RequestParts<'_>,
        best: &mut DeepestMatch,
    ) {
        if let Some(segment) = path.get(depth) {
            if let Some(child) = self.child(segment, path.encoded) {
                child.search(depth + 1, path, request, best);
            }
            if let Some(child) = &self.any
                && best.is_none_or(|(deepest, _)| deepest < path.count)
            {
                child.search(depth + 1, path, request, best);
            }
        }
        if best.is_some_and(|(deepest, _)| deepest >= depth) {
            return;
        }
        let classifier = if depth == path.count { &self.exact } else { &self.below };
        if let Some(class) = classifier.as_ref().and_then(|found| found.class_of(request)) {
            *best = Some((depth, class));
        }
    }

    #[inline]
    fn child(&self, segment: &[u8], encoded: bool) -> Option<&TreeNode> {
        let at = if encoded {
            self.named.binary_search_by(|(name, _)| UriDecoded::segment(segment).compare(name).reverse())
        } else {
            self.named.binary_search_by(|(name, _)| (**name).cmp(segment))
        };
        at.ok().map(|at| &self.named[at].1)
    }
}
