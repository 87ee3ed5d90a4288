//! Whole-object caches: LRU, LFU, Greedy-Dual-Size and its kin.
