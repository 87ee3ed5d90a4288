//! Tests of polls by hand: time and datagrams are given.

use plimsoll_wire::Key;
use plimsoll_wire::load::{AnswerLimits, BootId, InquiryLimits, LoadAnswerer, LoadKeys, LoadReply};

use super::*;

const MS: u64 = 1_000_000;
const A: BackendId = BackendId(0);
const B: BackendId = BackendId(1);

fn keys() -> LoadKeys {
    LoadKeys::new(&Key::new([7; 32]))
}

fn polls() -> PollsUnderWay {
    PollsUnderWay::new(LoadInquirer::new(keys(), [1; 8], InquiryLimits::default()), 10 * MS, MS + 1)
}

struct Agents(Vec<LoadAnswerer>);

impl Agents {
    fn two() -> Self {
        let one = |boot: u8| LoadAnswerer::new(keys(), BootId::new([boot; 8]), AnswerLimits::default(), 3);
        Self(vec![one(1), one(2)])
    }

    fn reply(&mut self, to: BackendId, inquiry: &Datagram, load: u32) -> Datagram {
        let source = std::net::IpAddr::from([127, 0, 0, 1]);
        self.0[to.index()].answer(source, inquiry, MS, || (load, 50)).unwrap()
    }

    /// Delivers and answers until nothing is sent any more.
    fn answer(&mut self, polls: &mut PollsUnderWay, mut sent: Outgoing, loads: [u32; 2]) -> Vec<PollEvent> {
        let mut all = Vec::new();
        while let Some((to, inquiry)) = sent.pop() {
            let reply = self.reply(to, &inquiry, loads[to.index()]);
            let (more, events) = take(polls, &reply, MS);
            sent.extend(more);
            all.extend(events);
        }
        all
    }
}

fn told(backend: BackendId, load: u32) -> PollEvent {
    PollEvent::Told(LoadReport { backend, load, latency: Some(Nanos::new(50_000)) })
}

fn answered<const N: usize>(number: u64, heard: [BackendId; N], took_ns: u64) -> PollEvent {
    PollEvent::Answered { number, heard: Candidates::new(heard), took_ns }
}

fn take(polls: &mut PollsUnderWay, datagram: &[u8], now_ns: u64) -> (Outgoing, Vec<PollEvent>) {
    let mut events = Vec::new();
    let outgoing = polls.take(datagram, now_ns, &mut events);
    (outgoing, events)
}

#[test]
fn a_poll_ends_with_the_last_answer() {
    let (mut polls, mut agents) = (polls(), Agents::two());
    let (sent, events) = polls.begin(Some(7), [A, B].into_iter(), 0);
    assert_eq!((sent.len(), events.len()), (2, 0));
    let events = agents.answer(&mut polls, sent, [3, 4]);
    assert_eq!(events, [told(B, 4), told(A, 3), answered(7, [B, A], MS)]);
    assert_eq!(polls.expire(10 * MS), []);
    assert!(polls.asked.is_empty() && polls.polls.is_empty());
    assert_eq!(polls.begin(Some(8), std::iter::empty(), 0).1.len(), 1, "nobody has an address");
}

#[test]
fn what_is_late_is_discarded_and_silence_is_not_waited_for() {
    let (mut polls, mut agents) = (polls(), Agents::two());
    for round in 0..3 {
        let (sent, _) = polls.begin(Some(round), [A, B].into_iter(), 0);
        let to_a: Outgoing = sent.into_iter().filter(|(to, _)| *to == A).collect();
        assert_eq!(agents.answer(&mut polls, to_a, [3, 4]), [told(A, 3)]);
        assert_eq!(polls.next_due_ns(), Some(10 * MS));
        assert_eq!(polls.expire(9 * MS), []);
        let mut expected = vec![PollEvent::Discarded(B)];
        expected.extend((round == 2).then_some(PollEvent::Silent(B)));
        expected.push(answered(round, [A], 10 * MS));
        assert_eq!(polls.expire(10 * MS), expected);
    }
    // It is asked, and its answer comes after that of the other one: the request did not wait for it.
    let (sent, _) = polls.begin(Some(9), [A, B].into_iter(), 0);
    let (to_a, to_b): (Outgoing, Outgoing) = sent.into_iter().partition(|(to, _)| *to == A);
    let events = agents.answer(&mut polls, to_a, [3, 4]);
    assert_eq!(events, [told(A, 3), answered(9, [A], MS)]);
    let events = agents.answer(&mut polls, to_b, [3, 4]);
    assert_eq!(events, [told(B, 4)]);
    // So it is back.
    let (sent, _) = polls.begin(Some(10), [B].into_iter(), 0);
    assert!(matches!(agents.answer(&mut polls, sent, [3, 4])[..], [_, PollEvent::Answered { .. }]));
    // Where all are silent, nobody is waited for.
    for _ in 0..3 {
        polls.begin(None, [B].into_iter(), 0);
        polls.expire(10 * MS);
    }
    let (sent, events) = polls.begin(Some(11), [B].into_iter(), 0);
    assert_eq!((sent.len(), events.len()), (1, 1));
}

