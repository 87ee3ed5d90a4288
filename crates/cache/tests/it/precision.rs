//! The inflation value is taken down without a trace.

use plimsoll_cache::{Cache, Rank, RankedCache};
use proptest::prelude::*;

/// Credits are halves, quarters … of 1, so that no sum is ever rounded and the two ranks differ in
/// nothing but the rebasing.
fn credit(uses: u32, size_bytes: u64) -> f64 {
    f64::from(uses) / size_bytes.next_power_of_two() as f64
}

struct Rebasing<const COMPETES: bool>;
struct Growing<const COMPETES: bool>;

impl<const COMPETES: bool> Rank for Rebasing<COMPETES> {
    const INFLATES: bool = true;
    const NEWCOMER_COMPETES: bool = COMPETES;
    const REBASE_AT: f64 = 0.5;

    fn value(inflation: f64, uses: u32, size_bytes: u64) -> f64 {
        inflation + credit(uses, size_bytes)
    }
}

impl<const COMPETES: bool> Rank for Growing<COMPETES> {
    const INFLATES: bool = true;
    const NEWCOMER_COMPETES: bool = COMPETES;
    const REBASE_AT: f64 = f64::INFINITY;

    fn value(inflation: f64, uses: u32, size_bytes: u64) -> f64 {
        inflation + credit(uses, size_bytes)
    }
}

fn compare<const COMPETES: bool>(requests: &[(u64, u64, u8)]) {
    let mut rebasing = RankedCache::<Rebasing<COMPETES>>::new(64, None);
    let mut growing = RankedCache::<Growing<COMPETES>>::new(64, None);
    let (mut got, mut wanted) = (Vec::new(), Vec::new());
    for &(id, size_bytes, what) in requests {
        match what {
            0 => assert_eq!(rebasing.remove(id), growing.remove(id)),
            1 => assert_eq!(
                rebasing.insert(id, size_bytes, &mut got),
                growing.insert(id, size_bytes, &mut wanted)
            ),
            _ => assert_eq!(
                rebasing.request(id, size_bytes, &mut got),
                growing.request(id, size_bytes, &mut wanted)
            ),
        }
        assert_eq!(got, wanted);
        if what > 4 {
            assert_eq!(rebasing.victim(), growing.victim());
            assert_eq!(rebasing.victim_value(), growing.victim_value());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn rebasing_changes_neither_order_nor_ties(
        requests in prop::collection::vec((0..50_u64, 1..16_u64, 0..20_u8), 1..600),
    ) {
        compare::<false>(&requests);
        compare::<true>(&requests);
    }
}
