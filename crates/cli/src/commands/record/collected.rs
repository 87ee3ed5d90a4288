//! Requests that were seen, until they are written.

use std::collections::BTreeMap;
use std::net::IpAddr;

use plimsoll_sniffer::FileTable;
use plimsoll_trace::{Record, TargetTable, Trace, TraceError, trace_target};

/// The most memory for names of targets.
const MOST_NAME_BYTES: usize = 512 << 20;
/// A size that is not known, until the end, as the answer did not pass.
const UNKNOWN: u64 = u64::MAX;
/// The same, as the answer may have passed, but its head was not read.
const UNREAD: u64 = u64::MAX - 1;

/// A request as it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedRequest<'a> {
    /// When, in nanoseconds since 1970.
    pub(super) at_ns: u64,
    pub(super) client: IpAddr,
    pub(super) method: &'a [u8],
    pub(super) target: &'a [u8],
    pub(super) http11: bool,
    /// Of the answer, if it was seen.
    pub(super) status: Option<u16>,
    pub(super) size_bytes: Option<u64>,
    /// Whether its answer may have passed without being read.
    pub(super) unread: bool,
    pub(super) first_byte_ns: Option<u64>,
}

/// What was collected, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordSummary {
    pub(super) counted: u64,
    pub(super) targets: u64,
    pub(super) clients: u64,
    pub(super) left_out: u64,
    /// Sizes that nothing tells.
    pub(super) unknown_sizes: u64,
    /// Requests that count whose answers may have passed without being read.
    pub(super) unread: u64,
    /// Those of them whose sizes nothing tells.
    pub(super) unread_sizes: u64,
    pub(super) is_full: bool,
}

/// See the module's documentation.
pub(super) struct Collected {
    most: u64,
    include_all: bool,
    strip_query: bool,
    files: FileTable,
    targets: TargetTable,
    name_bytes: usize,
    clients: BTreeMap<IpAddr, u32>,
    records: Vec<Record>,
    /// Sizes that answers have told, by target.
    sizes: Vec<Option<u64>>,
    left_out: u64,
    unread: u64,
}

impl Collected {
    pub(super) fn new(most: u64, include_all: bool, strip_query: bool, files: FileTable) -> Self {
        Self {
            most,
            include_all,
            strip_query,
            files,
            targets: TargetTable::new(),
            name_bytes: 0,
            clients: BTreeMap::new(),
            records: Vec::new(),
            sizes: Vec::new(),
            left_out: 0,
            unread: 0,
        }
    }

    /// Whether there is no room for more.
    pub(super) fn is_full(&self) -> bool {
        self.records.len() as u64 >= self.most || self.name_bytes >= MOST_NAME_BYTES
    }

    /// The same rule as for access logs.
    fn counts(&self, seen: &RecordedRequest<'_>) -> bool {
        self.include_all
            || (matches!(seen.method, b"GET" | b"HEAD")
                && seen.status.is_none_or(|status| matches!(status, 200 | 206 | 304)))
    }

    pub(super) fn take(&mut self, seen: &RecordedRequest<'_>) {
        if self.is_full() {
            return;
        }
        let name = trace_target(seen.target, self.strip_query).filter(|_| self.counts(seen));
        let Some((name, target)) = name.and_then(|name| self.targets.intern(&name).map(|id| (name, id)))
        else {
            self.left_out += 1;
            return;
        };
        if self.sizes.len() <= target as usize {
            self.sizes.resize(target as usize + 1, None);
            self.name_bytes += name.len() + size_of::<Option<u64>>();
        }
        let no_body = seen.method == b"HEAD" || seen.status == Some(304);
        let size_bytes = match (no_body, seen.size_bytes) {
            (true, _) => 0,
            (false, Some(bytes)) => {
                let known = &mut self.sizes[target as usize];
                *known = Some(known.unwrap_or(0).max(bytes));
                bytes.min(UNREAD - 1)
            }
            (false, None) if seen.unread => UNREAD,
            (false, None) => UNKNOWN,
        };
        self.unread += u64::from(seen.unread);
        let next = self.clients.len() as u32 + 1;
        self.records.push(Record {
            time_ns: seen.at_ns,
            size_bytes,
            service_ns: seen.first_byte_ns.unwrap_or(0),
            target,
            client: *self.clients.entry(seen.client).or_insert(next),
            http11: seen.http11,
            ..Record::default()
        });
    }

