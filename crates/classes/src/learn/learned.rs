//! What was learned.

use std::collections::BTreeMap;

use crate::content_class::ContentClass;
use crate::learn::bounds;
use crate::learn::capture::{ClassLearner, LearnError};
use crate::learn::collapse::CollapsedPaths;
use crate::learn::combinations::METHOD;
use crate::learn::demand::{EstimatedDemands, estimate};
use crate::learn::demand_method::DemandMethod;
use crate::learn::groups::RequestGroups;
use crate::learn::log_traits::LogTraits;
use crate::learn::merge::{MergedGroups, merge};
use crate::learn::patterns::{MadePatterns, PatternMaker};
use crate::learn::rough_groups;
use crate::learn::samples::Sample;
use crate::learn::statistic::{DemandSums, explained};
use crate::table::ClassTable;

/// A line through demands by size of the response: `cpu_s + cpu_s_per_byte · size`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeFit {
    /// Demand of an empty response in seconds.
    pub cpu_s: f64,
    /// Further demand of each byte in seconds.
    pub cpu_s_per_byte: f64,
    /// Share of the variance that the line explains.
    pub explained: f64,
}

/// A class beside its entry in the table.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedClass {
    /// Its patterns, those of most requests first.
    pub patterns: Vec<String>,
    /// Its part of the demand of all requests, from 0 to 1.
    pub cost_share: f64,
}

/// How it was learned.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnReport {
    /// Requests that count.
    pub requests: u64,
    /// How demands were estimated.
    pub method: DemandMethod,
    /// In the order of the classes of the table.
    pub classes: Vec<LearnedClass>,
    /// Share of the variance of the demand that the classes explain; a single class explains 0.
    pub explained_by_classes: f64,
    /// The same with a class for every URI, corrected for the number of URIs.
    pub explained_by_uris: f64,
    /// Different URIs, as far as they were told apart.
    pub uris: u64,
    /// Groups by path, method and parameters, before similar ones were merged.
    pub groups: u64,
    /// Demand by size, of all requests.
    pub size_fit: SizeFit,
    /// Back-ends by name, and how many times as long as on average requests take there; empty where they are alike. Costs are those of
    /// an average back-end.
    pub slowness: Vec<(String, f64)>,
    /// What was merged, ignored or dropped, as sentences.
    pub dropped: Vec<String>,
}

/// A table that was learned, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedClasses {
    /// The table. Classes are in order of their mean demand, which is all in [`ContentClass::cpu_s`]: a log does not tell CPU from disk.
    pub table: ClassTable,
    /// How it was learned.
    pub report: LearnReport,
}

impl ClassLearner {
    /// The classes.
    ///
    /// # Errors
    /// Where no request took any time.
    pub fn learn(mut self) -> Result<LearnedClasses, LearnError> {
        let mut samples = std::mem::take(&mut self.samples);
        if samples.iter().all(|sample| sample.takes_ns == 0 || !sample.counts()) {
            return Err(LearnError::NoTimes);
        }
        let groups = rough_groups::assign(&mut samples, &self.paths);
        let traits = LogTraits {
            backends: self.backends(),
            groups,
            resolution: self.resolution,
            workers: self.options.workers,
        };
        let estimated = estimate(&mut samples, &traits);
        let mut own = vec![DemandSums::default(); self.paths.nodes.len()];
        let mut by_uri: BTreeMap<(u32, u32), DemandSums> = BTreeMap::new();
        for (sample, demand_s) in samples.iter().zip(&estimated.demands_s).filter(|(s, _)| s.counts()) {
            own[sample.node as usize].add(f64::from(*demand_s));
            by_uri.entry(sample.uri()).or_default().add(f64::from(*demand_s));
        }
        let mut dropped = said_of_bounds(&self, &estimated);
        let paths = CollapsedPaths::new(std::mem::take(&mut self.paths), own);
        let mut by_node: BTreeMap<(u32, u32), DemandSums> = BTreeMap::new();
        for ((node, combination), sums) in &by_uri {
            by_node.entry((paths.node(*node), *combination)).or_default().merge(*sums);
        }
        let groups = RequestGroups::new(&by_node, &self.combinations);
        let sums: Vec<DemandSums> = groups.groups.iter().map(|group| group.sums).collect();
        let least_s = (self.resolution.takes_ns as f64 / 1e9).max(1e-6);
        let merged = merge(&sums, self.options.similar, self.options.most_classes, least_s);
        let made = PatternMaker::new(&paths, &self.combinations, &groups.groups, &merged.class_of).make();
        said_of_patterns(&self, &paths, &groups, &made, &mut dropped);

        let mut class_of: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for (group, class) in groups.groups.iter().zip(&merged.class_of) {
            class_of
                .extend(group.combinations.iter().map(|combination| ((group.node, *combination), *class)));
        }
        let sizes = sizes(&samples, merged.classes.len(), |sample| {
            if !sample.counts() {
                return None;
            }
            class_of.get(&(paths.node(sample.node), sample.combination)).copied()
        });
        let (classes, learned) = described(&merged, &made, sizes);
        let report = LearnReport {
            requests: self.counting,
            method: estimated.method,
            classes: learned,
            explained_by_classes: share_explained(&merged.classes),
            explained_by_uris: explained(by_uri.values().copied()).share,
            uris: by_uri.len() as u64,
            groups: groups.groups.len() as u64,
            size_fit: SizeFit::of(&samples, &estimated.demands_s),
            slowness: self.by_backend_name(&estimated.slowness),
            dropped,
        };
        let patterns = made.patterns.into_iter().map(|(pattern, _)| pattern).collect();
        Ok(LearnedClasses { table: ClassTable::new(classes, Vec::new(), patterns)?, report })
    }
}

