//! The filter of a tap, in classic BPF: TCP from or to some ports, of which only the first bytes are copied.

use socket2::SockFilter;

const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF: u16 = 0x28;
const LOAD_HALF_AT_X: u16 = 0x48;
const LOAD_X_HEADER: u16 = 0xb1;
const AND: u16 = 0x54;
const EQUAL: u16 = 0x15;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

const TCP: u32 = 6;

/// An instruction whose jumps lead to a label.
#[derive(Clone, Copy)]
enum Step {
    Do(u16, u32),
    /// To the first label if equal, else on.
    Equal(u32, Label),
    /// To the label unless equal.
    Unless(u32, Label),
    /// To the label if one of the bits is set.
    Bits(u32, Label),
    Mark(Label),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    V6,
    Accept,
    Reject,
}

/// The filter for packets that begin with their IP header.
pub(super) fn filter(ports: &[u16], copy_bytes: u32) -> Vec<SockFilter> {
    assemble(&steps(ports, copy_bytes))
        .into_iter()
        .map(|(code, yes, no, value)| SockFilter::new(code, yes, no, value))
        .collect()
}

fn steps(ports: &[u16], copy_bytes: u32) -> Vec<Step> {
    use Step::{Bits, Do, Equal, Mark, Unless};
    let mut steps = vec![
        Do(LOAD_BYTE, 0),
        Do(AND, 0xf0),
        Equal(0x60, Label::V6),
        Unless(0x40, Label::Reject),
        Do(LOAD_BYTE, 9),
        Unless(TCP, Label::Reject),
        // Later fragments have no ports.
        Do(LOAD_HALF, 6),
        Bits(0x1fff, Label::Reject),
        Do(LOAD_X_HEADER, 0),
    ];
    let ask = |steps: &mut Vec<Step>, code, at| {
        steps.push(Do(code, at));
        steps.extend(ports.iter().map(|&port| Equal(port.into(), Label::Accept)));
    };
    ask(&mut steps, LOAD_HALF_AT_X, 0);
    ask(&mut steps, LOAD_HALF_AT_X, 2);
    steps.extend([Do(RETURN, 0), Mark(Label::V6), Do(LOAD_BYTE, 6), Unless(TCP, Label::Reject)]);
    ask(&mut steps, LOAD_HALF, 40);
    ask(&mut steps, LOAD_HALF, 42);
    steps.extend([Mark(Label::Reject), Do(RETURN, 0), Mark(Label::Accept), Do(RETURN, copy_bytes)]);
    steps
}

fn assemble(steps: &[Step]) -> Vec<(u16, u8, u8, u32)> {
    let places = |label| {
        let before = steps.iter().take_while(|step| !matches!(step, Step::Mark(l) if *l == label));
        before.filter(|step| !matches!(step, Step::Mark(_))).count()
    };
    let mut code = Vec::new();
    for step in steps {
        let here = code.len();
        // Ports are few (`MOST_PORTS`), so that no jump is longer than a byte.
        let to = |label| u8::try_from(places(label) - here - 1).unwrap_or(u8::MAX);
        code.push(match *step {
            Step::Do(operation, value) => (operation, 0, 0, value),
            Step::Equal(value, label) => (EQUAL, to(label), 0, value),
            Step::Unless(value, label) => (EQUAL, 0, to(label), value),
            Step::Bits(value, label) => (ANY_BIT, to(label), 0, value),
            Step::Mark(_) => continue,
        });
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter returns, by the rules of classic BPF.
    fn run(code: &[(u16, u8, u8, u32)], packet: &[u8]) -> u32 {
        let (mut a, mut x, mut at) = (0_u32, 0_usize, 0);
        let half = |at: usize| packet.get(at..at + 2).map(|b| u32::from(u16::from_be_bytes([b[0], b[1]])));
        loop {
            let (operation, yes, no, value) = code[at];
            at += 1;
            let loaded = match operation {
                LOAD_BYTE => packet.get(value as usize).map(|&byte| u32::from(byte)),
                LOAD_HALF => half(value as usize),
                LOAD_HALF_AT_X => half(x + value as usize),
                _ => Some(a),
            };
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
            let jump = |holds| usize::from(if holds { yes } else { no });
            match operation {
                AND => a &= value,
                LOAD_X_HEADER => x = usize::from(packet[value as usize] & 15) * 4,
                EQUAL => at += jump(a == value),
                ANY_BIT => at += jump(a & value != 0),
                RETURN => return value,
                _ => {}
            }
        }
    }

    fn v4(options: usize, protocol: u8, fragment: u16, ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0; 20 + options];
        packet[0] = 0x45 + (options / 4) as u8;
        packet[9] = protocol;
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet
    }

    #[test]
    fn tcp_of_these_ports() {
        let code = assemble(&steps(&[80, 8080], 96));
        for (packet, wanted) in [
            (v4(0, 6, 0, [4711, 80]), 96),
            (v4(0, 6, 0x4000, [8080, 4711]), 96),
            (v4(40, 6, 0x2000, [4711, 8080]), 96),
            (v4(0, 6, 0, [4711, 81]), 0),
            (v4(0, 17, 0, [4711, 80]), 0),
            (v4(0, 6, 1, [4711, 80]), 0),
            (vec![0x45], 0),
            (vec![0x15; 40], 0),
        ] {
            assert_eq!(run(&code, &packet), wanted, "{packet:?}");
        }
        let mut v6 = vec![0; 40];
        (v6[0], v6[6]) = (0x61, 6);
        v6.extend([0, 1, 0, 80]);
        assert_eq!(run(&code, &v6), 96);
        v6[6] = 17;
        assert_eq!(run(&code, &v6), 0);
    }

    #[test]
    fn the_longest_one_has_jumps_that_fit() {
        let ports: Vec<u16> = (1..=super::super::MOST_PORTS as u16).collect();
        let code = assemble(&steps(&ports, 1));
        assert!(code.iter().all(|(_, yes, no, _)| *yes < u8::MAX && *no < u8::MAX));
        assert_eq!(run(&code, &v4(0, 6, 0, [4711, 1])), 1);
        assert_eq!(run(&code, &v4(0, 6, 0, [ports[ports.len() - 1], 4711])), 1);
        assert_eq!(filter(&ports, 1).len(), code.len());
    }
}
