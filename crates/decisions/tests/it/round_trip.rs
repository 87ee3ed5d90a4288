//! What is recorded is what is read.

use std::sync::Arc;

use plimsoll_decisions::{BackendEntry, Event, LogItem, LogReader, Recorder, RunHeader, What};

use plimsoll_policy::estimator::ClassCost;
use plimsoll_policy::{
    AdmissionControl, AdmissionLimit, Assigned, BackendId, Candidates, Completion, Decision, Features,
    Health, HostMetrics, Kind, LoadReport, Nanos, OfferOptions, Outcome, Phase, PollAnswer, Request,
    SniffedKind, SniffedRequest, TargetId, Thresholds, Time, Tried, WaitingRequest, Weight, Witness,
};
use proptest::prelude::*;

use crate::live::{header, write};

/// Numbers of all magnitudes.
fn any_number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(n, shift)| n >> shift)
}

fn any_request() -> impl Strategy<Value = Request> {
    // Few numbers and targets, so that ends meet assignments.
    let number = prop_oneof![8 => 0u64..20, 1 => any_number()];
    let size_bytes = prop::option::of(any_number());
    let features = prop::option::of(prop::collection::vec(any::<u64>(), 0..5));
    let class = prop_oneof![Just(0), any::<u16>()];
    let kind = prop_oneof![Just(Kind::Static), Just(Kind::Dynamic), Just(Kind::Connection)];
    (number, 0u64..3, size_bytes, kind, 0u64..3, class, features).prop_map(
        |(number, target, size_bytes, kind, client, class, features)| Request {
            number,
            target: TargetId(target),
            size_bytes,
            kind,
            client,
            class,
            features: features.map(|prefix_blocks| {
                Arc::new(Features {
                    session: prefix_blocks.first().map(|b| BackendId(*b as u16)),
                    prefix_blocks,
                })
            }),
        },
    )
}

fn any_phase() -> impl Strategy<Value = Phase> {
    prop_oneof![Just(Phase::Prepared), Just(Phase::Connecting), Just(Phase::Active), Just(Phase::Stalled)]
}

fn any_options() -> impl Strategy<Value = OfferOptions> {
    let tried = prop::collection::vec(any_backend(), 0..=8);
    let begins = prop_oneof![3 => Just(Phase::Active), 1 => any_phase()];
    let rare = (tried, prop::option::of(any_number()), begins).prop_map(|(tried, deadline, begins)| {
        OfferOptions { tried: Tried::new(tried), deadline: deadline.map(Time::from_nanos), begins }
    });
    prop_oneof![3 => Just(OfferOptions::PLAIN), 1 => rare]
}

fn any_admission() -> impl Strategy<Value = AdmissionControl> {
    let limit = prop_oneof![
        Just(AdmissionLimit::Unlimited),
        any_number().prop_map(AdmissionLimit::Fixed),
        (any::<u32>(), any::<u32>())
            .prop_map(|(t_low, t_high)| AdmissionLimit::Lard(Thresholds { t_low, t_high })),
        (any::<u32>(), any::<u32>())
            .prop_map(|(t_low, t_high)| AdmissionLimit::Adaptive(Thresholds { t_low, t_high })),
    ];
    (limit, any_number()).prop_map(|(limit, queue)| AdmissionControl { limit, queue: queue as usize })
}

fn any_backend() -> impl Strategy<Value = BackendId> {
    prop_oneof![4 => 0u16..3, 1 => any::<u16>()].prop_map(BackendId)
}

fn any_decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        6 => any_backend().prop_map(Decision::Assign),
        1 => prop::collection::vec(any_backend(), 0..=8).prop_map(|ids| Decision::Poll(Candidates::new(ids))),
        1 => Just(Decision::Wait),
        1 => Just(Decision::Reject),
    ]
}

fn any_health() -> impl Strategy<Value = Health> {
    prop_oneof![Just(Health::Up), Just(Health::Draining), Just(Health::Down)]
}

