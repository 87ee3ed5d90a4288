//! A record of the binary log of the 1998 World Cup.

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 20;

/// Size field of a transfer whose size was not logged.
const UNKNOWN_SIZE: u32 = u32::MAX;

/// Largest type number (`OTHER_TYPES`).
const MAX_TYPE: u8 = 12;

/// Method of each number.
pub(crate) const METHODS: [&[u8]; 9] =
    [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"TRACE", b"OPTIONS", b"CONNECT", b"(other)"];

/// Status code of each index; 0 stands for a code without an index of its own.
const STATUSES: [u16; 38] = [
    100, 101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 305, 400, 401, 402, 403, 404, 405,
    406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 500, 501, 502, 503, 504, 505, 0,
];

/// One record with its fields in host order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorldCupRecord {
    pub(crate) time_s: u32,
    pub(crate) client: u32,
    pub(crate) object: u32,
    size: u32,
    pub(crate) method: u8,
    status: u8,
    pub(crate) kind: u8,
    pub(crate) server: u8,
}

impl WorldCupRecord {
    pub(crate) fn parse(bytes: &[u8; RECORD_BYTES]) -> Self {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self {
            time_s: word(0),
            client: word(4),
            object: word(8),
            size: word(12),
            method: bytes[16],
            status: bytes[17],
            kind: bytes[18],
            server: bytes[19],
        }
    }

    /// Bytes transferred; `None` when they were not logged.
    pub(crate) fn size(&self) -> Option<u32> {
        (self.size != UNKNOWN_SIZE).then_some(self.size)
    }

    /// Whether it was asked by HTTP/1.1.
    pub(crate) fn http11(&self) -> bool {
        self.status >> 6 == 2
    }

    /// Status code; the two top bits of the field hold the HTTP version.
    pub(crate) fn status(&self) -> Option<u16> {
        STATUSES.get(usize::from(self.status & 0x3f)).copied()
    }
}

/// Whether the bytes are records of the summer of 1998.
pub(crate) fn looks_like(first: &[u8]) -> bool {
    let (records, _) = first.as_chunks::<RECORD_BYTES>();
    !records.is_empty()
        && records.iter().map(WorldCupRecord::parse).all(|raw| {
            (893_900_000..=901_600_000).contains(&raw.time_s)
                && usize::from(raw.method) < METHODS.len()
                && raw.status().is_some()
                && raw.kind <= MAX_TYPE
        })
}
