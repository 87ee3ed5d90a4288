//! The messages of cooperative caching between nodes: documents that are asked for, and hints of what a node has in memory. As in
//! [`message`](crate::message), another order of variants or fields is another version.
//!
//! They go over links as front-ends and agents have them: who asks opens the link, in the place of the front-end.

use serde::{Deserialize, Serialize};

use crate::codec::{FieldError, Message, within};

/// Most bytes of a document's name.
pub const MOST_NAME_BYTES: usize = 2048;
/// Most bytes of a document that is sent.
pub const MOST_DOCUMENT_BYTES: usize = 8 << 20;
/// Most names in a message with hints.
pub const MOST_HINTS: usize = 4096;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 32;

/// The digest of a document's bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    *blake3::hash(bytes).as_bytes()
}

/// The number that stands for a document's name in hints, the same at all nodes.
#[must_use]
pub fn name_number(name: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(name.as_bytes()).as_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// From the node that asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToHolder<'a> {
    /// Send this document, as far as it is the same version there.
    Ask {
        /// Comes back in the answer; each is used once on a link.
        ask: u64,
        /// Its path, as in a URL.
        name: &'a str,
        /// Its size in bytes.
        size_bytes: u64,
        /// When it was last modified, in ns since 1970.
        modified_ns: i128,
        /// Not if it would have to be read from the disk.
        held_only: bool,
    },
    /// The asking node has these in memory from now on.
    Held {
        /// Their [`name_number`]s.
        numbers: Vec<u64>,
    },
    /// The asking node has these in memory no more.
    Dropped {
        /// Their [`name_number`]s.
        numbers: Vec<u64>,
    },
    /// Answer with [`FromHolder::Pong`].
    Ping {
        /// Comes back unchanged.
        token: u64,
    },
}

/// From the node that is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromHolder<'a> {
    /// The document.
    Document {
        /// What it answers.
        ask: u64,
        /// The [`digest`] of its bytes.
        digest: [u8; DIGEST_BYTES],
        /// All of it.
        #[serde(with = "serde_bytes", borrow)]
        bytes: &'a [u8],
    },
    /// There is none, or another version, or no time for it.
    Absent {
        /// What it answers.
        ask: u64,
    },
    /// Answer to [`ToHolder::Ping`].
    Pong {
        /// As in the question.
        token: u64,
    },
}

impl<'a> Message<'a> for ToHolder<'a> {
    const EXCHANGE: u8 = 6;

    fn check(&self) -> Result<(), FieldError> {
        match self {
            Self::Ask { name, .. } => within("name", name.len(), MOST_NAME_BYTES),
            Self::Held { numbers } | Self::Dropped { numbers } => {
                within("numbers", numbers.len(), MOST_HINTS)
            }
            Self::Ping { .. } => Ok(()),
        }
    }
}

impl<'a> Message<'a> for FromHolder<'a> {
    const EXCHANGE: u8 = 7;

    fn check(&self) -> Result<(), FieldError> {
        match self {
            Self::Document { bytes, .. } => within("bytes", bytes.len(), MOST_DOCUMENT_BYTES),
            Self::Absent { .. } | Self::Pong { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloning::ToClone;
    use crate::codec::{DecodeError, messages};
    use proptest::prelude::*;

    fn ask(name: &str) -> ToHolder<'_> {
        ToHolder::Ask { ask: u64::MAX, name, size_bytes: 1 << 40, modified_ns: -7, held_only: true }
    }

    #[test]
    fn there_and_back() {
        let numbers = vec![1, u64::MAX];
        let asked = [
            ask("/a"),
            ToHolder::Held { numbers: numbers.clone() },
            ToHolder::Dropped { numbers },
            ToHolder::Ping { token: 9 },
        ];
        let mut bytes = Vec::new();
        asked.iter().for_each(|message| message.encode(&mut bytes).unwrap());
        assert_eq!(messages::<ToHolder<'_>>(&bytes).map(Result::unwrap).collect::<Vec<_>>(), asked);
        let said = [
            FromHolder::Document { ask: 3, digest: digest(b"abc"), bytes: b"abc" },
            FromHolder::Absent { ask: 4 },
            FromHolder::Pong { token: 5 },
        ];
        let mut bytes = Vec::new();
        said.iter().for_each(|message| message.encode(&mut bytes).unwrap());
        assert_eq!(messages::<FromHolder<'_>>(&bytes).map(Result::unwrap).collect::<Vec<_>>(), said);
    }

    #[test]
    fn bounds_and_other_exchanges() {
        let mut bytes = Vec::new();
        assert!(ask(&"n".repeat(MOST_NAME_BYTES)).check().is_ok());
        assert!(ask(&"n".repeat(MOST_NAME_BYTES + 1)).encode(&mut bytes).is_err());
        for numbers in [vec![0; MOST_HINTS], vec![0; MOST_HINTS + 1]] {
            let ok = numbers.len() == MOST_HINTS;
            assert_eq!(ToHolder::Held { numbers: numbers.clone() }.check().is_ok(), ok);
            assert_eq!(ToHolder::Dropped { numbers }.check().is_ok(), ok);
        }
        let long = vec![0; MOST_DOCUMENT_BYTES + 1];
        let document = |bytes| FromHolder::Document { ask: 0, digest: [0; DIGEST_BYTES], bytes };
        assert!(document(&long).encode(&mut bytes).is_err() && bytes.is_empty());
        assert!(document(&long[1..]).check().is_ok());
        ToClone::Ping { token: 1 }.encode(&mut bytes).unwrap();
        assert!(matches!(ToHolder::decode(&bytes), Err(DecodeError::Exchange { found: 4, expected: 6 })));
        assert!(matches!(FromHolder::decode(&bytes), Err(DecodeError::Exchange { found: 4, expected: 7 })));
    }

    #[test]
    fn numbers_and_digests_differ() {
        assert_ne!(name_number("/a"), name_number("/b"));
        assert_ne!(digest(b"a"), digest(b"b"));
        // Nodes of other machines have the same: the start of BLAKE3's published digest of nothing.
        assert_eq!(name_number("").to_le_bytes(), [0xaf, 0x13, 0x49, 0xb9, 0xf5, 0xf9, 0xa1, 0xa6]);
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100), exchange in 6..=7u8) {
            let bytes = [&[exchange], &bytes[..]].concat();
            let _ = ToHolder::decode(&bytes);
            let _ = FromHolder::decode(&bytes);
        }

        #[test]
        fn changed_bytes(at in 0..40usize, to in any::<u8>()) {
            let mut bytes = Vec::new();
            ask("/a/document/of/some/length").encode(&mut bytes).unwrap();
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = ToHolder::decode(&bytes);
        }
    }
}
