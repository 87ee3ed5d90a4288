//! The encoding of `struct switch_backend` in `bpf/switch_structs.h`.

use super::layout::ConnHolder;
use crate::layout::{NextHop, u32_at, u64_at};

/// Bytes of `struct switch_backend`.
pub(crate) const BACKEND_BYTES: usize = 40;

const USABLE: u32 = 1;
const PLAIN: u32 = 2;
const VLAN_SET: u32 = 0x10000;

/// The VLAN tag of frames for a back-end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrameTag {
    /// As the client's frame has it.
    #[default]
    Kept,
    /// None.
    Removed,
    /// Of this VLAN, 1 to 4094, in place of another one.
    Vlan(u16),
}

impl FrameTag {
    /// The largest number of a VLAN.
    pub const MOST: u16 = 4094;

    fn word(self) -> u32 {
        match self {
            Self::Kept => 0,
            Self::Removed => VLAN_SET,
            Self::Vlan(number) => VLAN_SET | u32::from(number),
        }
    }
}

/// A back-end, to which packets are sent if there is a next hop.
pub(crate) fn backend(
    holder: ConnHolder,
    key: u64,
    next_hop: Option<&NextHop>,
    (tag, by_tunnel): (FrameTag, bool),
) -> [u8; BACKEND_BYTES] {
    let mut bytes = [0; BACKEND_BYTES];
    bytes[28..32].copy_from_slice(&tag.word().to_ne_bytes());
    if let Some(next_hop) = next_hop {
        bytes[..6].copy_from_slice(&next_hop.mac);
        bytes[8..14].copy_from_slice(&next_hop.own_mac);
        bytes[16..20].copy_from_slice(&next_hop.ifindex.to_ne_bytes());
        let flags = if by_tunnel { USABLE } else { USABLE | PLAIN };
        bytes[24..28].copy_from_slice(&flags.to_ne_bytes());
    }
    bytes[20..24].copy_from_slice(&holder.word().to_ne_bytes());
    bytes[32..].copy_from_slice(&key.to_ne_bytes());
    bytes
}

/// Who has, or has had, an index, and its key.
pub(crate) fn backend_known(bytes: &[u8]) -> Option<(ConnHolder, u64)> {
    let key = u64_at(bytes, 32);
    (key != 0).then(|| (ConnHolder::of(u32_at(bytes, 20)), key))
}
