//! Takes requests in.

use std::collections::BTreeMap;

use crate::learn::bounds;
use crate::learn::combinations::Combinations;
use crate::learn::log_traits::{TimeResolution, coarsest};
use crate::learn::path_tree::PathTree;
use crate::learn::samples::{NO_GROUP, NO_NODE, Sample};
use crate::uri::path_and_query_of;

/// A request as a log tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedRequest<'a> {
    /// When it arrived, in nanoseconds since any moment.
    pub begins_ns: u64,
    /// How long it took, waiting included, in nanoseconds.
    pub takes_ns: u64,
    /// The method, as `GET`.
    pub method: &'a [u8],
    /// Path and query, or URL.
    pub path_and_query: &'a [u8],
    /// Size of the response in bytes.
    pub size_bytes: u64,
    /// The back-end that answered, where the log names it.
    pub backend: Option<&'a [u8]>,
    /// Whether the duration includes the transmission to the client, so that that of a large response says little of the server.
    pub with_client: bool,
    /// Whether it is an example of its class. Others, such as errors, only keep the back-end from its other requests.
    pub counts: bool,
}

/// How classes are learned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearnOptions {
    /// The most classes.
    pub most_classes: usize,
    /// Classes whose mean demands differ by less than this share of the lesser one are merged.
    pub similar: f64,
    /// How many workers or cores each back-end has; `None` if that is to be inferred.
    pub workers: Option<u32>,
}

impl Default for LearnOptions {
    fn default() -> Self {
        Self { most_classes: 100, similar: 0.2, workers: None }
    }
}

/// Why nothing was learned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LearnError {
    /// No request has a path and took any time.
    #[error("no request took any time; log how long each request takes")]
    NoTimes,
    /// A bound of the table does not hold.
    #[error("the classes make no table: {0}")]
    Table(#[from] crate::ClassTableError),
}

/// Learns classes from requests, which may come in any order.
#[derive(Debug)]
pub struct ClassLearner {
    pub(crate) options: LearnOptions,
    pub(crate) paths: PathTree,
    pub(crate) combinations: Combinations,
    pub(crate) samples: Vec<Sample>,
    backends: BTreeMap<Box<[u8]>, u16>,
    pub(crate) unnamed_backends: u64,
    pub(crate) pathless: u64,
    /// Requests that are examples of their class.
    pub(crate) counting: u64,
    pub(crate) too_many: u64,
    pub(crate) resolution: TimeResolution,
}

impl ClassLearner {
    /// A learner that has seen nothing.
    #[must_use]
    pub fn new(options: &LearnOptions) -> Self {
        Self {
            options: *options,
            paths: PathTree::default(),
            combinations: Combinations::default(),
            samples: Vec::new(),
            backends: BTreeMap::new(),
            unnamed_backends: 0,
            pathless: 0,
            counting: 0,
            too_many: 0,
            resolution: TimeResolution::default(),
        }
    }

    /// Takes a request in. One without a path is counted and left out.
    pub fn observe(&mut self, request: &ObservedRequest<'_>) {
        let Some((path, query)) = path_and_query_of(request.path_and_query) else {
            self.pathless += 1;
            return;
        };
        if self.samples.len() >= bounds::REQUESTS_MOST {
            self.too_many += 1;
            return;
        }
        self.counting += u64::from(request.counts);
        self.resolution.begins_ns = coarsest(self.resolution.begins_ns, request.begins_ns);
        self.resolution.takes_ns = coarsest(self.resolution.takes_ns, request.takes_ns);
        let backend = self.backend(request.backend.unwrap_or_default());
        self.samples.push(Sample {
            begins_ns: request.begins_ns,
            takes_ns: request.takes_ns,
            size_bytes: request.size_bytes,
            node: if request.counts { self.paths.node_of(path) } else { NO_NODE },
            combination: if request.counts { self.combinations.number_of(request.method, query) } else { 0 },
            group: NO_GROUP,
            with_client: request.with_client,
            backend,
        });
    }

    /// How many requests were taken in as examples of their class.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.counting
    }

    fn backend(&mut self, name: &[u8]) -> u16 {
        if let Some(&number) = self.backends.get(name) {
            return number;
        }
        if self.backends.len() >= bounds::BACKENDS_MOST {
            self.unnamed_backends += 1;
            return bounds::BACKENDS_MOST as u16;
        }
        let number = self.backends.len() as u16;
        self.backends.insert(name.into(), number);
        number
    }

    /// Names of back-ends with what is known of each; those beyond the bounds have none.
    pub(crate) fn by_backend_name(&self, of: &[f64]) -> Vec<(String, f64)> {
        let names = self.backends.iter().map(|(name, number)| (name.escape_ascii().to_string(), *number));
        names.filter_map(|(name, number)| Some((name, *of.get(usize::from(number))?))).collect()
    }

    /// Requests whose back-end the log does not name.
    pub(crate) fn nameless(&self) -> u64 {
        let nameless = self.backends.get(&b""[..]).copied();
        self.samples.iter().filter(|sample| Some(sample.backend) == nameless).count() as u64
    }

    /// How many back-ends there are.
    pub(crate) fn backends(&self) -> usize {
        self.backends.len() + usize::from(self.unnamed_backends > 0)
    }
}
