//! What is told of each input besides the policy itself: the decision log and the shadow policy.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_config::{Config, DecisionLogConfig, ShadowConfig, WhenFull};
use plimsoll_decisions::{
    BackendEntry, Counterfactual, LogConfig, LogWriter, Recorder, RunHeader, Score, Scorer,
};
use plimsoll_policy::{
    BackendId, ClusterView, Completion, Decision, Health, Policy, PollAnswer, Request, Time, Weight,
};

use super::{BuildFailed, Made, Member};

/// How the live policy and the shadow policy fare on the same requests.
pub(crate) struct ShadowScore {
    /// The shadow policy's name.
    pub(crate) policy: &'static str,
    /// What the live policy did, under the same model of the caches.
    pub(crate) live: Score,
    /// What the shadow policy would have done.
    pub(crate) shadow: Score,
}

struct Shadow {
    policy: &'static str,
    counterfactual: Counterfactual,
    live: Scorer,
}

pub(super) struct Log {
    recorder: Recorder,
    /// Shared with whoever waits for the disk, which nobody does under the lock.
    writer: Arc<LogWriter>,
}

/// How the decision log fares.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogState {
    /// Chunks that were lost since the start, by logs that have been closed as well.
    pub(crate) dropped_chunks: u64,
    /// Failures of the disk since the start.
    pub(crate) errors: u64,
    /// The latest failure of the disk.
    pub(crate) last_error: Option<String>,
    /// Whether the files are full and nothing more is written.
    pub(crate) stopped: bool,
}

/// Decision log and shadow policy, where they are configured.
#[derive(Default)]
pub(super) struct Journal {
    log: Option<Log>,
    shadow: Option<Shadow>,
    /// Dropped chunks and errors of the logs before this one.
    past: (u64, u64),
    /// Counts the shadow policies that there have been.
    generation: u32,
}

/// What no shadow policy is numbered: there are not as many reloads.
const NO_GENERATION: u32 = u32::MAX;

/// What the shadow policy of its time chose for a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShadowChoice {
    generation: u32,
    backend: Option<BackendId>,
}

/// Opens the decision log that `config` asks for. This waits for the disk.
pub(super) fn open_log(config: &Config) -> Result<Option<Log>, BuildFailed> {
    let open = |log: &DecisionLogConfig| {
        let failed =
            |error| BuildFailed::DecisionLog { directory: log.directory.display().to_string(), error };
        let writer = LogWriter::open(&log_config(log)).map_err(failed)?;
        Ok(Log { recorder: Recorder::new(), writer: Arc::new(writer) })
    };
    config.decision_log.as_ref().map(open).transpose()
}

impl Journal {
    /// Puts another log in the place of this one. The writer of the old one has to be closed by the caller, with the lock
    /// released: it waits for the disk.
    pub(super) fn replace_log(&mut self, fresh: Option<Log>) -> Option<Arc<LogWriter>> {
        self.flush();
        std::mem::replace(&mut self.log, fresh).map(|old| old.writer)
    }

    /// Keeps what a log that was closed had lost.
    pub(super) fn remember(&mut self, closed: &LogWriter) {
        self.past.0 += closed.dropped_chunks();
        self.past.1 += closed.errors();
    }

    /// A policy that has seen nothing begins, on this cluster.
    pub(super) fn start_run(&mut self, config: &Config, view: &ClusterView, members: &[Member], now: Time) {
        if let Some(log) = &mut self.log {
            log.recorder.run_started(&header(config, view, members), now);
        }
    }

    /// The shadow policy begins anew, on this cluster; `built` is the one that `config` names.
    pub(super) fn start_shadow(
        &mut self,
        built: Option<Box<dyn Policy>>,
        config: &Config,
        view: &ClusterView,
        members: &[Member],
    ) {
        self.generation += 1;
        self.shadow = config.shadow.as_ref().zip(built).map(|(ShadowConfig { policy }, built)| {
            let cluster = header(config, view, members).cluster();
            let live = Scorer::new(cluster.len(), policy.cache, policy.cache_bytes);
            let counterfactual = Counterfactual::new(built, cluster, policy.cache, policy.cache_bytes);
            Shadow { policy: policy.spec.name, counterfactual, live }
        });
    }

    #[inline]
    pub(super) fn offered(&mut self, request: &Request, decision: Decision, now: Time) {
        self.record(|r| r.offered(request, decision, now));
    }

    pub(super) fn polled(
        &mut self,
        request: &Request,
        answers: &[PollAnswer],
        decision: Decision,
        now: Time,
    ) {
        self.record(|r| r.polled(request, answers, decision, now));
    }

    /// The live policy chose `backend`; returns the shadow policy's choice.
    #[inline]
    pub(super) fn shadow_offered(
        &mut self,
        request: &Request,
        backend: BackendId,
        now: Time,
    ) -> ShadowChoice {
        let chosen = self.shadow.as_mut().and_then(|shadow| {
            shadow.live.assigned(backend, request, now);
            shadow.counterfactual.offered(request, now)
        });
        ShadowChoice { generation: self.generation, backend: chosen }
    }

    /// A request ended that the live policy of now had assigned.
    #[inline]
    pub(super) fn completed(&mut self, made: &Made, completion: &Completion, now: Time) {
        self.record(|r| r.completed(made.number, completion, now));
        self.shadow_completed(made, completion, now);
    }

