//! Frames on their way to a back-end, in tunnels and VLANs: what leaves is what an independent model says, for mutants, too.

use std::net::IpAddr;

use plimsoll_datapath::PacketVerdict;
use plimsoll_datapath::switch::{ConnHolder, FrameTag, SwitchHook, Tunnel, TunnelKind};

use crate::switch::{HOOKS, VIPS, World, hop, pairs};
use crate::switch_model::Model;
use crate::switch_mutants::{Random, establish, frames, is_untried, mutant};

const MUTANTS: usize = 10_000;
/// Most bytes of a packet on the way.
const MOST_BYTES: u32 = 1328;
/// The tag of a back-end's frames, by its index.
const TAGS: [FrameTag; 3] = [FrameTag::Kept, FrameTag::Removed, FrameTag::Vlan(77)];

/// How back-ends are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WayModel {
    hook: SwitchHook,
    /// In tunnels of this kind, to IPv6 addresses or to IPv4 ones.
    tunnel: Option<(TunnelKind, bool)>,
}

/// Both ends of the tunnel to a back-end.
fn ends(v6: bool, backend: u16) -> (IpAddr, IpAddr) {
    let text = if v6 {
        ("fd70::1".to_owned(), format!("fd71::{backend}"))
    } else {
        ("10.70.0.1".to_owned(), format!("10.71.0.{backend}"))
    };
    (text.0.parse().unwrap(), text.1.parse().unwrap())
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// The sum of 16-bit words that a good checksum makes 0xffff.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        assert!(part.len() % 2 == 0, "parts have whole words");
        sum += part.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>();
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A frame's parts: its tag and what is behind it.
fn parts(frame: &[u8]) -> (Option<[u8; 4]>, &[u8], &[u8]) {
    match frame[12..14] {
        [0x81, 0] | [0x88, 0xa8] => (Some(frame[12..16].try_into().unwrap()), &frame[16..18], &frame[18..]),
        _ => (None, &frame[12..14], &frame[14..]),
    }
}

impl WayModel {
    /// The tag with which a frame for a back-end leaves, as far as it is in the frame: tc has put it beside.
    fn tag(self, backend: u16, before: Option<[u8; 4]>) -> Option<[u8; 4]> {
        let kept = before.filter(|_| self.tunnel.is_none());
        match (TAGS[usize::from(backend)], self.hook) {
            (FrameTag::Kept, _) => kept,
            (FrameTag::Vlan(number), SwitchHook::Xdp) => {
                let [high, low] = number.to_be_bytes();
                Some([0x81, 0, high, low])
            }
            _ => None,
        }
    }

    fn outer_bytes(self) -> usize {
        self.tunnel
            .map_or(0, |(kind, v6)| (if v6 { 40 } else { 20 }) + if kind == TunnelKind::Gue { 8 } else { 0 })
    }

    /// Checks what the program has made of a frame for this back-end.
    fn check(self, before: &[u8], backend: u16, verdict: PacketVerdict, after: &[u8]) -> Sent {
        let (tag, kind, packet) = parts(before);
        if self.tunnel.is_some() && packet.len() + self.outer_bytes() > MOST_BYTES as usize {
            // What has a tag in the frame at tc has two of them on a real way, and is none of ours.
            if Model::is_error(before) || (tag.is_some() && self.hook == SwitchHook::Tc) {
                assert_eq!(verdict, PacketVerdict::Drop);
                return Sent::Nothing;
            }
            assert_eq!(verdict, PacketVerdict::Redirect);
            self.check_too_big(before, after);
            return Sent::Answer;
        }
        assert_eq!(verdict, PacketVerdict::Redirect);
        assert_eq!((&after[..6], &after[6..12]), (&hop(backend).mac[..], &hop(backend).own_mac[..]));
        let mut at = 12;
        if let Some(tag) = self.tag(backend, tag) {
            assert_eq!(after[12..16], tag);
            at = 16;
        }
        let Some((_, v6)) = self.tunnel else {
            assert_eq!(&after[at..at + 2], kind);
            assert_eq!(&after[at + 2..], packet);
            return Sent::On;
        };
        assert_eq!(after[at..at + 2], if v6 { [0x86, 0xdd] } else { [8, 0] });
        self.check_outer(&after[at + 2..], backend, packet);
        Sent::On
    }

    fn check_outer(self, outer: &[u8], backend: u16, packet: &[u8]) {
        let (kind, v6) = self.tunnel.unwrap();
        let (local, remote) = ends(v6, backend);
        let inner_v6 = packet[0] >> 4 == 6;
        let protocol = match (kind, inner_v6) {
            (TunnelKind::Gue, _) => 17,
            (TunnelKind::Ipip, false) => 4,
            (TunnelKind::Ipip, true) => 41,
        };
        let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
        let behind = if v6 {
            assert_eq!(outer[..4], [0x60, 0, 0, 0]);
            assert_eq!(outer[4..6], length(outer.len() - 40));
            assert_eq!(outer[6..8], [protocol, 64]);
            assert_eq!((&outer[8..24], &outer[24..40]), (&octets(local)[..], &octets(remote)[..]));
            &outer[40..]
        } else {
            assert_eq!(outer[..2], [0x45, 0]);
            assert_eq!(outer[2..4], length(outer.len()));
            assert_eq!(outer[4..10], [0, 0, 0x40, 0, 64, protocol], "never in fragments");
            assert_eq!(sum(&[&outer[..20]]), 0xffff);
            assert_eq!((&outer[12..16], &outer[16..20]), (&octets(local)[..], &octets(remote)[..]));
            &outer[20..]
        };
        if kind == TunnelKind::Ipip {
            assert_eq!(behind, packet);
            return;
        }
        assert!(u16::from_be_bytes([behind[0], behind[1]]) >= 49_152);
        assert_eq!(behind[2..4], 6080_u16.to_be_bytes());
        assert_eq!(behind[4..6], length(behind.len()));
        assert_eq!(behind[6..8], [0, 0]);
        assert_eq!(&behind[8..], packet);
    }

    /// RFC 1191 and RFC 4443: from the virtual address to the client, in the VLAN of the packet.
    fn check_too_big(self, before: &[u8], after: &[u8]) {
        let (tag, kind, packet) = parts(before);
        let (answered_tag, answered_kind, answer) = parts(after);
        assert_eq!((answered_tag, answered_kind), (tag, kind));
        assert_eq!((&after[..6], &after[6..12]), (&before[6..12], &before[..6]));
        let fits = MOST_BYTES - u32::try_from(self.outer_bytes()).unwrap();
        if packet[0] >> 4 == 6 {
            let (header, icmp) = answer.split_at(40);
            assert_eq!(header[..8], [0x60, 0, 0, 0, 0, 72, 58, 64]);
            assert_eq!((&header[8..24], &header[24..40]), (&packet[24..40], &packet[8..24]));
            assert_eq!(icmp[..2], [2, 0]);
            assert_eq!(icmp[4..8], fits.to_be_bytes());
            assert_eq!(sum(&[&header[8..40], &[0, 0, 0, 72, 0, 0, 0, 58], icmp]), 0xffff);
            assert_eq!(icmp[8..], packet[..64]);
        } else {
            let (header, icmp) = answer.split_at(20);
            assert_eq!(header[..10], [0x45, 0, 0, 92, 0, 0, 0, 0, 64, 1]);
            assert_eq!(sum(&[header]), 0xffff);
            assert_eq!((&header[12..16], &header[16..20]), (&packet[16..20], &packet[12..16]));
            assert_eq!(icmp[..2], [3, 4]);
            assert_eq!(icmp[4..8], fits.to_be_bytes());
            assert_eq!(sum(&[icmp]), 0xffff);
            assert_eq!(icmp[8..], packet[..64]);
        }
    }
}

/// What has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    On,
    Answer,
    Nothing,
}

