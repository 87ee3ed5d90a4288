//! Back-ends that fail requests although their health checks are good.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use plimsoll_testkit::eventually;

use super::common::FrontEnd;
use super::common::origin::{Origin, echo};

/// An origin that closes the connection of every `nth` request while it is told to, and what it has got.
pub(crate) fn failing(nth: usize) -> (Origin, Arc<AtomicBool>, Arc<AtomicUsize>) {
    let (fails, got): (_, Arc<AtomicUsize>) = (Arc::new(AtomicBool::new(true)), Arc::default());
    let (told, count) = (Arc::clone(&fails), Arc::clone(&got));
    let origin = Origin::scripted(move |conn| {
        while let Some(request) = conn.request() {
            let n = count.fetch_add(1, Ordering::SeqCst) + 1;
            if told.load(Ordering::SeqCst) && n.is_multiple_of(nth) {
                return;
            }
            conn.write(&echo(&request));
        }
    });
    (origin, fails, got)
}

#[test]
fn one_that_fails_half_is_left_out_until_it_answers_its_trials() {
    for policy in ["round_robin", "least_connections", "lard_r", "uri_hash"] {
        let (bad, fails, got) = failing(2);
        let (one, two) = (Origin::echo(), Origin::echo());
        let tables = format!("[policy]\nname = \"{policy}\"\n[ejection]\ntime = \"100ms\"\n");
        let front_end = FrontEnd::new(&[bad.address, one.address, two.address], &tables);
        let mut client = front_end.client();
        for n in 0..600 {
            assert_eq!(client.get(&format!("/{n}")).status(), 200, "{policy}: {n}");
        }
        // A third of the 600 would be 200.
        let asked = got.load(Ordering::SeqCst);
        assert!((2..100).contains(&asked), "{policy}: {asked}");
        fails.store(false, Ordering::SeqCst);
        let mut n = 0;
        eventually("the back-end's return", || {
            n += 1;
            assert_eq!(client.get(&format!("/{n}")).status(), 200, "{policy}");
            got.load(Ordering::SeqCst) > asked + 50
        });
    }
}

#[test]
fn one_always_stays() {
    let (first, first_fails, first_got) = failing(1);
    let (second, second_fails, second_got) = failing(1);
    let front_end = FrontEnd::new(&[first.address, second.address], "[limits]\nretries = 0\n");
    for n in 0..100 {
        assert_eq!(front_end.client().asked(&format!("/{n}")).status(), 502);
    }
    let got = [&first_got, &second_got].map(|got| got.load(Ordering::SeqCst));
    assert_eq!(got[0] + got[1], 100, "each one was asked, and none waited: {got:?}");
    for fails in [first_fails, second_fails] {
        fails.store(false, Ordering::SeqCst);
    }
    assert_eq!(front_end.client().asked("/").status(), 200);
}
