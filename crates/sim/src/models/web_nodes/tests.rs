use plimsoll_policy::{BackendId, TargetId};

use super::*;
use crate::event_queue::EventQueue;
use crate::model::Model;
use crate::workload::SimRequest;

fn fetching() -> NodeMechanism {
    NodeMechanism::CooperativeCaching(PeerParams::default())
}

fn cloning() -> NodeMechanism {
    NodeMechanism::Cloning(CloneParams::default())
}

/// Nodes that are driven event by event.
struct World<'t> {
    model: WebNodesModel<'t>,
    queue: EventQueue<ModelEvent>,
    now: Time,
    jobs: JobId,
}

/// Two documents of one chunk, and one of two and a half.
fn targets() -> Targets {
    Targets::new((0..3).map(TargetId).collect(), vec![16_384, 16_384, 40_960], &[])
}

impl<'t> World<'t> {
    fn new(mechanism: NodeMechanism, nodes: usize, targets: &'t Targets) -> Self {
        let spec = plimsoll_cache::find("lru").unwrap();
        let cache = CacheConfig { spec, capacity_bytes: 60_000, object_limit_bytes: None };
        let model = WebNodesModel::new(mechanism, WebNodeParams::default(), nodes, cache, targets);
        Self { model, queue: EventQueue::default(), now: Time::ZERO, jobs: 0 }
    }

    fn begin(&mut self, node: u16, target: u32) -> JobId {
        let size_bytes = self.model.targets.size_bytes[target as usize];
        let request = SimRequest { target, size_bytes, ..SimRequest::default() };
        let (job, mut done) = (self.jobs, Vec::new());
        let mut context = ModelContext { now: self.now, queue: &mut self.queue, done: &mut done };
        self.model.start(BackendId(node), job, &request, &mut context);
        self.jobs += 1;
        job
    }

    /// All that is under way ends. Jobs in the order of their ends.
    fn run(&mut self) -> Vec<(JobId, Time)> {
        let mut ended = Vec::new();
        while let Some((at, event)) = self.queue.pop() {
            self.now = at;
            let mut done = Vec::new();
            let mut context = ModelContext { now: at, queue: &mut self.queue, done: &mut done };
            self.model.handle(event, &mut context);
            ended.extend(done.into_iter().map(|job| (job, at)));
        }
        ended
    }

    /// How long one request takes alone, in nanoseconds.
    fn takes_ns(&mut self, node: u16, target: u32) -> u64 {
        let (began, job) = (self.now, self.begin(node, target));
        let ended = self.run();
        assert_eq!(ended.iter().filter(|(done, _)| *done == job).count(), 1, "each request ends once");
        ended[0].1.since(began).as_nanos()
    }

    fn cpu_ns(&self, node: u16) -> u64 {
        self.model.usage(BackendId(node), self.now).cpu.as_nanos()
    }

    fn reads(&self, node: u16) -> u64 {
        self.model.usage(BackendId(node), self.now).reads
    }
}

const PARSE_NS: u64 = 150_000;
/// Of 16 KiB: CPU, interface, file server.
const SEND_NS: u64 = 16 * 12_000;
const NIC_NS: u64 = 1_400_342;
const READ_NS: u64 = 564_966;
const LATENCY_NS: u64 = 3_000_000;
const FETCH_NS: u64 = 46_000;

#[test]
fn a_document_of_one_chunk_from_memory_and_from_the_file_server() {
    let targets = targets();
    let mut world = World::new(NodeMechanism::Alone, 1, &targets);
    let from_memory_ns = PARSE_NS + SEND_NS + NIC_NS;
    assert_eq!(world.takes_ns(0, 0), from_memory_ns + LATENCY_NS + READ_NS + NIC_NS);
    assert_eq!(world.takes_ns(0, 0), from_memory_ns);
    assert_eq!((world.reads(0), world.cpu_ns(0)), (1, 2 * (PARSE_NS + SEND_NS)));
}

#[test]
fn chunks_are_sent_while_others_are_read() {
    let targets = targets();
    let mut world = World::new(NodeMechanism::Alone, 1, &targets);
    let from_file_server_ns = world.takes_ns(0, 2);
    let from_memory_ns = world.takes_ns(0, 2);
    // Two and a half chunks: 12 µs for each of 40 KiB, and 40,960 bytes at 11.7 MB/s.
    assert!(from_memory_ns.abs_diff(PARSE_NS + 480_000 + 3_500_855) < 3, "{from_memory_ns}");
    // All bytes go through the interface twice, and nothing else takes longer.
    let (interface_ns, most_ns) = (2 * 3_500_855, from_memory_ns + LATENCY_NS + 5 * READ_NS / 2 + 3_500_855);
    assert!(from_file_server_ns > PARSE_NS + LATENCY_NS + interface_ns && from_file_server_ns < most_ns);
}

