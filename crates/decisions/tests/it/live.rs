//! A front-end with random traffic whose inputs are recorded, as the live one does it.

use std::path::Path;

use plimsoll_decisions::{
    BackendEntry, Counterfactual, LogConfig, LogReader, LogWriter, Proof, Recorder, RunHeader, WhenFull,
    replay,
};
use plimsoll_policy::{
    AdmissionLimit, BackendId, Completion, Decision, FrontEnd, Health, Kind, Nanos, Outcome, Request,
    TargetId, Time, Weight, mix,
};

/// The start of a run of this policy on four back-ends.
pub(crate) fn header(policy: &str) -> RunHeader {
    let entry = |i: u64| BackendEntry {
        name: format!("backend-{i}"),
        key: mix(i),
        weight: Weight::ONE,
        health: Health::Up,
        load: 0,
    };
    RunHeader {
        policy: policy.to_owned(),
        settings: Vec::new(),
        seed: 7,
        cache: "lru".into(),
        cache_bytes: 10_000,
        backends: (0..4).map(entry).collect(),
        started_unix_ns: 1_700_000_000_000_000_000,
    }
}

pub(crate) struct Live {
    pub(crate) front_end: FrontEnd,
    pub(crate) recorder: Recorder,
    pub(crate) shadow: Option<Counterfactual>,
    pub(crate) now: Time,
    pub(crate) header: RunHeader,
    /// Requests under way: the request, its back-end, when it was assigned, where the shadow put it, and whether an
    /// earlier policy assigned it.
    under_way: Vec<(Request, BackendId, Time, Option<BackendId>, bool)>,
    number: u64,
    random: u64,
}

impl Live {
    pub(crate) fn new(header: RunHeader, seed: u64) -> Self {
        let admission = AdmissionLimit::Fixed(60);
        let front_end = FrontEnd::new(header.build_policy().unwrap(), header.cluster(), admission);
        let mut recorder = Recorder::new();
        recorder.run_started(&header, Time::ZERO);
        Self {
            front_end,
            recorder,
            shadow: None,
            now: Time::ZERO,
            header,
            under_way: Vec::new(),
            number: 0,
            random: seed,
        }
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
        let pause = Nanos::new(1 + self.draw(200_000));
        self.now += pause;
        match self.draw(1000) {
            0..=4 => self.membership(),
            5..=9 => {
                self.front_end.tick(self.now);
                self.recorder.ticked(self.now);
                self.shadow.iter_mut().for_each(|s| s.ticked(self.now));
            }
            10..=500 if !self.under_way.is_empty() => self.complete(),
            _ => {
                let request = self.request();
                let decision = self.front_end.offer(&request, self.now);
                self.taken(&request, decision);
            }
        }
    }

    pub(crate) fn request(&mut self) -> Request {
        // Squared: some targets are popular.
        let target = TargetId(mix(self.draw(40) * self.draw(40)));
        let size_bytes = (self.draw(4) == 0).then(|| 100 + target.0 % 2000);
        let kind = if self.draw(10) == 0 { Kind::Dynamic } else { Kind::Static };
        let (client, class) = (self.draw(5), self.draw(2) as u16);
        self.number += 1;
        Request { number: self.number - 1, target, size_bytes, kind, client, class }
    }

    /// Records a decision that was carried out.
    pub(crate) fn taken(&mut self, request: &Request, decision: Decision) {
        self.recorder.offered(request, decision, self.now);
        if let Decision::Assign(b) = decision {
            let other = self.shadow.as_mut().and_then(|s| s.offered(request, self.now));
            self.under_way.push((*request, b, self.now, other, false));
        }
    }

    pub(crate) fn complete(&mut self) {
        let which = self.draw(self.under_way.len() as u64) as usize;
        let (request, backend, at, other, foreign) = self.under_way.swap_remove(which);
        if foreign {
            self.front_end.complete_foreign(backend);
            self.recorder.completed_foreign(backend, self.now);
            return;
        }
        let completion = Completion {
            target: request.target,
            backend,
            outcome: if self.draw(20) == 0 { Outcome::Failed } else { Outcome::Completed },
            size_bytes: (self.draw(10) > 0).then(|| 100 + request.target.0 % 2000),
            response_time: self.now.since(at),
        };
        self.front_end.complete(&completion, self.now);
        self.recorder.completed(request.number, &completion, self.now);
        self.shadow.iter_mut().for_each(|s| s.completed(other, &completion, self.now));
    }

    fn membership(&mut self) {
        let (b, now) = (BackendId(self.draw(self.front_end.view().len() as u64) as u16), self.now);
        match self.draw(8) {
            0 if self.front_end.view().len() < 8 => {
                let (weight, key) = (Weight::new(2.0).unwrap(), mix(now.as_nanos()));
                let b = self.front_end.join(weight, key, now);
                self.recorder.joined(b, &format!("late-{}", b.0), key, weight, now);
                self.shadow.iter_mut().for_each(|s| s.joined(weight, key, now));
            }
            1 | 2 => {
                let weight = Weight::new(self.draw(12) as f64 / 4.0).unwrap();
                self.front_end.set_weight(b, weight, now);
                self.recorder.weight(b, weight, now);
                self.shadow.iter_mut().for_each(|s| s.weight(b, weight, now));
            }
            what => {
                let health = [Health::Up, Health::Draining, Health::Down, Health::Up][what as usize % 4];
                self.front_end.set_health(b, health, now);
                self.recorder.health(b, health, now);
                self.shadow.iter_mut().for_each(|s| s.health(b, health, now));
            }
        }
    }

    /// Another policy is configured: the cluster stays as it is.
    pub(crate) fn reload(&mut self, policy: &str) {
        let view = self.front_end.view();
        let entry = |b: BackendId| BackendEntry {
            name: format!("backend-{}", b.0),
            key: view.key(b),
            weight: view.weight(b),
            health: view.health(b),
            load: view.load(b),
        };
        let header = RunHeader { backends: view.ids().map(entry).collect(), ..header(policy) };
        self.front_end.replace_policy(header.build_policy().unwrap(), AdmissionLimit::Fixed(60));
        self.recorder.run_started(&header, self.now);
        self.under_way.iter_mut().for_each(|u| u.4 = true);
        self.header = header;
    }
}

pub(crate) fn config(directory: &Path) -> LogConfig {
    LogConfig { directory: directory.to_owned(), file_bytes: 1 << 20, files: 10, when_full: WhenFull::Rotate }
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
