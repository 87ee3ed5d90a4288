mod partitions;
mod polls;

use std::task::{Context, Poll, Waker};

use plimsoll_decisions::{LogItem, LogReader};
use plimsoll_policy::{Health, Kind, Rejection, Weight};

use super::*;
use crate::membership::resolve::members_of;
use crate::refusal_reason::RefusalReason;
use plimsoll_observe::Reason;

fn config(policy: &str, more: &str) -> Config {
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n\
         [[backend]]\nname = \"b\"\naddress = \"127.0.0.1:2\"\n[policy]\nname = \"{policy}\"\n{more}"
    );
    Config::parse(&text, "test.toml").unwrap()
}

fn dispatch(policy: &str, more: &str) -> Arc<Dispatch> {
    started(&config(policy, more))
}

fn started(config: &Config) -> Arc<Dispatch> {
    Dispatch::new(config, &members_of(config, &[]), 1).unwrap()
}

fn assigned(offer: Offer) -> Assignment {
    match offer {
        Offer::Assigned(assignment) => assignment,
        Offer::Waits(_) | Offer::Polls(_) => panic!("has to wait"),
        Offer::Refused(reason) => panic!("is refused: {reason:?}"),
    }
}

fn waits(offer: Offer) -> Ticket {
    match offer {
        Offer::Waits(ticket) => ticket,
        _ => panic!("does not wait"),
    }
}

fn poll(ticket: &mut Ticket) -> Poll<Result<Assignment, RefusalReason>> {
    ticket.poll(&mut Context::from_waker(Waker::noop()))
}

fn load(d: &Dispatch) -> u64 {
    d.inspect(|i| i.view.total_load())
}

const T: TargetId = TargetId(7);
const STATIC: Kind = Kind::Static;

#[test]
fn every_assignment_ends_once_however_it_ends() {
    let d = dispatch("round_robin", "");
    let first = assigned(d.offer(T, STATIC, 0));
    let second = assigned(d.offer(T, STATIC, 0));
    assert_eq!((first.backend(), second.backend(), load(&d)), (BackendId(0), BackendId(1), 2));
    first.complete(Some(100), None);
    assert_eq!(load(&d), 1);
    drop(second);
    assert_eq!(load(&d), 0);
    assert_eq!(d.inspect(|i| i.known_size_bytes(T)), Some(100));
}

#[test]
fn who_waits_is_served_in_order_when_there_is_room() {
    let d = dispatch("round_robin", "[admission]\nlimit = 1\nqueue = 2\n");
    let running = assigned(d.offer(T, STATIC, 0));
    let mut one = waits(d.offer(T, STATIC, 0));
    let mut two = waits(d.offer(T, STATIC, 0));
    assert!(matches!(d.offer(T, STATIC, 0), Offer::Refused(RefusalReason::QueueFull)), "the queue holds two");
    assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
    running.complete(None, None);
    let Poll::Ready(Ok(served)) = poll(&mut one) else { panic!("the first is served") };
    assert!(poll(&mut two).is_pending());
    // A newcomer does not overtake.
    let mut three = waits(d.offer(T, STATIC, 0));
    served.complete(None, None);
    let Poll::Ready(Ok(served)) = poll(&mut two) else { panic!("the second is served") };
    drop(served);
    assert!(matches!(poll(&mut three), Poll::Ready(Ok(_))));
}

#[test]
fn who_leaves_the_queue_takes_nothing_along() {
    let d = dispatch("round_robin", "[admission]\nlimit = 1\n");
    let running = assigned(d.offer(T, STATIC, 0));
    let gone = waits(d.offer(T, STATIC, 0));
    let served_unseen = waits(d.offer(T, STATIC, 0));
    let mut last = waits(d.offer(T, STATIC, 0));
    drop(gone);
    running.complete(None, None);
    // It was served, but nobody looks: the room goes to the next.
    drop(served_unseen);
    let Poll::Ready(Ok(assignment)) = poll(&mut last) else { panic!("the last is served") };
    drop(assignment);
    assert_eq!((load(&d), d.inspect(|i| i.waiting)), (0, 0));
}

#[test]
fn without_backends_requests_wait_for_one() {
    let d = dispatch("lard_r", "");
    d.set_health(BackendId(0), Health::Down);
    d.set_health(BackendId(1), Health::Down);
    let mut ticket = waits(d.offer(T, STATIC, 0));
    assert!(poll(&mut ticket).is_pending());
    d.set_health(BackendId(1), Health::Up);
    let Poll::Ready(Ok(assignment)) = poll(&mut ticket) else { panic!("it is served") };
    assert_eq!(assignment.backend(), BackendId(1));
}

