//! The handshake: three messages, of which the second proves the agent and the third the front-end.

use std::fmt;

use super::Keys;
use super::frame::{FrameReader, FrameWriter};
use super::wire::{
    Body, HEADER_BYTES, HELLO, HandshakeError, Incoming, NONCE_BYTES, OTHER_VERSION, PROOF, TAG_BYTES,
    WELCOME, begin, check, end, put_name, tag,
};
use crate::key::Key;
use crate::message::MOST_STATE_BYTES;

// These numbers do not follow `VERSION`: the derivation of keys has not changed since the first one.
const HANDSHAKE_PURPOSE: &str = "plimsoll handoff 1: handshake";
const TO_AGENT_PURPOSE: &str = "plimsoll handoff 1: frames to the agent";
const FROM_AGENT_PURPOSE: &str = "plimsoll handoff 1: frames from the agent";

/// Who a front-end is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontEndId {
    /// Its name, which stays the same when it is started anew; 1 to 64 printable ASCII characters without space.
    pub name: String,
    /// Random for each of its processes.
    pub instance: u64,
}

/// What an agent tells of itself when a link begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTerms {
    /// Its name; 1 to 64 printable ASCII characters without space.
    pub name: String,
    /// Most handoffs that it lets be unanswered on this link.
    pub window: u32,
    /// Most bytes of a connection's state that it takes.
    pub most_state_bytes: u32,
}

/// What came of some bytes.
#[derive(Debug)]
pub struct HandshakeProgress<T> {
    /// How many of the bytes belonged to the handshake; the rest belongs to the frames that follow it, and is to be fed to
    /// their reader.
    pub consumed: usize,
    /// What is to be sent to the other side now; often nothing.
    pub send: Vec<u8>,
    /// The link, once it is there.
    pub done: Option<T>,
}

/// A link.
#[derive(Debug)]
pub struct Established<T> {
    /// Frames that go out and come in.
    pub keys: Keys,
    /// Who is at the other end.
    pub peer: T,
    /// The agent's clock (`CLOCK_MONOTONIC`, nanoseconds) when it answered.
    pub clock_ns: u64,
}

/// The front-end's side.
pub struct FrontEndHandshake {
    key: [u8; 32],
    shared: Key,
    hello: Vec<u8>,
    incoming: Incoming,
}

impl FrontEndHandshake {
    /// Begins; the bytes are to be sent. The nonce must be random.
    ///
    /// # Errors
    /// When the name cannot be sent.
    pub fn new(
        key: &Key,
        id: &FrontEndId,
        nonce: [u8; NONCE_BYTES],
    ) -> Result<(Self, Vec<u8>), HandshakeError> {
        let mut hello = begin(HELLO);
        hello.extend_from_slice(&id.instance.to_le_bytes());
        hello.extend_from_slice(&nonce);
        put_name(&mut hello, &id.name)?;
        end(&mut hello);
        let this = Self {
            key: key.derive(HANDSHAKE_PURPOSE),
            shared: key.clone(),
            hello: hello.clone(),
            incoming: Incoming::new(WELCOME),
        };
        Ok((this, hello))
    }

    /// Takes in what has come.
    ///
    /// # Errors
    /// When it is not what an agent with the same key sends. The handshake is over then.
    pub fn feed(
        &mut self,
        bytes: &[u8],
    ) -> Result<HandshakeProgress<Established<AgentTerms>>, HandshakeError> {
        let (consumed, welcome) = self.incoming.feed(bytes)?;
        let Some(welcome) = welcome else {
            return Ok(HandshakeProgress { consumed, send: Vec::new(), done: None });
        };
        self.incoming.over = true;
        let (signed, received) =
            welcome.split_last_chunk::<TAG_BYTES>().ok_or(HandshakeError::Malformed("too short"))?;
        check(&tag(&self.key, WELCOME, &[&self.hello, signed]), received)?;
        let mut body = Body(&signed[HEADER_BYTES..]);
        body.take::<NONCE_BYTES>()?;
        let clock_ns = u64::from_le_bytes(*body.take()?);
        let window = u32::from_le_bytes(*body.take()?);
        let most_state_bytes = u32::from_le_bytes(*body.take()?);
        let peer = AgentTerms { name: body.name()?, window, most_state_bytes };
        body.end()?;
        let mut proof = begin(PROOF);
        proof.extend_from_slice(tag(&self.key, PROOF, &[&self.hello, &welcome]).as_bytes());
        end(&mut proof);
        let transcript = [&self.hello[..], &welcome];
        let keys = Keys {
            writer: FrameWriter::new(session_key(&self.shared, TO_AGENT_PURPOSE, &transcript)),
            reader: FrameReader::new(session_key(&self.shared, FROM_AGENT_PURPOSE, &transcript)),
        };
        Ok(HandshakeProgress { consumed, send: proof, done: Some(Established { keys, peer, clock_ns }) })
    }
}

