//! A replay proves what is so, and shows what is not.

use plimsoll_decisions::{LogItem, LogReader, Missing, RunHeader, replay};
use plimsoll_policy::{AdmissionControl, AdmissionLimit, BackendId, Decision, Offered, REGISTRY, Thresholds};

use crate::live::{Live, header, prove, write};

#[test]
fn every_policy_decides_the_same_again() {
    for spec in REGISTRY {
        let directory = tempfile::tempdir().unwrap();
        let mut live = Live::new(header(spec.name), 11);
        let mut chunks = Vec::new();
        for _ in 0..20 {
            live.steps(500);
            chunks.push(live.take());
        }
        write(directory.path(), chunks);
        let mut assigned = 0;
        let mut reader = LogReader::open(directory.path()).unwrap();
        let proof = replay(&mut reader, &mut |_| assigned += 1).unwrap();
        assert!(proof.is_proved(), "{}: {:?}", spec.name, proof.first_difference);
        let (decisions, identical) = proof.decisions();
        assert!(identical > 4000 && assigned > 4000, "{}: {identical}", spec.name);
        assert_eq!(decisions, identical);
        assert!(proof.events > 10_000);
        assert!(proof.ended && proof.truncated.is_empty());
        assert_eq!(proof.runs[0].header, header(spec.name));
    }
}

#[test]
fn an_adaptive_limit_decides_the_same_again() {
    let limit = AdmissionLimit::Adaptive(Thresholds { t_low: 3, t_high: 6 });
    for (policy, seed) in [("least_connections", 1), ("lard_r", 2), ("random", 3), ("uri_hash", 4)] {
        let directory = tempfile::tempdir().unwrap();
        let header = RunHeader { admission: AdmissionControl { limit, queue: 20 }, ..header(policy) };
        let mut live = Live::new(header, seed);
        let (mut above, mut refused_room) = (0, 0);
        let mut chunks = Vec::new();
        for part in 0..200 {
            // Now slowly, so that responses take long, now fast.
            live.pause_ns = if part % 20 < 10 { 20_000_000 } else { 100_000 };
            live.steps(50);
            above += u32::from(live.core.view().total_load() > live.core.admission_limit());
            refused_room += u32::from(live.core.waiting() > 0);
            chunks.push(live.take());
        }
        write(directory.path(), chunks);
        let proof = prove(directory.path());
        assert!(proof.is_proved(), "{policy}: {:?}", proof.first_difference);
        assert!(above > 0 && refused_room > 10, "{policy}: {above} above S, {refused_room} with a queue");
    }
}

#[test]
fn another_seed_or_setting_is_another_policy() {
    let directory = tempfile::tempdir().unwrap();
    let mut live = Live::new(header("random"), 11);
    live.header.seed = 8;
    // The log claims a seed that the policy did not have.
    let (header, now) = (live.header.clone(), live.now);
    live.core.witness_mut().recorder = plimsoll_decisions::Recorder::new();
    live.core.witness_mut().recorder.run_started(&header, now);
    live.steps(500);
    write(directory.path(), [live.take()]);
    let proof = prove(directory.path());
    assert!(!proof.is_proved());
    assert!(proof.first_difference.is_some());
}

#[test]
fn costs_of_classes_are_part_of_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut live = Live::new(header("csld"), 11);
    // The log lacks the costs that the policy knew.
    live.header.class_costs = std::sync::Arc::default();
    let (header, now) = (live.header.clone(), live.now);
    live.core.witness_mut().recorder = plimsoll_decisions::Recorder::new();
    live.core.witness_mut().recorder.run_started(&header, now);
    live.steps(500);
    write(directory.path(), [live.take()]);
    assert!(!prove(directory.path()).is_proved());
}

