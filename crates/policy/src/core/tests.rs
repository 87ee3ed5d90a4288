//! The core by hand: a policy that does what it is told, and every input.

mod growth;
mod inquiries;
mod limits;
mod membership;
mod phases;

use std::sync::Arc;

use super::*;
use crate::capability::{Polls, SharesState, ShowsState, TakesReports};
use crate::cluster::{Change, Health};
use crate::decision::{Candidates, LoadReport, assign_or_reject};
use crate::policies::round_robin::RoundRobin;
use crate::policy::Capabilities;
use crate::request::Features;
use crate::thresholds::Thresholds;
use crate::weight::Weight;

const B0: BackendId = BackendId(0);
const B1: BackendId = BackendId(1);
const B2: BackendId = BackendId(2);
const ANSWERED: Ending = Ending::answered(None);

fn at(ns: u64) -> Time {
    Time::from_nanos(ns)
}

fn request(number: u64) -> Request {
    Request::of(number, TargetId(number))
}

fn fixed(limit: u64, queue: usize) -> AdmissionControl {
    AdmissionControl { limit: AdmissionLimit::Fixed(limit), queue }
}

/// Uses every input. Polls for requests of class 1, wants requests of class 2 to wait, sends those with a prefix to the
/// back-end of its first block, and the rest to the least loaded one. Fails on the end of a request that it did not assign.
#[derive(Default)]
struct Everything {
    outstanding: u32,
    reports: Vec<u32>,
    shared: Vec<(u64, u64)>,
    changes: Vec<Change>,
    ticks: u32,
}

static CAPABILITIES: Capabilities = Capabilities::NONE
    .polls::<Everything>()
    .takes_reports::<Everything>()
    .shares_state::<Everything>()
    .shows_state::<Everything>();

impl Policy for Everything {
    fn choose(&mut self, request: &Request, view: &ClusterView, _: Time) -> Decision {
        if let Some(features) = &request.features {
            let b = BackendId::new(features.prefix_blocks[0] as usize);
            return assign_or_reject(view.is_eligible(b).then_some(b).or_else(|| view.least_loaded()));
        }
        match request.class {
            1 => Decision::Poll(Candidates::new(view.eligible_ids())),
            2 => Decision::Wait,
            _ => assign_or_reject(view.least_loaded()),
        }
    }

    fn on_assign(&mut self, _: &Request, _: BackendId, _: &ClusterView, _: Time) {
        self.outstanding += 1;
    }

    fn on_complete(&mut self, _: &Completion, _: &ClusterView, _: Time) {
        self.outstanding = self.outstanding.checked_sub(1).unwrap();
    }

    fn on_membership(&mut self, _: BackendId, change: Change, _: &ClusterView, _: Time) {
        self.changes.push(change);
    }

    fn on_tick(&mut self, _: &ClusterView, _: Time) {
        self.ticks += 1;
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }
}

impl Polls for Everything {}

impl TakesReports for Everything {
    fn on_report(&mut self, report: &LoadReport, _: &ClusterView, _: Time) {
        self.reports.push(report.load);
    }
}

impl SharesState for Everything {
    fn seen(&self) -> Vec<(u64, u64)> {
        vec![(1, u64::from(self.outstanding))]
    }

    fn on_shared(&mut self, sum: &[(u64, u64)], _: Time) {
        self.shared = sum.to_vec();
    }
}

impl ShowsState for Everything {
    fn stats(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("outstanding", f64::from(self.outstanding)),
            ("reports", self.reports.iter().map(|&load| f64::from(load)).sum()),
            ("shared", self.shared.iter().map(|&(_, amount)| amount as f64).sum()),
            ("changes", self.changes.len() as f64),
            ("ticks", f64::from(self.ticks)),
        ]
    }
}

/// What happened, in short words.
#[derive(Default)]
struct Log(Vec<String>);

impl Witness for Log {
    fn offered(&mut self, request: &Request, _: &OfferOptions, decision: Decision, _: Time) {
        self.0.push(format!("offered {} {decision:?}", request.number));
    }

    fn answered(&mut self, of: &WaitingRequest, answers: &[PollAnswer], decision: Decision, _: Time) {
        self.0.push(format!("answered {} {} {decision:?}", of.request.number, answers.len()));
    }

    fn started(&mut self, waited: &WaitingRequest, decision: Decision, _: Time) {
        self.0.push(format!("started {} {decision:?}", waited.request.number));
    }