/// The share of the variance that classes explain.
fn share_explained(classes: &[DemandSums]) -> f64 {
    let mut all = DemandSums::default();
    classes.iter().for_each(|class| all.merge(*class));
    let within: f64 = classes.iter().map(DemandSums::within).sum();
    if all.within() > 0.0 { 1.0 - within / all.within() } else { 0.0 }
}

/// The classes for the table and for the report.
fn described(
    merged: &MergedGroups,
    made: &MadePatterns,
    sizes: Vec<f64>,
) -> (Vec<ContentClass>, Vec<LearnedClass>) {
    let mut by_class: Vec<Vec<(f64, String)>> = vec![Vec::new(); merged.classes.len()];
    for (pattern, count) in &made.patterns {
        by_class[usize::from(pattern.class) - 1].push((*count, pattern.text()));
    }
    let total_s: f64 = merged.classes.iter().map(|class| class.sum_s).sum();
    let (mut classes, mut learned) = (Vec::new(), Vec::new());
    for ((sums, size_bytes), mut patterns) in merged.classes.iter().zip(sizes).zip(by_class) {
        patterns.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        classes.push(ContentClass {
            name: name(&patterns, classes.len()),
            cpu_s: sums.mean_s().max(0.0),
            disk_s: 0.0,
            size_bytes,
            deviation_s: sums.deviation_s(),
            requests: sums.count as u64,
        });
        let cost_share = if total_s > 0.0 { sums.sum_s / total_s } else { 0.0 };
        learned.push(LearnedClass {
            patterns: patterns.into_iter().map(|(_, text)| text).collect(),
            cost_share,
        });
    }
    (classes, learned)
}

impl SizeFit {
    fn of(samples: &[Sample], demands_s: &[f32]) -> Self {
        let counted = || samples.iter().zip(demands_s).filter(|(sample, _)| sample.counts());
        let count = counted().count().max(1) as f64;
        let mean_size = counted().map(|(s, _)| s.size_bytes as f64).sum::<f64>() / count;
        let mean_s = counted().map(|(_, d)| f64::from(*d)).sum::<f64>() / count;
        let (mut sizes, mut both, mut demands) = (0.0, 0.0, 0.0);
        for (sample, demand_s) in counted() {
            let (size, demand_s) = (sample.size_bytes as f64 - mean_size, f64::from(*demand_s) - mean_s);
            sizes += size * size;
            both += size * demand_s;
            demands += demand_s * demand_s;
        }
        let cpu_s_per_byte = if sizes > 0.0 { both / sizes } else { 0.0 };
        let explained = if demands > 0.0 { cpu_s_per_byte * both / demands } else { 0.0 };
        Self { cpu_s: mean_s - cpu_s_per_byte * mean_size, cpu_s_per_byte, explained }
    }
}

