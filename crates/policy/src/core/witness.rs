//! Who is told of every input of the core, with the decision that it led to.

use super::admission::AdmissionControl;
use super::assigned::{Assigned, Phase};
use super::offer::OfferOptions;
use super::waiting::WaitingRequest;
use crate::cluster::{BackendId, Health};
use crate::policy::{Completion, Decision, LoadReport, PollAnswer};
use crate::request::Request;
use crate::time::Time;
use crate::weight::Weight;

/// Told of every input of a [`Core`](super::Core), in order, once the core has acted on it: a decision log, a shadow policy.
///
/// As the core calls it, no runtime can forget to. A simulation uses `()`, which costs nothing.
pub trait Witness {
    /// Whether [`Witness::overrule`] may change decisions; then a policy's mistakes are not asserted against.
    const OVERRULES: bool = false;

    /// The decision to carry out in the place of `own`, which policy and admission limit came to: a replay answers with
    /// the logged one, so that the state stays on the log's path.
    #[inline]
    fn overrule(&mut self, own: Decision) -> Decision {
        own
    }

    /// A request was offered. `Wait` and `Reject` may come from the admission limit, without the policy having been asked.
    #[inline]
    fn offered(&mut self, request: &Request, options: &OfferOptions, decision: Decision, now: Time) {
        let _ = (request, options, decision, now);
    }

    /// The answers to a request's poll came, or its time was up.
    fn answered(&mut self, of: &WaitingRequest, answers: &[PollAnswer], decision: Decision, now: Time) {
        let _ = (of, answers, decision, now);
    }

    /// A request that waited came to its turn, or to its deadline.
    fn started(&mut self, waited: &WaitingRequest, decision: Decision, now: Time) {
        let _ = (waited, decision, now);
    }

    /// A request that waited, or whose poll was under way, was given up by its client.
    fn gave_up(&mut self, number: u64, now: Time) {
        let _ = (number, now);
    }

    /// A request's phase was `from` and is now [`Assigned::phase`]; `None` in its place when a prepared choice was withdrawn.
    /// `own` tells whether the policy of now assigned it.
    fn moved(&mut self, assigned: &Assigned, from: Phase, to: Option<Phase>, own: bool, now: Time) {
        let _ = (assigned, from, to, own, now);
    }

    /// A prepared choice was taken by this request.
    fn taken(&mut self, assigned: &Assigned, request: &Request, now: Time) {
        let _ = (assigned, request, now);
    }

    /// A request that the policy of now assigned ended.
    #[inline]
    fn completed(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        let _ = (assigned, completion, now);
    }

    /// A request that the policy of now did not assign ended: of an earlier policy, or one that stayed.
    fn completed_foreign(&mut self, assigned: &Assigned, completion: &Completion, now: Time) {
        let _ = (assigned, completion, now);
    }

    /// A back-end has a further request on its connection, about which the policy was not asked.
    fn stayed(&mut self, assigned: &Assigned, now: Time) {
        let _ = (assigned, now);
    }

    /// A back-end reported its load.
    fn reported(&mut self, report: &LoadReport, now: Time) {
        let _ = (report, now);
    }

    /// The sum of what all front-ends have seen came.
    fn shared(&mut self, sum: &[(u64, u64)], now: Time) {
        let _ = (sum, now);
    }

    /// The health of a back-end is now this.
    fn health(&mut self, backend: BackendId, health: Health, now: Time) {
        let _ = (backend, health, now);
    }

    /// The weight of a back-end is now this.
    fn weight(&mut self, backend: BackendId, weight: Weight, now: Time) {
        let _ = (backend, weight, now);
    }

    /// A back-end joined and got this index.
    fn joined(&mut self, backend: BackendId, name: &str, key: u64, weight: Weight, now: Time) {
        let _ = (backend, name, key, weight, now);
    }

    /// A back-end left; its index may be given to another.
    fn left(&mut self, backend: BackendId, now: Time) {
        let _ = (backend, now);
    }

    /// Another admission limit or queue length applies.
    fn admission(&mut self, admission: AdmissionControl, now: Time) {
        let _ = (admission, now);
    }

    /// The policy's tick.
    fn ticked(&mut self, now: Time) {
        let _ = now;
    }
}

/// Wants to know nothing.
impl Witness for () {}
