//! The datagrams of load information: one layout of fixed size for all kinds.

use super::counts::LoadRefusal;
use crate::key::Key;

/// Bytes of every datagram.
pub const DATAGRAM_BYTES: usize = BODY_BYTES + CODE_BYTES;

/// A datagram as it is sent.
pub type Datagram = [u8; DATAGRAM_BYTES];

/// The largest load that is told and believed; what is above is told as this.
pub const MOST_LOAD: u32 = 65_535;

/// Within one block of BLAKE3, so that a code takes one compression.
const BODY_BYTES: usize = 44;
const CODE_BYTES: usize = 16;
/// `p`, `l`, the version of the format.
const START: [u8; 3] = [b'p', b'l', 1];
const KINDS: usize = 10;

/// What a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum DatagramKind {
    /// How much have you to do?
    Inquiry = 1,
    /// So much.
    Reply = 2,
    /// Ask again, by this boot id and this clock.
    Renewal = 3,
    /// What a back-end has to do, unasked.
    Announcement = 4,
    /// Which back-end shall have my access?
    Acquire = 5,
    /// This one.
    Grant = 6,
    /// My access is over, or, with the sequence number 0 in place of one of a grant, I am still here.
    Release = 7,
    /// Noted; or, of what is asked for, too late.
    Released = 8,
    /// What is measured at your machine?
    HostInquiry = 9,
    /// That.
    HostReply = 10,
}

impl DatagramKind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Inquiry,
            2 => Self::Reply,
            3 => Self::Renewal,
            4 => Self::Announcement,
            5 => Self::Acquire,
            6 => Self::Grant,
            7 => Self::Release,
            8 => Self::Released,
            9 => Self::HostInquiry,
            10 => Self::HostReply,
            _ => return None,
        })
    }

    /// Separates its codes from those of all other kinds and uses of the shared key.
    fn purpose(self) -> &'static str {
        match self {
            Self::Inquiry => "plimsoll load 2026-11 inquiry",
            Self::Reply => "plimsoll load 2026-11 reply",
            Self::Renewal => "plimsoll load 2026-11 renewal",
            Self::Announcement => "plimsoll load 2026-11 announcement",
            Self::Acquire => "plimsoll load 2026-11 acquire",
            Self::Grant => "plimsoll load 2026-11 grant",
            Self::Release => "plimsoll load 2026-11 release",
            Self::Released => "plimsoll load 2026-11 released",
            Self::HostInquiry => "plimsoll load 2026-11 host inquiry",
            Self::HostReply => "plimsoll load 2026-11 host reply",
        }
    }
}

/// The keys of all kinds of datagrams, derived from the shared key.
#[derive(Clone)]
pub struct LoadKeys([[u8; 32]; KINDS]);

impl LoadKeys {
    /// The keys that follow from the shared key.
    #[must_use]
    pub fn new(key: &Key) -> Self {
        let kinds = (1..).map_while(DatagramKind::from_byte);
        let mut keys = [[0; 32]; KINDS];
        keys.iter_mut().zip(kinds).for_each(|(derived, kind)| *derived = key.derive(kind.purpose()));
        Self(keys)
    }

    fn code(&self, kind: DatagramKind, body: &[u8]) -> blake3::Hash {
        let whole = blake3::keyed_hash(&self.0[kind as usize - 1], body);
        let mut code = [0; 32];
        code[..CODE_BYTES].copy_from_slice(&whole.as_bytes()[..CODE_BYTES]);
        blake3::Hash::from_bytes(code)
    }
}

impl std::fmt::Debug for LoadKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoadKeys(…)")
    }
}

/// The fields of a datagram; what the last three mean depends on the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DatagramFields {
    pub(super) kind: DatagramKind,
    /// The agent's, or 0 where the asker does not know it.
    pub(super) boot: u64,
    /// Who asks; in an announcement the mean interval in nanoseconds.
    pub(super) client: u64,
    pub(super) sequence: u64,
    /// The agent's clock, or what the asker takes it for.
    pub(super) clock_ns: u64,
    pub(super) first: u32,
    pub(super) second: u32,
}

impl DatagramFields {
    /// The datagram with its code.
    pub(super) fn seal(&self, keys: &LoadKeys) -> Datagram {
        let mut bytes = [0; DATAGRAM_BYTES];
        bytes[..3].copy_from_slice(&START);
        bytes[3] = self.kind as u8;
        bytes[4..12].copy_from_slice(&self.boot.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.client.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.clock_ns.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.first.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.second.to_le_bytes());
        let code = keys.code(self.kind, &bytes[..BODY_BYTES]);
        bytes[BODY_BYTES..].copy_from_slice(&code.as_bytes()[..CODE_BYTES]);
        bytes
    }

