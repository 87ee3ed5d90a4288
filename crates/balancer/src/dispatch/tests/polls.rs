//! Requests whose back-ends are asked for their loads.

use std::path::Path;
use std::time::Duration;

use plimsoll_decisions::{Proof, replay};
use plimsoll_policy::{Candidates, LoadReport, Tried};

use super::*;

/// Notes what is asked, and leaves the answers to the test.
#[derive(Default)]
struct Asking {
    polls: Mutex<Vec<(u64, Candidates)>>,
}

impl AsksBackends for Asking {
    fn poll(&self, number: u64, candidates: Candidates, _: bool) {
        self.polls.lock().unwrap().push((number, candidates));
    }

    fn probe(&self, _: Candidates) {}

    fn timeout(&self) -> Duration {
        Duration::from_millis(10)
    }
}

struct Polled {
    d: Arc<Dispatch>,
    asking: Arc<Asking>,
    asks: Arc<dyn AsksBackends>,
    _key: tempfile::TempDir,
}

const A: BackendId = BackendId(0);
const B: BackendId = BackendId(1);
const REQUEST: OfferedRequest =
    OfferedRequest { target: T, kind: STATIC, client: 0, class: 0, session: None };

impl Polled {
    fn new(policy: &str, more: &str) -> Self {
        Self::with_age(policy, more, "0s")
    }

    fn with_age(policy: &str, more: &str, max_age: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        std::fs::write(&key, "07".repeat(32)).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let more = format!(
            "{more}[load_information]\nfrom = \"poll\"\nmax_age = \"{max_age}\"\nkey_file = {key:?}\n"
        );
        let asking = Arc::<Asking>::default();
        let asks = Arc::clone(&asking) as Arc<dyn AsksBackends>;
        Self { d: dispatch(policy, &more), asking, asks, _key: directory }
    }

    fn offer(&self) -> (Ticket, u64) {
        let Offer::Polls(ticket) = self.d.offer_again(REQUEST, Tried::NONE, Some(&self.asks)) else {
            panic!("nobody is asked")
        };
        let (number, candidates) = self.asking.polls.lock().unwrap().pop().unwrap();
        assert_eq!(candidates.as_slice().len(), 2);
        (ticket, number)
    }

    fn answer(&self, number: u64, loads: &[(BackendId, u32)]) {
        loads.iter().for_each(|&(b, load)| self.d.report(&LoadReport::of(b, load)));
        self.d.answer(number, Candidates::new(loads.iter().map(|&(b, _)| b)));
    }

    /// The back-end for a request whose back-ends answer so; the request goes on.
    fn chosen(&self, loads: &[(BackendId, u32)]) -> Assignment {
        let (mut ticket, number) = self.offer();
        assert!(poll(&mut ticket).is_pending());
        self.answer(number, loads);
        let Poll::Ready(Ok(assignment)) = poll(&mut ticket) else { panic!("not assigned") };
        assignment
    }
}

#[test]
fn the_answers_decide_and_the_own_count_is_the_least() {
    let polled = Polled::new("least_connections", "");
    let first = polled.chosen(&[(A, 5), (B, 2)]);
    assert_eq!(first.backend(), B);
    let second = polled.chosen(&[(A, 0), (B, 4)]);
    assert_eq!(second.backend(), A);
    // One that tells less than it has from here gains nothing.
    let held: Vec<_> = (0..3).map(|_| polled.chosen(&[(A, 0), (B, 9)])).collect();
    assert!(held.iter().all(|held| held.backend() == A));
    assert_eq!(polled.chosen(&[(A, 0), (B, 3)]).backend(), B, "A has four of ours");
    drop((first, second, held));
    assert_eq!(polled.d.inspect(|i| i.view.total_own_load()), 0);
}

#[test]
fn answers_for_a_client_that_has_gone_have_no_effect() {
    let polled = Polled::new("least_connections", "");
    let (ticket, number) = polled.offer();
    drop(ticket);
    polled.d.answer(number, Candidates::new([A]));
    polled.d.answer(999, Candidates::NONE);
    assert_eq!(load(&polled.d), 0);
    assert!(polled.d.lock().polled.is_empty());
}

#[test]
fn without_any_answer_the_policy_decides_by_what_it_knows() {
    let polled = Polled::new("least_connections", "");
    let held = polled.chosen(&[(A, 0), (B, 1)]);
    assert_eq!(held.backend(), A);
    polled.d.report(&LoadReport::of(B, 7));
    assert_eq!(polled.chosen(&[]).backend(), A);
}

#[test]
fn who_waits_for_room_is_asked_for_then() {
    let polled = Polled::new("least_connections", "[admission]\nlimit = 1\nqueue = 5\n");
    let running = polled.chosen(&[(A, 0), (B, 1)]);
    let offered = polled.d.offer_again(REQUEST, Tried::NONE, Some(&polled.asks));
    let mut ticket = waits(offered);
    running.complete(None, None);
    let (number, _) = polled.asking.polls.lock().unwrap().pop().unwrap();
    assert!(poll(&mut ticket).is_pending());
    polled.answer(number, &[(B, 0)]);
    assert!(matches!(poll(&mut ticket), Poll::Ready(Ok(_))));
    assert!(ticket.patience(Duration::ZERO) >= Duration::from_millis(10), "an answer may be waited for");
}