/// The agent's side.
pub struct AgentHandshake {
    key: [u8; 32],
    shared: Key,
    terms: AgentTerms,
    nonce: [u8; NONCE_BYTES],
    incoming: Incoming,
    /// Hello and Welcome, and what the Hello said, once it has come.
    greeted: Option<(Vec<u8>, Vec<u8>, FrontEndId, u64)>,
}

impl AgentHandshake {
    /// Waits for a front-end. The nonce must be random.
    ///
    /// # Errors
    /// When the name cannot be sent.
    pub fn new(key: &Key, terms: AgentTerms, nonce: [u8; NONCE_BYTES]) -> Result<Self, HandshakeError> {
        put_name(&mut Vec::new(), &terms.name)?;
        let terms = AgentTerms {
            most_state_bytes: terms.most_state_bytes.min(u32::try_from(MOST_STATE_BYTES).unwrap_or(u32::MAX)),
            ..terms
        };
        Ok(Self {
            key: key.derive(HANDSHAKE_PURPOSE),
            shared: key.clone(),
            terms,
            nonce,
            incoming: Incoming::new(HELLO),
            greeted: None,
        })
    }

    /// Takes in what has come; `clock_ns` is the agent's clock (`CLOCK_MONOTONIC`, nanoseconds) now.
    ///
    /// # Errors
    /// When it is not what a front-end with the same key sends. The handshake is over then; what
    /// [`AgentHandshake::parting`] returns may be sent before the link is closed.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        clock_ns: u64,
    ) -> Result<HandshakeProgress<Established<FrontEndId>>, HandshakeError> {
        let (consumed, message) = self.incoming.feed(bytes)?;
        let Some(message) = message else {
            return Ok(HandshakeProgress { consumed, send: Vec::new(), done: None });
        };
        match self.greeted.take() {
            None => {
                let send = self.welcome(message, clock_ns).inspect_err(|_| self.incoming.over = true)?;
                Ok(HandshakeProgress { consumed, send, done: None })
            }
            Some((hello, welcome, peer, clock_ns)) => {
                self.incoming.over = true;
                let received = message[HEADER_BYTES..]
                    .try_into()
                    .map_err(|_| HandshakeError::Malformed("its length"))?;
                check(&tag(&self.key, PROOF, &[&hello, &welcome]), received)?;
                let transcript = [&hello[..], &welcome];
                let keys = Keys {
                    writer: FrameWriter::new(session_key(&self.shared, FROM_AGENT_PURPOSE, &transcript)),
                    reader: FrameReader::new(session_key(&self.shared, TO_AGENT_PURPOSE, &transcript)),
                };
                let done = Some(Established { keys, peer, clock_ns });
                Ok(HandshakeProgress { consumed, send: Vec::new(), done })
            }
        }
    }

    fn welcome(&mut self, hello: Vec<u8>, clock_ns: u64) -> Result<Vec<u8>, HandshakeError> {
        let mut body = Body(&hello[HEADER_BYTES..]);
        let instance = u64::from_le_bytes(*body.take()?);
        body.take::<NONCE_BYTES>()?;
        let peer = FrontEndId { name: body.name()?, instance };
        body.end()?;
        let mut welcome = begin(WELCOME);
        welcome.extend_from_slice(&self.nonce);
        welcome.extend_from_slice(&clock_ns.to_le_bytes());
        welcome.extend_from_slice(&self.terms.window.to_le_bytes());
        welcome.extend_from_slice(&self.terms.most_state_bytes.to_le_bytes());
        put_name(&mut welcome, &self.terms.name)?;
        // The length that is signed is the one that is sent.
        let signed = welcome.len();
        welcome.extend_from_slice(&[0; TAG_BYTES]);
        end(&mut welcome);
        let tag = tag(&self.key, WELCOME, &[&hello, &welcome[..signed]]);
        welcome[signed..].copy_from_slice(tag.as_bytes());
        self.incoming = Incoming::new(PROOF);
        self.greeted = Some((hello, welcome.clone(), peer, clock_ns));
        Ok(welcome)
    }

    /// What may be sent after an error, so that the front-end can name it: to one of another version, ours.
    #[must_use]
    pub fn parting(error: &HandshakeError) -> Vec<u8> {
        if matches!(error, HandshakeError::Version { .. }) { begin(OTHER_VERSION) } else { Vec::new() }
    }
}

impl fmt::Debug for FrontEndHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontEndHandshake").field("over", &self.incoming.over).finish_non_exhaustive()
    }
}

impl fmt::Debug for AgentHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentHandshake").field("over", &self.incoming.over).finish_non_exhaustive()
    }
}

fn session_key(key: &Key, purpose: &str, transcript: &[&[u8]]) -> [u8; 32] {
    *tag(&key.derive(purpose), 0, transcript).as_bytes()
}
