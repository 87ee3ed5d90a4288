//! CSLD: connections go to the back-end whose load, estimated from the requests that passed on their way to it, is least.
//!
//! Citation: Hyun, Jung, Lee and Maeng, "Content sniffer based load distribution in a web server cluster", IEICE Transactions on
//! Information and Systems 2003, section 3.
//!
//! ```text
//! for each connection:            the next back-end in weighted round robin
//! for each request that passes:   enter what it will cost into the boards of its back-end (see `estimator`)
//! every `period_s`:
//!     L[k] <- what is on the boards of back-end k, in requests (figure 5)
//!     W[k] <- W_max - (L[k] - min L), differences reduced in proportion to at most t_diff
//!     begin a new turn of the weighted round robin
//! ```
//!
//! With `adaptive = 1`, the paper's future work: differences are met in full as far as the connections of a period reach, in place of
//! being reduced in proportion, and a connection counts as many requests as connections carry.
//!
//! A front-end that parses requests and sees responses needs no estimate: there each *request* goes to the back-end with the least
//! outstanding work, or with the fewest requests where that tells more, by costs that are learned from response times (see
//! `work_by_cost`).

use std::sync::Arc;

use crate::capability::{ShowsState, Sniffs};
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::{Completion, Decision, PolicyTable, assign_or_reject};
use crate::estimator::aggregate::{self, LoadThresholds};
use crate::estimator::{ClassCost, CostTable, Estimator, EstimatorSetup, MissPredictor};
use crate::load_use::LoadUse;
use crate::params::{ParamError, ParamSet, Params as _};
use crate::policy::{Capabilities, Policy};
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Kind, Request, TargetId};
use crate::rng::Rng;
use crate::sniffed::{SniffedKind, SniffedRequest};
use crate::time::{Nanos, Time};
use crate::weighted_turn::WeightedTurn;
use crate::work_by_cost::WorkByCost;

/// Stream of the run's seed that ties are drawn from.
const STREAM: u64 = 0x6373_6c64;

crate::params! {
    /// Parameters of CSLD; the paper's values where it gives them.
    pub struct CsldParams {
        /// P: the time between two estimates.
        period_s: Nanos = Nanos::from_millis(200), 0.001..=60.0, "s";
        /// Span of a slot of the cost boards.
        slot_s: Nanos = Nanos::from_millis(50), 0.0001..=60.0, "s";
        /// Slots of a cost board.
        slots: u32 = 200, 1..=100_000, "slots";
        /// Miss ratio below which the disk hardly matters.
        miss_low: f64 = 0.2, 0.0..=1.0, "";
        /// Miss ratio from which on the disk matters.
        miss_mid: f64 = 0.3, 0.0..=1.0, "";
        /// Miss ratio from which on only the disk matters.
        miss_high: f64 = 0.5, 0.0..=1.0, "";
        /// CPU load of the cluster below which only the next period counts.
        load_low: f64 = 0.5, 0.0..=10.0, "";
        /// CPU load below which the next two periods count.
        load_mid: f64 = 0.8, 0.0..=10.0, "";
        /// CPU load from which on the CPU matters although many requests miss.
        load_high: f64 = 0.9, 0.0..=10.0, "";
        /// The most by which numbers of connections differ in a period, as a multiple of the mean number of requests.
        t_diff: f64 = 1.0, 0.0..=1000.0, "";
        /// Whether weights adapt to load and to persistent connections: 1 for yes.
        adaptive: u32 = 0, 0..=1, "";
        /// How misses are predicted: 0 by a table of bytes read, 1 by the bytes read at the last reference, 2 never.
        predictor: u32 = 0, 0..=2, "";
        /// Documents whose last references are kept, and targets whose costs are.
        documents: u64 = 262_144, 1..=16_777_216, "documents";
        /// Whether the turn begins again in each period: 1 for yes.
        restart: u32 = 1, 0..=1, "";
        /// Whether past slots of the boards are cleared: 1 for yes.
        clear_slots: u32 = 1, 0..=1, "";
        /// Units of weight to a request of load.
        fineness: f64 = 1.0, 0.001..=1000.0, "";
        /// `W_max`: the weight of the back-end with the least load.
        most_weight: u32 = 65_535, 1..=1_000_000_000, "";
        /// CPU time to open a connection, or to close it.
        connection_s: Nanos = Nanos::from_micros(66), 0.0..=10.0, "s";
        /// CPU time of the basic steps of each request.
        processing_s: Nanos = Nanos::from_micros(213), 0.0..=10.0, "s";
        /// CPU time of a response without body, beside these.
        short_answer_s: Nanos = Nanos::from_micros(30), 0.0..=10.0, "s";
        /// CPU time to send 512 bytes.
        unit_s: Nanos = Nanos::from_micros(37), 0.0..=10.0, "s";
        /// Disk time to reach a document.
        seek_s: Nanos = Nanos::from_micros(15_600), 0.0..=10.0, "s";
        /// Disk time to read 4 KiB.
        block_s: Nanos = Nanos::from_micros(300), 0.0..=10.0, "s";
        /// A response up to this size is sent at once.
        send_buffer_bytes: u64 = 65_536, 0..=1_073_741_824, "bytes";
        /// CPU time of a class of dynamic requests that no table knows, for each unit of its number: the classes of the paper's simulation.
        class_step_s: Nanos = Nanos::from_millis(10), 0.0..=10.0, "s";
        /// Size of the response of such a class.
        class_size_bytes: u64 = 2048, 0..=1_073_741_824, "bytes";
    }
}

