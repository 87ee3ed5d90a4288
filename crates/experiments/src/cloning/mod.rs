//! Figures 8 and 9 of the Socket Cloning paper, and what a clone costs to start, on nodes of a lab.

use std::path::Path;

use plimsoll_lab::{CpuLimit, Lab, LabConfig, check_privileges};
use plimsoll_studies::cloning::{
    CloningPart, CloningSetting, LiveCloning, LiveRun, LiveSetting, SCALE, live_cache_bytes,
};

use crate::{ExperimentError, Tell};
use efficiency::MicroBench;

mod bed;
mod efficiency;
mod file_server;
mod nodes;
mod plan;
mod raw_client;

pub use bed::{BedCaching, BedCounts, BedPlan, CloneBed, Wrap};
pub use raw_client::RawClient;

/// Makes the measurements of a part of the study, for [`plimsoll_studies::cloning::reproduce`]. Leaves them out if this machine allows no
/// lab; the result says so. `program` is the `plimsoll` program.
///
/// # Errors
/// When a measurement failed after it had begun.
pub fn measure(
    setting: &CloningSetting,
    program: &Path,
    tell: Tell<'_>,
) -> Result<LiveCloning, ExperimentError> {
    let CloningSetting { effort, part, .. } = *setting;
    let wanted = [CloningPart::LiveMicro, CloningPart::LiveNodes, CloningPart::Thresholds];
    if !wanted.iter().any(|live| part.wants(*live)) {
        return Ok(LiveCloning::default());
    }
    if let Err(error) = check_privileges().and_then(|()| Lab::build(&LabConfig::default()).map(drop)) {
        let why = error.to_string().lines().map(str::trim).collect::<Vec<_>>().join("; ");
        tell(&format!("plimsoll: what is measured live is left out: {why}"));
        return Ok(LiveCloning { left_out: Some(why), ..LiveCloning::default() });
    }
    let unlimited = CpuLimit::new().err().map(|error| error.to_string());
    if let Some(why) = &unlimited {
        tell(&format!("plimsoll: nodes have no limit of CPU time: {why}"));
    }
    let limited = unlimited.is_none();
    let seeds = plan::seeds(effort, setting.seed, setting.seeds);
    tell(&format!("live measurements for about {:.0} s", plan::seconds(effort, part, seeds.len())));
    let mut live = LiveCloning {
        warmup_requests: plan::lengths(effort).warm_requests,
        nodes_setting: nodes_setting(setting, limited),
        micro_setting: micro_setting(setting, limited),
        ..LiveCloning::default()
    };
    if part.wants(CloningPart::LiveMicro) {
        live.startup = Some(efficiency::startup(effort, tell)?);
        live.micro = efficiency::measure(MicroBench { effort, program, limited, tell })?;
    }
    let runs = |planned: Vec<LiveSetting>, seeds: &[u64]| -> Result<Vec<LiveRun>, ExperimentError> {
        let mut runs = Vec::new();
        for &seed in seeds.iter().filter(|_| !planned.is_empty()) {
            let requests = nodes::requests(seed)?;
            for run in &planned {
                runs.push(nodes::run(*run, seed, &requests, plan::lengths(effort), limited, tell)?);
            }
        }
        Ok(runs)
    };
    if part.wants(CloningPart::LiveNodes) {
        live.nodes = runs(plan::nodes(effort), &seeds)?;
    }
    if part.wants(CloningPart::Thresholds) {
        live.thresholds = runs(plan::thresholds(effort), plan::threshold_seeds(&seeds))?;
    }
    Ok(live)
}

fn nodes_setting(setting: &CloningSetting, limited: bool) -> String {
    let of = plan::lengths(setting.effort);
    format!(
        "Nodes, a file server and a client are network namespaces of one machine, joined by a switch. Links of nodes have {} Mbit/s each \
         way. The file server stands for the paper's machine with NFS: a node reads a document from it over both links, of which its own has \
         {} Mbit/s, after 3 ms. {} Documents and requests are those of the simulated study, but documents, bytes and memory are a {SCALE}th: \
         {} MiB for each node. Each request has a connection to itself, and the nodes take turns, as behind a layer-4 switch; {} connections. \
         Caches are filled by {} requests at full speed; then {} s pass, and {} s are measured. LFU forgets the uses of what it evicts",
        nodes::LINK_BITS_PER_S / 1_000_000,
        nodes::FILE_SERVER_BITS_PER_S / 1_000_000,
        cpus(limited, nodes::NODE_CPUS),
        live_cache_bytes() >> 20,
        nodes::CONNECTIONS,
        of.warm_requests,
        of.settle_s,
        of.nodes_s
    )
}

