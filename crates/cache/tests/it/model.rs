//! Every cache against a model that is too simple to be wrong: ordered maps, every key up to date
//! at every moment. All answers must agree, the order of eviction with its ties included.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_cache::{REGISTRY, build};
use proptest::prelude::*;

/// What is done to a cache.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Request(u64, u64),
    Access(u64),
    Insert(u64, u64),
    Remove(u64),
    Victim,
    Clear,
}

/// A sequence of operations, most of them requests of a few objects with sizes that often coincide.
pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let id = || prop_oneof![3 => 0..8_u64, 1 => 0..40_u64];
    let size = || prop_oneof![4 => 1..6_u64, 2 => 1..60_u64, 1 => Just(0), 1 => 90..130_u64];
    let op = prop_oneof![
        // An object mostly keeps its size.
        12 => id().prop_map(|id| Op::Request(id, 1 + id * 7 % 13)),
        4 => (id(), size()).prop_map(|(id, size)| Op::Insert(id, size)),
        4 => id().prop_map(Op::Access),
        2 => id().prop_map(Op::Remove),
        2 => Just(Op::Victim),
    ];
    let rare = prop_oneof![200 => op, 1 => Just(Op::Clear)];
    prop::collection::vec(rare, 1..400)
}

struct Object {
    size_bytes: u64,
    uses: u32,
    value: f64,
    time: u64,
}

struct Model {
    name: &'static str,
    capacity_bytes: u64,
    limit_bytes: u64,
    inflation: f64,
    clock: u64,
    objects: BTreeMap<u64, Object>,
    /// (bits of the value, time of use, object): non-negative values order like their bits.
    order: BTreeSet<(u64, u64, u64)>,
}