impl CsldParams {
    fn setup(&self, context: &BuildContext) -> EstimatorSetup {
        EstimatorSetup {
            period: self.period_s,
            slot: self.slot_s,
            slots: self.slots as usize,
            costs: CostTable {
                connection: self.connection_s,
                processing: self.processing_s,
                short_answer: self.short_answer_s,
                unit: self.unit_s,
                seek: self.seek_s,
                block: self.block_s,
                send_buffer_bytes: self.send_buffer_bytes,
            },
            cache_bytes: context.cache_bytes,
            documents: self.documents as usize,
            predictor: match self.predictor {
                0 => MissPredictor::History,
                1 => MissPredictor::Stamp,
                _ => MissPredictor::AlwaysHit,
            },
            thresholds: LoadThresholds {
                miss: [self.miss_low, self.miss_mid, self.miss_high],
                load: [self.load_low, self.load_mid, self.load_high],
            },
            clear_past: self.clear_slots == 1,
            table_seed: context.table_seed,
        }
    }
}

/// See the module's documentation.
pub struct Csld {
    params: CsldParams,
    setup: EstimatorSetup,
    classes: Arc<[ClassCost]>,
    /// From the first connection on: who parses requests needs none.
    estimator: Option<Box<Estimator>>,
    turn: WeightedTurn,
    by_cost: WorkByCost,
    updates: u64,
    passed: u64,
}

impl Csld {
    /// Without requests.
    #[must_use]
    pub fn new(params: CsldParams, context: &BuildContext) -> Self {
        let classes = Arc::clone(&context.class_costs);
        let known = classes.iter().map(|class| (class.cpu + class.disk).as_nanos() as f64);
        let rng = Rng::new(context.seed, STREAM);
        let by_cost = WorkByCost::new(known, params.documents as usize, context.table_seed, rng);
        let setup = params.setup(context);
        let (turn, estimator) = (WeightedTurn::default(), None);
        Self { params, setup, classes, estimator, turn, by_cost, updates: 0, passed: 0 }
    }

    fn class_cost(&self, class: u16) -> ClassCost {
        let known = usize::from(class).checked_sub(1).and_then(|index| self.classes.get(index));
        known.copied().unwrap_or_else(|| ClassCost {
            cpu: Nanos::new(self.params.class_step_s.as_nanos().saturating_mul(class.into())),
            disk: Nanos::ZERO,
            size_bytes: self.params.class_size_bytes,
        })
    }

    fn pass(&mut self, sniffed: &SniffedRequest, view: &ClusterView, now: Time) {
        let class = self.class_cost(sniffed.class);
        let setup = &self.setup;
        let estimator =
            self.estimator.get_or_insert_with(|| Box::new(Estimator::new(setup.clone(), view.len())));
        self.passed += 1;
        estimator.pass(sniffed, class, now);
    }

    /// The weights for the period that begins.
    fn weights(&self, loads: &[f64], estimator: &Estimator, view: &ClusterView) -> Vec<u32> {
        let most = self.params.most_weight;
        let eligible: Vec<BackendId> = view.eligible_ids().filter(|b| b.index() < loads.len()).collect();
        let mut of: Vec<f64> = eligible.iter().map(|b| loads[b.index()]).collect();
        let weights = if self.params.adaptive == 1 {
            let (requests, connections) = (estimator.requests(), estimator.connections());
            let carried = if connections > 0.0 { (requests / connections).max(1.0) } else { 1.0 };
            of.iter_mut().for_each(|load| *load /= carried);
            aggregate::level(&of, connections, most)
        } else {
            let t_diff = self.params.t_diff * estimator.requests() / eligible.len().max(1) as f64;
            aggregate::weights(&of, t_diff, most, self.params.fineness)
        };
        let mut all = vec![most; view.len()];
        eligible.iter().zip(weights).for_each(|(b, weight)| all[b.index()] = weight);
        all
    }
}

