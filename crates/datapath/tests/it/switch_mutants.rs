//! Mutants of good frames: the verdict of the programs is always that of an independent model.

use std::net::SocketAddr;

use plimsoll_datapath::Flow;
use plimsoll_datapath::switch::{PreparedChoice, SwitchConn, Transport};

use crate::packet::{ACK, FIN, Packet, RST, SYN};
use crate::switch::{HOOKS, VIPS, World, pairs};
use crate::switch_model::Model;

const MUTANTS: usize = 30_000;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// With a VLAN tag of this kind.
fn tagged(frame: &[u8], kind: u16) -> Vec<u8> {
    let mut tagged = frame[..12].to_vec();
    tagged.extend(kind.to_be_bytes());
    tagged.extend([0, 100]);
    tagged.extend(&frame[12..]);
    tagged
}

/// Frames of all kinds that the program tells apart, of one connection, with so much payload.
pub(crate) fn frames(client: SocketAddr, vip: SocketAddr, payload_bytes: usize) -> Vec<Vec<u8>> {
    let packet = |flags| Packet::new(client, vip, flags).payload(payload_bytes);
    let mut frames: Vec<_> = [SYN, ACK, FIN | ACK, RST, SYN | ACK].map(|f| packet(f).frame()).into();
    frames.push(packet(0).udp(&[7; 30]));
    frames.extend([packet(ACK).fragment(true), packet(ACK).fragment(false), packet(SYN).fragment(true)]);
    frames.push(Packet::new(vip, client, ACK).payload(100).too_big());
    let mut other = vip;
    other.set_port(81);
    frames.push(Packet::new(client, other, ACK).frame());
    if client.is_ipv4() {
        frames.push(packet(ACK).with(0, &[1; 8]));
        frames.push(packet(SYN).with(0, &[7, 39, 4].into_iter().chain([0; 37]).collect::<Vec<_>>()));
    } else {
        frames.push(packet(ACK).with(0, &[6, 0, 1, 4, 0, 0, 0, 0]));
        frames.push(packet(ACK).with(60, &[43, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]));
        frames.push(packet(ACK).with(51, &[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]));
        frames.push(packet(ACK).with(0, &[44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 9]));
    }
    let tags: Vec<_> = frames.iter().step_by(2).map(|frame| tagged(frame, 0x8100)).collect();
    frames.push(tagged(&frames[1], 0x88a8));
    frames.push(tagged(&tagged(&frames[1], 0x8100), 0x8100));
    frames.extend(tags);
    frames
}

/// Changes a frame at one to four places, mostly in its headers, or cuts it off.
pub(crate) fn mutant(frame: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutant = frame.to_vec();
    for _ in 0..=random.below(4) {
        let headers = mutant.len().min(100);
        match random.below(12) {
            0 => mutant.truncate(14 + random.below(mutant.len().max(15) - 14)),
            1 => mutant.extend((0..random.below(30)).map(|_| 0)),
            2 => {
                // The lengths of the headers.
                let at = [14, 16, 17, 18, 19, 20, 21, 46, 66][random.below(9)];
                if let Some(byte) = mutant.get_mut(at) {
                    *byte = byte.wrapping_add([1, 2, 0xff, 0x10, 0x40][random.below(5)]);
                }
            }
            3..=6 => mutant[12 + random.below(headers.max(13) - 12)] = random.next() as u8,
            7 => {
                let at = random.below(headers);
                mutant[at] = 0;
            }
            _ => {
                let at = 12 + random.below(headers.max(13) - 12);
                mutant[at] ^= 1 << random.below(8);
            }
        }
    }
    mutant
}

/// Establishes a connection where the hash would not place it.
pub(crate) fn establish(world: &mut World, model: &mut Model, client: SocketAddr, vip: SocketAddr) {
    let syn = Packet::new(client, vip, SYN).numbers(999, 0).frame();
    let other = Packet::new(client, vip, SYN).numbers(1, 0).frame();
    let chosen = (world.backend(&other).unwrap() + 1) % 3;
    world.with_choice(PreparedChoice { number: 1, backend: chosen }, |world| world.backend(&syn));
    assert_eq!(world.backend(&Packet::new(client, vip, ACK).numbers(1000, 1).frame()), Some(chosen));
    let conn = SwitchConn { flow: Flow::new(client, vip), transport: Transport::Tcp };
    model.know(conn, chosen, 1000);
}

/// Whether the kernel tries no such frame, as it is shorter than its headers.
pub(crate) fn is_untried(world: &World, frame: &[u8]) -> bool {
    let shortest = if frame.get(12..14) == Some(&[0x86, 0xdd]) { 54 } else { 34 };
    frame.len() < shortest && world.switch.try_frame(world.hook, frame, 1).is_err()
}

#[test]
fn mutants_are_judged_as_the_model_does() {
    for hook in HOOKS {
        let mut world = World::new(hook);
        let mut model = Model::new(VIPS.map(|vip| vip.parse().unwrap()).into());
        let mut good = Vec::new();
        for (client, vip) in pairs() {
            establish(&mut world, &mut model, client, vip);
            good.extend(frames(client, vip, 40));
        }
        let mut random = Random(19);
        let (mut judged, mut forwarded) = (0, 0);
        for number in 0..MUTANTS + good.len() {
            let base = &good[number % good.len()];
            let frame = if number < good.len() { base.clone() } else { mutant(base, &mut random) };
            if is_untried(&world, &frame) {
                continue;
            }
            let expected = model.judge(&frame);
            let found = world.backend(&frame);
            assert_eq!(found, expected, "frame {number} by {hook:?}: {frame:02x?}");
            judged += 1;
            forwarded += usize::from(found.is_some());
        }
        // Neither verdict is the usual one.
        assert!(judged > 20_000 && (judged / 5..judged * 4 / 5).contains(&forwarded), "{forwarded}/{judged}");
    }
}
