use super::*;
use crate::caches::gds::{GreedyDualSize, InverseSize};
use crate::caches::gdsf::GreedyDualSizeFrequency;
use crate::caches::lfu::Lfu;

/// A skewed sequence of objects.
fn ids(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|at| {
        let x = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x >> 40) % 60) * ((x >> 20) % 60) / 60
    })
}

fn renumbering_changes_nothing<R: Rank>() {
    let mut late = RankedCache::<R>::new(100, None);
    late.clock = u32::MAX - 200;
    let mut early = RankedCache::<R>::new(100, None);
    let (mut got, mut wanted) = (Vec::new(), Vec::new());
    for id in ids(2000) {
        let size_bytes = 1 + id % 5;
        if id % 17 == 0 {
            assert_eq!(late.remove(id), early.remove(id));
        }
        let hit = early.request(id, size_bytes, &mut wanted);
        assert_eq!(late.request(id, size_bytes, &mut got), hit);
    }
    assert_eq!(got, wanted);
    assert!(late.clock < 2000, "the clock was not put back");
}

#[test]
fn times_of_use_are_numbered_anew_in_the_same_order() {
    renumbering_changes_nothing::<InverseSize>();
    renumbering_changes_nothing::<crate::caches::gdsf::UsesPerSize>();
    renumbering_changes_nothing::<crate::caches::lfu::Uses>();
}

#[test]
fn the_credit_of_a_large_object_survives_any_inflation() {
    const GB: u64 = 1_000_000_000;
    let mut gds = GreedyDualSize::new(GB, None);
    gds.inflation = 1e15;
    assert!(gds.insert(1, GB, &mut Vec::new()));
    let value = gds.victim_value().unwrap();
    assert!((value * 1e9 - 1.0).abs() < 0.01, "{value}");

    let mut gdsf = GreedyDualSizeFrequency::new(GB, None);
    gdsf.inflation = 1e18;
    assert!(gdsf.insert(1, GB, &mut Vec::new()));
    let value = gdsf.victim_value().unwrap();
    assert!((value * 1e3 - 1.0).abs() < 0.01, "{value}");
}

#[test]
fn uses_stay_at_the_largest_number() {
    let mut lfu = Lfu::new(10, None);
    lfu.insert(1, 1, &mut Vec::new());
    lfu.nodes[0].uses = u32::MAX - 1;
    for _ in 0..3 {
        assert!(lfu.access(1));
    }
    assert_eq!(lfu.victim_value(), Some(f64::from(u32::MAX)));
}

#[test]
fn dead_nodes_do_not_pile_up() {
    let mut gds = GreedyDualSize::new(1000, None);
    for version in 0..100_000_u64 {
        gds.insert(version % 10, 1 + version % 3 + version / 10 % 2, &mut Vec::new());
    }
    assert_eq!(gds.len(), 10);
    assert!(gds.nodes.len() <= 2 * gds.len() + 65, "{} nodes", gds.nodes.len());
}
