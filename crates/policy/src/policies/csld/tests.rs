//! CSLD over connections, and over requests.

use super::*;
use crate::cluster::Cluster;
use crate::core::{AdmissionControl, Assigned, Core, Ending, Offered};

const CONNECTION: Request = Request {
    number: 0,
    target: TargetId(0),
    size_bytes: None,
    kind: Kind::Connection,
    client: 0,
    class: 0,
    features: None,
};

fn core_of(params: CsldParams, backends: usize) -> Core {
    let policy = Box::new(Csld::new(params, &BuildContext::default()));
    Core::new(policy, Cluster::new(backends), AdmissionControl::UNLIMITED)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Nanos::from_millis(ms)
}

fn connect(core: &mut Core, count: u64, now: Time) -> Vec<u16> {
    let offer = |number| core.offer(&Request { number, ..CONNECTION }, now).backend().unwrap().0;
    (0..count).map(offer).collect()
}

fn dynamic(backend: u16, class: u16) -> SniffedRequest {
    SniffedRequest {
        backend: BackendId(backend),
        kind: SniffedKind::Dynamic,
        target: TargetId(0),
        class,
        size_bytes: None,
        round_trip: Nanos::ZERO,
    }
}

#[test]
fn connections_avoid_who_has_expensive_requests() {
    let mut core = core_of(CsldParams::default(), 2);
    assert_eq!(connect(&mut core, 20, at(0)), [0, 1].repeat(10));
    // 400 ms of work at back-end 0, of which half is done by the end of the period; 18 cheap requests at back-end 1.
    core.sniffed(&dynamic(0, 40), at(0));
    (0..18).for_each(|_| core.sniffed(&dynamic(1, 0), at(0)));
    core.tick(at(200));
    // The 200 ms that are left are 9.4 of the 19 requests, below the mean number of 9.5.
    assert_eq!(connect(&mut core, 13, at(200)), [vec![1; 9], vec![0, 1, 0, 1]].concat());
    // All is done now.
    core.tick(at(1000));
    assert_eq!(connect(&mut core, 4, at(1000)), [0, 1, 0, 1]);
}

#[test]
fn controls_change_what_they_name() {
    let chosen = |params: CsldParams| {
        let mut core = core_of(params, 2);
        connect(&mut core, 3, at(0));
        core.sniffed(&dynamic(0, 60), at(0));
        (0..9).for_each(|_| core.sniffed(&dynamic(1, 0), at(0)));
        core.tick(at(200));
        connect(&mut core, 9, at(200))
    };
    let paper = CsldParams::default();
    let plain = chosen(paper);
    assert_eq!(plain, [1, 1, 1, 1, 1, 0, 1, 0, 1]);
    assert_eq!(chosen(CsldParams { t_diff: 0.4, ..paper }), [1, 1, 0, 1, 0, 1, 0, 1, 0]);
    assert_ne!(chosen(CsldParams { restart: 0, ..paper }), plain);
    assert_eq!(chosen(CsldParams { fineness: 10.0, ..paper }), [1; 9]);
    // Three connections have carried ten requests: the load of 6.6 requests is that of two connections.
    assert_eq!(chosen(CsldParams { adaptive: 1, ..paper }), [1, 1, 0, 1, 0, 1, 0, 1, 0]);
}

#[test]
fn a_period_is_whole_slots() {
    let build = |period: &str| {
        let settings = [("period_s".to_owned(), period.to_owned())];
        crate::registry::build("csld", &BuildContext::default(), &settings).map(|_| ())
    };
    assert!(build("0.1").is_ok());
    let error = build("0.12").unwrap_err().to_string();
    assert!(error.contains("0.12 s") && error.contains("slots of 0.05 s"), "{error}");
}

#[test]
fn misses_are_expected_as_the_estimator_says() {
    let mut core = core_of(CsldParams::default(), 1);
    assert_eq!(core.policy().expects_miss(), None);
    let document = SniffedRequest { kind: SniffedKind::Static, size_bytes: Some(9), ..dynamic(0, 0) };
    core.sniffed(&document, at(0));
    assert_eq!(core.policy().expects_miss(), Some(true));
    core.sniffed(&document, at(1));
    assert_eq!(core.policy().expects_miss(), Some(false));
    assert_eq!(core.policy().stats()[1], ("sniffed", 2.0));
}

fn request(core: &mut Core, class: u16, number: u64, now: Time) -> Assigned {
    let request = Request { class, kind: Kind::Dynamic, ..Request::of(number, TargetId(number)) };
    match core.offer(&request, now) {
        Offered::Assigned(assigned) => assigned,
        other => panic!("{other:?}"),
    }
}

