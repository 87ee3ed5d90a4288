//! The witness that writes a decision log.

use std::io;
use std::sync::Arc;

use plimsoll_policy::{
    AdmissionControl, Assigned, BackendId, Completion, Decision, Health, HostMetrics, LoadReport,
    OfferOptions, Phase, PollAnswer, Request, SniffedRequest, Time, WaitingRequest, Weight, Witness,
};

use crate::event::RunHeader;
use crate::log_config::LogConfig;
use crate::recorder::Recorder;
use crate::writer::LogWriter;

/// Records every input of a core, and hands full chunks over to a writer, without waiting for the disk.
pub struct LogWitness {
    recorder: Recorder,
    writer: Arc<LogWriter>,
}

impl LogWitness {
    /// Opens a log. This waits for the disk.
    ///
    /// # Errors
    /// Those of [`LogWriter::open`].
    pub fn open(config: &LogConfig) -> io::Result<Self> {
        Ok(Self { recorder: Recorder::new(), writer: Arc::new(LogWriter::open(config)?) })
    }

    /// A fresh policy begins.
    pub fn run_started(&mut self, header: &RunHeader, now: Time) {
        self.recorder.run_started(header, now);
    }

    /// Passes what was recorded to the writer.
    pub fn hand_over(&mut self) {
        if let Some(emptied) = self.writer.push(self.recorder.take()) {
            self.recorder.recycle(emptied);
        }
    }

    /// The writer, so that it can be waited for where no lock is held.
    #[must_use]
    pub fn writer(&self) -> &Arc<LogWriter> {
        &self.writer
    }
}

/// A decision log, where one is kept.
pub struct MaybeLogged(pub Option<LogWitness>);

/// Records each input.
macro_rules! recorded {
    ($($(#[$inline:ident])? fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        impl Witness for LogWitness {
            $($(#[$inline])? fn $name(&mut self, $($arg: $type),*) {
                self.recorder.$name($($arg),*);
                if self.recorder.is_chunk_full() {
                    self.hand_over();
                }
            })*
        }

        impl Witness for MaybeLogged {
            $($(#[$inline])? fn $name(&mut self, $($arg: $type),*) {
                if let Some(log) = &mut self.0 {
                    log.$name($($arg),*);
                }
            })*
        }
    };
}

recorded! {
    #[inline] fn offered(request: &Request, options: &OfferOptions, decision: Decision, now: Time);
    fn answered(of: &WaitingRequest, answers: &[PollAnswer], decision: Decision, now: Time);
    fn started(waited: &WaitingRequest, decision: Decision, now: Time);
    fn gave_up(number: u64, now: Time);
    fn moved(assigned: &Assigned, from: Phase, to: Option<Phase>, own: bool, now: Time);
    fn taken(assigned: &Assigned, request: &Request, now: Time);
    #[inline] fn completed(assigned: &Assigned, completion: &Completion, now: Time);
    fn completed_foreign(assigned: &Assigned, completion: &Completion, now: Time);
    fn stayed(assigned: &Assigned, now: Time);
    fn reported(report: &LoadReport, now: Time);
    fn sniffed(sniffed: &SniffedRequest, now: Time);
    fn host_metrics(metrics: &HostMetrics, now: Time);
    fn shared(sum: &[(u64, u64)], now: Time);
    fn health(backend: BackendId, health: Health, now: Time);
    fn weight(backend: BackendId, weight: Weight, now: Time);
    fn joined(backend: BackendId, name: &str, key: u64, weight: Weight, now: Time);
    fn left(backend: BackendId, now: Time);
    fn admission(admission: AdmissionControl, now: Time);
    fn ticked(now: Time);
}