#[test]
fn an_answer_that_is_under_way_is_shared_for_a_moment() {
    let (mut polls, mut agents) = (polls(), Agents::two());
    let (sent, _) = polls.begin(Some(1), [A, B].into_iter(), 0);
    agents.answer(&mut polls, sent, [3, 4]);
    let (sent, _) = polls.begin(Some(2), [A].into_iter(), MS);
    let (more, events) = polls.begin(Some(3), [A, B].into_iter(), 2 * MS);
    assert_eq!((sent.len(), events.len()), (1, 0));
    assert_eq!(more.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [B], "A was asked a millisecond ago");
    let (probed, _) = polls.begin(None, [A].into_iter(), 2 * MS);
    assert_eq!(probed.len(), 0);
    // Who began last waits for B, too; what A tells is told once.
    let (_, events) = take(&mut polls, &agents.reply(A, &sent[0].1, 5), 2 * MS);
    assert_eq!(events, [told(A, 5), answered(2, [A], MS)]);
    let (_, events) = take(&mut polls, &agents.reply(B, &more[0].1, 6), 3 * MS);
    assert_eq!(events, [told(B, 6), answered(3, [A, B], MS)]);
    assert!(polls.asked.is_empty());

    // One that is answered, or was sent before, is not shared; and who shares waits no longer than who asked.
    let (sent, _) = polls.begin(Some(4), [A].into_iter(), 20 * MS);
    let (late, _) = polls.begin(Some(5), [A].into_iter(), 21 * MS + 1);
    assert_eq!((sent.len(), late.len()), (1, 1));
    let (shared, _) = polls.begin(Some(6), [A].into_iter(), 22 * MS);
    assert_eq!(shared.len(), 0);
    let unanswered = |number, took_ns| answered(number, [], took_ns);
    polls.expire(29 * MS);
    assert_eq!(polls.expire(30 * MS), [PollEvent::Discarded(A), unanswered(4, 10 * MS)]);
    let ended = [PollEvent::Discarded(A), unanswered(6, 10 * MS), unanswered(5, 11 * MS - 1)];
    assert_eq!(polls.expire(32 * MS), ended);
    assert!(polls.asked.is_empty());
}

#[test]
fn one_that_lies_is_silent_at_once() {
    let (mut polls, mut agents) = (polls(), Agents::two());
    let (sent, _) = polls.begin(Some(1), [A].into_iter(), 0);
    agents.answer(&mut polls, sent, [3, 4]);
    let (sent, _) = polls.begin(Some(2), [A].into_iter(), MS);
    let inquiry = plimsoll_wire::load::Inquiry::open(&sent[0].1, &keys()).unwrap();
    let lie = LoadReply {
        boot: BootId::new([1; 8]).number(),
        client: inquiry.client,
        sequence: inquiry.sequence,
        clock_ns: MS,
        load: Some(u32::MAX),
        latency_us: 0,
    };
    let (_, events) = take(&mut polls, &lie.seal(&keys()), MS);
    assert_eq!(events, [PollEvent::Implausible(A), answered(2, [], 0)]);
    assert_eq!(polls.forget(A, MS), []);
    assert!(!polls.is_silent(A));
}

#[test]
fn nobody_waits_for_an_agent_that_another_one_has_followed() {
    let (mut polls, mut agents) = (polls(), Agents::two());
    for number in 0..4 {
        polls.begin(Some(number), [A].into_iter(), number * 2 * MS);
    }
    let given_up = |number: u64| [PollEvent::Discarded(A), answered(number, [], (7 - 2 * number) * MS)];
    assert_eq!(polls.forget(A, 7 * MS), (0..4).flat_map(given_up).collect::<Vec<_>>());
    // What the former one has left unanswered does not count against it.
    let (sent, _) = polls.begin(Some(9), [A].into_iter(), 8 * MS);
    assert_eq!(polls.expire(17 * MS), []);
    assert_eq!(agents.answer(&mut polls, sent, [3, 4]).last(), Some(&answered(9, [A], 0)));
}

/// A timer that went off for each answered poll would cost more than the poll.
#[test]
fn nothing_becomes_due_of_what_has_been_answered() {
    let (mut polls, mut agents) = (polls(), Agents::two());
    let (sent, _) = polls.begin(Some(1), [A, B].into_iter(), 0);
    agents.answer(&mut polls, sent, [3, 4]);
    assert_eq!(polls.next_due_ns(), None);
    // One that is answered stays while an earlier one is not; what is left unanswered is still given up.
    let _lost = polls.begin(Some(2), [A].into_iter(), 2 * MS);
    let (sent, _) = polls.begin(Some(3), [B].into_iter(), 3 * MS);
    agents.answer(&mut polls, sent, [3, 4]);
    let due_ns = polls.next_due_ns().unwrap();
    assert_eq!(polls.expire(due_ns).first(), Some(&PollEvent::Discarded(A)));
    assert_eq!(polls.next_due_ns(), None);
}