/// Tries mutants on such a way. Returns how many went on, and how many were answered.
fn tried(way: WayModel) -> (usize, usize) {
    let mut world = World::new(way.hook);
    let mut model = Model::new(VIPS.map(|vip| vip.parse().unwrap()).into());
    let mut good = Vec::new();
    for (client, vip) in pairs() {
        establish(&mut world, &mut model, client, vip);
        good.extend([40, 1270].into_iter().flat_map(|bytes| frames(client, vip, bytes)));
    }
    for backend in 0..3 {
        let tunnel = way.tunnel.map(|(kind, v6)| {
            let (local, remote) = ends(v6, backend);
            Tunnel { kind, local, remote, most_bytes: MOST_BYTES }
        });
        world.switch.set_tunnel(backend, tunnel.as_ref()).unwrap();
        let holder = ConnHolder { backend, generation: 0 };
        let tag = TAGS[usize::from(backend)];
        world.switch.set_tagged_backend(holder, 1, Some(&hop(backend)), tag).unwrap();
    }
    let mut random = Random(57);
    let (mut on, mut answered) = (0, 0);
    for number in 0..MUTANTS + good.len() {
        let base = &good[number % good.len()];
        let frame = if number < good.len() { base.clone() } else { mutant(base, &mut random) };
        if is_untried(&world, &frame) {
            continue;
        }
        let expected = model.judge(&frame);
        let trial = world.switch.try_frame(way.hook, &frame, 1).unwrap();
        match expected {
            None => assert!(trial.verdict == PacketVerdict::Pass && trial.frame == frame),
            Some(backend) => match way.check(&frame, backend, trial.verdict, &trial.frame) {
                Sent::On => on += 1,
                Sent::Answer => answered += 1,
                Sent::Nothing => {}
            },
        }
    }
    (on, answered)
}

#[test]
fn frames_leave_as_the_model_says() {
    let kinds = [TunnelKind::Ipip, TunnelKind::Gue];
    let tunnels = kinds.into_iter().flat_map(|kind| [false, true].map(|v6| Some((kind, v6))));
    for tunnel in tunnels.chain([None]) {
        for hook in HOOKS {
            let (on, answered) = tried(WayModel { hook, tunnel });
            assert!(on > MUTANTS / 5, "{tunnel:?} by {hook:?}: {on} went on");
            assert_eq!(answered > MUTANTS / 20, tunnel.is_some(), "{tunnel:?} by {hook:?}: {answered}");
        }
    }
}
