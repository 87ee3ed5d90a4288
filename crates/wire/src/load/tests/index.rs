//! The load index manager and its client.

use super::*;

fn names() -> Vec<String> {
    ["a", "b", "c"].map(str::to_owned).into()
}

fn manager(boot: u8) -> LoadIndex {
    LoadIndex::new(keys(), BootId::new([boot; 8]), &names(), IndexLimits::default(), 5)
}

fn client(number: u8) -> IndexClient {
    IndexClient::new(keys(), [number; 8], &names(), 100)
}

/// Sends until it is answered other than by a renewal.
fn tell(index: &mut LoadIndex, client: &mut IndexClient, first: Datagram, now_ns: u64) -> IndexAnswer {
    let mut datagram = first;
    for _ in 0..2 {
        let answer = index.answer(source(), &datagram, now_ns).unwrap();
        match client.take(&answer, now_ns).unwrap() {
            IndexAnswer::Renewed { sequence } => datagram = client.repeat(sequence, now_ns).unwrap(),
            answer => return answer,
        }
    }
    panic!("renewed twice");
}

fn acquire(index: &mut LoadIndex, client: &mut IndexClient, now_ns: u64) -> (u64, usize) {
    let (_, datagram) = client.acquire(now_ns).unwrap();
    match tell(index, client, datagram, now_ns) {
        IndexAnswer::Granted { sequence, backend } => (sequence, backend),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_shortest_queue_gets_each_access() {
    let (mut index, mut one, mut two) = (manager(1), client(1), client(2));
    let mut held = Vec::new();
    for round in 0..4 {
        for _ in 0..3 {
            let from = if round % 2 == 0 { &mut one } else { &mut two };
            held.push((round % 2, acquire(&mut index, from, 0)));
        }
        assert_eq!(index.queues(), [round + 1; 3]);
    }
    let at_b: Vec<_> = held.iter().filter(|(_, (_, backend))| *backend == 1).collect();
    for &&(who, (sequence, _)) in &at_b {
        let from = if who == 0 { &mut one } else { &mut two };
        let release = from.release(sequence, 0).unwrap();
        assert_eq!(tell(&mut index, from, release, 0), IndexAnswer::Released { sequence });
    }
    assert_eq!(index.queues(), [4, 0, 4]);
    assert_eq!(acquire(&mut index, &mut one, 0).1, 1);
}

#[test]
fn ties_are_broken_at_random() {
    let mut firsts = [0_u32; 3];
    for seed in 1..=300 {
        let mut index =
            LoadIndex::new(keys(), BootId::new([1; 8]), &names(), IndexLimits::default(), seed * 0x9e37_79b9);
        firsts[acquire(&mut index, &mut client(1), 0).1] += 1;
    }
    assert!(firsts.iter().all(|&count| count > 50), "{firsts:?}");
}

#[test]
fn what_is_repeated_counts_once() {
    let (mut index, mut client) = (manager(1), client(1));
    acquire(&mut index, &mut client, 0);
    let (sequence, lost) = client.acquire(0).unwrap();
    assert!(index.answer(source(), &lost, 0).is_some(), "the answer is lost");
    let again = client.repeat(sequence, MS).unwrap();
    let answer = tell(&mut index, &mut client, again, MS);
    assert!(matches!(answer, IndexAnswer::Granted { .. }));
    assert_eq!(index.queues().iter().sum::<u32>(), 2);
    let release = client.release(sequence, MS).unwrap();
    assert!(index.answer(source(), &release, MS).is_some());
    assert!(index.answer(source(), &release, MS).is_some(), "told again");
    assert_eq!(index.queues().iter().sum::<u32>(), 1);
    assert!(index.answer(source(), &lost, MS).is_none(), "what was over is not granted again");
    // An access whose client gave up before the manager heard of it.
    let (given_up, datagram) = client.acquire(MS).unwrap();
    let release = client.release(given_up, MS).unwrap();
    assert!(index.answer(source(), &release, MS).is_some());
    assert!(index.answer(source(), &datagram, MS).is_none());
    assert_eq!(index.queues().iter().sum::<u32>(), 1);
}

#[test]
fn an_access_that_was_lost_for_too_long_is_asked_for_anew() {
    let (mut index, mut client) = (manager(1), IndexClient::new(keys(), [1; 8], &names(), 1000));
    acquire(&mut index, &mut client, 0);
    let (lost, late) = client.acquire(0).unwrap();
    for _ in 0..128 {
        acquire(&mut index, &mut client, 0);
    }
    let again = client.repeat(lost, MS).unwrap();
    assert_eq!(tell(&mut index, &mut client, again, MS), IndexAnswer::TooLate { sequence: lost });
    assert_eq!(client.repeat(lost, MS), None, "nothing is said of it any more");
    acquire(&mut index, &mut client, MS);
    // Should it come after all, it is not granted.
    let answer = index.answer(source(), &late, MS).unwrap();
    assert_eq!(client.take(&answer, MS), Err(LoadRefusal::Late));
    assert_eq!(index.queues().iter().sum::<u32>(), 130);
}

#[test]
fn what_nobody_answers_is_given_up() {
    let mut client = client(1);
    let (sequence, _) = client.acquire(0).unwrap();
    assert_eq!((0..1000).filter(|_| client.repeat(sequence, MS).is_some()).count(), 100);
    assert_eq!(client.release(sequence, MS), None, "it is forgotten");
}

#[test]
fn accesses_of_a_client_that_is_gone_expire() {
    let (mut index, mut gone, mut here) = (manager(1), client(1), client(2));
    for _ in 0..3 {
        acquire(&mut index, &mut gone, 0);
    }
    for _ in 0..3 {
        acquire(&mut index, &mut here, 0);
    }
    let keep = here.keep(3 * SECOND);
    assert!(index.answer(source(), &keep, 3 * SECOND).is_some());
    let keep = here.keep(6 * SECOND);
    assert!(index.answer(source(), &keep, 6 * SECOND).is_some());
    assert_eq!(index.queues().iter().sum::<u32>(), 3);
}

#[test]
fn a_manager_that_restarts_is_learned_again() {
    let mut client = client(1);
    let (sequence, _) = acquire(&mut manager(1), &mut client, 0);
    let mut restarted = manager(2);
    let release = client.release(sequence, SECOND).unwrap();
    assert_eq!(tell(&mut restarted, &mut client, release, SECOND), IndexAnswer::Released { sequence });
    acquire(&mut restarted, &mut client, SECOND);
    assert_eq!(restarted.queues().iter().sum::<u32>(), 1);
}

#[test]
fn a_client_with_another_list_is_told() {
    let mut other = IndexClient::new(keys(), [1; 8], &["a".to_owned()], 10);
    let (_, hello) = other.acquire(0).unwrap();
    let answer = manager(1).answer(source(), &hello, 0).unwrap();
    assert_eq!(other.take(&answer, 0), Err(LoadRefusal::Implausible));
}
