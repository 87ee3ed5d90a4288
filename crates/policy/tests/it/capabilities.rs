//! What policies can do beside choosing is what they declare.

use plimsoll_policy::{BackendId, Cluster, Decision, Policy, REGISTRY, Request, TargetId, Time};
use proptest::prelude::*;

use crate::registry::{built, settings};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// What a policy says of itself is what its registry entry says, and what it shows is bounded and finite.
    #[test]
    fn capabilities_are_as_declared(seed in any::<u64>(), parameters in any::<u64>()) {
        for spec in REGISTRY {
            let mut policy = built(spec, seed, &settings(spec, parameters));
            prop_assert_eq!(policy.capabilities().names(), spec.capabilities.names(), "{}", spec.name);
            let has = |name| spec.capabilities.names().contains(&name);
            prop_assert_eq!(policy.shown().is_some(), has("shows_state"), "{}", spec.name);
            prop_assert_eq!(policy.seen().is_some(), has("shares_state"), "{}", spec.name);
            prop_assert_eq!(policy.save().is_some(), has("saves_state"), "{}", spec.name);
            if let Some(saved) = policy.save() {
                prop_assert_eq!(policy.restore(&saved), Some(Ok(())), "{}", spec.name);
            }
        }
    }
}

/// A policy whose state was saved and restored decides on as the one that went on; damaged bytes are refused, or do no harm.
#[test]
fn saved_state_decides_as_the_object_that_saved_it() {
    for spec in REGISTRY.iter().filter(|s| s.capabilities.names().contains(&"saves_state")) {
        for parameters in 0..20 {
            let settings = settings(spec, parameters);
            let mut going_on = built(spec, 7, &settings);
            let mut cluster = Cluster::new(5);
            let mut random = parameters;
            let mut offer = |policy: &mut dyn Policy, cluster: &mut Cluster, number: u64, count: bool| {
                let request = Request {
                    size_bytes: Some(number % 977),
                    ..Request::of(number, TargetId(number * number % 97))
                };
                let now = Time::from_nanos(number * 300_000_000);
                let decision = policy.choose(&request, cluster, now);
                if let (Decision::Assign(b), true) = (decision, count) {
                    cluster.assign(b);
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let b = BackendId((random >> 40) as u16 % 5);
                    if cluster.load(b) > 0 && !number.is_multiple_of(5) {
                        cluster.complete(b);
                    }
                }
                decision
            };
            for number in 0..2000 {
                offer(&mut *going_on, &mut cluster, number, true);
            }
            let saved = going_on.save().unwrap();
            let mut restored = built(spec, 7, &settings);
            restored.restore(&saved).unwrap().unwrap();
            assert_eq!(restored.save().unwrap(), saved, "{}", spec.name);
            for number in 2000..3000 {
                let mut same = cluster.clone();
                let expected = offer(&mut *restored, &mut same, number, false);
                assert_eq!(offer(&mut *going_on, &mut cluster, number, true), expected, "{}", spec.name);
            }
            for end in 0..saved.len() {
                assert!(built(spec, 7, &settings).restore(&saved[..end]).unwrap().is_err(), "{}", spec.name);
            }
        }
    }
}