#[test]
fn a_rejection_of_the_policy_is_not_taken_for_a_full_queue() {
    let d = dispatch("round_robin", "[admission]\nqueue = 0\n");
    let of = |rejection| d.lock().refusal(rejection);
    assert_eq!(of(Rejection::NoBackend), RefusalReason::Policy);
    assert_eq!(of(Rejection::QueueFull), RefusalReason::QueueFull);
    d.set_health(BackendId(0), Health::Down);
    d.set_health(BackendId(1), Health::Down);
    assert_eq!(of(Rejection::QueueFull), RefusalReason::NoBackend);
}

#[test]
fn another_policy_leaves_loads_right() {
    let old = config("lard_r", "");
    let d = started(&old);
    let before: Vec<Assignment> = (0..10).map(|_| assigned(d.offer(T, STATIC, 0))).collect();
    d.reconfigure(&old, &config("least_connections", "[admission]\nlimit = 12\n")).unwrap();
    let after: Vec<Assignment> = (0..2).map(|_| assigned(d.offer(T, STATIC, 0))).collect();
    assert_eq!(load(&d), 12);
    let mut ticket = waits(d.offer(T, STATIC, 0));
    drop(before);
    assert!(matches!(poll(&mut ticket), Poll::Ready(Ok(_))));
    drop(after);
    assert_eq!(load(&d), 0);
}

#[test]
fn a_reload_keeps_what_the_policy_knows_unless_the_policy_changes() {
    let old = config("lard_r", "");
    let d = started(&old);
    let tracked = |d: &Dispatch| d.inspect(|i| i.policy.tracked_targets());
    let kept = assigned(d.offer(T, STATIC, 0));
    let new = config("lard_r", "[admission]\nlimit = 3\n[shadow]\npolicy = \"random\"\n");
    d.reconfigure(&old, &new).unwrap();
    assert_eq!((tracked(&d), d.inspect(|i| i.admission_limit)), (1, 3));
    // What was under way when the shadow policy began counts in its cluster until it ends, and in no score.
    drop(kept);
    assigned(d.offer(T, STATIC, 0)).complete(None, None);
    let score = d.inspect(|i| i.shadow()).unwrap();
    assert_eq!((score.live.requests, score.shadow.requests), (1, 1));
    d.reconfigure(&new, &config("lard", "")).unwrap();
    assert_eq!(tracked(&d), 0);
}

#[test]
fn backends_join_leave_and_come_back() {
    let d = dispatch("round_robin", "");
    let c = d.join(&"c".into(), Weight::ONE, Health::Up).unwrap();
    assert_eq!(c, BackendId(2));
    d.set_health(c, Health::Draining);
    let chosen: Vec<u16> = (0..4).map(|_| assigned(d.offer(T, STATIC, 0)).backend().0).collect();
    assert!(!chosen.contains(&2), "{chosen:?}");
    assert_eq!(
        d.join(&"c".into(), Weight::ONE, Health::Up).unwrap(),
        c,
        "the same name is the same back-end"
    );
    let chosen: Vec<u16> = (0..3).map(|_| assigned(d.offer(T, STATIC, 0)).backend().0).collect();
    assert!(chosen.contains(&2), "{chosen:?}");
}

#[test]
fn the_index_of_a_departed_back_end_goes_to_another_one() {
    let d = dispatch("lard_r", "");
    let name = |n: u64| format!("late-{n}").into();
    for n in 0..70_000 {
        let id = d.join(&name(n), Weight::ONE, Health::Up).unwrap();
        assert_eq!(id, BackendId(2));
        let held = (n % 1000 == 0).then(|| d.stay(id, T));
        assert_eq!(
            d.release([id].into_iter(), 1).len(),
            usize::from(held.is_none()),
            "not while it has a request"
        );
        drop(held);
        assert_eq!(d.release([id].into_iter(), 1), [id]);
    }
    assert_eq!((d.inspect(|i| i.view.len()), load(&d)), (3, 0));
    assert_eq!(d.members_with([name(0), name(1)].iter()), 4);
}

