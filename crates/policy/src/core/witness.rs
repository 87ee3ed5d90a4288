//! The witness: observes every input of the core with the resulting decision.

use super::admission::AdmissionControl;
use super::assigned::{Assigned, Phase};
use super::offer::OfferOptions;
use super::waiting::WaitingRequest;
use crate::cluster::{BackendId, Health};
use crate::decision::{Completion, Decision, LoadReport, PollAnswer};
use crate::request::Request;
use crate::sniffed::{HostMetrics, SniffedRequest};
use crate::time::Time;
use crate::weight::Weight;

/// Observes every input of a [`Core`](super::Core), in order, after the core has acted on it. Decision log
/// and shadow policy are witnesses.
///
/// The core itself calls it, so no runtime can forget to. `()` observes nothing and costs nothing.
pub trait Witness {
    /// Whether [`Witness::overrule`] may change decisions. If so, debug assertions about the policy's
    /// decisions are off.
    const OVERRULES: bool = false;

    /// The decision to carry out instead of `own`, the one by policy and admission limit. A replay returns
    /// the logged decision, so that its state follows the log.
    #[inline]
    fn overrule(&mut self, own: Decision) -> Decision {
        own
    }

    /// A request was offered. `Wait` and `Reject` may come from the admission limit without asking the
    /// policy.
    #[inline]
    fn offered(&mut self, request: &Request, options: &OfferOptions, decision: Decision, now: Time) {
        let _ = (request, options, decision, now);
    }

    /// A request's poll ended, with answers or by time-out.
    fn answered(&mut self, of: &WaitingRequest, answers: &[PollAnswer], decision: Decision, now: Time) {
        let _ = (of, answers, decision, now);
    }

    /// A waiting request got its turn or reached its deadline.
    fn started(&mut self, waited: &WaitingRequest, decision: Decision, now: Time) {
        let _ = (waited, decision, now);
    }

    /// The client gave up a request that was waiting or polling.
    fn gave_up(&mut self, number: u64, now: Time) {
        let _ = (number, now);
    }

    /// A request's phase changed from `from` to [`Assigned::phase`], or, for `None`, a prepared choice was
    /// withdrawn. `own` says whether the current policy assigned it.
    fn moved(&mut self, assigned: &Assigned, from: Phase, to: Option<Phase>, own: bool, now: Time) {
        let _ = (assigned, from, to, own, now);
    }

    /// This request took a prepared choice of the current policy.
    fn taken(&mut self, assigned: &Assigned, request: &Request, now: Time) {
        let _ = (assigned, request, now);
    }

    /// A request ended that the current policy assigned.
    #[inline]
    fn completed(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        let _ = (assigned, completion, now);
    }

    /// A request ended that an earlier policy assigned, or that stayed with its connection.
    fn completed_foreign(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        let _ = (assigned, completion, now);
    }

    /// A further request stayed with its connection's back-end; the policy was not asked.
    fn stayed(&mut self, assigned: &Assigned, now: Time) {
        let _ = (assigned, now);
    }

    /// A back-end reported its load.
    fn reported(&mut self, report: &LoadReport, now: Time) {
        let _ = (report, now);
    }

    /// A request passed on a connection whose back-end was chosen before.
    fn sniffed(&mut self, sniffed: &SniffedRequest, now: Time) {
        let _ = (sniffed, now);
    }

    /// A back-end was measured.
    fn host_metrics(&mut self, metrics: &HostMetrics, now: Time) {
        let _ = (metrics, now);
    }

    /// The sum over all front-ends came.
    fn shared(&mut self, sum: &[(u64, u64)], now: Time) {
        let _ = (sum, now);
    }

    /// A back-end's health changed.
    fn health(&mut self, backend: BackendId, health: Health, now: Time) {
        let _ = (backend, health, now);
    }

    /// A back-end's weight changed.
    fn weight(&mut self, backend: BackendId, weight: Weight, now: Time) {
        let _ = (backend, weight, now);
    }