#[test]
fn a_changed_decision_is_shown_exactly() {
    for spec in REGISTRY {
        let directory = tempfile::tempdir().unwrap();
        let mut live = Live::new(header(spec.name), 3);
        // Neither membership nor ticks, so that it is known how many events there are.
        let mut events = 1;
        for _ in 0..300 {
            let request = live.request();
            let offered = live.core.offer(&request, live.now);
            events += 2 + u64::from(matches!(offered, Offered::Poll(_)));
            live.effect(request.number, offered);
            live.complete();
        }
        let request = live.request();
        let loads = live.loads();
        let taken = Decision::Assign(BackendId(2));
        live.core.witness_mut().force = Some(taken);
        let offered = live.core.offer(&request, live.now);
        let wanted = live.core.witness().wanted.unwrap();
        live.effect(request.number, offered);
        live.steps(300);
        write(directory.path(), [live.take()]);
        let proof = prove(directory.path());
        let (decisions, identical) = proof.decisions();
        if wanted == taken {
            assert!(proof.is_proved(), "{}", spec.name);
            continue;
        }
        assert!(!proof.is_proved(), "{}", spec.name);
        assert_eq!(decisions - identical, 1, "{}: the rest follows the log", spec.name);
        let difference = proof.first_difference.unwrap();
        assert_eq!(difference.event, events, "{}", spec.name);
        assert_eq!((difference.request, difference.logged), (request.clone(), taken), "{}", spec.name);
        assert_eq!((difference.replayed, difference.loads), (wanted, loads), "{}", spec.name);
        assert!(
            difference.position.offset > 32 && difference.position.file.ends_with("decisions-00000001.plog")
        );
    }
}

#[test]
fn a_reload_starts_a_run_on_the_same_loads() {
    let directory = tempfile::tempdir().unwrap();
    let mut live = Live::new(header("lard"), 5);
    let mut chunks = Vec::new();
    for policy in ["lard_r", "join_shortest_queue", "power_of_two", "lb_gc"] {
        live.steps(700);
        live.reload(policy);
        live.steps(300);
        chunks.push(live.take());
    }
    write(directory.path(), chunks);
    let proof = prove(directory.path());
    assert!(proof.is_proved(), "{:?}", proof.first_difference);
    assert_eq!(proof.runs.len(), 5);
    assert!(proof.runs[2].header.backends.iter().any(|b| b.load > 0), "no load was handed on");
}

#[test]
fn a_lost_chunk_ends_the_proof_but_not_the_comparison() {
    let directory = tempfile::tempdir().unwrap();
    let mut live = Live::new(header("least_connections"), 5);
    live.steps(1000);
    let first = live.take();
    live.steps(1000);
    drop(live.take());
    drop({
        live.steps(10);
        live.take()
    });
    live.steps(1000);
    write(directory.path(), [first, live.take()]);
    let proof = prove(directory.path());
    assert!(!proof.is_proved());
    assert_eq!(proof.missing.len(), 1);
    assert_eq!(proof.missing[0].1, Missing::Chunks(2));
    assert_eq!(proof.runs.len(), 2);
    assert!(proof.runs[0].whole && !proof.runs[1].whole);
    // Least connections decides by the loads alone, and these the log brings along.
    let (decisions, identical) = proof.decisions();
    assert_eq!(decisions, identical);
    assert!(proof.runs[1].decisions > 300);
}

#[test]
fn a_chunk_brings_the_cluster_along() {
    for seed in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let mut live = Live::new(header("lard"), seed);
        live.steps(2000);
        drop(live.take());
        let now = live.now;
        let view = live.core.view().clone();
        live.steps(10);
        write(directory.path(), [live.take()]);
        let first = LogReader::open(directory.path()).unwrap().next_item().unwrap();
        let Some(LogItem::Resumed { missing: Missing::Start, run: Some(run), now: then }) = first else {
            panic!("{first:?}");
        };
        assert_eq!((run.backends.len(), then), (view.len(), now));
        for (b, entry) in view.ids().zip(&run.backends) {
            assert_eq!((entry.load, entry.weight), (view.own_load(b), view.weight(b)), "{}", entry.name);
            assert_eq!(entry.load + entry.others, view.load(b), "{}", entry.name);
            assert_eq!((entry.health, entry.key), (view.health(b), view.key(b)), "{}", entry.name);
        }
        let again = run.cluster();
        assert_eq!((again.eligible(), again.total_load()), (view.eligible(), view.total_load()));
    }
}
