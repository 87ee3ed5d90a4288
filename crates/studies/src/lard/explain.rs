//! Why claims do not hold on every workload.

pub(super) const EXPLAIN_LOCALITY: &str = "The generator `irm` requests rare targets all over the trace instead of within a \
    window of it. It meets the published coverage figures as exactly as the others, but eight caches of 32 MB then \
    miss more than the paper reports: the published statistics do not pin the locality in time, on which LARD feeds.";

pub(super) const EXPLAIN_LB: &str = "Rendezvous hashing partitions the Rice working set so evenly that LB misses as little as LB/GC \
    (figure 8), and misses decide on this trace: what LB loses by idle back-ends (figure 9) is less than what WRR \
    loses at the disk. On the IBM trace, whose hot targets a hash cannot spread, LB is indeed little better than WRR \
    at sixteen back-ends on some workloads. The paper does not say which hash it used.";

pub(super) const EXPLAIN_LINEAR: &str = "Where requests have no locality in time (generator `irm`), ten caches do not hold the \
    working set yet, so further back-ends still lower the miss ratio and the speedup stays superlinear.";

pub(super) const EXPLAIN_GMS: &str = "Our global memory is at least as generous as the paper's: directory, replacement and transfer \
    are free but for CPU time of the receiver. On two and four back-ends all strategies are bound by the disk and \
    lie close together; on more, WRR/GMS pays only the misses that LARD/R has too plus its duplicates. The order is \
    the paper's (WRR < WRR/GMS < LARD < LARD/R); the distance depends on how much the duplicates displace, which \
    the paper does not specify.";

pub(super) const EXPLAIN_TENFOLD: &str = "Under WRR every back-end must read every file once, whatever its cache: on eight back-ends \
    up to 8 × 37,703 reads, 13 % of 2.3 million requests. A trace several times as long would dilute these compulsory \
    misses; the paper does not give the length of its trace.";

pub(super) const EXPLAIN_COMPULSORY: &str = "The rise with the number of back-ends is made of compulsory misses: under WRR every \
    back-end reads every file it is asked for at least once, up to 16 × 37,703 times in 2.3 million requests. With \
    more locality in time a cache is better, and these reads weigh more. A longer trace would flatten the curve.";

pub(super) const EXPLAIN_IDLE: &str = "Differences of a few hundredths of a percentage point are within what the drain at the end of \
    the trace makes.";

pub(super) const EXPLAIN_IBM: &str = "How much is left to gain beyond four back-ends depends on how much of the last per cent of the \
    requests four caches of 32 MB hold, which differs between equally well calibrated workloads.";

pub(super) const EXPLAIN_IBM_GMS: &str = "";

pub(super) const EXPLAIN_HOT: &str = "Gains lie on both sides of zero. LARD/R does what it is meant to do: its miss ratio is \
    lower on every one of these workloads and the loads of the back-ends are as even. But basic LARD, which has to \
    keep moving the hot target, thereby keeps moving others too (tens of thousands of reassignments against some \
    hundred additions), and so spreads the work of the disks; under LARD/R the assignment freezes, and back-ends that \
    happen to hold more rarely requested files stay bound by their disk while others are bound by their CPU. Both have \
    the same number of connections, which is all that either policy looks at. With larger hot files the CPU \
    decides alone and the difference vanishes.";

pub(super) const EXPLAIN_CPU: &str =
    "The gain is the cache's: with four times the CPU and the base cache WRR gains nothing (11b).";

pub(super) const EXPLAIN_CPU_LARD_R: &str = "The difference between LARD/R and LARD is small at either speed.";

pub(super) const EXPLAIN_DISKS: &str = "Our WRR misses more than the paper's: every back-end reads every file once, and sixteen times \
    37,703 reads in 2.3 million requests keep even four disks busy. A longer trace would bring WRR nearer.";

pub(super) const EXPLAIN_DISKS_LARD: &str = "Where LARD/R still misses more than the paper's 2 to 4 % (generator `irm`), its back-ends \
    are bound by the disk and further disks help.";

pub(super) const EXPLAIN_DELAY: &str = "The cluster is saturated, so mean delay and throughput are one claim: throughput × delay = S \
    (Little's law), and the ratio of delays is the inverse of the ratio of throughputs.";

pub(super) const EXPLAIN_LRU: &str = "How much LRU loses depends on how many large, rarely requested files there are to push small ones \
    out, which the published statistics leave open.";