fn any_sniffed() -> impl Strategy<Value = SniffedRequest> {
    let kind = prop_oneof![
        Just(SniffedKind::Connection),
        Just(SniffedKind::Static),
        Just(SniffedKind::Dynamic),
        Just(SniffedKind::Conditional),
        Just(SniffedKind::Invalid),
    ];
    let size_bytes = prop::option::of(0..u64::MAX);
    (any_backend(), kind, any::<u64>(), any::<u16>(), size_bytes, any_number()).prop_map(
        |(backend, kind, target, class, size_bytes, ns)| SniffedRequest {
            backend,
            kind,
            target: TargetId(target),
            class,
            size_bytes,
            round_trip: Nanos::new(ns),
        },
    )
}

fn any_metrics() -> impl Strategy<Value = HostMetrics> {
    let probe_time = prop::option::of((0..u64::MAX).prop_map(Nanos::new));
    (any_backend(), probe_time, any::<[u32; 4]>()).prop_map(
        |(backend, probe_time, [pending, at_disk, serving_static, serving_dynamic])| HostMetrics {
            backend,
            probe_time,
            pending,
            at_disk,
            serving_static,
            serving_dynamic,
        },
    )
}

fn any_weight() -> impl Strategy<Value = Weight> {
    (0u32..=1 << 24).prop_map(|steps| Weight::new(f64::from(steps) / 256.0).unwrap())
}

fn any_header() -> impl Strategy<Value = RunHeader> {
    let left = (prop::option::of(0u32..99), prop::option::of(0u32..9));
    let loads = (0u32..1000, 0u32..1000);
    let backend = (".{0,8}", any::<u64>(), any_weight(), any_health(), loads, left).prop_map(
        |(name, key, weight, health, (load, others), (left, most))| BackendEntry {
            name,
            key,
            weight,
            health,
            load,
            others,
            most,
            left,
        },
    );
    let waiting =
        (any_request(), any_options()).prop_map(|(request, options)| WaitingRequest { request, options });
    let core = (any_admission(), prop::collection::vec(waiting, 0..4), 0u64..100, 0u8..9);
    let texts = prop::collection::vec((".{0,5}", ".{0,5}"), 0..3);
    let cost = (any_number(), any_number(), any_number()).prop_map(|(cpu, disk, size_bytes)| ClassCost {
        cpu: Nanos::new(cpu),
        disk: Nanos::new(disk),
        size_bytes,
    });
    let cache = (".{0,4}", prop::collection::vec(cost, 0..4));
    (".{0,9}", texts, any_number(), cache, any_number(), prop::collection::vec(backend, 0..5), core).prop_map(
        |(
            policy,
            settings,
            seed,
            (cache, class_costs),
            cache_bytes,
            backends,
            (admission, waiting, reserved, inquiries),
        )| {
            RunHeader {
                policy,
                settings,
                seed,
                cache,
                cache_bytes,
                class_costs: class_costs.into(),
                backends,
                admission,
                waiting,
                inquiries,
                reserved,
                started_unix_ns: seed,
            }
        },
    )
}