/// A request every `gap`, whose class and cost `next` tells; each back-end answers one after the other, `slow` times as slowly.
/// Returns the time when all have ended, and how many of the second half each back-end got.
fn serve(
    core: &mut Core,
    count: u64,
    gap: Nanos,
    slow: [u64; 2],
    next: fn(u64) -> (u16, u64),
) -> (Time, [u64; 2]) {
    let (mut now, mut got, mut free) = (at(0), [0; 2], [at(0); 2]);
    let mut under_way: Vec<(Time, Assigned)> = Vec::new();
    for n in 0..=count {
        under_way.sort_by_key(|(ends, _)| *ends);
        let last = n == count;
        while under_way.first().is_some_and(|(ends, _)| *ends <= now || last) {
            let (ends, assigned) = under_way.remove(0);
            core.complete(&assigned, Ending::answered(None), ends);
            now = now.max(ends);
        }
        if !last {
            let (class, cost_ms) = next(n);
            let assigned = request(core, class, n, now);
            let b = assigned.backend.index();
            free[b] = free[b].max(now) + Nanos::from_millis(cost_ms * slow[b]);
            got[b] += u64::from(n >= count / 2);
            under_way.push((free[b], assigned));
            now += gap;
        }
    }
    (now, got)
}

/// Requests of class 1 take 1 ms, and each tenth is of class 2 and takes 100 ms.
fn teach(core: &mut Core) -> Time {
    let next = |n| if n % 10 == 9 { (2, 100) } else { (1, 1) };
    serve(core, 2000, Nanos::from_millis(8), [1, 1], next).0
}

#[test]
fn requests_are_balanced_by_cost_and_not_by_count() {
    let mut core = core_of(CsldParams::default(), 2);
    let now = teach(&mut core);
    let expensive = request(&mut core, 2, 100, now).backend;
    let others: Vec<_> = (0..50).map(|n| request(&mut core, 1, 200 + n, now).backend).collect();
    assert!(others.iter().all(|&b| b != expensive), "{others:?}");
    let costs = &core.policy().tables()[1];
    let of = |class: usize| (costs.rows[class][1] * 1e3).round();
    assert_eq!((costs.name, of(0), of(1)), ("class_costs", 1.0, 100.0));
}

#[test]
fn who_shares_is_balanced_by_number() {
    let mut core = core_of(CsldParams::default(), 2);
    let now = teach(&mut core);
    assert_eq!(core.policy().tables()[3].rows[0][0], 1.0, "in line");
    // From now on all take the same time, whatever they find.
    for n in 0..4000 {
        let class = 1 + u16::from(n % 10 == 9);
        let several = [0, 1, 2].map(|k| request(&mut core, class, 3 * n + k, now));
        several.iter().for_each(|a| core.complete(a, Ending::answered(None), now + Nanos::from_millis(10)));
    }
    let now = now + Nanos::from_secs(1);
    assert_eq!(core.policy().tables()[3].rows[0][0], 0.0, "not in line");
    let expensive = request(&mut core, 2, 100, now).backend;
    let others: Vec<_> = (0..50).map(|n| request(&mut core, 1, 200 + n, now).backend).collect();
    let with_it = others.iter().filter(|&&b| b == expensive).count();
    assert!((20..=30).contains(&with_it), "{with_it}");
}

#[test]
fn a_slow_back_end_gets_less() {
    let mut core = core_of(CsldParams::default(), 2);
    let (_, got) = serve(&mut core, 4000, Nanos::from_micros(8500), [1, 4], |_| (1, 10));
    let share = got[1] as f64 / (got[0] + got[1]) as f64;
    assert!((0.1..0.3).contains(&share), "the other one can do 85 % of the requests: {share}");
}

#[test]
fn lost_and_unknown_requests_leave_no_work() {
    let mut core = core_of(CsldParams::default(), 2);
    let now = teach(&mut core);
    let lost: Vec<_> = (0..9).map(|n| request(&mut core, 2, n, now)).collect();
    lost.iter().for_each(|assigned| core.complete(assigned, Ending::FAILED, now));
    let work = &core.policy().tables()[2];
    assert!(work.rows.iter().all(|row| row[1] == 0.0), "{work:?}");
    core.set_health(BackendId(0), Health::Down, now);
    assert_eq!(request(&mut core, 1, 99, now).backend, BackendId(1));
}

#[test]
fn a_back_end_that_hangs_does_not_look_idle() {
    let mut core = core_of(CsldParams::default(), 2);
    let now = teach(&mut core);
    assert_eq!(core.policy().tables()[3].rows[0][0], 1.0, "in line");
    let mut counts = [0u32; 2];
    for n in 0..200 {
        // One answers within a millisecond; the other never.
        let now = now + Nanos::from_millis(100 * n);
        let assigned = request(&mut core, 1, n, now);
        counts[assigned.backend.index()] += 1;
        if assigned.backend.0 == 0 {
            core.complete(&assigned, Ending::answered(None), now + Nanos::from_millis(1));
        }
    }
    assert!(counts[1] < 20, "{counts:?}");
}