#[test]
fn reasons_are_given_when_someone_reads_them() {
    let d = dispatch("lard_r", "[access_log]\nfile = \"-\"\nformat = \"json\"\n");
    assert_eq!(assigned(d.offer(T, STATIC, 0)).reason(), Reason::New);
    assert_eq!(assigned(d.offer(T, STATIC, 0)).reason(), Reason::Locality);
    let d = dispatch("random", "[access_log]\nfile = \"-\"\nformat = \"json\"\n");
    assert_eq!(assigned(d.offer(T, STATIC, 0)).reason(), Reason::Load);
}

#[test]
fn the_log_holds_every_input_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let more = format!(
        "[decision_log]\ndirectory = {:?}\n[shadow]\npolicy = \"round_robin\"\n",
        directory.path().to_str().unwrap()
    );
    let d = dispatch("lard_r", &more);
    let kept = assigned(d.offer(T, STATIC, 0));
    d.set_health(BackendId(0), Health::Down);
    assigned(d.offer(TargetId(8), STATIC, 0)).complete(Some(5), None);
    drop(kept);
    d.set_weight(BackendId(1), Weight::new(2.0).unwrap());
    d.tick();
    let shadow = d.inspect(|i| i.shadow().map(|s| (s.live.requests, s.shadow.requests))).unwrap();
    assert_eq!(shadow, (2, 2));
    d.close_log();
    let mut reader = LogReader::open(directory.path()).unwrap();
    let mut events = 0;
    while let Some(item) = reader.next_item().unwrap() {
        events += usize::from(matches!(item, LogItem::Event(_)));
    }
    // The run, two offers, two ends, health, weight, tick.
    assert_eq!(events, 8);
}

/// Answers a request for `target` with so many bytes; who had it.
fn answered(d: &Arc<Dispatch>, target: u64, size_bytes: Option<u64>) -> BackendId {
    let assignment = assigned(d.offer(TargetId(target), STATIC, 0));
    let backend = assignment.backend();
    assignment.complete(size_bytes, None);
    backend
}

#[test]
fn sizes_are_learned_and_bounded() {
    let d = dispatch("round_robin", "[target]\nsizes = 10\n");
    let known = |target| d.inspect(|i| i.known_size_bytes(TargetId(target)));
    answered(&d, 1, Some(500));
    // One that fails, and one of which nothing is told, change nothing; another size does.
    drop(assigned(d.offer(TargetId(1), STATIC, 0)));
    answered(&d, 1, None);
    assert_eq!(known(1), Some(500));
    answered(&d, 1, Some(7));
    assert_eq!(known(1), Some(7));
    for target in 100..200 {
        answered(&d, target, Some(target));
    }
    assert_eq!((1..200).filter(|&target| known(target).is_some()).count(), 10);
    assert_eq!((known(1), known(199)), (None, Some(199)));
}

#[test]
fn each_size_has_its_back_end_and_what_is_unknown_or_computed_has_not() {
    let d = dispatch("adaptload", "batch = 100\n");
    // Two targets that get as many bytes each: 99 of 100 and one of 9,900. Their sizes are learned first.
    answered(&d, 1, Some(100));
    answered(&d, 2, Some(9_900));
    for number in 0..100 {
        answered(&d, if number % 100 == 50 { 2 } else { 1 }, None);
    }
    let of = |target| answered(&d, target, None);
    assert_eq!([1, 2, 1, 2].map(of), [0, 1, 0, 1].map(BackendId));
    let stats = |name: &str| {
        d.inspect(|i| i.policy.stats().into_iter().find(|(key, _)| *key == name).map(|(_, value)| value))
            .unwrap()
    };
    let unsized_before = stats("unsized_requests");
    // The shortest queue gets what is unknown, and what is computed although the size of an earlier answer is known.
    let held: Vec<Assignment> = (0..3).map(|_| assigned(d.offer(TargetId(1), STATIC, 0))).collect();
    assert!(held.iter().all(|assignment| assignment.backend() == BackendId(0)));
    assert_eq!(answered(&d, 77, None), BackendId(1));
    let computed = assigned(d.offer(TargetId(1), Kind::Dynamic, 0));
    assert_eq!(computed.backend(), BackendId(1));
    drop(computed);
    assert!((stats("unsized_requests") - unsized_before - 2.0).abs() < 1e-9);
    // Sizes that change are learned.
    answered(&d, 1, Some(9_900));
    assert_eq!(of(1), BackendId(1));
}
