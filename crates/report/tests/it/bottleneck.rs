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
    assert!(sentence(&[(0.2, 0.95), (0.3, 0.99)]).starts_with("Disks are the limit on 8 back-ends whatever"));
    assert_eq!(
        sentence(&[(0.2, 0.99), (0.95, 0.3), (0.5, 0.5), (0.91, 0.92)]),
        "Disks are the limit on 8 back-ends with weighted_round_robin and lard_r, and not with uri_hash and lard: what the \
         caches hold decides."
    );
    assert!(
        sentence(&[(0.95, 0.1), (0.5, 0.1)]).ends_with("how evenly load is spread decides, not the caches.")
    );
    assert!(sentence(&[(0.5, 0.1), (0.5, 0.1)]).contains("or the admission limit"));
    let near = bottleneck(&busy(&[(0.2, 0.8), (0.2, 0.2)]), false).unwrap();
    assert!(
        near.starts_with("Disks are near their limit on 8 back-ends with weighted_round_robin, and not"),
        "{near}"
    );
    let served = bottleneck(&busy(&[(0.5, 0.1)]), false).unwrap();
    assert!(served.contains("what arrives is served"), "{served}");
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