    /// Reads a datagram of one of these kinds.
    pub(super) fn open(bytes: &[u8], kinds: &[DatagramKind], keys: &LoadKeys) -> Result<Self, LoadRefusal> {
        let bytes: &Datagram = bytes.try_into().map_err(|_| LoadRefusal::Length)?;
        let kind = DatagramKind::from_byte(bytes[3])
            .filter(|kind| bytes[..3] == START && kinds.contains(kind))
            .ok_or(LoadRefusal::Form)?;
        let mut code = [0; 32];
        code[..CODE_BYTES].copy_from_slice(&bytes[BODY_BYTES..]);
        // Compared in a time that does not depend on where the two differ.
        if keys.code(kind, &bytes[..BODY_BYTES]) != blake3::Hash::from_bytes(code) {
            return Err(LoadRefusal::Forged);
        }
        let long = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(field)
        };
        let short = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Ok(Self {
            kind,
            boot: long(4),
            client: long(12),
            sequence: long(20),
            clock_ns: long(28),
            first: short(36),
            second: short(40),
        })
    }
}

/// Asks an agent for its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inquiry {
    /// The boot id that the agent has told; 0 for none.
    pub boot: u64,
    /// Who asks: a random number of one asking instance.
    pub client: u64,
    /// Greater than those of earlier inquiries of this client.
    pub sequence: u64,
    /// What the agent's clock shows at least, by what the client knows of it.
    pub clock_ns: u64,
}

impl Inquiry {
    /// The datagram.
    #[must_use]
    pub fn seal(&self, keys: &LoadKeys) -> Datagram {
        let Self { boot, client, sequence, clock_ns } = *self;
        let kind = DatagramKind::Inquiry;
        DatagramFields { kind, boot, client, sequence, clock_ns, first: 0, second: 0 }.seal(keys)
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it has another length or form, or was not made with this key.
    pub fn open(bytes: &[u8], keys: &LoadKeys) -> Result<Self, LoadRefusal> {
        let fields = DatagramFields::open(bytes, &[DatagramKind::Inquiry], keys)?;
        let DatagramFields { boot, client, sequence, clock_ns, .. } = fields;
        Ok(Self { boot, client, sequence, clock_ns })
    }
}

/// An agent's answer to an [`Inquiry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadReply {
    /// The agent's boot id.
    pub boot: u64,
    /// Of the inquiry.
    pub client: u64,
    /// Of the inquiry.
    pub sequence: u64,
    /// The agent's clock.
    pub clock_ns: u64,
    /// Active accesses; `None` in a renewal.
    pub load: Option<u32>,
    /// Recent response time of accesses that began as one of about `load + 1`, as one does that begins now, in microseconds; 0 where it
    /// is not known.
    pub latency_us: u32,
}

impl LoadReply {
    pub(super) fn fields(&self) -> DatagramFields {
        let Self { boot, client, sequence, clock_ns, load, latency_us } = *self;
        let kind = if load.is_some() { DatagramKind::Reply } else { DatagramKind::Renewal };
        let first = load.unwrap_or(0);
        DatagramFields { kind, boot, client, sequence, clock_ns, first, second: latency_us }
    }

    /// The datagram.
    #[must_use]
    pub fn seal(&self, keys: &LoadKeys) -> Datagram {
        self.fields().seal(keys)
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it has another length or form, or was not made with this key.
    pub fn open(bytes: &[u8], keys: &LoadKeys) -> Result<Self, LoadRefusal> {
        let kinds = [DatagramKind::Reply, DatagramKind::Renewal];
        let fields = DatagramFields::open(bytes, &kinds, keys)?;
        let DatagramFields { kind, boot, client, sequence, clock_ns, first, second } = fields;
        let load = (kind == DatagramKind::Reply).then_some(first);
        Ok(Self { boot, client, sequence, clock_ns, load, latency_us: second })
    }
}

/// What an agent tells unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadAnnouncement {
    /// The agent's boot id.
    pub boot: u64,
    /// Greater than those of earlier announcements of this boot id.
    pub sequence: u64,
    /// The agent's clock.
    pub clock_ns: u64,
    /// Mean time between two announcements.
    pub interval_ns: u64,
    /// Active accesses.
    pub load: u32,
    /// As in [`LoadReply::latency_us`].
    pub latency_us: u32,
}

impl LoadAnnouncement {
    /// The datagram.
    #[must_use]
    pub fn seal(&self, keys: &LoadKeys) -> Datagram {
        let Self { boot, sequence, clock_ns, interval_ns, load, latency_us } = *self;
        let kind = DatagramKind::Announcement;
        DatagramFields {
            kind,
            boot,
            client: interval_ns,
            sequence,
            clock_ns,
            first: load,
            second: latency_us,
        }
        .seal(keys)
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it has another length or form, or was not made with this key.
    pub fn open(bytes: &[u8], keys: &LoadKeys) -> Result<Self, LoadRefusal> {
        let fields = DatagramFields::open(bytes, &[DatagramKind::Announcement], keys)?;
        let DatagramFields { boot, client, sequence, clock_ns, first, second, .. } = fields;
        Ok(Self { boot, sequence, clock_ns, interval_ns: client, load: first, latency_us: second })
    }
}