/// The mean size of the responses of each class.
fn sizes(samples: &[Sample], classes: usize, class_of: impl Fn(&Sample) -> Option<usize>) -> Vec<f64> {
    let mut sums = vec![(0.0f64, 0.0f64); classes];
    for sample in samples {
        if let Some((sum, count)) = class_of(sample).and_then(|class| sums.get_mut(class)) {
            *sum += sample.size_bytes as f64;
            *count += 1.0;
        }
    }
    sums.into_iter().map(|(sum, count)| sum / count.max(1.0)).collect()
}

/// The pattern of most requests is the name; a class without patterns has its number.
fn name(patterns: &[(f64, String)], at: usize) -> String {
    const MOST: usize = 120;
    match patterns.first() {
        // Patterns are ASCII, and each belongs to one class; shortened ones may be equal.
        Some((_, text)) if text.len() <= MOST => text.clone(),
        Some((_, text)) => format!("{}… ({})", &text[..text.floor_char_boundary(MOST)], at + 1),
        None => format!("class {}", at + 1),
    }
}

fn said_of_bounds(learner: &ClassLearner, estimated: &EstimatedDemands) -> Vec<String> {
    let all = &learner.combinations;
    let values: u64 = all.names.iter().map(|name| name.without_room).sum();
    let crowded: Vec<String> = all
        .names
        .iter()
        .filter(|name| name.without_room > 0)
        .take(5)
        .map(|name| {
            format!(
                "`{}`",
                if name.name.is_empty() { "method".into() } else { name.name.escape_ascii().to_string() }
            )
        })
        .collect();
    let many = format!(
        "requests have values of {} beyond the first {}, which count as one value",
        crowded.join(", "),
        bounds::VALUES_MOST
    );
    let nameless = learner.nameless();
    let said = [
        (
            nameless,
            "requests name no back-end and count as of one: where several answered them, say so in the log, or costs are too high".to_owned(),
        ),
        (learner.pathless, "requests without a path were left out".to_owned()),
        (learner.too_many, format!("requests after the first {} were left out", bounds::REQUESTS_MOST)),
        (learner.paths.without_room, "requests have paths beyond the bounds; segments of these count as `*`".to_owned()),
        (values, many),
        (all.without_name, "requests have parameters beyond the bounds, which were ignored".to_owned()),
        (all.without_room, "requests have combinations of parameters beyond the bounds; their values were ignored".to_owned()),
        (learner.unnamed_backends, "requests are of back-ends beyond the bounds, which count as one".to_owned()),
        (
            estimated.slow_clients,
            "requests with responses over 64 KiB count as long as small responses of their URI, or as its fastest tenth: their \
             durations are mostly the client's"
                .to_owned(),
        ),
    ];
    said.into_iter().filter(|(count, _)| *count > 0).map(|(count, text)| format!("{count} {text}")).collect()
}

fn said_of_patterns(
    learner: &ClassLearner,
    paths: &CollapsedPaths,
    groups: &RequestGroups,
    made: &MadePatterns,
    dropped: &mut Vec<String>,
) {
    if paths.segments > 0 {
        dropped.push(format!(
            "{} different segments at {} place(s) in paths are `*` in patterns: they say little of the cost, or have few requests",
            paths.segments, paths.places
        ));
    }
    let ignored = learner.combinations.names.iter().zip(&groups.divides).skip(1 + METHOD as usize);
    let ignored: Vec<_> = ignored.filter(|(_, divides)| !**divides).map(|(name, _)| name).collect();
    if !ignored.is_empty() {
        const SHOWN: usize = 8;
        let names: Vec<String> =
            ignored.iter().take(SHOWN).map(|name| format!("`{}`", name.name.escape_ascii())).collect();
        let more = if ignored.len() > SHOWN {
            format!(" and {} more", ignored.len() - SHOWN)
        } else {
            String::new()
        };
        dropped.push(format!(
            "parameters {}{more} say nothing of the cost and are in no pattern",
            names.join(", ")
        ));
    }
    if made.left_out > 0 {
        dropped.push(format!(
            "{} patterns were left out for want of room; wider ones match their requests",
            made.left_out
        ));
    }
}