impl Model {
    fn new(name: &'static str, capacity_bytes: u64, object_limit_bytes: Option<u64>) -> Self {
        Self {
            name,
            capacity_bytes,
            limit_bytes: object_limit_bytes.unwrap_or(u64::MAX).min(capacity_bytes),
            inflation: 0.0,
            clock: 0,
            objects: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }

    fn value(&self, uses: u32, size_bytes: u64) -> f64 {
        let size_bytes = size_bytes.max(1) as f64;
        match self.name {
            "fifo" | "lru" => 0.0,
            "lfu" => f64::from(uses),
            "gds" => self.inflation + 1.0 / size_bytes,
            "gdsf" => self.inflation + f64::from(uses) * 1e6 / size_bytes,
            other => panic!("the model does not know {other}: teach it"),
        }
    }

    fn used_bytes(&self) -> u64 {
        self.objects.values().map(|object| object.size_bytes).sum()
    }

    fn take(&mut self, id: u64) -> Option<Object> {
        let object = self.objects.remove(&id)?;
        assert!(self.order.remove(&(object.value.to_bits(), object.time, id)));
        Some(object)
    }

    fn put(&mut self, id: u64, object: Object) {
        self.order.insert((object.value.to_bits(), object.time, id));
        self.objects.insert(id, object);
    }

    fn access(&mut self, id: u64) -> bool {
        let Some(mut object) = self.take(id) else {
            return false;
        };
        self.clock += 1;
        if self.name != "fifo" {
            object.uses += 1;
            object.time = self.clock;
            object.value = self.value(object.uses, object.size_bytes);
        }
        self.put(id, object);
        true
    }

    fn insert(&mut self, id: u64, size_bytes: u64, evicted: &mut Vec<u64>) -> bool {
        if self.objects.get(&id).is_some_and(|object| object.size_bytes == size_bytes) {
            return true;
        }
        let old = self.take(id);
        let uses = old.as_ref().map_or(1, |old| old.uses);
        let admitted = size_bytes <= self.limit_bytes && self.admit(id, size_bytes, uses, evicted);
        if !admitted && old.is_some() {
            evicted.push(id);
        }
        admitted
    }

    fn admit(&mut self, id: u64, size_bytes: u64, uses: u32, evicted: &mut Vec<u64>) -> bool {
        self.clock += 1;
        let mut object = Object { size_bytes, uses, value: self.value(uses, size_bytes), time: self.clock };
        while self.used_bytes() + size_bytes > self.capacity_bytes {
            let (value_bits, _, victim) =
                *self.order.first().expect("more is used than there is room, so something is present");
            let value = f64::from_bits(value_bits);
            if self.name == "gdsf" && object.value < value {
                self.inflation = object.value;
                return false;
            }
            self.take(victim);
            evicted.push(victim);
            self.inflation = value;
        }
        if self.name == "gds" {
            object.value = self.value(uses, size_bytes);
        }
        self.put(id, object);
        true
    }

    fn victim(&self) -> Option<u64> {
        self.order.first().map(|&(_, _, id)| id)
    }

    fn victim_value(&self) -> Option<f64> {
        let object = &self.objects[&self.victim()?];
        Some(match self.name {
            "fifo" | "lru" => -((self.clock - object.time) as f64),
            "lfu" => object.value,
            _ => object.value - self.inflation,
        })
    }
}

/// Runs the operations through cache and model and compares all there is to see.
fn compare(name: &'static str, capacity_bytes: u64, limit_bytes: Option<u64>, ops: &[Op]) {
    let mut cache = build(name, capacity_bytes, limit_bytes).expect("the name is from the registry");
    let mut model = Model::new(name, capacity_bytes, limit_bytes);
    let (mut got, mut wanted) = (Vec::new(), Vec::new());
    for (at, op) in ops.iter().enumerate() {
        let what = format!("{name}, step {at}, {op:?}");
        match *op {
            Op::Request(id, size_bytes) => {
                let hit = model.access(id);
                if !hit {
                    model.insert(id, size_bytes, &mut wanted);
                }
                assert_eq!(cache.request(id, size_bytes, &mut got), hit, "{what}");
            }
            Op::Access(id) => assert_eq!(cache.access(id), model.access(id), "{what}"),
            Op::Insert(id, size_bytes) => {
                let admitted = model.insert(id, size_bytes, &mut wanted);
                assert_eq!(cache.insert(id, size_bytes, &mut got), admitted, "{what}");
            }
            Op::Remove(id) => assert_eq!(cache.remove(id), model.take(id).is_some(), "{what}"),
            Op::Victim => {
                assert_eq!(cache.victim(), model.victim(), "{what}");
                assert_eq!(cache.victim_value(), model.victim_value(), "{what}");
            }
            Op::Clear => {
                cache.clear();
                model = Model::new(name, capacity_bytes, limit_bytes);
            }
        }
        assert_eq!(got, wanted, "{what}: what was evicted");
        assert_eq!(cache.len(), model.objects.len(), "{what}");
        assert_eq!(cache.used_bytes(), model.used_bytes(), "{what}");
        if let Op::Request(id, _) | Op::Access(id) | Op::Insert(id, _) | Op::Remove(id) = *op {
            assert_eq!(cache.contains(id), model.objects.contains_key(&id), "{what}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn every_cache_equals_its_model(
        ops in ops(),
        capacity_bytes in prop_oneof![1 => 0..10_u64, 6 => 10..110_u64],
        limit_bytes in prop_oneof![2 => Just(None), 1 => (1..100_u64).prop_map(Some)],
    ) {
        for spec in REGISTRY {
            compare(spec.name, capacity_bytes, limit_bytes, &ops);
        }
    }
}

/// Far more objects than the property above has, so that the heap is deep.
#[test]
fn a_long_run_equals_the_model() {
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut ops = Vec::new();
    for _ in 0..30_000 {
        let id = draw(1500) * draw(1500) / 1500;
        let size_bytes = 1 + (id * id) % 97;
        ops.push(match draw(40) {
            0 => Op::Remove(id),
            1 => Op::Insert(id, size_bytes + 1 + draw(50)),
            2 => Op::Victim,
            _ => Op::Request(id, size_bytes),
        });
    }
    for spec in REGISTRY {
        compare(spec.name, 20_000, None, &ops);
    }
}