fn any_what() -> impl Strategy<Value = What> {
    let latency = || prop::option::of((0..u64::MAX).prop_map(Nanos::new));
    let answer = (any_backend(), any::<u32>(), latency()).prop_map(|(backend, load, latency)| PollAnswer {
        backend,
        load,
        latency,
    });
    let completed = (
        (any_request(), any_phase()),
        any_backend(),
        any::<bool>(),
        (prop::option::of(any_number()), any::<Option<bool>>()),
        any_number(),
    );
    prop_oneof![
        1 => any_header().prop_map(|header| What::Run(Box::new(header))),
        8 => (any_request(), any_options(), any_decision())
            .prop_map(|(request, options, decision)| What::Offered { request, options, decision }),
        2 => (any_number(), prop::collection::vec(answer, 0..12), any_decision())
            .prop_map(|(number, answers, decision)| What::Answered { number, answers, decision }),
        2 => (any_number(), any_decision()).prop_map(|(number, decision)| What::Started { number, decision }),
        1 => any_number().prop_map(|number| What::GaveUp { number }),
        2 => (any_number(), any_backend(), any_phase(), prop::option::of(any_phase()), any::<bool>())
            .prop_map(|(number, backend, from, to, own)| What::Moved { number, backend, from, to, own }),
        1 => (any_number(), any_request()).prop_map(|(number, request)| What::Taken { number, request }),
        1 => (any_backend(), any::<u32>(), latency())
            .prop_map(|(backend, load, latency)| What::Reported(LoadReport { backend, load, latency })),
        1 => any_sniffed().prop_map(What::Sniffed),
        1 => any_metrics().prop_map(What::HostMetrics),
        1 => prop::collection::vec((any_number(), any_number()), 0..5).prop_map(What::Shared),
        1 => any_backend().prop_map(|backend| What::Left { backend }),
        1 => any_admission().prop_map(What::Admission),
        8 => completed.prop_map(|((request, phase), backend, failed, (size_bytes, hit), ns)| What::Completed {
            number: request.number,
            phase,
            completion: Completion {
                target: request.target,
                backend,
                outcome: if failed { Outcome::Failed } else { Outcome::Completed },
                size_bytes,
                hit,
                response_time: Nanos::new(ns),
                class: 0,
            },
        }),
        1 => any_backend().prop_map(|backend| What::Stayed { backend }),
        1 => (any_backend(), any_phase())
            .prop_map(|(backend, phase)| What::CompletedForeign { backend, phase }),
        1 => (any_backend(), any_health()).prop_map(|(backend, health)| What::Health { backend, health }),
        1 => (any_backend(), any_weight()).prop_map(|(backend, weight)| What::Weight { backend, weight }),
        1 => (any_backend(), prop::option::of(0u32..u32::MAX))
            .prop_map(|(backend, most)| What::MostRequests { backend, most }),
        1 => (any_backend(), ".{0,9}", any::<u64>(), any_weight())
            .prop_map(|(backend, name, key, weight)| What::Joined { backend, name, key, weight }),
        1 => Just(What::Ticked),
    ]
}

fn waiting(number: u64) -> WaitingRequest {
    WaitingRequest { request: Request::of(number, TargetId(0)), options: OfferOptions::PLAIN }
}

fn told(number: u64, backend: BackendId, phase: Phase) -> Assigned {
    Assigned::told(number, TargetId(0), backend, Time::ZERO, phase)
}

const NO_COMPLETION: Completion = Completion::of(TargetId(0), BackendId(0), Outcome::Completed, Nanos::ZERO);

fn record(recorder: &mut Recorder, event: &Event) {
    let now = event.now;
    match &event.what {
        What::Run(header) => recorder.run_started(header, now),
        What::Offered { request, options, decision } => recorder.offered(request, options, *decision, now),
        What::Answered { number, answers, decision } => {
            recorder.answered(&waiting(*number), answers, *decision, now);
        }
        What::Started { number, decision } => recorder.started(&waiting(*number), *decision, now),
        What::GaveUp { number } => recorder.gave_up(*number, now),
        What::Moved { number, backend, from, to, own } => {
            let assigned = told(*number, *backend, to.unwrap_or(*from));
            recorder.moved(&assigned, *from, *to, *own, now);
        }
        What::Taken { number, request } => {
            recorder.taken(&told(*number, BackendId(0), Phase::Active), request, now);
        }
        What::Completed { number, phase, completion } => {
            recorder.completed(&told(*number, completion.backend, *phase), completion, now);
        }
        What::Stayed { backend } => recorder.stayed(&told(0, *backend, Phase::Active), now),
        What::CompletedForeign { backend, phase } => {
            recorder.completed_foreign(&told(0, *backend, *phase), &NO_COMPLETION, now);
        }
        What::Reported(report) => recorder.reported(report, now),
        What::Sniffed(sniffed) => recorder.sniffed(sniffed, now),
        What::HostMetrics(metrics) => recorder.host_metrics(metrics, now),
        What::Shared(sum) => recorder.shared(sum, now),
        What::Health { backend, health } => recorder.health(*backend, *health, now),
        What::Weight { backend, weight } => recorder.weight(*backend, *weight, now),
        What::MostRequests { backend, most } => recorder.most_requests(*backend, *most, now),
        What::Joined { backend, name, key, weight } => recorder.joined(*backend, name, *key, *weight, now),
        What::Left { backend } => recorder.left(*backend, now),
        What::Admission(admission) => recorder.admission(*admission, now),
        What::Ticked => recorder.ticked(now),
    }
}

