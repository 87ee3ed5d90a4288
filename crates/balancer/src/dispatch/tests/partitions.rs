//! Data of two partitions: `a` holds the first, `c` the second, `b` both.

use std::path::Path;

use plimsoll_decisions::replay;
use plimsoll_policy::{Tried, registered};

use super::*;
use crate::dispatch::OfferedRequest;
use crate::partitioning::PartitionSet;

const A: BackendId = BackendId(0);
const B: BackendId = BackendId(1);
const C: BackendId = BackendId(2);

fn partitioned(policy: &str, more: &str) -> PartitionedDispatch {
    let backend = |name: &str, port: u16, held: &str| {
        format!("[[backend]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\npartitions = [{held}]\n")
    };
    let backends =
        [backend("a", 1, "\"0\""), backend("b", 2, "\"0\", \"1\""), backend("c", 3, "\"1\"")].concat();
    let text = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n{backends}[partitions]\ncount = 2\n[policy]\nname = \"{policy}\"\n{more}"
    );
    let config = Config::parse(&text, "test.toml").unwrap();
    PartitionedDispatch::new(&config, &members_of(&config, &[]), 1).unwrap()
}

/// A request of the partition for the target of this number.
fn offer(d: &PartitionedDispatch, partition: u16, target: u64) -> Offer {
    let request = OfferedRequest {
        target: TargetId(target),
        kind: STATIC,
        client: target % 5,
        class: 0,
        session: None,
    };
    d.offer_again(partition, request, Tried::NONE, None)
}

fn chosen(d: &PartitionedDispatch, partition: u16, target: u64) -> Assignment {
    assigned(offer(d, partition, target))
}

fn is_proved(log: &Path) -> bool {
    replay(&mut LogReader::open(log).unwrap(), &mut |_| {}).unwrap().is_proved()
}

#[test]
fn no_policy_chooses_outside_the_partition_and_each_log_replays() {
    for policy in registered() {
        let directory = tempfile::tempdir().unwrap();
        let log = format!("[decision_log]\ndirectory = {:?}\n", directory.path().to_str().unwrap());
        let d = partitioned(policy.name, &log);
        let mut held = Vec::new();
        for round in 0..600_u64 {
            let partition = (round % 2) as u16;
            let assignment = chosen(&d, partition, round * round % 61);
            assert!(d.held(assignment.backend()).has(partition), "{}", policy.name);
            held.push(assignment);
            if held.len() > 20 {
                held.remove((round % 7) as usize).complete(Some(round % 9 * 1000), None);
            }
            match round {
                150 => d.set_health(B, Health::Down),
                300 => d.set_health(B, Health::Up),
                450 => d.tick(),
                _ => {}
            }
        }
        drop(held);
        d.close_log();
        for partition in ["partition-0", "partition-1"] {
            assert!(is_proved(&directory.path().join(partition)), "{} {partition}", policy.name);
        }
    }
}

#[test]
fn a_partition_without_a_back_end_is_refused_and_the_other_served() {
    let d = partitioned("lard_r", "[admission]\nqueue = 0\n");
    d.set_health(A, Health::Down);
    d.set_health(B, Health::Draining);
    assert!(matches!(offer(&d, 0, 1), Offer::Refused(RefusalReason::NoReplica)));
    assert_eq!(chosen(&d, 1, 1).backend(), C);
    assert_eq!(d.bare(), PartitionSet::of([0]));
    assert!(!d.others_can_do_without(C), "nobody else takes requests of the second partition");
    d.set_health(B, Health::Up);
    assert_eq!(chosen(&d, 0, 1).backend(), B);
    assert!(d.others_can_do_without(C) && !d.others_can_do_without(B));
}

/// What waits for one partition is served by that one's back-ends, and told apart by its number.
#[test]
fn requests_that_wait_stay_in_their_partition() {
    let d = partitioned("least_connections", "[admission]\nlimit = 1\n");
    let running = [chosen(&d, 0, 1), chosen(&d, 1, 1)];
    let mut tickets = [waits(offer(&d, 0, 2)), waits(offer(&d, 1, 2))];
    assert!(tickets.iter_mut().all(|ticket| poll(ticket).is_pending()), "each has a limit of its own");
    drop(running);
    for (partition, ticket) in (0..).zip(&mut tickets) {
        let Poll::Ready(Ok(served)) = poll(ticket) else { panic!("{partition} is not served") };
        assert!(d.held(served.backend()).has(partition));
    }
}

#[test]
fn a_back_end_of_both_has_the_load_of_both() {
    let d = partitioned("least_connections", "");
    // The least loaded one with the lowest index: `b` and `c` in turn.
    let second: Vec<Assignment> = (0..4).map(|n| chosen(&d, 1, n)).collect();
    let first: Vec<Assignment> = (0..3).map(|n| chosen(&d, 0, n)).collect();
    let of = |held: &[Assignment]| held.iter().map(|held| held.backend().0).collect::<Vec<_>>();
    assert_eq!(of(&first), [A.0; 3], "`b` has two requests of the other partition");
    drop(second);
    assert_eq!(chosen(&d, 0, 4).backend(), B, "and now none");
}

#[test]
fn what_a_back_end_holds_may_change() {
    let d = partitioned("round_robin", "");
    d.set_held(A, PartitionSet::of([1]), Health::Up);
    let of = |partition| -> Vec<u16> { (0..6).map(|n| chosen(&d, partition, n).backend().0).collect() };
    assert_eq!(of(0), [B.0; 6]);
    assert!(of(1).contains(&A.0));
    d.set_held(A, PartitionSet::ALL, Health::Down);
    assert!(!of(0).contains(&A.0), "it is down");
    d.set_health(A, Health::Up);
    assert!(of(0).contains(&A.0) && of(1).contains(&A.0));
}

#[test]
fn joins_and_leaves_are_the_same_in_all_partitions() {
    let d = partitioned("lard_r", "");
    for n in 0..10 {
        let name = format!("late-{n}").into();
        let held = PartitionSet::of([n % 2]);
        let id = d.join(&name, Weight::ONE, Health::Up, held).unwrap();
        assert_eq!((id, d.held(id)), (BackendId(3), held));
        let busy = d.stay(n % 2, id, T);
        assert!(d.release([id].into_iter(), 1).is_empty(), "it has a request in one of them");
        drop(busy);
        assert_eq!(d.release([id].into_iter(), 1), [id]);
        let left = d.parts().iter().all(|part| part.inspect(|i| i.view.has_left(id)));
        assert!(left, "late-{n}");
    }
}