/// What is sent to a back-end between its answer and the end of the poll is not forgotten.
#[test]
fn an_answer_counts_from_when_it_came() {
    let polled = Polled::new("random_polling", "");
    let (mut first, one) = polled.offer();
    let (mut second, two) = polled.offer();
    polled.d.report(&LoadReport::of(A, 3));
    polled.d.report(&LoadReport::of(B, 4));
    let both = Candidates::new([A, B]);
    polled.d.answer(one, both);
    polled.d.answer(two, both);
    let loads = |d: &Arc<Dispatch>| d.inspect(|i| [i.view.load(A), i.view.load(B)]);
    assert_eq!(loads(&polled.d).iter().sum::<u32>(), 9, "one more each");
    for ticket in [&mut first, &mut second] {
        assert!(matches!(poll(ticket), Poll::Ready(Ok(_))));
    }
    assert_eq!(loads(&polled.d), [3, 4], "both have ended");
}

/// What is not known is asked for; the rest is answered by the view.
#[test]
fn loads_that_were_told_a_moment_ago_are_not_asked_for_again() {
    let directory = tempfile::tempdir().unwrap();
    let log = format!("[decision_log]\ndirectory = {:?}\n", directory.path().to_str().unwrap());
    let polled = Polled::with_age("random_polling", &log, "1s");
    let mut held = vec![polled.chosen(&[(A, 9), (B, 3)])];
    let again = || assigned(polled.d.offer_again(REQUEST, Tried::NONE, Some(&polled.asks)));
    // B has one more with each.
    held.extend((0..7).map(|_| again()));
    let at_b = held.iter().filter(|assignment| assignment.backend() == B).count();
    assert_eq!(at_b, 7, "nine each, then one each");
    assert_eq!(polled.d.inspect(|i| (i.counts.loads_known, i.view.load(A) + i.view.load(B))), (14, 20));
    drop(held);
    polled.d.close_log();
    assert!(proven(directory.path()).is_proved());
}

/// It is another machine, of which nothing is known.
#[test]
fn one_that_comes_in_the_place_of_another_is_asked() {
    let polled = Polled::with_age("random_polling", "", "1s");
    drop(polled.chosen(&[(A, 5), (B, 3)]));
    polled.d.set_health(B, Health::Draining);
    assert_eq!(polled.d.release([B].into_iter(), 1), [B]);
    assert_eq!(polled.d.join(&"new".into(), Weight::ONE, Health::Up).unwrap(), B);
    let Offer::Polls(_ticket) = polled.d.offer_again(REQUEST, Tried::NONE, Some(&polled.asks)) else {
        panic!("nobody is asked")
    };
    let (_, candidates) = polled.asking.polls.lock().unwrap().pop().unwrap();
    assert_eq!(candidates.as_slice(), [B]);
}

#[test]
fn a_silent_back_end_is_loaded_like_the_others() {
    let d = dispatch("least_connections", "");
    d.report(&LoadReport::of(A, 0));
    d.report(&LoadReport::of(B, 8));
    assert!(d.report_mean(A));
    assert_eq!(d.inspect(|i| (i.view.load(A), i.view.load(B))), (8, 8));
    assert!(!d.report_mean(A), "it is already");
    assert!(!d.report_mean(BackendId(9)));
}

/// It neither gets everything nor nothing, also from a policy that chooses among answers alone.
#[test]
fn a_silent_back_end_answers_with_the_mean_of_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let directory_text = directory.path().to_str().unwrap();
    let log = format!("[admission]\nlimit = 1000\n[decision_log]\ndirectory = {directory_text:?}\n");
    let polled = Polled::new("random_polling", &log);
    drop(polled.chosen(&[(A, 0), (B, 2)]));
    assert_eq!(polled.chosen(&[(B, 40)]).backend(), B, "A is late for once");
    polled.d.report_mean(A);
    let mut held = Vec::new();
    for _ in 0..200 {
        // B has what it has from us.
        let at_b = held.iter().filter(|held: &&Assignment| held.backend() == B).count();
        held.push(polled.chosen(&[(B, u32::try_from(at_b).unwrap())]));
    }
    let at_a = held.iter().filter(|held| held.backend() == A).count();
    assert!((90..=110).contains(&at_a), "{at_a} of 200");
    // It answers again.
    assert_eq!(polled.chosen(&[(A, 500), (B, 499)]).backend(), B);
    assert_eq!(polled.chosen(&[(B, 499)]).backend(), B, "what it does not answer once, it is not asked for");
    drop(held);
    polled.d.close_log();
    assert!(proven(directory.path()).is_proved());
}

#[test]
fn a_request_that_is_repeated_waits_for_answers_once() {
    let polled = Polled::new("random_polling", "");
    drop(polled.chosen(&[(A, 3), (B, 1)]));
    let again = polled.d.offer_again(REQUEST, Tried::new([B]), Some(&polled.asks));
    assert_eq!(assigned(again).backend(), A);
    assert!(polled.asking.polls.lock().unwrap().is_empty());
}

fn proven(log: &Path) -> Proof {
    replay(&mut LogReader::open(log).unwrap(), &mut |_| {}).unwrap()
}

#[test]
fn a_replay_decides_the_same_from_the_answers() {
    let directory = tempfile::tempdir().unwrap();
    let log = format!(
        "[admission]\nlimit = 1000\n[decision_log]\ndirectory = {:?}\n",
        directory.path().to_str().unwrap()
    );
    // Of one that does not poll by itself, and one that takes reports into account.
    let polled = Polled::new("least_connections", &log);
    let mut held = Vec::new();
    for round in 0..200_u32 {
        let loads = [(A, round * 7 % 13), (B, round * 5 % 11)];
        held.push(polled.chosen(&loads[..(round % 3) as usize]));
        if round % 5 == 0 {
            polled.d.report(&LoadReport::of(A, round % 17));
            polled.d.report_mean(B);
        }
        if round % 4 == 3 {
            held.remove(0);
        }
    }
    drop(held);
    polled.d.close_log();
    let proof = proven(directory.path());
    assert!(proof.is_proved(), "{:?}", proof.first_difference);
    assert!(proof.decisions().0 >= 400, "{:?}", proof.decisions());
}
