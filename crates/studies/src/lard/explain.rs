//! Why claims do not hold on every workload.

pub(super) const EXPLAIN_LOCALITY: &str = "\
    The generator `irm` requests rare targets all over the trace instead of within a window of it. It meets the \
    published coverage figures as exactly as the others, but eight caches of 32 MB then miss more than the paper \
    reports: the published statistics do not pin the locality in time, on which LARD feeds.";

pub(super) const EXPLAIN_LB: &str = "\
    Rendezvous hashing partitions the Rice working set so evenly that LB misses as little as LB/GC (figure 8), and \
    misses decide on this trace: what LB loses by idle back-ends (figure 9) is less than what WRR loses at the \
    disk. On the IBM trace, whose hot targets a hash cannot spread, LB is indeed little better than WRR at sixteen \
    back-ends on some workloads. The paper does not say which hash it used.";

pub(super) const EXPLAIN_LINEAR: &str = "\
    Where requests have no locality in time (generator `irm`), ten caches do not hold the working set yet, so \
    further back-ends still lower the miss ratio and the speedup stays superlinear.";

pub(super) const EXPLAIN_GMS: &str = "\
    The order is the paper's at every size from two back-ends on, WRR < WRR/GMS < LARD and LARD/R, but the \
    distance is smaller at every size: WRR/GMS reaches 59 to 93 % of LARD/R, most on two back-ends. Directory and \
    replacement are free, as in the paper. Likely reasons are what it does not specify: here a copy costs its \
    sender nothing, the last copy of a file is kept as long as some memory holds something older, whole files move \
    at once, and duplicates displace other files only in the memory that serves them. WRR/GMS does miss more than \
    LARD/R on every workload. On the IBM trace, where the paper too finds the two close, WRR/GMS is even ahead of \
    LARD/R on four back-ends on most workloads.";

pub(super) const EXPLAIN_TENFOLD: &str = "\
    Under WRR every back-end must read every file once, whatever its cache: on eight back-ends up to 8 × 37,703 \
    reads, 13 % of 2.3 million requests. A trace several times as long would dilute these compulsory misses; the \
    paper does not give the length of its trace.";

pub(super) const EXPLAIN_COMPULSORY: &str = "\
    The rise with the number of back-ends is made of compulsory misses: under WRR every back-end reads every file \
    it is asked for at least once, up to 16 × 37,703 times in 2.3 million requests. With more locality in time a \
    cache is better, and these reads weigh more. A longer trace would flatten the curve.";

pub(super) const EXPLAIN_IDLE: &str = "\
    Differences of a few hundredths of a percentage point are within what the drain at the end of the trace makes.";

pub(super) const EXPLAIN_IBM: &str = "\
    How much is left to gain beyond four back-ends depends on how much of the last per cent of the requests four \
    caches of 32 MB hold, which differs between equally well calibrated workloads.";

pub(super) const EXPLAIN_IBM_GMS: &str = "\
    WRR/GMS misses more than LARD/R on sixteen back-ends on every workload, because several memories hold the same \
    file. How much that costs depends on how the global memory treats duplicates, which the paper does not \
    specify.";

pub(super) const EXPLAIN_HOT: &str = "\
    Gains lie on both sides of zero. LARD/R does what it is meant to do: its miss ratio is lower than LARD's on \
    every one of these workloads, and back-ends are underutilized for less than 2 % of the time under both. But \
    the work behind equal numbers of connections is not: on every workload the disks of the back-ends differ more \
    in utilization under LARD/R than under LARD. Under LARD/R some back-ends can be bound by the disk while others \
    are bound by the CPU, e.g. with 60 % of the requests for 10 KB files, and neither policy sees which it is. \
    LARD keeps reassigning targets, several times as often as LARD/R adds back-ends to them, and a likely reason \
    for the difference is that this spreads the work of the disks. With the largest hot files and 60 % of the \
    requests all back-ends are bound by the CPU under both, and the two are within 1 %.";

pub(super) const EXPLAIN_CPU: &str = "\
    The gain is the cache's: with four times the CPU and the base cache WRR gains nothing (11b).";

pub(super) const EXPLAIN_CPU_LARD_R: &str = "\
    The difference between LARD/R and LARD is small at either speed.";

pub(super) const EXPLAIN_DISKS: &str = "\
    Under WRR every back-end reads every file that it is asked for at least once, and up to sixteen times 37,703 \
    reads in 2.3 million requests keep even four disks busy. A longer trace would bring WRR nearer; the paper does \
    not give the length of its trace.";

pub(super) const EXPLAIN_DISKS_LARD: &str = "\
    Where LARD/R still misses more than the paper's 2 to 4 % (generator `irm`), its back-ends are bound by the \
    disk and further disks help.";

pub(super) const EXPLAIN_DELAY: &str = "\
    The cluster is saturated, so mean delay and throughput are one claim: throughput × delay = S (Little's law), \
    and the ratio of delays is the inverse of the ratio of throughputs.";

pub(super) const EXPLAIN_LRU: &str = "\
    How much LRU loses depends on how many large, rarely requested files there are to push small ones out, which \
    the published statistics leave open.";

pub(super) const EXPLAIN_IBM_RATIO: &str = "\
    The ratio is not the same from four back-ends on but grows with the cluster on every workload: under WRR each \
    back-end reads every file it is asked for at least once, so WRR's miss ratio rises with every back-end added \
    while LARD/R's falls, and WRR stays bound by the disk. On four back-ends the ratio is below 2 everywhere, on \
    sixteen mostly above. A longer trace would dilute the compulsory misses and flatten the curve.";

pub(super) const EXPLAIN_IBM_FEW: &str = "\
    On two or four back-ends, at equal numbers of connections, some back-ends can be bound by the disk and others \
    by the CPU. What is lost so can exceed what the larger common cache gains where the cache of one back-end does \
    well already.";

pub(super) const EXPLAIN_IBM_MATCH: &str = "\
    Averaged over the cluster sizes the two are within 3 % of each other on every workload; at single sizes, \
    mostly small ones, they differ in either direction. There one back-end more or less that is bound by the disk \
    while others are bound by the CPU counts for much, and neither policy sees which it is.";

pub(super) const EXPLAIN_CHESS: &str = "\
    LARD and LARD/R are not behind WRR at any size, which is the loss that the paper looks for; they are ahead, \
    and more so with every back-end added. Under WRR each back-end reads every file it is asked for at least once, \
    so WRR misses several times as much on sixteen back-ends as on two. A longer trace would dilute these reads.";

pub(super) const EXPLAIN_REPLICATION: &str = "\
    Where LARD/R still misses more than the paper's 2 to 4 % (generator `irm`) disks decide on the smaller of \
    these clusters, replication has next to nothing to gain, and the two are the same but for some tenths of a per \
    cent.";

pub(super) const EXPLAIN_DELAY_RICE: &str = "\
    The paper does not say for which cluster size. The cluster is saturated, so by Little's law throughput × delay \
    = S, and the ratio of delays is the inverse of the ratio of throughputs: the paper's own 3.9 on eight back- \
    ends gives 25.6 %, its 4.5 on sixteen 22 %. So the sentence can be meant for large clusters only, and the \
    claim is not independent of the one about throughput.";
