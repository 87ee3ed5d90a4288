//! The parameter–cost classifier at a node of the tree: from application, method and parameters to a class.

use std::cmp::Ordering;

use crate::bounds::PARAMETERS_MOST;
use crate::parameters::KnownParameters;
use crate::uri::UriDecoded;

/// What a request has beside its path.
pub(crate) struct RequestParts<'a> {
    pub(crate) method: &'a [u8],
    pub(crate) application: &'a [u8],
    pub(crate) known: &'a KnownParameters<'a>,
}

/// The patterns at one node.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct NodeClassifier {
    /// By application, in order of its name.
    pub(crate) named: Vec<(Box<[u8]>, ConditionSet)>,
    /// By what the application ends with after a dot, in order.
    pub(crate) endings: Vec<(Box<[u8]>, ConditionSet)>,
    /// Of any application.
    pub(crate) any: ConditionSet,
}

/// Patterns that differ in parameters and method.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ConditionSet {
    /// Without parameters: method and class, those with a method first.
    pub(crate) plain: Vec<(Option<Box<[u8]>>, u16)>,
    /// By the least number among the names of their parameters, in order.
    pub(crate) by_name: Vec<(u32, Vec<ParameterShape>)>,
}

/// Patterns that name the same parameters, the same of them with any value, and the same method.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParameterShape {
    pub(crate) rank: ShapeRank,
    pub(crate) method: Option<Box<[u8]>>,
    /// Numbers of names whose value matters, in order.
    pub(crate) exact: Vec<u32>,
    /// Numbers of names that have to be there.
    pub(crate) present: Vec<u32>,
    /// In order of the values.
    pub(crate) entries: Vec<ShapeEntry>,
}

/// One pattern of a shape.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeEntry {
    /// The values of the names whose value matters.
    pub(crate) values: Vec<Box<[u8]>>,
    /// The pattern's place in the table.
    pub(crate) place: u32,
    pub(crate) class: u16,
}

/// Which of two matches is better: more parameters, more values, a method.
pub(crate) type ShapeRank = (u8, u8, bool);

impl NodeClassifier {
    /// The class of a request, if a pattern matches.
    #[inline]
    pub(crate) fn class_of(&self, request: &RequestParts<'_>) -> Option<u16> {
        let named = || find(&self.named, request.application)?.class_of(request);
        let ending = || {
            let dot = memchr::memrchr(b'.', request.application)?;
            find(&self.endings, &request.application[dot + 1..])?.class_of(request)
        };
        let by_application = if self.named.is_empty() { None } else { named() };
        let by_ending = || if self.endings.is_empty() { None } else { ending() };
        by_application.or_else(by_ending).or_else(|| self.any.class_of(request))
    }
}

fn find<'a>(list: &'a [(Box<[u8]>, ConditionSet)], encoded: &[u8]) -> Option<&'a ConditionSet> {
    let order = |(name, _): &(Box<[u8]>, ConditionSet)| UriDecoded::segment(encoded).compare(name).reverse();
    list.binary_search_by(order).ok().map(|at| &list[at].1)
}

impl ConditionSet {
    #[inline]
    fn class_of(&self, request: &RequestParts<'_>) -> Option<u16> {
        let allows = |method: &Option<Box<[u8]>>| method.as_deref().is_none_or(|m| m == request.method);
        let mut best: Option<(ShapeRank, u32, u16)> = None;
        if !self.by_name.is_empty() {
            for number in request.known.numbers() {
                let Ok(at) = self.by_name.binary_search_by_key(&number, |(first, _)| *first) else {
                    continue;
                };
                for shape in &self.by_name[at].1 {
                    // Shapes are in order of their rank.
                    if best.is_some_and(|(rank, ..)| rank > shape.rank) {
                        break;
                    }
                    let Some((class, place)) = shape.find(request.known).filter(|_| allows(&shape.method))
                    else {
                        continue;
                    };
                    if best.is_none_or(|(rank, other, _)| shape.rank > rank || place < other) {
                        best = Some((shape.rank, place, class));
                    }
                }
            }
        }
        let plain = || self.plain.iter().find(|(method, _)| allows(method)).map(|(_, class)| *class);
        best.map(|(.., class)| class).or_else(plain)
    }
}

impl ParameterShape {
    /// The class and the place of the pattern whose values the request has.
    #[inline]
    fn find(&self, known: &KnownParameters<'_>) -> Option<(u16, u32)> {
        if !self.present.iter().all(|number| known.get(*number).is_some()) {
            return None;
        }
        let mut values = [None; PARAMETERS_MOST];
        for (place, number) in values.iter_mut().zip(&self.exact) {
            *place = Some(known.get(*number)?);
        }
        let order = |entry: &ShapeEntry| {
            let each = entry.values.iter().zip(values.iter().flatten());
            each.map(|(known, value)| value.compare(known).reverse())
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        };
        let at = self.entries.binary_search_by(order).ok()?;
        self.entries.get(at).map(|entry| (entry.class, entry.place))
    }
}
