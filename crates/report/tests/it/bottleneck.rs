//! The sentence on what limits runs.

use plimsoll_report::{Run, bottleneck};

use crate::sample::run;

/// Runs of the first policies of the sample on 8 back-ends, with these busy shares of CPU and disk.
fn busy(shares: &[(f64, f64)]) -> Vec<Run> {
    let one = |(policy, (cpu, disk)): (usize, &(f64, f64))| {
        let mut run = run(policy, 8, 1);
        (run.utilization.cpu, run.utilization.disk) = (*cpu, Some(*disk));
        run.throughput_rps = 1000.0 + 10.0 * policy as f64;
        run
    };
    shares.iter().enumerate().map(one).collect()
}

fn sentence(shares: &[(f64, f64)]) -> String {
    bottleneck(&busy(shares), true).expect("runs with hardware")
}

#[test]
fn what_is_busy_all_the_time_is_the_limit() {
    assert_eq!(
        sentence(&[(0.95, 0.2), (0.97, 0.1)]),
        "CPUs are the limit on 8 back-ends whatever the policy (busy 95.0 % of the time or more) and throughput differs by 1.0 % \
         at most: misses cost little here, so choose by delays."
    );
    assert!(sentence(&[(0.2, 0.95); 1]).contains("follows the misses"));
    let mut differ = busy(&[(0.95, 0.2), (0.97, 0.1)]);
    differ[1].throughput_rps = 1200.0;
    assert!(bottleneck(&differ, true).unwrap().contains("differs by 20.0 % at most: what requests cost"));
    assert_eq!(
        sentence(&[(0.2, 0.95), (0.3, 0.99)]),
        "Disks are the limit on 8 back-ends whatever the policy: throughput follows the misses, which memory and locality decide."
    );
    assert_eq!(
        sentence(&[(0.2, 0.99), (0.95, 0.3), (0.91, 0.92)]),
        "Disks are the limit on 8 back-ends with weighted_round_robin and lard; CPUs with uri_hash: what the caches hold decides."
    );
    // Several disks are seldom busy all at once, but requests that are not at a CPU are at one of them.
    assert!(sentence(&[(0.2, 0.45)]).starts_with("Disks are the limit on 8 back-ends whatever"));
    assert!(
        sentence(&[(0.36, 0.3)]).starts_with("Nothing is the limit on 8 back-ends: neither CPUs nor disks")
    );
    let mut short = busy(&[(0.2, 0.45)]);
    short[0].completed = 100;
    assert!(bottleneck(&short, true).unwrap().ends_with("Give a longer log."));
    let mut network = busy(&[(0.95, 0.2)]);
    network[0].model = "adaptload".to_owned();
    assert!(bottleneck(&network, true).unwrap().starts_with("Networks are the limit"));
}

/// Gives the back-ends of a run these mean loads in turn.
fn loaded(run: &mut Run, loads: &[f64]) {
    let loads = loads.iter().cycle();
    run.per_backend.iter_mut().zip(loads).for_each(|(backend, load)| backend.mean_load = *load);
}

#[test]
fn where_neither_is_busy_load_is_uneven_or_too_few_are_let_in() {
    let mut runs = busy(&[(0.2, 0.99), (0.6, 0.3)]);
    loaded(&mut runs[1], &[300.0, 2.0, 3.0, 4.0]);
    let mixed = bottleneck(&runs, true).unwrap();
    assert!(
        mixed.ends_with("; the busiest back-ends with uri_hash: what the caches hold decides, and how evenly load is spread."),
        "{mixed}"
    );
    runs[0].utilization.cpu = 1.0;
    let no_disks = bottleneck(&runs, true).unwrap();
    assert!(no_disks.ends_with("how evenly load is spread decides, not the caches."), "{no_disks}");
    let uneven = bottleneck(&runs[1..], true).unwrap();
    assert!(uneven.starts_with("The busiest back-ends are the limit on 8 back-ends whatever"), "{uneven}");
    loaded(&mut runs[1], &[2.0]);
    assert!(bottleneck(&runs[1..], true).unwrap().ends_with("a higher --admission serves more."));
}

#[test]
fn under_a_given_load_there_may_be_no_limit() {
    let given = |runs: &[Run]| bottleneck(runs, false).unwrap();
    let mut runs = busy(&[(0.2, 0.8), (0.2, 0.2)]);
    for run in &mut runs {
        // Nobody waits at the front-end.
        let in_progress = run.throughput_rps * run.response_time_s.as_ref().unwrap().mean / 8.0;
        loaded(run, &[in_progress]);
        run.per_backend.iter_mut().for_each(|backend| (backend.cpu, backend.disk) = (0.2, Some(0.2)));
    }
    assert_eq!(
        given(&runs),
        "Disks are near their limit on 8 back-ends with weighted_round_robin; nothing with uri_hash: what the caches hold decides."
    );
    assert!(given(&runs[1..]).contains("what arrives is served, so compare delays"));
    runs[1].per_backend[3].cpu = 0.9;
    assert!(given(&runs[1..]).starts_with("The busiest back-ends are near their limit"));
    runs[1].per_backend[3].cpu = 0.2;
    runs[1].per_backend.iter_mut().for_each(|backend| backend.mean_load /= 4.0);
    assert!(given(&runs[1..]).starts_with("The requests let in at once are near their limit"));
}

#[test]
fn networks_that_the_model_does_not_count_are_named() {
    let mut runs = busy(&[(0.95, 0.2)]);
    runs[0].simulated_s = 1.0;
    runs[0].sent_bytes = 8 * 2_000_000_000;
    runs[0].per_backend.iter_mut().for_each(|backend| backend.requests = 100);
    let said = bottleneck(&runs, true).unwrap();
    assert!(said.contains("up to 16.0 Gbit/s, more than Ethernet of 10 Gbit/s"), "{said}");
    runs[0].sent_bytes /= 2;
    assert!(!bottleneck(&runs, true).unwrap().contains("Gbit/s"));
    // One with as many as three others.
    runs[0].per_backend[5].requests = 300;
    assert!(bottleneck(&runs, true).unwrap().contains("the busiest back-end sends up to 19.2 Gbit/s"));
}

#[test]
fn the_most_backends_count() {
    let mut runs = busy(&[(0.95, 0.1)]);
    let mut few = runs[0].clone();
    (few.backends, few.utilization.cpu, few.utilization.disk) = (2, 0.1, Some(1.0));
    runs.insert(0, few);
    assert!(bottleneck(&runs, true).unwrap().starts_with("CPUs are the limit on 8 back-ends"));
}

#[test]
fn nothing_is_said_of_runs_without_hardware() {
    let mut runs = busy(&[(0.95, 0.1)]);
    runs[0].params.remove("hardware");
    assert_eq!(bottleneck(&runs, true), None);
    assert_eq!(bottleneck(&[], true), None);
}

#[test]
fn of_many_policies_with_one_limit_the_number_is_told() {
    let mut runs = busy(&[(0.2, 0.99), (0.95, 0.3)]);
    for number in 0..6 {
        let mut more = runs[0].clone();
        more.policy = format!("policy_{number}");
        runs.push(more);
    }
    let said = bottleneck(&runs, true).unwrap();
    assert!(
        said.contains("Disks are the limit on 8 back-ends with 7 of 8 policies; CPUs with uri_hash"),
        "{said}"
    );
}
