//! Asked, answered, announced, and what does not belong there.

mod index;
mod noise;

use std::net::IpAddr;

use super::*;
use crate::Key;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn keys() -> LoadKeys {
    LoadKeys::new(&Key::new([7; 32]))
}

fn source() -> IpAddr {
    "10.0.0.9".parse().unwrap()
}

fn answerer(boot: u8) -> LoadAnswerer {
    LoadAnswerer::new(keys(), BootId::new([boot; 8]), AnswerLimits::default(), 3)
}

fn inquirer(client: u8) -> LoadInquirer {
    LoadInquirer::new(keys(), [client; 8], InquiryLimits::default())
}

/// Asks agent 0 until its load is known; the agent's clock is 5 s ahead.
fn ask(inquirer: &mut LoadInquirer, agent: &mut LoadAnswerer, load: u32, now_ns: u64) -> LoadTaken {
    for _ in 0..2 {
        let (_, datagram) = inquirer.ask(0, now_ns).unwrap();
        let reply = agent.answer(source(), &datagram, now_ns + 5 * SECOND, || (load, 77)).unwrap();
        match inquirer.take(&reply, now_ns + MS).unwrap() {
            LoadTaken::Renewed { .. } => {}
            taken => return taken,
        }
    }
    panic!("renewed twice");
}

#[test]
fn an_agent_is_known_after_one_renewal() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    let taken = ask(&mut inquirer, &mut agent, 5, 0);
    let expected = LoadTaken::Load { peer: 0, sequence: 2, load: 5, latency_us: 77, round_trip_ns: MS };
    assert_eq!(taken, expected);
    let taken = ask(&mut inquirer, &mut agent, 6, 10 * MS);
    assert!(matches!(taken, LoadTaken::Load { sequence: 3, load: 6, .. }), "{taken:?}");
    let counts = agent.counters().counts();
    assert_eq!((counts.taken, counts.renewed, counts.refused_total()), (2, 1, 0));
    let counts = inquirer.counters().counts();
    assert_eq!((counts.taken, counts.renewed, counts.refused_total()), (2, 1, 0));
}

#[test]
fn an_agent_that_restarts_is_learned_again() {
    let mut inquirer = inquirer(1);
    ask(&mut inquirer, &mut answerer(1), 5, 0);
    let mut restarted = answerer(2);
    let (sequence, datagram) = inquirer.ask(0, SECOND).unwrap();
    let reply = restarted.answer(source(), &datagram, MS, || panic!("no load is told")).unwrap();
    assert_eq!(inquirer.take(&reply, SECOND), Ok(LoadTaken::Renewed { peer: 0, sequence }));
    let (_, datagram) = inquirer.ask(0, SECOND).unwrap();
    let reply = restarted.answer(source(), &datagram, MS, || (9, 0)).unwrap();
    assert!(matches!(inquirer.take(&reply, SECOND), Ok(LoadTaken::Load { load: 9, .. })));
}

#[test]
fn what_comes_late_is_never_used() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    ask(&mut inquirer, &mut agent, 5, 0);
    let (sequence, datagram) = inquirer.ask(0, MS).unwrap();
    let reply = agent.answer(source(), &datagram, 5 * SECOND + MS, || (1, 0)).unwrap();
    inquirer.give_up(sequence);
    assert_eq!(inquirer.take(&reply, 20 * MS), Err(LoadRefusal::Late));
    // Nor is a reply twice, nor one to somebody else.
    let (_, datagram) = inquirer.ask(0, 30 * MS).unwrap();
    let reply = agent.answer(source(), &datagram, 5 * SECOND + 30 * MS, || (1, 0)).unwrap();
    assert!(inquirer.take(&reply, 31 * MS).is_ok());
    assert_eq!(inquirer.take(&reply, 31 * MS), Err(LoadRefusal::Late));
    let mut other = self::inquirer(2);
    other.ask(0, 0).unwrap();
    assert_eq!(other.take(&reply, 31 * MS), Err(LoadRefusal::Replayed));
}

#[test]
fn replays_and_old_inquiries_get_no_answer() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    let hello = inquirer.ask(0, 0).unwrap().1;
    let reply = agent.answer(source(), &hello, 5 * SECOND, || (1, 0)).unwrap();
    inquirer.take(&reply, 0).unwrap();
    let (_, early) = inquirer.ask(0, MS).unwrap();
    let (_, late) = inquirer.ask(0, 2 * MS).unwrap();
    assert!(agent.answer(source(), &late, 5 * SECOND + 2 * MS, || (1, 0)).is_some());
    assert!(agent.answer(source(), &late, 5 * SECOND + 2 * MS, || (1, 0)).is_none(), "a replay");
    assert!(agent.answer(source(), &early, 5 * SECOND + 2 * MS, || (1, 0)).is_some(), "overtaken");
    let (_, old) = inquirer.ask(0, 3 * MS).unwrap();
    assert!(agent.answer(source(), &old, 8 * SECOND, || (1, 0)).is_none(), "stale");
    let counters = agent.counters().counts();
    assert_eq!(counters.refused_for(LoadRefusal::Replayed), 1);
    assert_eq!(counters.refused_for(LoadRefusal::Stale), 1);
    // One from the future, as after a jump of the agent's clock.
    assert!(agent.answer(source(), &inquirer.ask(0, 5 * SECOND).unwrap().1, SECOND, || (1, 0)).is_none());
    assert_eq!(agent.counters().counts().refused_for(LoadRefusal::Stale), 2);
}