/// Makes an end agree with an earlier assignment, as it does in a live system.
fn settle(events: &mut [Event]) {
    for i in 1..events.len() {
        let (before, rest) = events.split_at_mut(i);
        let What::Completed { number, completion, .. } = &mut rest[0].what else { continue };
        // Some stay as they are.
        if completion.response_time.as_nanos() % 4 == 0 {
            continue;
        }
        for earlier in before.iter().rev() {
            if let What::Offered { request, decision: Decision::Assign(b), .. } = &earlier.what
                && request.number == *number
            {
                (completion.target, completion.backend) = (request.target, *b);
                completion.response_time = rest[0].now.since(earlier.now);
                break;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_sequence_of_events_comes_back(
        steps in prop::collection::vec((any_number(), any_what(), 0u8..10), 0..120),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::new();
        let mut chunks = Vec::new();
        let mut now = Time::ZERO;
        let mut events = Vec::new();
        for (pause, what, _) in &steps {
            // Times that go back are recorded as well as others.
            now = if pause % 16 == 1 { Time::from_nanos(*pause) } else { now + Nanos::new(*pause) };
            events.push(Event { now, what: what.clone() });
        }
        settle(&mut events);
        for (event, (_, _, cut)) in events.iter().zip(&steps) {
            record(&mut recorder, event);
            if *cut == 0 {
                chunks.push(recorder.take());
            }
        }
        chunks.push(recorder.take());
        write(directory.path(), chunks);
        let mut read = Vec::new();
        for item in LogReader::open(directory.path()).unwrap() {
            match item.unwrap() {
                LogItem::Event(event) => read.push(event),
                other => prop_assert_eq!(other, LogItem::Ended),
            }
        }
        prop_assert_eq!(read, events);
    }
}

#[test]
fn a_request_takes_few_bytes() {
    let mut recorder = Recorder::new();
    let mut now = Time::ZERO;
    let mut pairs = 0;
    while !recorder.is_chunk_full() {
        let request = Request::of(pairs, TargetId(plimsoll_policy::mix(pairs)));
        now += Nanos::from_micros(100);
        recorder.offered(&request, &OfferOptions::PLAIN, Decision::Assign(BackendId(3)), now);
        let completion = Completion {
            target: request.target,
            backend: BackendId(3),
            outcome: Outcome::Completed,
            size_bytes: Some(20_000),
            hit: None,
            response_time: Nanos::from_micros(150),
            class: 0,
        };
        now += Nanos::from_micros(150);
        recorder.completed(&told(pairs, BackendId(3), Phase::Active), &completion, now);
        pairs += 1;
    }
    let bytes = recorder.take().len() as u64;
    assert!(bytes <= 24 * pairs, "{bytes} bytes for {pairs} requests");
}

#[test]
fn chunks_of_a_large_cluster_are_mostly_events() {
    let mut header = header("round_robin");
    let one = header.backends[0].clone();
    header.backends =
        (0..5_000).map(|i| BackendEntry { name: format!("backend-{i}"), ..one.clone() }).collect();
    let mut recorder = Recorder::new();
    recorder.run_started(&header, Time::ZERO);
    assert!(recorder.is_chunk_full());
    let head_bytes = recorder.take().len();
    assert!(head_bytes > Recorder::CHUNK_BYTES);
    let (mut events, mut chunk) = (0u64, Vec::new());
    while chunk.is_empty() {
        let request = Request::of(events, TargetId(events));
        recorder.offered(&request, &OfferOptions::PLAIN, Decision::Assign(BackendId(3)), Time::ZERO);
        events += 1;
        if recorder.is_chunk_full() {
            chunk = recorder.take();
        }
    }
    assert!(chunk.len() > 4 * head_bytes && events > 1_000, "{events} events in {} bytes", chunk.len());
}