    fn gave_up(&mut self, number: u64, _: Time) {
        self.0.push(format!("gave up {number}"));
    }

    fn moved(&mut self, assigned: &Assigned, from: Phase, to: Option<Phase>, own: bool, _: Time) {
        self.0.push(format!("moved {} {from:?} {to:?} {own}", assigned.number));
    }

    fn taken(&mut self, assigned: &Assigned, request: &Request, _: Time) {
        self.0.push(format!("taken {} {:?}", assigned.number, request.target));
    }

    fn completed(&mut self, assigned: &Assigned, _: &Completion, _: Time) {
        self.0.push(format!("completed {}", assigned.number));
    }

    fn completed_foreign(&mut self, assigned: &Assigned, _: &Completion, _: Time) {
        self.0.push(format!("completed foreign {}", assigned.number));
    }
}

type Watched = Core<Log>;

fn core(backends: usize, admission: AdmissionControl) -> Watched {
    Core::with_witness(Box::<Everything>::default(), Cluster::new(backends), admission, Log::default())
}

fn assigned(offered: Offered) -> Assigned {
    match offered {
        Offered::Assigned(assigned) => assigned,
        other => panic!("{other:?}"),
    }
}

fn stat(core: &Watched, name: &str) -> f64 {
    core.policy().stats().into_iter().find(|&(n, _)| n == name).unwrap().1
}

fn log(core: &mut Watched) -> Vec<String> {
    std::mem::take(&mut core.witness_mut().0)
}

#[test]
fn the_limit_makes_requests_wait_until_one_completes() {
    let mut core = core(2, fixed(2, 1));
    let first = assigned(core.offer(&request(0), at(1)));
    let second = assigned(core.offer(&request(1), at(2)));
    assert_eq!((first.backend, second.backend), (B0, B1));
    assert_eq!(core.offer(&request(2), at(3)), Offered::Waits);
    assert_eq!(core.offer(&request(3), at(3)), Offered::Rejected(Rejection::QueueFull));
    assert_eq!(core.start_next(at(4)), None, "there is no room");
    core.complete(&second, ANSWERED, at(5));
    let started = core.start_next(at(5)).unwrap();
    assert_eq!((started.number, started.offered.backend()), (2, Some(B1)));
    assert_eq!(core.start_next(at(5)), None);
    let expected = [
        "offered 0 Assign(BackendId(0))",
        "offered 1 Assign(BackendId(1))",
        "offered 2 Wait",
        "offered 3 Reject",
        "completed 1",
        "started 2 Assign(BackendId(1))",
    ];
    assert_eq!(log(&mut core), expected);
}

