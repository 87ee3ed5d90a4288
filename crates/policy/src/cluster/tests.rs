use super::*;

const B0: BackendId = BackendId(0);
const B1: BackendId = BackendId(1);
const B2: BackendId = BackendId(2);

#[test]
fn least_loaded_breaks_ties_by_lowest_index() {
    let mut c = Cluster::new(3);
    assert_eq!(c.least_loaded(), Some(B0));
    c.assign(B0);
    assert_eq!(c.least_loaded(), Some(B1));
    c.assign(B1);
    c.assign(B2);
    assert_eq!(c.least_loaded(), Some(B0));
    c.complete(B2);
    assert_eq!(c.least_loaded(), Some(B2));
    assert_eq!(c.total_load(), 2);
}

#[test]
fn failed_draining_and_weightless_backends_take_nothing() {
    let mut c = Cluster::new(3);
    c.set_health(B0, Health::Down);
    assert_eq!(c.least_loaded(), Some(B1));
    c.set_health(B1, Health::Draining);
    assert_eq!(c.least_loaded(), Some(B2));
    c.set_weight(B2, Weight::ZERO);
    assert_eq!(c.least_loaded(), None);
    assert_eq!(c.eligible(), 0);
    c.set_health(B0, Health::Up);
    assert_eq!(c.least_loaded(), Some(B0));
}

#[test]
fn weight_divides_the_load() {
    let mut c = Cluster::new(2);
    c.set_weight(B1, Weight::new(2.0).unwrap());
    for b in [B0, B1, B1] {
        c.assign(b);
    }
    // 1 request at weight 1 and 2 at weight 2 are the same relative load.
    assert_eq!(c.relative_load(B0), c.relative_load(B1));
    assert_eq!(c.relative_load(B0), RelativeLoad::threshold(1));
    assert!(!c.is_uniform());
    assert_eq!(c.eligible_weight_steps(), 3 * 256);
}

#[test]
fn thresholds_compare_strictly() {
    let mut c = Cluster::new(1);
    c.assign(B0);
    assert!(!c.any_below(RelativeLoad::threshold(1)));
    assert!(c.any_below(RelativeLoad::threshold(2)));
}

#[test]
#[should_panic(expected = "completes exactly once")]
fn completing_twice_is_a_bug() {
    Cluster::new(1).complete(B0);
}
