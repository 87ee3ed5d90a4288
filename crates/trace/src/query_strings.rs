//! Targets that differ only by their query string.

use serde::Serialize;

use crate::names::Interner;
use crate::targets::TargetTable;

/// From which share of the requests on targets with a query that are asked for once decide what caches do.
const MATTERS: f64 = 0.1;

/// How many such targets a path must have on average to be thought of as one document.
const PER_PATH: u64 = 4;

/// How many targets are distinct only because of their query string, and are asked for once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct QueryStrings {
    /// Targets with a query string that are asked for once, on paths that have several of them.
    pub targets_once: u64,
    /// Distinct paths of these.
    pub paths: u64,
    /// Requests of the trace.
    pub requests: u64,
}

impl QueryStrings {
    /// Counts them.
    pub fn of(targets: &TargetTable) -> Self {
        let mut paths = Interner::default();
        let mut once: Vec<u64> = Vec::new();
        let mut requests = 0;
        // Numbers fit 32 bits by construction of the table.
        for id in 0..targets.len() as u32 {
            let name = targets.name(id);
            requests += targets.requests(id);
            let Some(query) = memchr::memchr(b'?', name) else { continue };
            if targets.requests(id) == 1
                && let Some(path) = paths.intern(&name[..query])
            {
                once.resize(paths.len(), 0);
                once[path as usize] += 1;
            }
        }
        let several = once.iter().filter(|&&count| count > 1);
        let (count, once) = several.fold((0, 0), |(paths, sum), count| (paths + 1, sum + count));
        Self { targets_once: once, paths: count, requests }
    }

    /// Whether there are so many that a simulation says more of query strings than of documents.
    pub fn matter(&self) -> bool {
        self.targets_once >= PER_PATH * self.paths.max(1)
            && self.targets_once as f64 >= MATTERS * self.requests as f64
    }

    /// Their share of all requests, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.targets_once as f64 / self.requests.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str]) -> TargetTable {
        let mut table = TargetTable::new();
        for name in names {
            let id = table.intern(name.as_bytes()).unwrap();
            table.count(id, 1, true);
        }
        table
    }

    #[test]
    fn unique_query_strings_matter() {
        let names: Vec<String> = (0..50).map(|i| format!("/a?session={i}")).collect();
        let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
        all.extend(["/b", "/b", "/c?once"]);
        let found = QueryStrings::of(&table(&all));
        assert_eq!(found, QueryStrings { targets_once: 50, paths: 1, requests: 53 });
        assert!(found.matter());
    }

    #[test]
    fn query_strings_that_come_again_or_name_documents_do_not() {
        let again = QueryStrings::of(&table(&["/a?1", "/a?1", "/a?2", "/a?2"]));
        assert_eq!(again.targets_once, 0);
        assert!(!again.matter());
        // Few per path.
        assert!(!QueryStrings::of(&table(&["/a?1", "/a?2", "/b?1", "/b?2"])).matter());
        // Few of all.
        let mut names = vec!["/index.html"; 100];
        names.extend(["/a?1", "/a?2", "/a?3", "/a?4"]);
        assert!(!QueryStrings::of(&table(&names)).matter());
        assert!(!QueryStrings::of(&TargetTable::new()).matter());
    }
}
