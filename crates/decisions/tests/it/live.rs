//! A front-end with random traffic whose inputs are recorded, as the live one does it.

use std::path::Path;
use std::sync::Arc;

use plimsoll_decisions::{
    BackendEntry, LogConfig, LogReader, LogRetention, LogWriter, Proof, Recorder, RunHeader, Shadow, replay,
};
use plimsoll_policy::estimator::ClassCost;
use plimsoll_policy::{
    AdmissionControl, AdmissionLimit, Assigned, BackendId, Core, Decision, Ending, Health, Inquiries, Kind,
    LoadReport, Nanos, OfferOptions, Offered, Outcome, Phase, PollAnswer, Request, TargetId, Time, Tried,
    Weight, Witness, mix,
};

/// The limit that tests run under.
pub(crate) const ADMISSION: AdmissionControl =
    AdmissionControl { limit: AdmissionLimit::Fixed(60), queue: 20 };

/// What the classes of requests cost; known to a policy that decides by them.
fn class_costs(policy: &str) -> Arc<[ClassCost]> {
    let cost = |ms| ClassCost { cpu: Nanos::from_millis(ms), disk: Nanos::from_millis(1), size_bytes: 2000 };
    if policy == "csld" { [1, 40, 7].map(cost).into() } else { Arc::default() }
}

/// The start of a run of this policy on four back-ends.
pub(crate) fn header(policy: &str) -> RunHeader {
    let entry = |i: u64| BackendEntry {
        name: format!("backend-{i}"),
        key: mix(i),
        weight: Weight::ONE,
        health: Health::Up,
        load: 0,
        others: 0,
        most: None,
        left: None,
    };
    RunHeader {
        policy: policy.to_owned(),
        settings: Vec::new(),
        seed: 7,
        cache: "lru".into(),
        cache_bytes: 10_000,
        class_costs: class_costs(policy),
        backends: (0..4).map(entry).collect(),
        admission: ADMISSION,
        waiting: Vec::new(),
        // One of them chooses from loads that back-ends are asked for.
        inquiries: if policy == "join_shortest_queue" { 2 } else { 0 },
        reserved: 0,
        started_unix_ns: 1_700_000_000_000_000_000,
    }
}

/// Recorder and shadow policy together, as a live system has them. Can make the policy's next choice another one.
#[derive(Default)]
pub(crate) struct Both {
    pub(crate) recorder: Recorder,
    pub(crate) shadow: Option<Shadow>,
    pub(crate) force: Option<Decision>,
    /// What the policy wanted when it was last asked.
    pub(crate) wanted: Option<Decision>,
}

macro_rules! both {
    ($($(#[$inline:ident])? fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        $($(#[$inline])? fn $name(&mut self, $($arg: $type),*) {
            self.recorder.$name($($arg),*);
            self.shadow.$name($($arg),*);
        })*
    };
}

impl Witness for Both {
    const OVERRULES: bool = true;

    fn overrule(&mut self, own: Decision) -> Decision {
        self.wanted = Some(own);
        self.force.take().unwrap_or(own)
    }

    plimsoll_policy::each_witness_method!(both);
}

pub(crate) struct Live {
    pub(crate) core: Core<Both>,
    pub(crate) now: Time,
    pub(crate) header: RunHeader,
    under_way: Vec<Assigned>,
    number: u64,
    random: u64,
    /// The longest time between two steps, in nanoseconds.
    pub(crate) pause_ns: u64,
}

impl Live {
    pub(crate) fn new(header: RunHeader, seed: u64) -> Self {
        Self::with_core(header.core(Both::default()).unwrap(), header, seed)
    }

    /// The same with a policy that is in no registry.
    pub(crate) fn with_core(mut core: Core<Both>, header: RunHeader, seed: u64) -> Self {
        core.witness_mut().recorder.run_started(&header, Time::ZERO);
        Self {
            core,
            now: Time::ZERO,
            header,
            under_way: Vec::new(),
            number: 0,
            random: seed,
            pause_ns: 200_000,
        }
    }

