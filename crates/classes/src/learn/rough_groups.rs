//! Groups of requests that are alike as far as paths and parameters tell, before anything is known of their demand.

use std::collections::BTreeMap;

use crate::learn::path_tree::PathTree;
use crate::learn::samples::{NO_GROUP, Sample};

/// A group of fewer requests says too little of its mean.
const REQUESTS_LEAST: u32 = 10;

/// Stands for all combinations of too few requests.
const RARE: u32 = u32::MAX;

/// Sets the group of each sample, and returns how many groups there are. A URI of few requests is in one group with the others of its path,
/// and a path of few requests with those beside it.
pub(crate) fn assign(samples: &mut [Sample], paths: &PathTree) -> usize {
    let mut below = vec![0u32; paths.nodes.len()];
    for sample in samples.iter().filter(|sample| sample.counts()) {
        below[sample.node as usize] += 1;
    }
    let mut parents = vec![0u32; paths.nodes.len()];
    // Children have higher numbers than their parents.
    for node in (0..paths.nodes.len()).rev() {
        let seen = &paths.nodes[node];
        for child in seen.named.values().chain(&seen.any).chain(&seen.rest) {
            parents[*child as usize] = node as u32;
            below[node] += below[*child as usize];
        }
    }
    let mut stands_for: Vec<u32> = (0..).take(paths.nodes.len()).collect();
    for node in 1..paths.nodes.len() {
        if below[node] < REQUESTS_LEAST {
            stands_for[node] = stands_for[parents[node] as usize];
        }
    }
    let mut uris: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let place = |sample: &Sample| (stands_for[sample.node as usize], sample.combination);
    for sample in samples.iter().filter(|sample| sample.counts()) {
        *uris.entry(place(sample)).or_default() += 1;
    }
    let key =
        |(node, combination), count: u32| (node, if count < REQUESTS_LEAST { RARE } else { combination });
    let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for (uri, count) in &uris {
        *counts.entry(key(*uri, *count)).or_default() += count;
    }
    counts.retain(|_, count| *count >= REQUESTS_LEAST);
    let numbers: BTreeMap<(u32, u32), u32> = counts.keys().copied().zip(0..).collect();
    for sample in samples.iter_mut() {
        let found =
            || numbers.get(&key(place(sample), uris.get(&place(sample)).copied().unwrap_or(0))).copied();
        sample.group = if sample.counts() { found().unwrap_or(NO_GROUP) } else { NO_GROUP };
    }
    numbers.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_uris_join_those_beside_them() {
        let mut paths = PathTree::default();
        let (often, list) = (paths.node_of(b"/often"), paths.node_of(b"/list"));
        let ids: Vec<u32> = (0..12).map(|n| paths.node_of(format!("/item/{n}").as_bytes())).collect();
        let sample = |node, combination| Sample {
            begins_ns: 0,
            takes_ns: 1,
            size_bytes: 0,
            node,
            combination,
            group: 0,
            backend: 0,
            with_client: false,
        };
        let mut samples: Vec<Sample> = (0..10).map(|_| sample(often, 1)).collect();
        samples.extend((0..10).map(|n| sample(list, n)));
        samples.extend(ids.iter().map(|node| sample(*node, 1)));
        samples.push(sample(crate::learn::samples::NO_NODE, 0));
        assert_eq!(assign(&mut samples, &paths), 3);
        let groups: Vec<u32> = samples.iter().map(|sample| sample.group).collect();
        assert!(groups[..10].iter().all(|group| *group == groups[0]));
        assert!(groups[10..20].iter().all(|group| *group == groups[10]));
        assert!(groups[20..32].iter().all(|group| *group == groups[20]));
        assert_eq!(groups[32], NO_GROUP);
        assert!(groups[0] != groups[10] && groups[10] != groups[20] && groups[0] != groups[20]);
    }
}
