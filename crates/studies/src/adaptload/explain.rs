//! Why claims do not hold, as far as it is known. Where a cause is only likely, the text says so.

pub(super) const BOTTLENECK: &str = "\
    Disks are used less than networks here. How many rare files are requested in these hours is not published, \
    and the day was fitted to the coefficient of variation of sizes, not to the use of disks.";

pub(super) const BUSY: &str = "\
    How far JSQ is ahead depends on how full the network is at the peak: at --peak-use 0.75 it clearly is.";

pub(super) const BUSY_LARD: &str = "\
    As for AdaptLoad, the load decides; LARD's thresholds are not in the paper.";

pub(super) const CLASSES: &str = "\
    Where the speed is fitted to the two lower classes, the two upper ones are what disks make: the first \
    reads of the cold start, and bursts of new files.";

pub(super) const CLUSTERS: &str = "\
    The cold start decides: see the row with w, which leaves the day's first 500,000 requests out. AdaptLoad's \
    back-end for small files has most of the first reads however many back-ends there are; LARD and JSQ spread \
    them.";

pub(super) const CLUSTERS_LARD: &str = "\
    With the cold start, AdaptLoad is worse, as most first reads are its first back-end's. Without it, LARD is \
    the worse one: likely because it has each file on one back-end, where AdaptLoad shares the file at a \
    boundary.";

pub(super) const COLD: &str = "\
    Depends on how many files are rare, which is not published.";

pub(super) const CROSSOVER: &str = "\
    Where JSQ catches up depends on the load: without the cold start at caches of 32 % here, and of 30 % at \
    --peak-use 0.75. In a shortened day JSQ's first reads weigh more, and the two need not cross.";

pub(super) const DYNAMIC: &str = "\
    The cold start decides: see the row with w, which leaves the day's first 500,000 requests out.";

pub(super) const DYNAMIC_GAP: &str = "\
    Not explained. Without the cold start AdaptLoad's lead over JSQ grows with the share of dynamic requests, \
    at this load and at --peak-use 0.75.";

pub(super) const DYNAMIC_TIMES: &str = "\
    The cold start decides: see the row with w, which leaves the day's first 500,000 requests out. First reads \
    make long responses, and at 70 % fewer requests touch a disk.";

pub(super) const EVENLY: &str = "\
    The mean over the points is taken, quiet ones included, where a few large files weigh.";

pub(super) const EVEN_LARD: &str = "\
    LARD's thresholds are not in the paper; with those taken here it seldom moves a file.";

pub(super) const FAIR_JSQ: &str = "\
    Depends on the load, which the paper does not state but for one size.";

pub(super) const FAIR_LARD: &str = "\
    LARD is the slower one, with the thresholds taken here.";

pub(super) const IMPROVED: &str = "\
    The cold start decides: see the row with w, which leaves the day's first 500,000 requests out.";

pub(super) const JSQ_SMALL: &str = "\
    The disk under JSQ is the bottleneck at small caches; how far it falls behind depends on popularity, which \
    is not published.";

pub(super) const LARD_SMALL: &str = "\
    With the cold start both are slow. Without it AdaptLoad is far ahead: LARD's caches of 5 % miss more \
    often, whatever its thresholds (full form: seven pairs).";

pub(super) const LARD_TEN: &str = "\
    LARD's disks are nearer to their limit with small caches than AdaptLoad's; the table of all policies has \
    their use.";

pub(super) const LARGE: &str = "\
    Not explained. Likely AdaptLoad's last back-end, which has all large files, has the longest waits for its \
    disk.";

pub(super) const OSCILLATIONS: &str = "\
    As a5: LARD's caches of 5 % miss more often than AdaptLoad's here.";

pub(super) const PEAK: &str = "\
    LARD and LARD/R are behind AdaptLoad where the network is full, with all three pairs of thresholds that \
    the full form runs there: likely because they give a file to one back-end, or to few, and here some files \
    are a large part of all requests. JSQ is ahead.";

pub(super) const PEAK_DISK: &str = "\
    First reads of a shortened day, which has a sixth of the requests for the same files. On the full day this \
    holds.";

pub(super) const PEAK_USE: &str = "\
    The speed is fitted to these for the synthetic day in full; another workload needs another --peak-use.";

pub(super) const QUIET: &str = "\
    Depends on the use of the disks, which is lower here than the paper states.";

pub(super) const QUIET_LARD: &str = "\
    The mean of these hours is made by the five-minute bursts of new small files, which AdaptLoad sends to one \
    back-end; between them it is the better one (figure 5).";

pub(super) const RECOVERY: &str = "\
    The second point after the largest is judged; disks that have a backlog take longer.";

pub(super) const RESPONSES: &str = "\
    Both ratios are of the same order with the cold start, in which delays are much longer than any service, \
    so that the two measures differ little. See the row with w.";

pub(super) const SIZES: &str = "\
    Depends on how sizes go with popularity, of which only mean and median are published.";

pub(super) const SLIGHTLY: &str = "\
    The cold start decides: see the row with w, which leaves the day's first 500,000 requests out. Then JSQ is \
    ahead, by how much depends on the load at the peak.";

pub(super) const SMALL: &str = "\
    How much of the working set is in use at a time decides, of which nothing is published.";

pub(super) const SPIKE: &str = "\
    Of the six bursts of new small files that the synthetic day has, the first five make spikes (figure 5: \
    from 36,000 to 43,300 s), and the one at 45,000 s does not, on the full day with seed 1.";

pub(super) const TINY: &str = "\
    Depends on the load: with short queues even the smallest wait little.";

pub(super) const TWICE: &str = "\
    With the cold start AdaptLoad is the slower one. Without it AdaptLoad is ahead of LARD at caches of 60 %, \
    likely for the reason given with a41.";
