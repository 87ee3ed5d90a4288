//! The workloads and what is published of them.

use super::generators::{
    BERKELEY_GENERATORS, CHESS_GENERATORS, IBM_GENERATORS, RICE_GENERATORS, WORLDCUP_GENERATORS,
    WORLDCUP66_GENERATORS,
};
use super::parameters::{
    BERKELEY_PARAMETERS, CHESS_PARAMETERS, HOT_PARAMETERS, IBM_PARAMETERS, RICE_PARAMETERS,
    WORLDCUP_PARAMETERS, WORLDCUP66_PARAMETERS,
};
use super::service;
use super::spec::{FigureBound, Parameter, PublishedFigure, WorkloadSpec};

/// Every workload, in the order in which help and docs list them.
pub const SPECS: &[WorkloadSpec] = &[
    WorkloadSpec {
        name: "rice",
        help: "departmental web servers of Rice University, two months: a large working set",
        source: "Pai et al., Locality-Aware Request Distribution, ASPLOS 1998, sections 3.2 and 4.2",
        generators: RICE_GENERATORS,
        parameters: &RICE_PARAMETERS,
        published: &RICE_FIGURES,
    },
    WorkloadSpec {
        name: "ibm",
        help: "www.ibm.com, 3.5 days of June 1998: small popular documents, high locality",
        source: "Pai et al., Locality-Aware Request Distribution, ASPLOS 1998, sections 3.2 and 4.2",
        generators: IBM_GENERATORS,
        parameters: &IBM_PARAMETERS,
        published: &IBM_FIGURES,
    },
    WorkloadSpec {
        name: "chess",
        help: "Deep Blue against Kasparov, May 1997: a working set that one 32 MiB cache holds",
        source: "Pai et al., Locality-Aware Request Distribution, ASPLOS 1998, section 4.2; only \
                 the low miss ratio with one 32 MB cache is published, the rest is assumed",
        generators: CHESS_GENERATORS,
        parameters: &CHESS_PARAMETERS,
        published: &[at_most("cover99_mib", 32.0, "MiB", COVER99)],
    },
    WorkloadSpec {
        name: "hot",
        help: "the Rice workload with a few artificial hot targets added",
        source: "Pai et al., Locality-Aware Request Distribution, ASPLOS 1998, section 4.2; the \
                 published figures are those of the Rice part",
        generators: RICE_GENERATORS,
        parameters: &HOT_PARAMETERS,
        published: &RICE_FIGURES,
    },
    WorkloadSpec {
        name: "worldcup",
        help: "World Cup web site, 24 June 1998: 38.8 million small requests in one day",
        source: "Riska et al., ADAPTLOAD, ICDCS 2002, section 3, tables 1 and 2",
        generators: WORLDCUP_GENERATORS,
        parameters: &WORLDCUP_PARAMETERS,
        published: WORLDCUP_FIGURES,
    },
    WorkloadSpec {
        name: "worldcup66",
        help: "World Cup web site on its peak day, 30 June 1998: what requests are answered, and by which HTTP",
        source: "Hyun et al., Content Sniffer Based Load Distribution, IEICE Transactions 2003, table 1",
        generators: WORLDCUP66_GENERATORS,
        parameters: &WORLDCUP66_PARAMETERS,
        published: WORLDCUP66_FIGURES,
    },
    WorkloadSpec {
        name: "berkeley",
        help: "web site of a computer science department, a month: a working set larger than the memory of a cluster",
        source: "Sit, Wang and Lau, Socket Cloning for cluster-based web servers, CLUSTER 2002, section 4.2",
        generators: BERKELEY_GENERATORS,
        parameters: &BERKELEY_PARAMETERS,
        published: BERKELEY_FIGURES,
    },
    WorkloadSpec {
        name: "fine_grain",
        help: "a search engine's translation of query words, at its peak: 22 ms of service",
        source: "Shen, Yang and Chu, Cluster load balancing for fine-grain network services, IPDPS 2002, table 1",
        generators: service::GENERATORS,
        parameters: &FINE_GRAIN_PARAMETERS,
        published: &FINE_GRAIN_FIGURES,
    },
    WorkloadSpec {
        name: "medium_grain",
        help: "a search engine's translation of page descriptions, at its peak: 209 ms of service",
        source: "Shen, Yang and Chu, Cluster load balancing for fine-grain network services, IPDPS 2002, table 1",
        generators: service::GENERATORS,
        parameters: &MEDIUM_GRAIN_PARAMETERS,
        published: &MEDIUM_GRAIN_FIGURES,
    },
    WorkloadSpec {
        name: "poisson_exp",
        help: "Poisson arrivals and exponential service times of 50 ms",
        source: "Shen, Yang and Chu, IPDPS 2002, sections 1.1 and 2.2; a workload of the study, so no figures of a trace",
        generators: service::GENERATORS,
        parameters: &POISSON_EXP_PARAMETERS,
        published: &[],
    },
];

