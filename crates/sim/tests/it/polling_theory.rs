//! Random polling with exact loads and without delays on 16 FIFO back-ends, Poisson arrivals and exponential service: the figures
//! that any study of delays begins from.

use crate::theory::{check, interval, response_times};

const BACKENDS: usize = 16;

/// The mean lies within `tolerance` of the exact figure, and its confidence interval is narrower than that.
fn near(policy: &str, load: f64, requests: usize, exact: f64, tolerance: f64) {
    let (mean, half) = interval(&response_times(policy, BACKENDS, load, requests));
    assert!(half < tolerance, "{policy} at {load}: {mean} ± {half}, too wide to show anything");
    assert!((mean - exact).abs() < tolerance, "{policy} at {load}: {mean} ± {half}, exact {exact}");
}

/// One choice is a random one: T = 1 / (1 - rho).
#[test]
fn one_choice_is_random_splitting() {
    for (load, requests) in [(0.5, 200_000), (0.9, 800_000)] {
        check(
            "d = 1",
            &response_times("random_polling:size=1", BACKENDS, load, requests),
            1.0 / (1.0 - load),
        );
    }
}

/// Sixteen back-ends lie above the supermarket model, which has 2.61 at 0.9.
#[test]
fn two_choices_take_a_third_of_the_time_of_one() {
    near("random_polling", 0.9, 1_200_000, 2.83, 0.03);
    near("random_polling:size=2", 0.5, 200_000, 1.277, 0.01);
}

/// Announcements that are always right make join-shortest-queue.
#[test]
fn exact_announcements_are_join_shortest_queue() {
    near("broadcast_least_loaded", 0.9, 400_000, 1.575, 0.04);
    near("broadcast_least_loaded", 0.5, 200_000, 1.005, 0.01);
}

/// Each further choice gains less.
#[test]
fn more_choices_are_better_with_exact_loads() {
    let mean = |policy: &str| interval(&response_times(policy, BACKENDS, 0.9, 200_000)).0;
    let means = ["2", "3", "4", "8"].map(|size| mean(&format!("random_polling:size={size}")));
    assert!(means.is_sorted_by(|before, after| before > after) && means[3] > 1.575, "{means:?}");
    assert!(means[0] - means[1] > means[1] - means[2], "{means:?}");
}