impl Policy for Csld {
    #[inline]
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision {
        assign_or_reject(match request.kind {
            Kind::Connection => self.turn.next(view).or_else(|| view.least_loaded()),
            Kind::Static | Kind::Dynamic => self.by_cost.choose(request, view, now),
        })
    }

    fn on_assign(&mut self, request: &Request, backend: BackendId, view: &ClusterView, now: Time) {
        if request.kind != Kind::Connection {
            return self.by_cost.assigned(request, backend, view, now);
        }
        let opening = SniffedRequest {
            backend,
            kind: SniffedKind::Connection,
            target: TargetId(0),
            class: 0,
            size_bytes: None,
            round_trip: Nanos::ZERO,
        };
        self.pass(&opening, view, now);
        if let Some(estimator) = &mut self.estimator {
            estimator.connected();
        }
    }

    fn on_complete(&mut self, completion: &Completion, _: &ClusterView, now: Time) {
        self.by_cost.completed(completion, now);
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, view: &ClusterView, _: Time) {
        if matches!(change, Change::Joined | Change::Left | Change::Health(Health::Down)) {
            self.by_cost.restart(backend);
            if let Some(estimator) = &mut self.estimator {
                estimator.resize(view.len());
                estimator.restart(backend);
            }
        }
    }

    fn on_tick(&mut self, view: &ClusterView, now: Time) {
        self.by_cost.tick();
        let Some(mut estimator) = self.estimator.take() else { return };
        let loads = estimator.end_period(now);
        let weights = self.weights(&loads, &estimator, view);
        self.turn.set(weights, self.params.restart == 1);
        self.updates += 1;
        self.estimator = Some(estimator);
    }

    fn tick_interval(&self) -> Option<Nanos> {
        Some(self.params.period_s)
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl Sniffs for Csld {
    #[inline]
    fn on_sniffed(&mut self, sniffed: &SniffedRequest, view: &ClusterView, now: Time) {
        self.pass(sniffed, view, now);
    }

    fn expects_miss(&self) -> Option<bool> {
        self.estimator.as_ref()?.expects_miss()
    }
}

impl ShowsState for Csld {
    fn tracked_targets(&self) -> usize {
        self.by_cost.targets().max(self.estimator.as_ref().map_or(0, |estimator| estimator.documents()))
    }

    /// What it knows of targets is what they cost.
    fn assigned_targets(&self) -> usize {
        0
    }

    fn stats(&self) -> Vec<(&'static str, f64)> {
        let cluster = self.estimator.as_ref().map(|estimator| estimator.cluster()).unwrap_or_default();
        vec![
            ("weight_updates", self.updates as f64),
            ("sniffed", self.passed as f64),
            ("estimated_load", cluster.load),
            ("estimated_miss_ratio", cluster.miss_ratio),
        ]
    }

    fn tables(&self) -> Vec<PolicyTable> {
        vec![
            self.turn.table(),
            PolicyTable {
                name: "class_costs",
                columns: &["class", "cost_s", "requests"],
                rows: self.by_cost.class_rows(),
            },
            PolicyTable {
                name: "outstanding_work",
                columns: &["backend", "work_s", "slowness"],
                rows: self.by_cost.backend_rows(),
            },
            PolicyTable {
                name: "waiting_model",
                columns: &["in_line", "processors", "error_of_line", "least_error_of_others"],
                rows: vec![self.by_cost.waiting_row()],
            },
        ]
    }
}

/// Its capabilities.
static CAPABILITIES: Capabilities = Capabilities::NONE.sniffs::<Csld>().shows_state::<Csld>().uses_classes();

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    let params = CsldParams::of(params);
    let (slot, period) = (params.slot_s, params.period_s);
    if !period.as_nanos().is_multiple_of(slot.as_nanos().max(1)) {
        let (period_s, slot_s) = (period.as_secs_f64(), slot.as_secs_f64());
        let why = format!("a period of {period_s} s is no whole number of slots of {slot_s} s");
        return Err(ParamError::Conflict { keys: ["period_s", "slot_s"], why });
    }
    Ok(Box::new(Csld::new(params, context)))
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "csld",
    aliases: &[],
    summary: "by cost: connections by load estimated from the requests that passed, requests by learned costs under way",
    source: "Hyun et al., IEICE 2003, section 3",
    capabilities: &CAPABILITIES,
    load_use: LoadUse::ViewAndResponseTimes,
    weighted: true,
    params: CsldParams::SPECS,
    build,
};

#[cfg(test)]
mod tests;