#[test]
fn silence_and_time_have_the_clock_learned_again() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    ask(&mut inquirer, &mut agent, 5, 0);
    for _ in 0..3 {
        let (sequence, _) = inquirer.ask(0, MS).unwrap();
        assert!(inquirer.knows(0));
        inquirer.give_up(sequence);
    }
    let (_, datagram) = inquirer.ask(0, 2 * MS).unwrap();
    assert_eq!(Inquiry::open(&datagram, &keys()).unwrap().boot, 0);
    ask(&mut inquirer, &mut agent, 5, 3 * MS);
    let (_, datagram) = inquirer.ask(0, 70 * SECOND).unwrap();
    assert_eq!(Inquiry::open(&datagram, &keys()).unwrap().boot, 0);
}

#[test]
fn bounds_hold() {
    let limits =
        AnswerLimits { clients: 2, per_source_s: 100, renewals_per_source_s: 10, ..Default::default() };
    let mut agent = LoadAnswerer::new(keys(), BootId::new([1; 8]), limits, 3);
    for client in 1..=3 {
        let boot = BootId::new([1; 8]).number();
        let inquiry = Inquiry { boot, client, sequence: 1, clock_ns: 0 }.seal(&keys());
        assert_eq!(agent.answer(source(), &inquiry, 0, || (1, 0)).is_some(), client < 3);
    }
    assert_eq!(agent.counters().counts().refused_for(LoadRefusal::Full), 1);
    let mut answered = [0; 2];
    for sequence in 2..1000 {
        let mut send = |boot| {
            let inquiry = Inquiry { boot, client: 1, sequence, clock_ns: 0 }.seal(&keys());
            u32::from(agent.answer(source(), &inquiry, 0, || (1, 0)).is_some())
        };
        answered[0] += send(0);
        answered[1] += send(BootId::new([1; 8]).number());
    }
    // A tenth of a second's worth at once, of which three are used.
    assert_eq!(answered, [1, 7]);
    let limits = InquiryLimits { outstanding: 2, ..InquiryLimits::default() };
    let mut inquirer = LoadInquirer::new(keys(), [1; 8], limits);
    assert!(inquirer.ask(0, 0).is_some() && inquirer.ask(1, 0).is_some() && inquirer.ask(2, 0).is_none());
}

#[test]
fn announcements_of_known_agents_once_and_in_order() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    let start_ns = 5 * SECOND;
    let mut announcer = LoadAnnouncer::new(keys(), BootId::new([1; 8]), 100 * MS, 9, start_ns);
    let first = announcer.announce(start_ns, 3, 50);
    assert_eq!(inquirer.take_announcement(&first, 0), Err(LoadRefusal::UnknownBoot));
    ask(&mut inquirer, &mut agent, 5, 0);
    let taken = inquirer.take_announcement(&first, MS).unwrap();
    assert_eq!(taken, Announced { peer: 0, load: Some(3), latency_us: 50, interval_ns: 100 * MS });
    assert_eq!(inquirer.take_announcement(&first, MS), Err(LoadRefusal::Replayed));
    let second = announcer.announce(start_ns + MS, 4, 0);
    let third = announcer.announce(start_ns + 2 * MS, 5, 0);
    assert!(inquirer.take_announcement(&third, 2 * MS).is_ok());
    assert_eq!(inquirer.take_announcement(&second, 2 * MS), Err(LoadRefusal::Replayed), "overtaken");
    let held_back = announcer.announce(start_ns + 3 * MS, 5, 0);
    assert_eq!(inquirer.take_announcement(&held_back, 3 * SECOND), Err(LoadRefusal::Stale));
    // What an earlier run announced is nothing to a receiver that knows the new one.
    let mut restarted = answerer(2);
    let (_, datagram) = inquirer.ask(0, 3 * SECOND).unwrap();
    let renewal = restarted.answer(source(), &datagram, MS, || (0, 0)).unwrap();
    inquirer.take(&renewal, 3 * SECOND).unwrap();
    let old = announcer.announce(start_ns + 3 * SECOND, 5, 0);
    assert_eq!(inquirer.take_announcement(&old, 3 * SECOND), Err(LoadRefusal::UnknownBoot));
}