    /// Puts the requests in order and fills in sizes that were not seen, then says what there is.
    pub(super) fn summary(&mut self) -> RecordSummary {
        self.records.sort_by_key(|record| record.time_ns);
        let (mut unknown_sizes, mut unread_sizes) = (0, 0);
        for record in self.records.iter_mut().filter(|record| record.size_bytes >= UNREAD) {
            let name = self.targets.name(record.target);
            let path = name.split(|&byte| byte == b'?').next().unwrap_or(name);
            let listed = || self.files.find(path).map(|(_, file)| file.size_bytes);
            let known = self.sizes[record.target as usize].or_else(listed);
            unknown_sizes += u64::from(known.is_none());
            unread_sizes += u64::from(known.is_none() && record.size_bytes == UNREAD);
            record.size_bytes = known.unwrap_or(0);
        }
        RecordSummary {
            counted: self.records.len() as u64,
            targets: self.targets.len() as u64,
            clients: self.clients.len() as u64,
            left_out: self.left_out,
            unknown_sizes,
            unread: self.unread,
            unread_sizes,
            is_full: self.name_bytes >= MOST_NAME_BYTES,
        }
    }

    /// The trace, after [`Self::summary`].
    pub(super) fn into_trace(self) -> Result<Trace, TraceError> {
        Trace::from_records(self.targets, self.records)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_sniffer::SiteFile;

    use super::*;

    fn seen(at_ns: u64, target: &str, status: Option<u16>, size_bytes: Option<u64>) -> RecordedRequest<'_> {
        RecordedRequest {
            at_ns,
            client: [10, 0, 0, 9].into(),
            method: b"GET",
            target: target.as_bytes(),
            http11: true,
            status,
            size_bytes,
            unread: false,
            first_byte_ns: Some(5),
        }
    }

    #[test]
    fn what_counts_in_order_with_its_size() {
        let mut files = FileTable::new(5);
        files.set(b"/d", SiteFile { size_bytes: 44, modified_unix_s: 0 }).unwrap();
        let mut collected = Collected::new(100, false, false, files);
        collected.take(&seen(30, "/a", Some(200), Some(700)));
        collected.take(&seen(10, "/a", None, None));
        collected.take(&seen(20, "/b", Some(404), Some(9)));
        collected.take(&seen(40, "/c", Some(304), Some(0)));
        collected.take(&RecordedRequest { method: b"POST", ..seen(50, "/a", Some(200), Some(1)) });
        collected.take(&seen(60, "/d?x", None, None));
        collected.take(&seen(70, "/e", None, None));
        for target in ["/a", "/f"] {
            collected.take(&RecordedRequest { unread: true, ..seen(80, target, None, None) });
        }
        let summary = collected.summary();
        let wanted = RecordSummary {
            counted: 7,
            targets: 5,
            clients: 1,
            left_out: 2,
            unknown_sizes: 2,
            unread: 2,
            unread_sizes: 1,
            is_full: false,
        };
        assert_eq!(summary, wanted);
        let trace = collected.into_trace().unwrap();
        let records: Vec<_> = trace.open().unwrap().map(Result::unwrap).collect();
        let told: Vec<_> =
            records.iter().map(|r| (r.time_ns, trace.targets.name(r.target), r.size_bytes)).collect();
        let wanted: [(u64, &[u8], u64); 7] = [
            (10, b"/a", 700),
            (30, b"/a", 700),
            (40, b"/c", 0),
            (60, b"/d?x", 44),
            (70, b"/e", 0),
            (80, b"/a", 700),
            (80, b"/f", 0),
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn no_more_than_asked_for() {
        let mut collected = Collected::new(1, true, true, FileTable::new(0));
        collected.take(&seen(1, "/a?b", Some(404), Some(3)));
        assert!(collected.is_full());
        collected.take(&seen(2, "/a?b", Some(404), Some(3)));
        assert_eq!(collected.summary().counted, 1);
        assert_eq!(collected.targets.name(0), b"/a");
    }
}
