//! Datagrams that nobody sent: forged, replayed, truncated, random.

use super::*;

/// A generator of numbers, for as many datagrams as a proptest would take minutes for.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 11).unwrap() % end
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| u8::try_from(self.next() >> 56).unwrap()).collect()
    }
}

const MANY: usize = 100_000;

/// One of: random, truncated, lengthened, with a changed bit, made with another key, and one that has come before.
fn noise(numbers: &mut Numbers, genuine: &[Datagram]) -> Vec<u8> {
    let known = genuine[numbers.below(genuine.len())];
    match numbers.below(6) {
        0 => {
            let count = numbers.below(200);
            numbers.bytes(count)
        }
        1 => known[..numbers.below(DATAGRAM_BYTES)].to_vec(),
        2 => [known.to_vec(), vec![0; 1 + numbers.below(100)]].concat(),
        3 => {
            let mut changed = known;
            changed[numbers.below(DATAGRAM_BYTES)] ^= 1 << numbers.below(8);
            changed.to_vec()
        }
        4 => {
            let other = LoadKeys::new(&Key::new([8; 32]));
            let (boot, client) = (BootId::new([1; 8]).number(), numbers.next());
            Inquiry { boot, client, sequence: numbers.next(), clock_ns: 0 }.seal(&other).to_vec()
        }
        _ => known.to_vec(),
    }
}

#[test]
fn an_agent_answers_none_and_counts_each() {
    let mut agent = answerer(1);
    let boot = BootId::new([1; 8]).number();
    let genuine: Vec<Datagram> =
        (1..=100).map(|sequence| Inquiry { boot, client: 1, sequence, clock_ns: 0 }.seal(&keys())).collect();
    for inquiry in &genuine {
        assert!(agent.answer(source(), inquiry, 0, || (1, 0)).is_some());
    }
    let mut numbers = Numbers(42);
    for number in 0..MANY {
        let datagram = noise(&mut numbers, &genuine);
        let reply = agent.answer(source(), &datagram, 0, || (1, 0));
        assert_eq!(reply, None, "number {number}: {datagram:?}");
    }
    let counts = agent.counters().counts();
    assert_eq!((counts.taken, counts.renewed, counts.refused_total()), (100, 0, MANY as u64));
    for why in [LoadRefusal::Length, LoadRefusal::Form, LoadRefusal::Forged, LoadRefusal::Replayed] {
        assert!(counts.refused_for(why) > 1000, "{why:?}: {counts:?}");
    }
    assert!(agent.answer(source(), &inquirer(1).ask(0, 0).unwrap().1, 0, || (1, 0)).is_some(), "it goes on");
}

#[test]
fn inquiries_of_earlier_boots_get_one_renewal_each_however_often_they_come() {
    let mut agent = answerer(1);
    let of = |instance: u64| {
        (1..=5).flat_map(move |sequence| {
            // It knew no boot id yet, or that of an earlier run of the agent.
            let boots = [(0, 2 * sequence), (BootId::new([9; 8]).number(), 2 * sequence + 1)];
            boots.map(|(boot, sequence)| {
                Inquiry { boot, client: instance, sequence, clock_ns: 0 }.seal(&keys())
            })
        })
    };
    let genuine: Vec<Datagram> = (1..=3).flat_map(of).collect();
    let mut numbers = Numbers(45);
    let mut renewed = 0;
    for number in 0..MANY {
        let datagram = noise(&mut numbers, &genuine);
        // A second passes, so that no rate refuses it.
        if let Some(reply) = agent.answer(source(), &datagram, number as u64 * SECOND, || (1, 0)) {
            assert!(reply.len() <= datagram.len() && reply[3] == 3, "only a renewal");
            renewed += 1;
        }
    }
    let counts = agent.counters().counts();
    assert!((3..=genuine.len() as u64).contains(&renewed), "{renewed}");
    assert_eq!((counts.taken, counts.renewed, counts.refused_total()), (0, renewed, MANY as u64 - renewed));
}

#[test]
fn an_inquirer_takes_none_and_counts_each() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    let mut announcer = LoadAnnouncer::new(keys(), BootId::new([1; 8]), MS, 9, 0);
    ask(&mut inquirer, &mut agent, 1, 0);
    let mut genuine = Vec::new();
    for _ in 0..50 {
        let (_, inquiry) = inquirer.ask(0, 0).unwrap();
        let reply = agent.answer(source(), &inquiry, 5 * SECOND, || (1, 0)).unwrap();
        inquirer.take(&reply, 0).unwrap();
        let announcement = announcer.announce(5 * SECOND, 1, 0);
        inquirer.take_announcement(&announcement, 0).unwrap();
        genuine.extend([reply, announcement]);
    }
    // Some are waited for.
    for _ in 0..50 {
        inquirer.ask(0, 0).unwrap();
    }
    let before = inquirer.counters().counts();
    let mut numbers = Numbers(43);
    for _ in 0..MANY / 2 {
        assert!(inquirer.take(&noise(&mut numbers, &genuine), 0).is_err());
        assert!(inquirer.take_announcement(&noise(&mut numbers, &genuine), 0).is_err());
    }
    let counts = inquirer.counters().counts();
    assert_eq!((counts.taken, counts.renewed), (before.taken, before.renewed));
    assert_eq!(counts.refused_total() - before.refused_total(), MANY as u64);
}

#[test]
fn a_load_index_counts_nothing_for_any() {
    let names: Vec<String> = ["a", "b"].map(str::to_owned).into();
    let mut index = LoadIndex::new(keys(), BootId::new([1; 8]), &names, IndexLimits::default(), 5);
    let mut client = IndexClient::new(keys(), [1; 8], &names, 1000);
    let (_, hello) = client.acquire(0).unwrap();
    client.take(&index.answer(source(), &hello, 0).unwrap(), 0).unwrap();
    let mut genuine = Vec::new();
    for _ in 0..100 {
        let (sequence, acquire) = client.acquire(0).unwrap();
        client.take(&index.answer(source(), &acquire, 0).unwrap(), 0).unwrap();
        let release = client.release(sequence, 0).unwrap();
        client.take(&index.answer(source(), &release, 0).unwrap(), 0).unwrap();
        genuine.extend([acquire, release]);
    }
    let mut numbers = Numbers(44);
    for _ in 0..MANY {
        let datagram = noise(&mut numbers, &genuine);
        let answer = index.answer(source(), &datagram, 0);
        // The end of an access that is over may be told again.
        assert!(answer.is_none_or(|answer| answer.len() <= datagram.len() && datagram[3] == 7));
        assert_eq!(index.queues(), [0, 0]);
    }
}
