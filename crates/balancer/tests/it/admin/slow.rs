//! Back-ends that answer far later than the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_testkit::{Why, eventually, pace};

use super::rig::Rig;
use crate::common::origin::{Origin, echo};

#[test]
fn one_that_is_far_slower_than_the_others_is_left_out_until_it_is_not() {
    let slow: Arc<AtomicBool> = Arc::new(AtomicBool::new(true));
    let is_slow = Arc::clone(&slow);
    let bad = Origin::answering(move |request| {
        if is_slow.load(Ordering::SeqCst) {
            pace(Duration::from_millis(60), Why::SlowPeer);
        }
        echo(request)
    });
    let (one, two) = (Origin::echo(), Origin::echo());
    let tables = "[policy]\nname = \"round_robin\"\n[ejection]\ntime = \"100ms\"\nslow_ratio = 2\n\
                  slow_difference = \"20ms\"\nslow_requests = 20\nwindow = \"60s\"\n";
    let rig = Rig::new(&[&bad, &one, &two], tables);
    // A busy machine may make others slow, too; then their share is that of the slow one, and it is found later.
    eventually("the ejection", || {
        rig.get_times(10, "/");
        rig.backend("b0")["slow"] == true
    });
    assert_eq!(rig.backend("b0")["ejected"], true);
    assert!(rig.backend("b0")["ejections"].as_u64() >= Some(1));
    slow.store(false, Ordering::SeqCst);
    eventually("its return", || {
        rig.get_times(10, "/");
        rig.backend("b0")["ejected"] == false
    });
}

#[test]
fn by_default_a_slow_one_stays() {
    let slow = Origin::answering(|request| {
        pace(Duration::from_millis(5), Why::SlowPeer);
        echo(request)
    });
    let rig = Rig::new(&[&slow, &Origin::echo()], "[policy]\nname = \"round_robin\"\n");
    rig.get_times(300, "/");
    assert_eq!(rig.backend("b0")["ejections"], 0);
}
