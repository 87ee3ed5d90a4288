//! Divides the requests of a path by method and parameters, as far as these explain the demand.

use std::collections::BTreeMap;

use crate::learn::combinations::{Combinations, METHOD, OTHER_VALUE, PairNumbers};
use crate::learn::statistic::{DemandSums, explained};

/// How many conditions a group may have.
const CONDITIONS_MOST: usize = 4;

/// A value with fewer requests is one of the others.
const REQUESTS_LEAST: f64 = 10.0;

/// A parameter explains something from this share of the variance on.
const SHARE_LEAST: f64 = 0.02;

/// A name and the number of its value; `None` for any value.
pub(crate) type GroupCondition = (u32, Option<u32>);

/// Requests of one path that are not divided further.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestGroup {
    pub(crate) node: u32,
    /// In the order in which they were found.
    pub(crate) conditions: Vec<GroupCondition>,
    pub(crate) sums: DemandSums,
    /// The combinations that belong to it.
    pub(crate) combinations: Vec<u32>,
}

/// The groups of all paths.
pub(crate) struct RequestGroups {
    pub(crate) groups: Vec<RequestGroup>,
    /// For each name, whether it divides some path.
    pub(crate) divides: Vec<bool>,
}

type Parts = BTreeMap<Part, Vec<(u32, DemandSums)>>;

/// Where a request belongs in a division by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Value(u32),
    OtherValue,
    Absent,
}

impl RequestGroups {
    /// Of the demands of each path and combination.
    pub(crate) fn new(sums: &BTreeMap<(u32, u32), DemandSums>, combinations: &Combinations) -> Self {
        let mut by_node: BTreeMap<u32, Vec<(u32, DemandSums)>> = BTreeMap::new();
        for ((node, combination), sums) in sums {
            by_node.entry(*node).or_default().push((*combination, *sums));
        }
        let mut out = Self { groups: Vec::new(), divides: vec![false; combinations.names.len()] };
        for (node, members) in by_node {
            out.divide(node, members, &mut Vec::new(), combinations);
        }
        out
    }

    fn divide(
        &mut self,
        node: u32,
        members: Vec<(u32, DemandSums)>,
        conditions: &mut Vec<GroupCondition>,
        all: &Combinations,
    ) {
        let best =
            if conditions.len() < CONDITIONS_MOST { best_name(&members, conditions, all) } else { None };
        let Some(name) = best else {
            let mut sums = DemandSums::default();
            members.iter().for_each(|(_, member)| sums.merge(*member));
            let combinations = members.into_iter().map(|(combination, _)| combination).collect();
            self.groups.push(RequestGroup { node, conditions: conditions.clone(), sums, combinations });
            return;
        };
        self.divides[name as usize] = true;
        for (part, members) in parts(name, &members, all) {
            let condition = match part {
                Part::Value(value) => Some((name, Some(value))),
                // Other methods have no condition: any method that is not named belongs to them.
                Part::OtherValue => (name != METHOD).then_some((name, None)),
                Part::Absent => None,
            };
            conditions.extend(condition);
            // The same name divides once, also where nothing is said of it.
            self.divide(node, members, conditions, all);
            if condition.is_some() {
                conditions.pop();
            }
        }
    }
}

/// The name that explains most, if one explains anything.
fn best_name(
    members: &[(u32, DemandSums)],
    conditions: &[GroupCondition],
    all: &Combinations,
) -> Option<u32> {
    let count: f64 = members.iter().map(|(_, sums)| sums.count).sum();
    if members.len() < 2 || count < 2.0 * REQUESTS_LEAST {
        return None;
    }
    let pairs = members.iter().flat_map(|(combination, _)| all.all[*combination as usize].iter());
    let mut names: Vec<u32> = pairs.map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let mut best: Option<(f64, u32)> = None;
    for name in names.into_iter().filter(|name| conditions.iter().all(|(known, _)| known != name)) {
        let divided = parts(name, members, all);
        let sums = divided.into_values().map(|part| {
            let mut sums = DemandSums::default();
            part.iter().for_each(|(_, member)| sums.merge(*member));
            sums
        });
        let found = explained(sums);
        if found.significant
            && found.share >= SHARE_LEAST
            && best.is_none_or(|(share, _)| found.share > share)
        {
            best = Some((found.share, name));
        }
    }
    best.map(|(_, name)| name)
}

fn parts(name: u32, members: &[(u32, DemandSums)], all: &Combinations) -> Parts {
    let part = |combination: u32| {
        let pairs: &[PairNumbers] = &all.all[combination as usize];
        match pairs.iter().find(|(known, _)| *known == name) {
            None => Part::Absent,
            Some((_, OTHER_VALUE)) => Part::OtherValue,
            Some((_, value)) => Part::Value(*value),
        }
    };
    let mut out = Parts::new();
    for (combination, sums) in members {
        out.entry(part(*combination)).or_default().push((*combination, *sums));
    }
    let rare = |part: &Part, members: &[(u32, DemandSums)]| {
        matches!(part, Part::Value(_))
            && members.iter().map(|(_, sums)| sums.count).sum::<f64>() < REQUESTS_LEAST
    };
    let few: Vec<Part> =
        out.iter().filter(|(part, members)| rare(part, members)).map(|(part, _)| *part).collect();
    for part in few {
        let moved = out.remove(&part).unwrap_or_default();
        out.entry(Part::OtherValue).or_default().extend(moved);
    }
    out
}