#[test]
fn a_document_in_another_memory_is_fetched_from_there() {
    let targets = targets();
    let mut world = World::new(fetching(), 2, &targets);
    world.takes_ns(0, 0);
    // Messages take CPU here and there; the chunk is sent there by CPU and interface, comes in by the interface here, and is sent.
    let from_other_ns = PARSE_NS + 2 * FETCH_NS + 2 * (SEND_NS + NIC_NS) + NIC_NS;
    assert_eq!(world.takes_ns(1, 0), from_other_ns);
    assert_eq!((world.reads(0), world.reads(1)), (1, 0));
    assert_eq!(world.takes_ns(1, 0), PARSE_NS + SEND_NS + NIC_NS, "it has a copy now");
    // The first one's memory is lost, and then the other's as well.
    world.model.fail(BackendId(0), world.now);
    assert_eq!(world.takes_ns(0, 0), from_other_ns);
    for node in [0, 1] {
        world.model.fail(BackendId(node), world.now);
    }
    world.takes_ns(0, 0);
    assert_eq!(world.reads(0), 2);
}

#[test]
fn a_clone_costs_both_nodes_and_acknowledgments_the_original() {
    let targets = targets();
    let mut world = World::new(cloning(), 2, &targets);
    // Connections go to 0 and 1 in turn; the policy has 1 answer both.
    let cloned_ns = world.takes_ns(1, 0);
    assert_eq!(cloned_ns, PARSE_NS + 46_000 + LATENCY_NS + READ_NS + SEND_NS + 2 * NIC_NS);
    // Six acknowledgments of up to 2,920 bytes.
    assert_eq!((world.cpu_ns(0), world.cpu_ns(1)), (PARSE_NS + 23_000 + 6 * 5_000, 23_000 + SEND_NS));
    assert_eq!(world.takes_ns(1, 0), PARSE_NS + SEND_NS + NIC_NS, "accepted where it is answered");
    assert_eq!((world.reads(0), world.reads(1)), (0, 1));
}

#[test]
fn what_is_always_done_is_done_for_each_request() {
    let targets = targets();
    let forced = [
        NodeMechanism::CooperativeCaching(PeerParams { always: 1, ..PeerParams::default() }),
        NodeMechanism::Cloning(CloneParams { always: 1, ..CloneParams::default() }),
    ];
    let more_ns = [2 * FETCH_NS + SEND_NS + 2 * NIC_NS, 46_000];
    let other_cpu_ns = [FETCH_NS + SEND_NS, PARSE_NS + 23_000 + 6 * 5_000];
    for ((mechanism, more_ns), other_cpu_ns) in forced.into_iter().zip(more_ns).zip(other_cpu_ns) {
        let mut world = World::new(mechanism, 2, &targets);
        world.takes_ns(0, 0);
        for _ in 0..3 {
            assert_eq!(world.takes_ns(0, 0), PARSE_NS + SEND_NS + NIC_NS + more_ns, "{mechanism:?}");
        }
        assert_eq!(world.cpu_ns(1), 4 * other_cpu_ns, "{mechanism:?}");
    }
}

#[test]
fn without_copies_a_document_is_fetched_again() {
    let targets = targets();
    let one_copy = PeerParams { replicates: 0, ..PeerParams::default() };
    let mut world = World::new(NodeMechanism::CooperativeCaching(one_copy), 2, &targets);
    world.takes_ns(0, 0);
    assert_eq!(world.takes_ns(1, 0), world.takes_ns(1, 0));
    assert_eq!((world.reads(0), world.reads(1)), (1, 0));
}

#[test]
fn requests_for_a_document_that_is_being_fetched_join() {
    let targets = targets();
    for mechanism in [NodeMechanism::Alone, fetching(), cloning()] {
        let mut world = World::new(mechanism, 1, &targets);
        for _ in 0..5 {
            world.begin(0, 2);
        }
        let mut ended: Vec<JobId> = world.run().into_iter().map(|(job, _)| job).collect();
        ended.sort_unstable();
        assert_eq!(ended, [0, 1, 2, 3, 4]);
        let usage = world.model.usage(BackendId(0), world.now);
        assert_eq!((usage.reads, usage.joined), (1, 4), "{mechanism:?}");
    }
}

#[test]
fn what_a_failed_node_had_is_lost_and_nothing_else() {
    let targets = targets();
    for mechanism in [NodeMechanism::Alone, fetching(), cloning()] {
        let mut world = World::new(mechanism, 3, &targets);
        world.takes_ns(2, 2);
        let jobs: Vec<(JobId, u16)> =
            (0..30u16).map(|n| (world.begin(n % 3, u32::from(n) % 3), n % 3)).collect();
        // In the middle of it.
        for _ in 0..40 {
            let (at, event) = world.queue.pop().unwrap();
            world.now = at;
            let mut done = Vec::new();
            let mut context = ModelContext { now: at, queue: &mut world.queue, done: &mut done };
            world.model.handle(event, &mut context);
            assert!(done.is_empty(), "{mechanism:?}: the test fails the node too late");
        }
        world.model.fail(BackendId(2), world.now);
        let mut ended: Vec<JobId> = world.run().into_iter().map(|(job, _)| job).collect();
        ended.sort_unstable();
        let rest: Vec<JobId> = jobs.iter().filter(|(_, node)| *node != 2).map(|(job, _)| *job).collect();
        assert_eq!(ended, rest, "{mechanism:?}");
    }
}
