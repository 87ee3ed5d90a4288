//! The messages of the handshake as bytes.
//!
//! Each begins with a header of 13 bytes: the magic `PLIMSOLL`, the version (`u16`), the kind (`u8`) and the length of what
//! follows (`u16`). Header and kinds stay as they are in all versions, so that each side can name the other's version.

/// The version of the protocol. Only equal versions understand one another.
pub const VERSION: u16 = 5;

/// Why there is no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// What came is not this protocol.
    #[error(
        "the other side does not speak the handoff protocol; is the address that of a Plimsoll agent's link?"
    )]
    Magic,
    /// The other side speaks another version.
    #[error(
        "the other side speaks version {theirs} of the handoff protocol, this side version {VERSION}; run the same release on both"
    )]
    Version {
        /// Its version.
        theirs: u16,
    },
    /// The other side sent what has no place here, such as our own message.
    #[error("the other side sent handshake message {kind} instead of {expected}")]
    Kind {
        /// What it sent.
        kind: u8,
        /// What should have come.
        expected: u8,
    },
    /// A message is not made as it should be.
    #[error("a handshake message is malformed: {0}")]
    Malformed(&'static str),
    /// The other side does not have our key.
    #[error("the other side does not have the same key; give both the same key file")]
    Key,
    /// A name cannot be sent.
    #[error("{0:?} cannot be a name; give 1 to 64 printable ASCII characters without space")]
    Name(String),
    /// There was an error, or it was over, before.
    #[error("the handshake is over")]
    Over,
}

/// Bytes of a nonce: random, and used once.
pub const NONCE_BYTES: usize = 32;

pub(super) const MAGIC: [u8; 8] = *b"PLIMSOLL";
pub(super) const HEADER_BYTES: usize = 13;
pub(super) const TAG_BYTES: usize = 32;
pub(super) const MOST_NAME_BYTES: usize = 64;
/// The longest of the three has less than this after its header.
pub(super) const MOST_BODY_BYTES: usize = 256;

pub(super) const HELLO: u8 = 1;
pub(super) const WELCOME: u8 = 2;
pub(super) const PROOF: u8 = 3;
/// From an agent of another version: it has nothing after its header.
pub(super) const OTHER_VERSION: u8 = 4;

/// A message that comes in parts.
pub(super) struct Incoming {
    expected: u8,
    buffer: Vec<u8>,
    pub(super) over: bool,
}

impl Incoming {
    pub(super) fn new(expected: u8) -> Self {
        Self { expected, buffer: Vec::new(), over: false }
    }

    /// How many of the bytes belong to the message, and the message once it is whole.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(usize, Option<Vec<u8>>), HandshakeError> {
        if self.over {
            return Err(HandshakeError::Over);
        }
        let mut consumed = 0;
        // The first round completes the header, the second what follows it.
        for _ in 0..2 {
            let wanted = self.wanted().inspect_err(|_| self.over = true)?;
            let count = wanted.saturating_sub(self.buffer.len()).min(bytes.len() - consumed);
            self.buffer.extend_from_slice(&bytes[consumed..consumed + count]);
            consumed += count;
        }
        let wanted = self.wanted().inspect_err(|_| self.over = true)?;
        let whole = self.buffer.len() >= HEADER_BYTES && self.buffer.len() == wanted;
        Ok((consumed, whole.then(|| std::mem::take(&mut self.buffer))))
    }

    /// Length of the message as far as it is known, or of its header. Bytes that cannot begin one are refused at once.
    fn wanted(&self) -> Result<usize, HandshakeError> {
        let begun = self.buffer.len().min(MAGIC.len());
        if self.buffer[..begun] != MAGIC[..begun] {
            return Err(HandshakeError::Magic);
        }
        let Some(header) = self.buffer.first_chunk::<HEADER_BYTES>() else { return Ok(HEADER_BYTES) };
        let [.., v0, v1, kind, l0, l1] = *header;
        let theirs = u16::from_le_bytes([v0, v1]);
        if theirs != VERSION {
            return Err(HandshakeError::Version { theirs });
        }
        if kind != self.expected {
            return Err(HandshakeError::Kind { kind, expected: self.expected });
        }
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        if length > MOST_BODY_BYTES {
            return Err(HandshakeError::Malformed("too long"));
        }
        Ok(HEADER_BYTES + length)
    }
}

pub(super) fn begin(kind: u8) -> Vec<u8> {
    let mut message = MAGIC.to_vec();
    message.extend_from_slice(&VERSION.to_le_bytes());
    message.push(kind);
    message.extend_from_slice(&[0, 0]);
    message
}

/// Writes the length into the header. All messages are shorter than [`MOST_BODY_BYTES`].
pub(super) fn end(message: &mut [u8]) {
    let length = u16::try_from(message.len() - HEADER_BYTES).unwrap_or(u16::MAX);
    message[HEADER_BYTES - 2..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
}

pub(super) fn is_name(name: &[u8]) -> bool {
    (1..=MOST_NAME_BYTES).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic)
}

pub(super) fn put_name(message: &mut Vec<u8>, name: &str) -> Result<(), HandshakeError> {
    let length = u8::try_from(name.len()).ok().filter(|_| is_name(name.as_bytes()));
    message.push(length.ok_or_else(|| HandshakeError::Name(name.chars().take(100).collect()))?);
    message.extend_from_slice(name.as_bytes());
    Ok(())
}

/// Proves the key, for one kind of message and all that was said. The parts tell their own lengths in their headers.
pub(super) fn tag(key: &[u8; 32], kind: u8, parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&[kind]);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// The comparison takes the same time wherever the two differ.
pub(super) fn check(expected: &blake3::Hash, received: &[u8; TAG_BYTES]) -> Result<(), HandshakeError> {
    if *expected == blake3::Hash::from_bytes(*received) { Ok(()) } else { Err(HandshakeError::Key) }
}

/// What is left of a message.
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], HandshakeError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(HandshakeError::Malformed("too short"))?;
        self.0 = rest;
        Ok(first)
    }

    pub(super) fn name(&mut self) -> Result<String, HandshakeError> {
        let length = usize::from(self.take::<1>()?[0]);
        let (name, rest) = self.0.split_at_checked(length).ok_or(HandshakeError::Malformed("too short"))?;
        self.0 = rest;
        let name = Some(name).filter(|name| is_name(name)).and_then(|name| std::str::from_utf8(name).ok());
        Ok(name.ok_or(HandshakeError::Malformed("its name"))?.to_owned())
    }

    pub(super) fn end(&self) -> Result<(), HandshakeError> {
        if self.0.is_empty() { Ok(()) } else { Err(HandshakeError::Malformed("bytes follow it")) }
    }
}