    /// A back-end has a request about which no policy was asked; the shadow policy's choice, which is none.
    pub(super) fn stayed(&mut self, backend: BackendId, now: Time) -> ShadowChoice {
        self.record(|r| r.stayed(backend, now));
        if let Some(shadow) = &mut self.shadow {
            shadow.counterfactual.stayed(backend);
        }
        ShadowChoice { generation: NO_GENERATION, backend: None }
    }

    /// A request ended that the present policy had not assigned.
    pub(super) fn completed_foreign(&mut self, made: &Made, completion: &Completion, now: Time) {
        self.record(|r| r.completed_foreign(made.backend, now));
        self.shadow_completed(made, completion, now);
    }

    #[inline]
    fn shadow_completed(&mut self, made: &Made, completion: &Completion, now: Time) {
        let Some(shadow) = &mut self.shadow else { return };
        if made.shadow.generation == self.generation {
            shadow.live.completed(completion, now);
            shadow.counterfactual.completed(made.shadow.backend, completion, now);
        } else {
            shadow.counterfactual.completed_foreign(made.backend);
        }
    }

    pub(super) fn health(&mut self, b: BackendId, health: Health, now: Time) {
        self.record(|r| r.health(b, health, now));
        if let Some(shadow) = &mut self.shadow {
            shadow.counterfactual.health(b, health, now);
            if health == Health::Down {
                shadow.live.down(b);
            }
        }
    }

    pub(super) fn weight(&mut self, b: BackendId, weight: Weight, now: Time) {
        self.record(|r| r.weight(b, weight, now));
        if let Some(shadow) = &mut self.shadow {
            shadow.counterfactual.weight(b, weight, now);
        }
    }

    pub(super) fn joined(&mut self, b: BackendId, name: &str, key: u64, weight: Weight, now: Time) {
        self.record(|r| r.joined(b, name, key, weight, now));
        if let Some(shadow) = &mut self.shadow {
            shadow.counterfactual.joined(weight, key, now);
            shadow.live.joined(b.index() + 1, now);
        }
    }

    pub(super) fn ticked(&mut self, now: Time) {
        self.record(|r| r.ticked(now));
        if let Some(shadow) = &mut self.shadow {
            shadow.counterfactual.ticked(now);
        }
    }

    /// Hands what was recorded to the writer.
    pub(super) fn flush(&mut self) {
        if let Some(log) = &mut self.log {
            log.hand_over();
        }
    }

    /// The writer, so that it can be closed with the lock released.
    pub(super) fn take_writer(&mut self) -> Option<Arc<LogWriter>> {
        self.log.take().map(|log| log.writer)
    }

    /// The writer, so that it can be waited for with the lock released.
    pub(super) fn writer(&self) -> Option<Arc<LogWriter>> {
        self.log.as_ref().map(|log| Arc::clone(&log.writer))
    }

    pub(super) fn shadow_score(&self) -> Option<ShadowScore> {
        let shadow = self.shadow.as_ref()?;
        let (live, other) = (shadow.live.score(), shadow.counterfactual.score());
        Some(ShadowScore { policy: shadow.policy, live, shadow: other })
    }

    /// How the log fares.
    pub(super) fn log_state(&self) -> LogState {
        let past = LogState { dropped_chunks: self.past.0, errors: self.past.1, ..LogState::default() };
        match &self.log {
            None => past,
            Some(log) => LogState {
                dropped_chunks: past.dropped_chunks + log.writer.dropped_chunks(),
                errors: past.errors + log.writer.errors(),
                last_error: log.writer.last_error(),
                stopped: log.writer.stopped(),
            },
        }
    }

    #[inline]
    fn record(&mut self, write: impl FnOnce(&mut Recorder)) {
        if let Some(log) = &mut self.log {
            write(&mut log.recorder);
            if log.recorder.buffered_bytes() >= Recorder::CHUNK_BYTES {
                log.hand_over();
            }
        }
    }
}

impl Log {
    fn hand_over(&mut self) {
        if let Some(emptied) = self.writer.push(self.recorder.take()) {
            self.recorder.recycle(emptied);
        }
    }
}

fn log_config(log: &DecisionLogConfig) -> LogConfig {
    LogConfig {
        directory: log.directory.clone(),
        file_bytes: log.file_bytes,
        files: log.files,
        when_full: match log.when_full {
            WhenFull::Rotate => plimsoll_decisions::WhenFull::Rotate,
            WhenFull::Stop => plimsoll_decisions::WhenFull::Stop,
        },
    }
}

fn header(config: &Config, view: &ClusterView, members: &[Member]) -> RunHeader {
    let entry = |m: &Member| BackendEntry {
        name: m.name.to_string(),
        key: m.key,
        weight: view.weight(m.id),
        health: view.health(m.id),
        load: view.load(m.id),
    };
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RunHeader {
        policy: config.policy.spec.name.to_owned(),
        settings: config.policy.params.settings(),
        seed: config.policy.seed,
        cache: config.policy.cache.name.to_owned(),
        cache_bytes: config.policy.cache_bytes,
        backends: members.iter().map(entry).collect(),
        started_unix_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX),
    }
}
