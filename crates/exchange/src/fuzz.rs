//! Fuzz targets: datagrams that come while polls are under way.

use plimsoll_policy::BackendId;
use plimsoll_wire::Key;
use plimsoll_wire::load::{Datagram, InquiryLimits, LoadInquirer, LoadKeys, LoadReply};

use crate::polls::{PollEvent, PollsUnderWay};

/// The targets of this crate.
#[expect(clippy::type_complexity, reason = "a name and a function, in one place of each crate")]
pub const TARGETS: &[(&str, fn(&[u8]))] = &[("exchange_polls", polls)];

const CLIENT: [u8; 8] = [4; 8];

/// Each request that waits is answered once, whatever comes and in whichever order; strangers are not heard.
fn polls(bytes: &[u8]) {
    let keys = LoadKeys::new(&Key::new([6; 32]));
    let inquirer = LoadInquirer::new(keys.clone(), CLIENT, InquiryLimits::default());
    let mut polls = PollsUnderWay::new(inquirer, 1000, 100);
    let mut events = Vec::new();
    let (mut now_ns, mut begun) = (1, 0_u64);
    let backends = [BackendId(0), BackendId(1), BackendId(2)];
    assert!(
        polls.take(bytes, now_ns, &mut events).is_empty() && events.is_empty(),
        "a stranger is not heard"
    );
    for step in bytes.chunks_exact(4).take(200) {
        let [what, number, load, time] = [step[0], step[1], step[2], step[3]];
        now_ns += u64::from(time);
        match what % 4 {
            0 => {
                let asked = backends.into_iter().filter(|b| number >> b.index() & 1 != 0);
                let (_, at_once) = polls.begin(Some(begun), asked, now_ns);
                events.extend(at_once);
                begun += 1;
            }
            1 | 2 => {
                let datagram = reply(&keys, (what >> 2, number, load), now_ns);
                polls.take(&datagram, now_ns, &mut events);
            }
            _ if load & 1 == 0 => events.extend(polls.expire(now_ns)),
            _ => events.extend(polls.forget(backends[usize::from(number) % 3], now_ns)),
        }
    }
    events.extend(polls.expire(now_ns + 1_000_000));
    let mut answered = vec![0; usize::try_from(begun).unwrap_or(0)];
    for event in &events {
        if let PollEvent::Answered { number, .. } = event {
            answered[usize::try_from(*number).unwrap_or(0)] += 1;
        }
    }
    assert!(answered.iter().all(|&times| times == 1), "{answered:?}");
    assert!((0..begun).all(|number| !polls.is_waiting(number)) && polls.next_due_ns().is_none());
}

fn reply(keys: &LoadKeys, (boot, sequence, load): (u8, u8, u8), clock_ns: u64) -> Datagram {
    LoadReply {
        boot: u64::from(boot & 1),
        client: u64::from_le_bytes(CLIENT),
        sequence: u64::from(sequence & 31),
        clock_ns,
        load: (load < 200).then_some(u32::from(load) * 500),
        latency_us: u32::from(load),
    }
    .seal(keys)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_and_mutations_of_it() {
        let corpus = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus"));
        plimsoll_testkit::replay_corpus(super::TARGETS, corpus, 200);
    }
}
