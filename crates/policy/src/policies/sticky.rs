//! Sticky sessions around another policy: a session's requests go to the back-end that it has, as long as that can take them; the other policy
//! places new sessions, and those whose back-end is gone or full.
//!
//! Citation: Tarreau, "HAProxy configuration manual", version 2.6, 2022: persistence by a cookie that the balancer inserts.
//!
//! ```text
//! b <- the back-end that the request says its session has; else the last one of its client, where clients are remembered
//! if b is up and not full and has not failed the request: send r to b       // also with weight 0: no new sessions, the old ones stay
//! else: as the other policy says
//! ```
//!
//! Live, a cookie says which back-end a session has ([`Features::session`](crate::Features::session)), and nothing is remembered here. In the simulator
//! the clients of a trace stand for sessions, and `sticky_clients` of them are remembered, as their cookies would.
//!
//! `sticky` is around `weighted_round_robin`; [`find`](crate::find) knows `sticky_NAME` for every other policy, with the parameters of both.

use super::weighted_round_robin;
use crate::cluster::{BackendId, Change, ClusterView, Health};
use crate::decision::{Completion, Decision};
use crate::load_use::LoadUse;
use crate::lru_map::LruMap;
use crate::params::{ParamSet, Params as _};
use crate::policy::{Capabilities, Policy};
use crate::policy_spec::{BuildContext, Built, PolicySpec};
use crate::request::{Request, TargetId};
use crate::time::{Nanos, Time};
use crate::weight::Weight;

crate::params! {
    /// Parameters of `sticky`.
    pub struct StickyParams {
        /// Clients that are remembered with their back-end, for requests that do not say which one their session has; of more, those are
        /// forgotten that have been silent longest.
        sticky_clients: u32 = 100_000, 0..=10_000_000, "clients";
    }
}

/// Where a client's last request went. The generation tells whether that back-end is still there.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    backend: u16,
    generation: u32,
}

/// See the module's documentation.
pub struct Sticky {
    inner: Box<dyn Policy>,
    /// By client; none where none is remembered.
    places: Option<LruMap<Place>>,
    kept: u64,
    moved: u64,
}

impl Sticky {
    /// Sessions around `inner`.
    #[must_use]
    pub fn around(inner: Box<dyn Policy>, context: &BuildContext, params: &StickyParams) -> Self {
        let clients = params.sticky_clients as usize;
        let places = (clients > 0).then(|| LruMap::with_seed(clients, context.table_seed));
        Self { inner, places, kept: 0, moved: 0 }
    }

    /// The back-end that the request's session has.
    fn session(&mut self, request: &Request, view: &ClusterView) -> Option<BackendId> {
        if let Some(features) = &request.features
            && features.session.is_some()
        {
            return features.session;
        }
        // Client 0 is nobody in particular.
        let places = self.places.as_mut().filter(|_| request.client != 0)?;
        let place = *places.get_mut(TargetId(request.client))?;
        let b = BackendId(place.backend);
        let same = b.index() < view.len() && view.backend_generation(b) == place.generation;
        same.then_some(b)
    }
}

/// Whether `b` takes a request of a session that it has.
fn takes(view: &ClusterView, b: BackendId) -> bool {
    let there = b.index() < view.len() && !view.has_left(b) && view.health(b) == Health::Up;
    there && (view.is_eligible(b) || view.weight(b) == Weight::ZERO && !view.is_full(b))
}

impl Policy for Sticky {
    fn choose(&mut self, request: &Request, view: &ClusterView, now: Time) -> Decision {
        match self.session(request, view) {
            Some(b) if takes(view, b) => {
                self.kept += 1;
                return Decision::Assign(b);
            }
            Some(_) => self.moved += 1,
            None => {}
        }
        self.inner.choose(request, view, now)
    }

    fn on_assign(&mut self, request: &Request, backend: BackendId, view: &ClusterView, now: Time) {
        if let Some(places) = self.places.as_mut().filter(|_| request.client != 0) {
            let place = Place { backend: backend.0, generation: view.backend_generation(backend) };
            *places.get_or_insert_with(TargetId(request.client), Place::default).0 = place;
        }
        self.inner.on_assign(request, backend, view, now);
    }

    fn on_complete(&mut self, completion: &Completion, view: &ClusterView, now: Time) {
        self.inner.on_complete(completion, view, now);
    }

    fn on_membership(&mut self, backend: BackendId, change: Change, view: &ClusterView, now: Time) {
        self.inner.on_membership(backend, change, view, now);
    }

    fn on_tick(&mut self, view: &ClusterView, now: Time) {
        self.inner.on_tick(view, now);
    }

    fn tick_interval(&self) -> Option<Nanos> {
        self.inner.tick_interval()
    }

    fn capabilities(&self) -> &'static Capabilities {
        self.inner.capabilities()
    }

    fn wrapped(&self) -> Option<&(dyn Policy + 'static)> {
        Some(&*self.inner)
    }

    fn wrapped_mut(&mut self) -> Option<&mut (dyn Policy + 'static)> {
        Some(&mut *self.inner)
    }

    fn stats_of_wrapper(&self) -> Vec<(&'static str, f64)> {
        vec![("sessions_kept", self.kept as f64), ("sessions_moved", self.moved as f64)]
    }
}

/// Builds `sticky` around what `inner` builds with the same parameters.
pub(crate) fn build_around(inner: &PolicySpec, context: &BuildContext, params: &ParamSet) -> Built {
    let built = (inner.build)(context, params)?;
    Ok(Box::new(Sticky::around(built, context, &StickyParams::of(params))))
}

fn build(context: &BuildContext, params: &ParamSet) -> Built {
    build_around(&weighted_round_robin::SPEC, context, params)
}