    /// What was recorded since it was taken last.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.core.witness_mut().recorder.take()
    }

    /// A number below `n`.
    fn draw(&mut self, n: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.random) % n
    }

    pub(crate) fn steps(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
    }

    pub(crate) fn step(&mut self) {
        let pause = Nanos::new(1 + self.draw(self.pause_ns));
        self.now += pause;
        match self.draw(1000) {
            0..=4 => self.membership(),
            5..=9 => self.core.tick(self.now),
            10..=12 => {
                let (backend, load) = (self.any_backend(), self.draw(100) as u32);
                self.core.report(&LoadReport::of(backend, load), self.now);
            }
            13..=15 => {
                let sum: Vec<(u64, u64)> =
                    (0..self.draw(5)).map(|k| (k * 1000, self.draw(1 << 40))).collect();
                self.core.share(&sum, self.now);
            }
            16..=25 => self.other(),
            26..=500 if !self.under_way.is_empty() => self.complete(),
            _ => self.offer(),
        }
        self.start_waiting();
    }

    fn start_waiting(&mut self) {
        while let Some(started) = self.core.start_next(self.now) {
            self.effect(started.number, started.offered);
        }
    }

    /// Offers a request of now, sometimes with more to say of it.
    pub(crate) fn offer(&mut self) {
        let request = self.request();
        let mut options = OfferOptions::PLAIN;
        if self.draw(20) == 0 {
            options.tried = Tried::new([self.any_backend()]);
        }
        if self.draw(9) == 0 {
            options.deadline = Some(self.now + Nanos::new(self.draw(3_000_000)));
        }
        if self.draw(10) == 0 {
            options.begins = Phase::Connecting;
        }
        let offered = self.core.offer_with(&request, &options, self.now);
        self.effect(request.number, offered);
    }

    pub(crate) fn effect(&mut self, number: u64, offered: Offered) {
        match offered {
            Offered::Assigned(assigned) => self.under_way.push(assigned),
            Offered::Poll(candidates) => {
                // The answers take their time: the load that they tell is that of now.
                let taken = Nanos::new(1 + self.draw(50_000));
                self.now += taken;
                let view = self.core.view();
                let answer = |&backend: &BackendId| PollAnswer::of(backend, view.load(backend));
                let mut answers: Vec<PollAnswer> = candidates.as_slice().iter().map(answer).collect();
                // Some are late.
                answers.truncate(self.draw(answers.len() as u64 + 1) as usize);
                let offered = self.core.answer(number, &answers, self.now).unwrap();
                self.effect(number, offered);
            }
            Offered::Waits | Offered::Rejected(_) => {}
        }
    }

    pub(crate) fn request(&mut self) -> Request {
        // Squared: some targets are popular.
        let target = TargetId(mix(self.draw(40) * self.draw(40)));
        let size_bytes = (self.draw(4) == 0).then(|| 100 + target.0 % 2000);
        let kind = if self.draw(10) == 0 { Kind::Dynamic } else { Kind::Static };
        let (client, class) = (self.draw(5), self.draw(2) as u16);
        self.number += 1;
        Request { number: self.number - 1, target, size_bytes, kind, client, class, features: None }
    }

    pub(crate) fn complete(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let which = self.draw(self.under_way.len() as u64) as usize;
        let assigned = self.under_way.swap_remove(which);
        let outcome = if self.draw(20) == 0 { Outcome::Failed } else { Outcome::Completed };
        let size_bytes = (self.draw(10) > 0).then(|| 100 + assigned.target.0 % 2000);
        let hit = [None, Some(false), Some(true)][self.draw(3) as usize];
        self.core.complete(&assigned, Ending { outcome, size_bytes, hit }, self.now);
    }

    fn any_backend(&mut self) -> BackendId {
        BackendId(self.draw(self.core.view().len() as u64) as u16)
    }

    /// What else can happen to a request.
    fn other(&mut self) {
        let (what, now) = (self.draw(6), self.now);
        match (what, self.under_way.last_mut()) {
            (0 | 1, Some(assigned)) => match assigned.phase() {
                Phase::Connecting => self.core.established(assigned, now),
                Phase::Stalled => self.core.resumed(assigned, now),
                _ => self.core.stalled(assigned, now),
            },
            (2, _) => {
                let number = self.core.waiting_requests().next().map(|w| w.request.number);
                if let Some(number) = number {
                    assert!(self.core.give_up(number, now));
                }
            }
            (3, _) => {
                let b = self.any_backend();
                if !self.core.view().has_left(b) {
                    self.number += 1;
                    let stays = self.core.stay(b, self.number - 1, TargetId(5), now);
                    self.under_way.push(stays);
                }
            }
            _ => {
                let request = self.request();
                if let Some(mut prepared) = self.core.prepare(request.number, now) {
                    if self.draw(2) == 0 {
                        self.core.withdraw(prepared, now);
                    } else {
                        self.core.take(&mut prepared, &request, now);
                        self.under_way.push(prepared);
                    }
                }
            }
        }
    }

    fn membership(&mut self) {
        let (b, now) = (self.any_backend(), self.now);
        match self.draw(10) {
            0 if self.core.view().len() < 8 => {
                let (weight, key) = (Weight::new(2.0).unwrap(), mix(now.as_nanos()));
                self.core.join("late", key, weight, now).unwrap();
            }
            1 | 2 => {
                let weight = Weight::new(self.draw(12) as f64 / 4.0).unwrap();
                self.core.set_weight(b, weight, now);
            }
            3 => {
                self.core.leave(b, now);
            }
            4 => match self.draw(4) {
                0 => self.core.set_most_requests(b, Some(2), now),
                1 => self.core.set_most_requests(b, None, now),
                _ => self.core.set_health(b, Health::Up, now),
            },
            what => {
                let health = [Health::Up, Health::Draining, Health::Down, Health::Up][what as usize % 4];
                self.core.set_health(b, health, now);
            }
        }
    }

    /// The loads of all back-ends.
    pub(crate) fn loads(&self) -> Vec<u32> {
        self.core.view().ids().map(|b| self.core.view().load(b)).collect()
    }

    /// Another policy is configured: the cluster stays as it is, and who waits waits on.
    pub(crate) fn reload(&mut self, policy: &str) {
        let RunHeader { inquiries, seed, .. } = header(policy);
        self.core.set_inquiries((inquiries > 0).then_some(Inquiries { size: inquiries, seed }));
        self.core.replace_policy(header(policy).build_policy().unwrap(), ADMISSION);
        let view = self.core.view();
        let left: Vec<BackendId> = view.left_ids().collect();
        let entry = |b: BackendId| BackendEntry {
            name: format!("backend-{}", b.0),
            key: view.key(b),
            weight: view.weight(b),
            health: view.health(b),
            load: view.own_load(b),
            others: view.load(b) - view.own_load(b),
            most: view.most_requests(b),
            left: left.iter().position(|&gone| gone == b).map(|place| place as u32),
        };
        let header = RunHeader {
            backends: view.ids().map(entry).collect(),
            waiting: self.core.waiting_requests().cloned().collect(),
            reserved: self.core.reserved(),
            ..header(policy)
        };
        let now = self.now;
        self.core.witness_mut().recorder.run_started(&header, now);
        self.header = header;
        self.start_waiting();
    }
}

pub(crate) fn config(directory: &Path) -> LogConfig {
    LogConfig {
        directory: directory.to_owned(),
        file_bytes: 1 << 20,
        files: 10,
        when_full: LogRetention::Rotate,
    }
}

/// Writes these chunks as a log.
pub(crate) fn write(directory: &Path, chunks: impl IntoIterator<Item = Vec<u8>>) {
    let writer = LogWriter::open(&config(directory)).unwrap();
    for (i, chunk) in chunks.into_iter().enumerate() {
        writer.push(chunk);
        if (i + 1) % (LogWriter::CHUNKS_IN_FLIGHT / 2) == 0 {
            writer.flush();
        }
    }
    writer.flush();
    assert_eq!((writer.dropped_chunks(), writer.errors()), (0, 0));
    writer.close();
}

pub(crate) fn prove(path: &Path) -> Proof {
    replay(&mut LogReader::open(path).unwrap(), &mut |_| {}).unwrap()
}