    /// A back-end may have this many requests at once, or as many as come.
    fn most_requests(&mut self, backend: BackendId, most: Option<u32>, now: Time) {
        let _ = (backend, most, now);
    }

    /// A back-end joined and got this index.
    fn joined(&mut self, backend: BackendId, name: &str, key: u64, weight: Weight, now: Time) {
        let _ = (backend, name, key, weight, now);
    }

    /// A back-end left; its index may be given to another.
    fn left(&mut self, backend: BackendId, now: Time) {
        let _ = (backend, now);
    }

    /// Admission limit or queue length changed.
    fn admission(&mut self, admission: AdmissionControl, now: Time) {
        let _ = (admission, now);
    }

    /// The policy's tick.
    fn ticked(&mut self, now: Time) {
        let _ = now;
    }
}

/// Observes nothing.
impl Witness for () {}

/// Calls the macro `$passes_on` with the methods of [`Witness`] that observe inputs, each as `fn NAME(ARGUMENT: TYPE, …);`, some with
/// `#[inline]` before it: the one list for witnesses that pass everything on to others.
#[macro_export]
macro_rules! each_witness_method {
    ($passes_on:ident) => {
        $passes_on! {
                #[inline] fn offered(request: &$crate::Request, options: &$crate::OfferOptions, decision: $crate::Decision, now: $crate::Time);
                fn answered(of: &$crate::WaitingRequest, answers: &[$crate::PollAnswer], decision: $crate::Decision, now: $crate::Time);
                fn started(waited: &$crate::WaitingRequest, decision: $crate::Decision, now: $crate::Time);
                fn gave_up(number: u64, now: $crate::Time);
                fn moved(assigned: &$crate::Assigned, from: $crate::Phase, to: Option<$crate::Phase>, own: bool, now: $crate::Time);
                fn taken(assigned: &$crate::Assigned, request: &$crate::Request, now: $crate::Time);
                #[inline] fn completed(assigned: &$crate::Assigned, completion: &$crate::Completion, now: $crate::Time);
                fn completed_foreign(assigned: &$crate::Assigned, completion: &$crate::Completion, now: $crate::Time);
                fn stayed(assigned: &$crate::Assigned, now: $crate::Time);
                fn reported(report: &$crate::LoadReport, now: $crate::Time);
                fn sniffed(sniffed: &$crate::SniffedRequest, now: $crate::Time);
                fn host_metrics(metrics: &$crate::HostMetrics, now: $crate::Time);
                fn shared(sum: &[(u64, u64)], now: $crate::Time);
                fn health(backend: $crate::BackendId, health: $crate::Health, now: $crate::Time);
                fn weight(backend: $crate::BackendId, weight: $crate::Weight, now: $crate::Time);
                fn most_requests(backend: $crate::BackendId, most: Option<u32>, now: $crate::Time);
                fn joined(backend: $crate::BackendId, name: &str, key: u64, weight: $crate::Weight, now: $crate::Time);
                fn left(backend: $crate::BackendId, now: $crate::Time);
                fn admission(admission: $crate::AdmissionControl, now: $crate::Time);
                fn ticked(now: $crate::Time);
        }
    };
}

macro_rules! passed_on_if_there {
    ($($(#[$inline:ident])? fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        /// Passes everything on to the witness, if there is one.
        impl<W: Witness> Witness for Option<W> {
            const OVERRULES: bool = W::OVERRULES;

            #[inline]
            fn overrule(&mut self, own: Decision) -> Decision {
                match self {
                    Some(witness) => witness.overrule(own),
                    None => own,
                }
            }

            $($(#[$inline])? fn $name(&mut self, $($arg: $type),*) {
                if let Some(witness) = self {
                    witness.$name($($arg),*);
                }
            })*
        }
    };
}

crate::each_witness_method!(passed_on_if_there);