fn cpus(limited: bool, share: f64) -> String {
    if limited {
        format!(
            "The threads of a node may use {:.0} % of a CPU, client and file server what is left.",
            100.0 * share
        )
    } else {
        "CPU time is not limited.".to_owned()
    }
}

fn micro_setting(setting: &CloningSetting, limited: bool) -> String {
    let of = plan::lengths(setting.effort);
    format!(
        "Two nodes on links of {} Mbit/s, one that clients connect to and one that has the documents in its memory; for a handoff, a \
         front-end and a back-end. {} Each request has a connection to itself, {} at a time, for one of 24 documents in turn. A round is {} s or more \
         with the mechanism, and as long straight to the node that has them; medians of {}. What the kernel does for acknowledgments \
         that are sent on is done where the client's packets are sent, without a limit",
        nodes::LINK_BITS_PER_S / 1_000_000,
        cpus(limited, efficiency::NODE_CPUS),
        efficiency::CONNECTIONS,
        of.round_s,
        of.rounds
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_lab::Node;
    use plimsoll_origin::synthetic::Synthetic;
    use plimsoll_origin::{OriginConfig, Source};
    use plimsoll_studies::cloning::NodeStrategy;

    use super::*;

    /// Needs root, like the next one.
    #[test]
    fn each_clone_has_a_startup_and_all_nodes_are_originals() {
        let lab = Lab::build(&LabConfig { backends: 2, ..LabConfig::default() }).unwrap();
        let origin = || OriginConfig::new(Source::synthetic(Synthetic::fixed(1000)));
        let bed =
            CloneBed::start(lab, &BedPlan::new(&[Node::Backend(0), Node::Backend(1)], &origin)).unwrap();
        assert_eq!(bed.startups_us(20).unwrap().len(), 20);
        let path = &bed.documents_at(0, 100, 1).unwrap()[0];
        let vip = bed.vip(1);
        let head = bed.client().unwrap().run(|| RawClient::connect(vip)?.ask(&[path], 100)).unwrap().unwrap();
        assert!(head.contains(&format!("x-backend: {}\r\n", bed.name(0))), "{head}");
        bed.is_quiet().unwrap();
        let counts = bed.stop().unwrap();
        assert!(counts[0].clones.clone_answers >= 20 && counts[1].clones.clone_answers == 1, "{counts:?}");
    }

    /// Fewer requests, measured for a moment: that each way is taken, not how fast it is.
    #[test]
    fn documents_come_from_where_the_mechanism_says() {
        let lengths = plan::LiveLengths {
            warm_requests: 1_500,
            settle_s: 0.3,
            nodes_s: 0.7,
            ..plan::lengths(plimsoll_studies::cloning::Effort::Quick)
        };
        let requests = nodes::requests(1).unwrap();
        let run = |setting| nodes::run(setting, 1, &requests, lengths, false, &|_| {}).unwrap();
        let of = |strategy| run(LiveSetting::new(strategy, 2));
        let alone = of(NodeStrategy::RoundRobin);
        assert!(alone.answers > 0 && alone.read_share > 0.2, "{alone:?}");
        assert!(alone.fetched_share == 0.0 && alone.cloned_share == 0.0, "{alone:?}");
        let fetching = of(NodeStrategy::CfLfu);
        assert!(fetching.fetched_share > 0.02 && fetching.cloned_share == 0.0, "{fetching:?}");
        let cloning = of(NodeStrategy::Sc);
        assert!((0.3..0.7).contains(&cloning.cloned_share) && cloning.fetched_share == 0.0, "{cloning:?}");
        let threshold = LiveSetting { min_bytes: 1 << 30, ..LiveSetting::new(NodeStrategy::Sc, 2) };
        let here = run(LiveSetting { fetches: true, ..threshold });
        assert!(here.fetched_share > 0.02 && here.cloned_share < cloning.cloned_share, "{here:?}");
    }
}