#[test]
fn a_load_that_no_back_end_has_is_refused() {
    let mut inquirer = inquirer(1);
    let mut agent = answerer(1);
    ask(&mut inquirer, &mut agent, 5, 0);
    let (sequence, _) = inquirer.ask(0, MS).unwrap();
    let boot = BootId::new([1; 8]).number();
    let client = u64::from_le_bytes([1; 8]);
    let lie = LoadReply { boot, client, sequence, clock_ns: 5 * SECOND, load: Some(u32::MAX), latency_us: 0 };
    assert_eq!(inquirer.take(&lie.seal(&keys()), MS), Ok(LoadTaken::Implausible { peer: 0, sequence }));
    assert_eq!(inquirer.counters().counts().refused_for(LoadRefusal::Implausible), 1);
    let lie = LoadAnnouncement {
        boot,
        sequence: 1,
        clock_ns: 5 * SECOND,
        interval_ns: MS,
        load: 65_536,
        latency_us: 0,
    };
    assert_eq!(inquirer.take_announcement(&lie.seal(&keys()), MS).unwrap().load, None);
    // The answerer tells no such load.
    let taken = ask(&mut inquirer, &mut agent, u32::MAX, 2 * MS);
    assert!(matches!(taken, LoadTaken::Load { load: MOST_LOAD, .. }));
}

/// Lets the inquirer learn peer `peer` at this agent.
fn learn(inquirer: &mut LoadInquirer, agent: &mut LoadAnswerer, peer: usize, now_ns: u64) {
    let (_, hello) = inquirer.ask(peer, now_ns).unwrap();
    let renewal = agent.answer(source(), &hello, now_ns + 5 * SECOND, || (0, 0)).unwrap();
    assert!(matches!(inquirer.take(&renewal, now_ns), Ok(LoadTaken::Renewed { .. })));
}

#[test]
fn what_was_announced_before_an_agent_is_learned_again_is_not_taken_again() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    let start_ns = 5 * SECOND;
    let mut announcer = LoadAnnouncer::new(keys(), BootId::new([1; 8]), 100 * MS, 9, start_ns);
    learn(&mut inquirer, &mut agent, 0, 0);
    let announcement = announcer.announce(start_ns, 3, 0);
    assert!(inquirer.take_announcement(&announcement, 0).is_ok());
    for _ in 0..3 {
        let (sequence, _) = inquirer.ask(0, MS).unwrap();
        inquirer.give_up(sequence);
    }
    learn(&mut inquirer, &mut agent, 0, 2 * MS);
    assert_eq!(inquirer.take_announcement(&announcement, 3 * MS), Err(LoadRefusal::Replayed));
    // Nor by another number of the same agent.
    learn(&mut inquirer, &mut agent, 1, 4 * MS);
    assert_eq!(inquirer.take_announcement(&announcement, 5 * MS), Err(LoadRefusal::Replayed));
}

#[test]
fn a_number_that_goes_leaves_another_one_its_agent() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    let mut announcer = LoadAnnouncer::new(keys(), BootId::new([1; 8]), 100 * MS, 9, 5 * SECOND);
    let mut heard = |inquirer: &mut LoadInquirer, now_ns: u64| {
        let announcement = announcer.announce(5 * SECOND + now_ns, 3, 0);
        inquirer.take_announcement(&announcement, now_ns).map(|announced| announced.peer)
    };
    // The agent was at number 0, and is at number 1 now.
    learn(&mut inquirer, &mut agent, 0, 0);
    learn(&mut inquirer, &mut agent, 1, MS);
    inquirer.forget(0);
    assert_eq!(heard(&mut inquirer, 2 * MS), Ok(1));
    // Where the one goes that it is bound to, it is the other one's.
    learn(&mut inquirer, &mut agent, 0, 3 * MS);
    assert_eq!(heard(&mut inquirer, 4 * MS), Ok(0));
    // One that is silent has to be learned again.
    for _ in 0..4 {
        let (sequence, _) = inquirer.ask(0, 5 * MS).unwrap();
        inquirer.give_up(sequence);
    }
    assert_eq!(heard(&mut inquirer, 6 * MS), Ok(1));
    inquirer.forget(0);
    assert_eq!(heard(&mut inquirer, 8 * MS), Ok(1));
    inquirer.forget(1);
    assert_eq!(heard(&mut inquirer, 9 * MS), Err(LoadRefusal::UnknownBoot));
}

#[test]
fn a_recorded_inquiry_does_not_keep_a_front_end_from_learning_an_agent() {
    let (mut inquirer, mut agent) = (inquirer(1), answerer(1));
    let (_, recorded) = inquirer.ask(0, 0).unwrap();
    assert!(agent.answer(source(), &recorded, 0, || (1, 0)).is_some(), "a renewal");
    for at_ns in (0..SECOND).step_by(10_000) {
        assert_eq!(agent.answer(source(), &recorded, at_ns, || (1, 0)), None);
    }
    assert_eq!(agent.counters().counts().refused_for(LoadRefusal::Replayed), 100_000);
    learn(&mut inquirer, &mut agent, 0, SECOND);
}