/// Registry entry.
pub static SPEC: PolicySpec = PolicySpec {
    name: "sticky",
    aliases: &["sticky_sessions"],
    summary: "sessions stay with their back-end; weighted_round_robin places new ones, with `sticky_NAME` another policy",
    source: "HAProxy (cookie insert)",
    capabilities: weighted_round_robin::SPEC.capabilities,
    load_use: LoadUse::View,
    weighted: true,
    params: StickyParams::SPECS,
    build,
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::Cluster;
    use crate::core::{AdmissionControl, Core, Offered};
    use crate::request::Features;

    const A: BackendId = BackendId(0);
    const B: BackendId = BackendId(1);

    fn core(clients: u32) -> Core {
        let params = StickyParams { sticky_clients: clients }.to_set().unwrap();
        let policy = SPEC.build(&BuildContext::default(), &params).unwrap();
        Core::new(policy, Cluster::new(2), AdmissionControl::UNLIMITED)
    }

    fn of(number: u64, client: u64, session: Option<BackendId>) -> Request {
        let features = session.map(|b| Arc::new(Features { session: Some(b), ..Features::default() }));
        Request { client, features, ..Request::of(number, TargetId(number)) }
    }

    fn goes(core: &mut Core, request: &Request) -> Option<BackendId> {
        core.offer(request, Time::ZERO).backend()
    }

    #[test]
    fn a_session_stays_whatever_the_loads() {
        let mut core = core(0);
        for n in 0..10 {
            assert_eq!(goes(&mut core, &of(n, 7, Some(B))), Some(B));
        }
        assert_eq!(goes(&mut core, &of(10, 7, None)), Some(A), "nobody is remembered");
        // One that nobody has ever had.
        assert_eq!(goes(&mut core, &of(11, 7, Some(BackendId(9)))), Some(A));
        let stats = core.policy().stats();
        assert!(stats.contains(&("sessions_kept", 10.0)) && stats.contains(&("sessions_moved", 1.0)));
    }

    #[test]
    fn it_moves_when_its_back_end_is_gone_full_or_has_failed_it() {
        let mut core = core(0);
        core.set_health(B, Health::Draining, Time::ZERO);
        assert_eq!(goes(&mut core, &of(0, 7, Some(B))), Some(A));
        core.set_health(B, Health::Up, Time::ZERO);
        core.set_most_requests(B, Some(1), Time::ZERO);
        assert_eq!(goes(&mut core, &of(1, 7, Some(B))), Some(B));
        assert_eq!(goes(&mut core, &of(2, 7, Some(B))), Some(A));
        core.set_most_requests(B, None, Time::ZERO);
        let tried = crate::OfferOptions { tried: crate::Tried::new([B]), ..crate::OfferOptions::PLAIN };
        assert_eq!(core.offer_with(&of(3, 7, Some(B)), &tried, Time::ZERO).backend(), Some(A));
        core.set_weight(B, Weight::ZERO, Time::ZERO);
        assert_eq!(goes(&mut core, &of(4, 7, Some(B))), Some(B), "no new sessions, the old ones stay");
        assert_eq!(core.offer_with(&of(5, 7, Some(B)), &tried, Time::ZERO).backend(), Some(A));
        assert_eq!(goes(&mut core, &of(6, 8, None)), Some(A));
    }

    #[test]
    fn clients_are_remembered_and_forgotten() {
        let mut core = core(2);
        let kept = |core: &Core| core.policy().stats().iter().find(|s| s.0 == "sessions_kept").unwrap().1;
        let first = goes(&mut core, &of(0, 1, None));
        for n in 1..6 {
            assert_eq!(goes(&mut core, &of(n, 1, None)), first);
        }
        assert_eq!(kept(&core).to_bits(), 5f64.to_bits());
        // Client 0 is nobody in particular.
        (6..10).for_each(|n| {
            assert_ne!(goes(&mut core, &of(n, 0, None)), first, "the other one has less to do");
        });
        assert_eq!(kept(&core).to_bits(), 5f64.to_bits());
        // Two others come, and there is no place for the first one any more.
        for n in 10..12 {
            goes(&mut core, &of(n, n, None));
        }
        goes(&mut core, &of(12, 1, None));
        assert_eq!(kept(&core).to_bits(), 5f64.to_bits());
    }

    #[test]
    fn who_gets_the_index_of_one_that_has_left_has_none_of_its_clients() {
        let mut core = core(9);
        let Offered::Assigned(one) = core.offer(&of(0, 7, None), Time::ZERO) else {
            panic!("it is assigned")
        };
        core.complete(&one, crate::core::Ending::FAILED, Time::ZERO);
        assert!(core.leave(one.backend, Time::ZERO));
        core.join("new", 5, Weight::ONE, Time::ZERO).unwrap();
        goes(&mut core, &of(1, 7, None));
        assert!(core.policy().stats().contains(&("sessions_kept", 0.0)));
    }

    #[test]
    fn it_is_around_every_policy_and_has_its_capabilities() {
        for spec in crate::policies::REGISTRY.iter().filter(|spec| spec.name != "sticky") {
            let sticky = crate::find(&format!("sticky_{}", spec.name)).unwrap();
            assert_eq!(sticky.capabilities.names(), spec.capabilities.names());
            assert!(std::ptr::eq(sticky, crate::find(sticky.name).unwrap()));
            let policy = sticky.build(&BuildContext::default(), &ParamSet::defaults(sticky.params)).unwrap();
            assert_eq!(policy.save().is_some(), spec.capabilities.names().contains(&"saves_state"));
            let mut core = Core::new(policy, Cluster::new(3), AdmissionControl::UNLIMITED);
            let session = of(0, 5, Some(B));
            assert_eq!(core.offer(&session, Time::ZERO).backend(), Some(B), "{}", spec.name);
        }
    }
}
