use super::signs::Worsened;
use super::*;

fn backend() -> Backend {
    Backend::new(BackendId(0), "b".into(), Ok(([127, 0, 0, 1], 1).into()), "b".into(), 4, 1)
}

#[test]
fn rise_and_fall() {
    let b = backend();
    assert_eq!(b.bad_sign(2, false), None);
    assert_eq!(b.good_sign(2), None);
    assert_eq!(b.bad_sign(2, false), None);
    assert_eq!(b.bad_sign(2, false), Some(Worsened::WentDown));
    assert_eq!((b.bad_sign(2, false), b.turns()), (None, 1));
    assert!(b.went_down_since(0) && b.went_down_since(1));
    assert_eq!(b.good_sign(2), None);
    assert_eq!(b.good_sign(2), Some(Health::Up));
    assert!(b.went_down_since(0) && !b.went_down_since(2));
}

#[test]
fn one_in_doubt_takes_requests_only_where_it_has_to() {
    let b = backend();
    assert_eq!((b.bad_sign(1, true), b.health()), (Some(Worsened::WentDown), Health::Down));
    assert_eq!((b.bad_sign(1, true), b.turns(), b.lapses()), (None, 0, 0));
    assert_eq!((b.stand_in(true), b.stand_in(true), b.health()), (true, false, Health::Up));
    assert_eq!((b.stand_in(false), b.health(), b.lapses()), (true, Health::Down, 1));
    assert!(b.stand_in(true) && !b.went_down_since(0), "what is under way goes on");
    // Nobody listens any more.
    assert_eq!((b.bad_sign(1, false), b.health()), (Some(Worsened::OtherCause), Health::Down));
    assert!(b.went_down_since(0) && !b.stand_in(true));
    assert_eq!((b.bad_sign(1, true), b.turns()), (Some(Worsened::OtherCause), 2));
    assert_eq!((b.good_sign(1), b.turns(), b.is_doubtful()), (Some(Health::Up), 2, false));
}

#[test]
fn the_cause_changes_after_as_many_signs_of_the_other_kind() {
    let b = backend();
    assert_eq!((b.bad_sign(2, true), b.bad_sign(2, true)), (None, Some(Worsened::WentDown)));
    assert_eq!((b.bad_sign(2, false), b.bad_sign(2, true), b.bad_sign(2, false)), (None, None, None));
    assert!(b.is_doubtful());
    assert_eq!((b.bad_sign(2, false), b.is_doubtful()), (Some(Worsened::OtherCause), false));
}

#[test]
fn a_drained_backend_comes_back_drained() {
    let b = backend();
    assert_eq!(b.set_drained(true), Health::Draining);
    assert_eq!(b.bad_sign(1, false), Some(Worsened::WentDown));
    assert_eq!(b.good_sign(1), Some(Health::Draining));
    assert_eq!(b.set_drained(false), Health::Up);
}

#[test]
fn what_is_under_way_at_a_reload_tells_of_the_back_end_after_it() {
    let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n\
                [ejection]\ntrials = 1\nfailures = 2\n";
    let config = plimsoll_config::Config::parse(text, "test.toml").unwrap().ejection;
    let (old, now) = (backend(), Instant::now());
    assert!(!old.attempt_failed(now, now, &config));
    let new = backend().succeeding(&old);
    assert!(old.is_same(&new));
    assert!(old.attempt_failed(now, now, &config), "failures before and after it are of one row");
    new.eject(now, &config);
    let at = now + config.time;
    let number = old.begin_trial(at).unwrap();
    let newer = backend().succeeding(&new);
    assert_eq!(newer.begin_trial(at), None, "one at a time");
    assert_eq!(old.end_trial(number, TrialEnd::Answered, at, &config), Some(EjectionChange::Readmitted));
    assert_eq!((newer.health(), newer.is_ejected()), (Health::Up, false));
    old.bad_sign(1, false);
    assert!(newer.went_down_since(0));
    // At another address it is another one.
    let moved = Backend { address: Ok(([127, 0, 0, 1], 2).into()), ..backend() }.succeeding(&newer);
    assert!(!moved.is_same(&newer) && moved.health() == Health::Up);
}

#[test]
fn who_undrains_a_back_end_wants_it_back() {
    let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[backend]]\naddress = \"127.0.0.1:1\"\n";
    let config = plimsoll_config::Config::parse(text, "test.toml").unwrap().ejection;
    let b = backend();
    b.eject(Instant::now(), &config);
    assert_eq!(b.health(), Health::Draining);
    assert_eq!(b.set_drained(true), Health::Draining);
    assert_eq!(b.set_drained(false), Health::Up);
}
