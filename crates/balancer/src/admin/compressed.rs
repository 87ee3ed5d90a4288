//! What `/metrics` says of bodies that the front-end compresses.

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_config::ContentCoding;
use plimsoll_observe::exposition::Out;

use crate::backend_pool::BackendPool;
use crate::metrics::{CompressionCounts, SharedCounter};
use crate::shared::FrontEndShared;

/// The counts of all workers, added up.
#[derive(Debug)]
pub(super) struct CompressionSample {
    /// By coding.
    bodies: [(&'static str, u64); ContentCoding::ALL.len()],
    in_bytes: u64,
    out_bytes: u64,
    left: u64,
    under_way: u64,
}

impl CompressionSample {
    /// `None` where nothing is compressed.
    pub(super) fn take(shared: &FrontEndShared) -> Option<Self> {
        let compresses = |pool: &Arc<BackendPool>| pool.config.load().compression.is_some();
        shared.pools().iter().any(compresses).then(|| {
            let sum = |of: &dyn Fn(&CompressionCounts) -> &SharedCounter| {
                shared.counts.iter().map(|worker| of(&worker.compression).get()).sum::<u64>()
            };
            Self {
                bodies: ContentCoding::ALL.map(|coding| (coding.name(), sum(&|counts| counts.of(coding)))),
                in_bytes: sum(&|counts| &counts.in_bytes),
                out_bytes: sum(&|counts| &counts.out_bytes),
                left: sum(&|counts| &counts.left),
                under_way: shared.compressing.load(Ordering::Relaxed) as u64,
            }
        })
    }

    /// Writes its metrics.
    pub(super) fn encode(&self, out: &mut Out<'_>) -> Result<(), Error> {
        out.counters("plimsoll_compressed_responses", "Responses that the front-end compressed", || {
            self.bodies.map(|(coding, n)| ([("coding", coding)], n))
        })?;
        out.counter(
            "plimsoll_compression_in_bytes",
            "Content of back-ends that was compressed",
            self.in_bytes,
        )?;
        out.counter("plimsoll_compression_out_bytes", "What that was compressed to", self.out_bytes)?;
        out.counter(
            "plimsoll_compression_left",
            "Responses that were left as they are because as many were compressed as may be",
            self.left,
        )?;
        out.gauge("plimsoll_compression_under_way", "Responses that are compressed now", self.under_way)
    }
}
