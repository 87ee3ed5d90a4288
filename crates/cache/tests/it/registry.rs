//! Caches by name.

use plimsoll_cache::{REGISTRY, build, find};

#[test]
fn names_are_unique_sorted_and_spelt_plainly() {
    assert!(REGISTRY.is_sorted_by_key(|spec| spec.name));
    let mut names: Vec<_> =
        REGISTRY.iter().flat_map(|spec| std::iter::once(&spec.name).chain(spec.aliases)).collect();
    assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b"_1".contains(&b))));
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(REGISTRY.iter().all(|spec| !spec.summary.is_empty() && !spec.citation.is_empty()));
}

#[test]
fn names_are_found_however_they_are_spelt() {
    for (asked, name) in [
        ("lru", "lru"),
        ("LRU", "lru"),
        ("Greedy-Dual-Size", "gds"),
        ("greedydualsize", "gds"),
        ("greedy_dual_size_frequency", "gdsf"),
        ("FIFO", "fifo"),
        ("least-frequently-used", "lfu"),
    ] {
        assert_eq!(find(asked).unwrap().name, name, "{asked}");
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    for (asked, nearest) in [("lrru", "lru"), ("gdsff", "gdsf"), ("fif", "fifo"), ("greedy-dual", "gds")] {
        let error = find(asked).unwrap_err();
        assert_eq!(error.nearest, nearest, "{asked}");
        assert_eq!(error.name, asked);
    }
    let Err(error) = build("arc", 1, None) else { panic!("there is no ARC") };
    let text = error.to_string();
    assert!(text.contains("\"arc\"") && text.contains("fifo, gds, gdsf, lfu, lru"), "{text}");
}