#[test]
fn a_newcomer_does_not_overtake_who_waits() {
    let mut core = core(1, fixed(1, 9));
    let first = assigned(core.offer(&request(0), at(1)));
    assert_eq!(core.offer(&request(1), at(1)), Offered::Waits);
    core.complete(&first, ANSWERED, at(2));
    assert_eq!(core.offer(&request(2), at(2)), Offered::Waits, "request 1 has not been started");
    assert_eq!(core.start_next(at(2)).unwrap().number, 1);
    assert_eq!(core.waiting_requests().map(|w| w.request.number).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_request_that_waits_is_rejected_at_its_deadline() {
    let mut core = core(1, fixed(1, 9));
    let _first = assigned(core.offer(&request(0), at(1)));
    let options = OfferOptions { deadline: Some(at(10)), ..OfferOptions::PLAIN };
    assert_eq!(core.offer_with(&request(1), &options, at(1)), Offered::Waits);
    assert_eq!(core.offer(&request(2), at(1)), Offered::Waits);
    assert_eq!((core.next_deadline(), core.start_next(at(9))), (Some(at(10)), None));
    let expired = Started { number: 1, offered: Offered::Rejected(Rejection::Expired) };
    assert_eq!(core.start_next(at(10)), Some(expired));
    assert_eq!((core.start_next(at(10)), core.waiting(), core.next_deadline()), (None, 1, None));
}

#[test]
fn who_gives_up_frees_its_place() {
    let mut core = core(1, fixed(1, 9));
    let first = assigned(core.offer(&request(0), at(1)));
    core.offer(&request(1), at(1));
    core.offer(&request(2), at(1));
    assert!(core.give_up(1, at(2)) && !core.give_up(1, at(2)) && !core.give_up(0, at(2)));
    core.complete(&first, ANSWERED, at(3));
    assert_eq!(core.start_next(at(3)).unwrap().number, 2);
}

#[test]
fn a_policy_may_want_a_request_to_wait() {
    let mut core = core(2, fixed(5, 9));
    let waits = Request { class: 2, ..request(0) };
    assert_eq!(core.offer(&waits, at(1)), Offered::Waits);
    assert_eq!(core.offer(&request(1), at(1)), Offered::Waits);
    // It is asked again, and wants the same; nobody overtakes.
    assert_eq!((core.start_next(at(2)), core.waiting()), (None, 2));
    assert!(core.give_up(0, at(3)));
    assert_eq!(core.start_next(at(3)).unwrap().number, 1);
}

#[test]
fn polls_take_their_time_and_room() {
    let mut core = core(3, fixed(2, 9));
    let polled = Request { class: 1, ..request(0) };
    let Offered::Poll(candidates) = core.offer(&polled, at(1)) else { panic!("does not poll") };
    assert_eq!(candidates.as_slice(), [B0, B1, B2]);
    assert_eq!((core.view().total_load(), core.reserved()), (0, 1));
    let _other = assigned(core.offer(&request(1), at(2)));
    assert_eq!(core.offer(&request(2), at(3)), Offered::Waits, "the poll holds a place");
    let answers = [PollAnswer::of(B1, 7), PollAnswer::of(B2, 3)];
    let assigned = assigned(core.answer(0, &answers, at(9)).unwrap());
    assert_eq!((assigned.backend, assigned.at, core.reserved()), (B2, at(9), 0));
    assert_eq!(core.answer(0, &answers, at(9)), None, "only once");
    core.complete(&assigned, ANSWERED, at(12));
    assert_eq!(stat(&core, "outstanding"), 1.0);
}

#[test]
fn without_answers_the_own_count_decides_and_who_polls_may_give_up() {
    let mut core = core(2, fixed(9, 9));
    let _load = assigned(core.offer(&request(0), at(1)));
    core.offer(&Request { class: 1, ..request(1) }, at(1));
    core.offer(&Request { class: 1, ..request(2) }, at(1));
    assert!(core.give_up(1, at(2)));
    assert_eq!((core.answer(1, &[], at(3)), core.reserved()), (None, 1));
    assert_eq!(core.answer(2, &[], at(3)).unwrap().backend(), Some(B1));
}

#[test]
fn no_back_end_twice_while_another_is_left() {
    let mut core = core(3, fixed(99, 9));
    let tried = |ids: &[u16]| OfferOptions {
        tried: Tried::new(ids.iter().map(|&b| BackendId(b))),
        ..OfferOptions::PLAIN
    };
    let mut offer = |number, ids: &[u16]| core.offer_with(&request(number), &tried(ids), at(1)).backend();
    assert_eq!(offer(0, &[0]), Some(B1));
    assert_eq!(offer(1, &[0, 1]), Some(B2));
    assert_eq!(offer(2, &[0, 1, 2]), Some(B0), "none is left: any will do");
    core.set_health(B2, Health::Down, at(2));
    assert_eq!(core.offer_with(&request(3), &tried(&[0]), at(3)).backend(), Some(B1));
    assert!(core.view().is_eligible(B0), "kept out of that choice alone");
    // A poll too.
    let polled = Request { class: 1, ..request(4) };
    let Offered::Poll(asked) = core.offer_with(&polled, &tried(&[0]), at(4)) else { panic!("does not poll") };
    assert_eq!(asked.as_slice(), [B1]);
    let lies = [PollAnswer::of(B0, 0)];
    assert_eq!(core.answer(4, &lies, at(5)).unwrap().backend(), Some(B1));
}

#[test]
fn features_reach_the_policy() {
    let mut core = core(3, fixed(9, 9));
    let features = Some(Arc::new(Features { prefix_blocks: vec![2, 5], session: None }));
    assert_eq!(core.offer(&Request { features, ..request(0) }, at(1)).backend(), Some(B2));
}

#[test]
fn reports_sums_and_ticks_reach_policies_that_take_them() {
    let mut core = core(1, fixed(9, 9));
    core.report(&LoadReport::of(B0, 4), at(1));
    core.share(&[(1, 10), (2, 5)], at(2));
    core.tick(at(3));
    assert_eq!((stat(&core, "reports"), stat(&core, "shared"), stat(&core, "ticks")), (4.0, 15.0, 1.0));
    assert_eq!(core.policy().seen(), Some(vec![(1, 0)]));
    // One that takes nothing is none the worse.
    let mut deaf = Core::new(Box::<RoundRobin>::default(), Cluster::new(1), AdmissionControl::UNLIMITED);
    deaf.report(&LoadReport::of(B0, 4), at(1));
    deaf.share(&[(1, 10)], at(2));
    assert_eq!((deaf.policy().seen(), deaf.policy().stats().len()), (None, 0));
}

#[test]
fn lards_limit_follows_the_number_of_live_backends() {
    let lard = AdmissionControl::queueing(AdmissionLimit::Lard(Thresholds { t_low: 25, t_high: 65 }));
    let mut core = core(8, lard);
    assert_eq!(core.admission_limit(), 7 * 65 + 25 - 1);
    core.set_health(BackendId(3), Health::Down, at(1));
    assert_eq!(core.admission_limit(), 6 * 65 + 25 - 1);
    core.join("ninth", 99, Weight::ONE, at(2)).unwrap();
    assert_eq!(core.admission_limit(), 7 * 65 + 25 - 1);
}

#[test]
fn a_new_policy_inherits_the_loads_but_not_the_requests() {
    let mut core = core(2, fixed(2, 9));
    let first = assigned(core.offer(&request(0), at(1)));
    core.offer(&Request { class: 1, ..request(1) }, at(1));
    assert_eq!(core.offer(&request(2), at(1)), Offered::Waits);
    core.replace_policy(Box::<Everything>::default(), fixed(3, 9));
    assert_eq!((core.admission_limit(), core.view().total_load(), core.reserved()), (3, 1, 0));
    assert_eq!(core.answer(1, &[], at(2)), None, "its poll was the earlier policy's");
    // Both wait in the order in which they came.
    let Started { number: 1, offered: Offered::Poll(_) } = core.start_next(at(2)).unwrap() else {
        panic!("request 1 comes first")
    };
    let third = assigned(core.start_next(at(2)).unwrap().offered);
    assert_eq!((third.number, third.backend), (2, B1), "back-end 0 still has the first request");
    log(&mut core);
    core.complete(&first, ANSWERED, at(3));
    core.complete(&third, ANSWERED, at(3));
    assert_eq!(log(&mut core), ["completed foreign 0", "completed 2"]);
    assert_eq!((core.view().total_load(), stat(&core, "outstanding")), (0, 0.0));
}

#[test]
fn a_request_that_stays_is_load_but_no_news_to_the_policy() {
    let mut core = core(2, fixed(9, 9));
    let stays = core.stay(B1, 0, TargetId(5), at(1));
    assert_eq!((core.view().load(B1), stat(&core, "outstanding")), (1, 0.0));
    core.complete(&stays, ANSWERED, at(2));
    assert_eq!((core.view().total_load(), stat(&core, "outstanding")), (0, 0.0));
}

#[test]
fn a_core_starts_with_the_loads_of_its_cluster() {
    let mut cluster = Cluster::new(2);
    cluster.assign(B0);
    let mut core = Core::new(Box::<Everything>::default(), cluster, fixed(2, 9));
    assert_eq!(core.offer(&request(0), at(1)).backend(), Some(B1));
    assert_eq!(core.offer(&request(1), at(1)), Offered::Waits);
}

/// Carries out another decision than the policy's.
struct Follow(Decision, Option<Decision>);

impl Witness for Follow {
    const OVERRULES: bool = true;

    fn overrule(&mut self, own: Decision) -> Decision {
        self.1 = Some(own);
        self.0
    }
}

#[test]
fn a_witness_can_keep_the_core_on_a_logs_path() {
    let follow = Follow(Decision::Assign(B1), None);
    let mut core = Core::with_witness(Box::<Everything>::default(), Cluster::new(2), fixed(9, 9), follow);
    assert_eq!(core.offer(&request(0), at(1)).backend(), Some(B1));
    assert_eq!(core.witness().1, Some(Decision::Assign(B0)), "what the policy wanted");
    core.witness_mut().0 = Decision::Wait;
    assert_eq!(core.offer(&request(1), at(2)), Offered::Waits);
    assert_eq!((core.view().load(B0), core.view().load(B1), core.waiting()), (0, 1, 1));
}
