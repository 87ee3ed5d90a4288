//! One link: a handshake that proves to each side that the other one has the key, then frames.
//!
//! Both are state machines over bytes; sockets, time-outs and random numbers are the caller's. Any error is final: the
//! link is to be closed.

mod frame;
mod handshake;
mod wire;

pub use frame::{FrameError, FrameReader, FrameWriter, MAC_BYTES, MOST_FRAME_BYTES};
pub use handshake::{
    AgentHandshake, AgentTerms, Established, FrontEndHandshake, FrontEndId, HandshakeProgress,
};
pub use wire::{HandshakeError, NONCE_BYTES, VERSION};

/// The keys of a link's two directions, as frames that go out and come in. Whoever holds them can speak on this link and on
/// no other.
#[derive(Debug)]
pub struct Keys {
    /// For what is sent.
    pub writer: FrameWriter,
    /// For what is received.
    pub reader: FrameReader,
}

#[cfg(test)]
mod tests;