/// Table 1 of the fine-grain study.
const FINE_GRAIN_PARAMETERS: [Parameter; service::COUNT] = service::parameters(&service::FINE_GRAIN);
const FINE_GRAIN_FIGURES: [PublishedFigure; 5] = service::figures(&service::FINE_GRAIN);
const MEDIUM_GRAIN_PARAMETERS: [Parameter; service::COUNT] = service::parameters(&service::MEDIUM_GRAIN);
const MEDIUM_GRAIN_FIGURES: [PublishedFigure; 5] = service::figures(&service::MEDIUM_GRAIN);
const POISSON_EXP_PARAMETERS: [Parameter; service::COUNT] = service::parameters(&service::POISSON_EXP);

const fn equal(
    name: &'static str,
    value: f64,
    unit: &'static str,
    tolerance: f64,
    help: &'static str,
) -> PublishedFigure {
    PublishedFigure { name, value, unit, bound: FigureBound::Equal, tolerance, help }
}

const fn at_most(name: &'static str, value: f64, unit: &'static str, help: &'static str) -> PublishedFigure {
    PublishedFigure { name, value, unit, bound: FigureBound::AtMost, tolerance: 0.0, help }
}

const COVER97: &str = "memory that holds the targets of 97 % of the requests";
const COVER98: &str = "memory that holds the targets of 98 % of the requests";
const COVER99: &str = "memory that holds the targets of 99 % of the requests";

const fn lard_figures(targets: f64, mib: [f64; 4], top_share: f64) -> [PublishedFigure; 6] {
    [
        equal("targets", targets, "", 0.0, "distinct targets"),
        equal("total_mib", mib[3], "MiB", 0.001, "bytes of all targets"),
        equal("cover97_mib", mib[0], "MiB", 0.03, COVER97),
        equal("cover98_mib", mib[1], "MiB", 0.03, COVER98),
        equal("cover99_mib", mib[2], "MiB", 0.03, COVER99),
        equal("top_share", top_share, "", 0.05, "share of the requests for the most popular target"),
    ]
}

const RICE_FIGURES: [PublishedFigure; 6] = lard_figures(37_703.0, [560.0, 705.0, 927.0, 1_418.0], 0.02);
const IBM_FIGURES: [PublishedFigure; 6] = lard_figures(38_527.0, [51.0, 80.0, 182.0, 1_029.0], 0.05);
const WORLDCUP_FIGURES: &[PublishedFigure] = &[
    equal("targets", 17_332.0, "", 0.0, "distinct files"),
    equal("total_mib", 194.7, "MiB", 0.001, "bytes of all files"),
    equal("file_mean_bytes", 11_786.0, "B", 0.001, "mean size of a file"),
    equal("file_median_bytes", 3_714.0, "B", 0.005, "median size of a file"),
    equal("file_max_mib", 3.1, "MiB", 0.01, "size of the largest file"),
    equal("requests", 38_834_515.0, "", 0.0, "successful requests of the day"),
    equal("request_mean_bytes", 5_124.85, "B", 0.005, "mean size of a request"),
    equal("request_median_bytes", 963.0, "B", 0.005, "median size of a request"),
];
/// Section 4.2 of the Socket Cloning study; it gives the sizes in two digits.
const BERKELEY_FIGURES: &[PublishedFigure] = &[
    equal("targets", 87_425.0, "", 0.0, "unique files"),
    equal("requests", 3_940_707.0, "", 0.0, "requests of the month"),
    equal("total_mib", 6_294.3, "MiB", 0.008, "bytes of all files: 6.6 GB"),
    equal("request_mean_bytes", 40_000.0, "B", 0.025, "mean size of a requested document: 40 KB"),
];
/// Table 1 of the CSLD study. The shares are drawn; their tolerances are four standard deviations over 500,000 requests. Dynamic
/// requests (0.02 %) are too few to be counted so.
const WORLDCUP66_FIGURES: &[PublishedFigure] = &[
    equal("requests", 73_300_000.0, "", 0.0, "requests of the day"),
    equal("static_percent", 71.76, "%", 0.0036, "requests answered with a stored document"),
    equal("not_modified_percent", 27.87, "%", 0.0091, "conditional requests, answered 304"),
    equal("invalid_percent", 0.35, "%", 0.096, "requests for what is not there"),
    equal("http11_percent", 19.69, "%", 0.0115, "requests by HTTP/1.1"),
    equal("request_mean_bytes", 3_200.0, "B", 0.005, "mean size of a stored document, by requests (assumed)"),
];
