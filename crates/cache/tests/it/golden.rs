//! Counts of misses, exactly those of libCacheSim 0.3.5. `benches/cache/golden.py` made them.

use plimsoll_cache::build;

const REQUESTS: u64 = 20_000;
const OBJECTS: u64 = 2_000;

/// Seed, whether sizes are mixed, capacity in bytes, cache, misses.
const COUNTS: &[(u64, bool, u64, &str, u64)] = &[
    (1, true, 5_000, "fifo", 19_805),
    (1, true, 5_000, "lfu", 19_558),
    (1, true, 5_000, "lru", 19_803),
    (1, true, 5_000, "gdsf", 14_512),
    (1, true, 50_000, "fifo", 19_397),
    (1, true, 50_000, "lfu", 18_769),
    (1, true, 50_000, "lru", 19_399),
    (1, true, 50_000, "gdsf", 10_415),
    (1, true, 500_000, "fifo", 15_213),
    (1, true, 500_000, "lfu", 13_507),
    (1, true, 500_000, "lru", 15_006),
    (1, true, 500_000, "gdsf", 5_486),
    (2, false, 5_000, "fifo", 19_942),
    (2, false, 5_000, "lfu", 19_958),
    (2, false, 5_000, "lru", 19_942),
    (2, false, 5_000, "gdsf", 19_936),
    (2, false, 50_000, "fifo", 19_310),
    (2, false, 50_000, "lfu", 19_010),
    (2, false, 50_000, "lru", 19_309),
    (2, false, 50_000, "gdsf", 19_245),
    (2, false, 500_000, "fifo", 14_195),
    (2, false, 500_000, "lfu", 12_702),
    (2, false, 500_000, "lru", 13_864),
    (2, false, 500_000, "gdsf", 12_497),
];

/// A 64-bit number out of another.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Object and size of each request; the product of two uniform ranks is skewed like Zipf's law.
fn requests(seed: u64, mixed_sizes: bool) -> impl Iterator<Item = (u64, u64)> {
    (0..REQUESTS).map(move |at| {
        let a = mix(seed * 1_000_000 + 2 * at) % OBJECTS;
        let b = mix(seed * 1_000_000 + 2 * at + 1) % OBJECTS;
        let id = mix(a * b / OBJECTS);
        let scale = 1 << (id % 14);
        let size_bytes = if mixed_sizes { scale + (id >> 8) % scale } else { 1000 * (1 + id % 2) };
        (id, size_bytes)
    })
}

#[test]
fn misses_equal_those_of_libcachesim() {
    for &(seed, mixed_sizes, capacity_bytes, name, expected) in COUNTS {
        let mut cache = build(name, capacity_bytes, None).unwrap();
        let mut evicted = Vec::new();
        let mut misses = 0;
        for (id, size_bytes) in requests(seed, mixed_sizes) {
            misses += u64::from(!cache.request(id, size_bytes, &mut evicted));
        }
        assert_eq!(misses, expected, "{name}, {capacity_bytes} bytes, seed {seed}");
    }
}
