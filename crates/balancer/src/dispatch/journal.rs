//! The witnesses of the core: decision log and shadow policy.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_config::{Config, DecisionLogConfig, ShadowConfig, WhenFull};
use plimsoll_decisions::{BackendEntry, LogConfig, LogWitness, LogWriter, RunHeader, Shadow, ShadowScore};
use plimsoll_policy::{BackendId, Cluster, Core, Policy, Time, Witness};

use super::{BuildFailed, DataPart, Member};

/// The state of the decision log.
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

impl LogState {
    /// Adds that of another partition's log.
    pub(crate) fn add(&mut self, other: Self) {
        self.dropped_chunks += other.dropped_chunks;
        self.errors += other.errors;
        self.last_error = self.last_error.take().or(other.last_error);
        self.stopped |= other.stopped;
    }
}

/// Decision log and shadow policy, where they are configured.
#[derive(Default)]
pub(super) struct Journal {
    log: Option<LogWitness>,
    shadow: Option<Shadow>,
    /// Dropped chunks and errors of the logs before this one.
    past: (u64, u64),
}

/// Opens the decision log that `config` asks for. This waits for the disk.
pub(super) fn open_log(config: &Config, part: DataPart) -> Result<Option<LogWitness>, BuildFailed> {
    let open = |log: &DecisionLogConfig| {
        let log = log_config(log, part);
        let failed =
            |error| BuildFailed::DecisionLog { directory: log.directory.display().to_string(), error };
        LogWitness::open(&log).map_err(failed)
    };
    config.decision_log.as_ref().map(open).transpose()
}

impl Journal {
    /// Replaces the log. The caller must close the returned old writer after releasing the lock, because that
    /// waits for the disk.
    pub(super) fn replace_log(&mut self, fresh: Option<LogWitness>) -> Option<Arc<LogWriter>> {
        self.flush();
        std::mem::replace(&mut self.log, fresh).map(|old| Arc::clone(old.writer()))
    }

    /// Adds up the losses of a closed log.
    pub(super) fn remember(&mut self, closed: &LogWriter) {
        self.past.0 += closed.dropped_chunks();
        self.past.1 += closed.errors();
    }

    /// A fresh policy begins.
    pub(super) fn start_run(&mut self, header: &RunHeader, now: Time) {
        if let Some(log) = &mut self.log {
            log.run_started(header, now);
        }
    }

    /// Restarts the shadow policy on this cluster; `built` is the one in `config`.
    pub(super) fn start_shadow(&mut self, built: Option<Box<dyn Policy>>, config: &Config, cluster: Cluster) {
        self.shadow = config.shadow.as_ref().zip(built).map(|(ShadowConfig { policy }, built)| {
            Shadow::new(policy.spec.name, built, cluster, policy.cache, policy.cache_bytes)
        });
    }

    /// Passes the recorded bytes to the writer.
    pub(super) fn flush(&mut self) {
        if let Some(log) = &mut self.log {
            log.hand_over();
        }
    }

    /// The writer, so that it can be closed with the lock released.
    pub(super) fn take_writer(&mut self) -> Option<Arc<LogWriter>> {
        self.log.take().map(|log| Arc::clone(log.writer()))
    }

    /// The writer, so that it can be waited for with the lock released.
    pub(super) fn writer(&self) -> Option<Arc<LogWriter>> {
        self.log.as_ref().map(|log| Arc::clone(log.writer()))
    }

    pub(super) fn shadow_score(&self) -> Option<ShadowScore> {
        self.shadow.as_ref().map(Shadow::score)
    }

    /// The state of the log.
    pub(super) fn log_state(&self) -> LogState {
        let past = LogState { dropped_chunks: self.past.0, errors: self.past.1, ..LogState::default() };
        match &self.log {
            None => past,
            Some(log) => LogState {
                dropped_chunks: past.dropped_chunks + log.writer().dropped_chunks(),
                errors: past.errors + log.writer().errors(),
                last_error: log.writer().last_error(),
                stopped: log.writer().stopped(),
            },
        }
    }
}

macro_rules! passed_on {
    ($($(#[$inline:ident])? fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        /// Passes each input on to the decision log, then to the shadow policy.
        impl Witness for Journal {
            $($(#[$inline])? fn $name(&mut self, $($arg: $type),*) {
                self.log.$name($($arg),*);
                self.shadow.$name($($arg),*);
            })*
        }
    };
}

plimsoll_policy::each_witness_method!(passed_on);

fn log_config(log: &DecisionLogConfig, part: DataPart) -> LogConfig {
    LogConfig {
        directory: part.log_directory(&log.directory),
        file_bytes: log.file_bytes,
        files: log.files,
        when_full: match log.when_full {
            WhenFull::Rotate => plimsoll_decisions::LogRetention::Rotate,
            WhenFull::Stop => plimsoll_decisions::LogRetention::Stop,
        },
    }
}

/// The run that begins now.
pub(super) fn header(config: &Config, core: &Core<Journal>, members: &[Member]) -> RunHeader {
    let view = core.view();
    let left: Vec<BackendId> = view.left_ids().collect();
    let place = |b| left.iter().position(|&gone| gone == b).and_then(|place| u32::try_from(place).ok());
    let entry = |m: &Member| BackendEntry {
        name: m.name.to_string(),
        key: m.key,
        weight: view.weight(m.id),
        health: view.health(m.id),
        load: view.own_load(m.id),
        others: view.load(m.id) - view.own_load(m.id),
        most: view.most_requests(m.id),
        left: if view.has_left(m.id) { place(m.id) } else { None },
    };
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RunHeader {
        policy: config.policy.spec.name.to_owned(),
        settings: config.policy.params.settings(),
        seed: config.policy.seed,
        cache: config.policy.cache.name.to_owned(),
        cache_bytes: config.policy.cache_bytes,
        class_costs: if config.policy.spec.capabilities.depends_on_classes() {
            config.class_costs()
        } else {
            Arc::default()
        },
        backends: members.iter().map(entry).collect(),
        admission: core.admission(),
        waiting: core.waiting_requests().cloned().collect(),
        inquiries: core.inquiries().map_or(0, |inquiries| inquiries.size),
        reserved: core.reserved(),
        started_unix_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX),
    }
}
