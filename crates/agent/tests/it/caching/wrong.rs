//! Answers that are wrong, late or missing, and requests that wait for one another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_agent::daemon::CacheCounts;
use plimsoll_testkit::{Why, eventually, pace};

use super::*;

/// Has the other node answer so, until a few documents were asked for. Each comes from the disk here, whole and right.
fn disk_instead(
    timeout: Duration,
    answer: impl Fn(&mut TcpStream, &mut Keys, u64, u64) + Send + 'static,
) -> CacheCounts {
    let impostor = Impostor::start(answer);
    let world = impostor.victim(|config, _| config.fetch_timeout = timeout);
    for at in 0..12 {
        assert_eq!(world.get(0, &format!("/at{at}")), "miss");
    }
    let counts = world.links(0).counts();
    assert!(counts.asked > 0 && counts.fetched == 0, "{counts:?}");
    drop(world);
    impostor.thread.join().unwrap();
    counts
}

fn bytes(size_bytes: u64) -> Vec<u8> {
    vec![b'x'; usize::try_from(size_bytes).unwrap()]
}

#[test]
fn documents_of_another_length_are_thrown_away() {
    for difference in [-1_i64, 1] {
        let counts = disk_instead(PATIENCE, move |stream, keys, ask, size_bytes| {
            let bytes = bytes(size_bytes.checked_add_signed(difference).unwrap());
            say(stream, keys, &FromHolder::Document { ask, digest: digest(&bytes), bytes: &bytes });
        });
        assert_eq!(counts.false_documents, counts.asked, "{difference}");
    }
}

#[test]
fn documents_that_are_not_what_their_digest_says_are_thrown_away() {
    let counts = disk_instead(PATIENCE, |stream, keys, ask, size_bytes| {
        let bytes = bytes(size_bytes);
        say(stream, keys, &FromHolder::Document { ask, digest: digest(b"another"), bytes: &bytes });
    });
    assert_eq!(counts.false_documents, counts.asked);
}

#[test]
fn answers_that_nobody_has_asked_for_are_left_out() {
    let counts = disk_instead(Duration::from_millis(50), |stream, keys, ask, size_bytes| {
        let bytes = bytes(size_bytes);
        say(stream, keys, &FromHolder::Document { ask: ask + 1000, digest: digest(&bytes), bytes: &bytes });
    });
    assert_eq!(counts.timed_out, counts.asked);
}

#[test]
fn answers_that_come_too_late_are_left_out() {
    let counts = disk_instead(Duration::from_millis(50), |stream, keys, ask, size_bytes| {
        pace(Duration::from_millis(200), Why::SlowPeer);
        let bytes = bytes(size_bytes);
        say(stream, keys, &FromHolder::Document { ask, digest: digest(&bytes), bytes: &bytes });
    });
    assert_eq!(counts.timed_out, counts.asked);
}

#[test]
fn a_link_by_which_garbage_comes_is_closed() {
    let counts = disk_instead(PATIENCE, |stream, _, _, _| {
        let _ = stream.write_all(&[0xa5; 4096]);
    });
    // There is no other link.
    assert_eq!((counts.asked, counts.lost, counts.broken_links), (1, 1, 1), "{counts:?}");
}

#[test]
fn a_node_that_is_silent_costs_a_bounded_time() {
    let impostor = Impostor::start(|_, _, _, _| {});
    let world = impostor.victim(|config, _| config.fetch_timeout = Duration::from_millis(50));
    let caches: Vec<_> = (0..20).map(|at| world.get(0, &format!("/at{at}"))).collect();
    assert!(caches.iter().all(|cache| cache == "miss"), "{caches:?}");
    let counts = world.links(0).counts();
    assert!(counts.asked > 0 && counts.timed_out == counts.asked, "{counts:?}");
    drop(world);
    impostor.thread.join().unwrap();
}

#[test]
fn a_node_that_dies_within_a_document() {
    let impostor = Impostor::start(|stream, _, _, _| {
        // The start of a frame, and no more.
        let _ = stream.write_all(&[200, 0, 0, 0, 7]);
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let world = impostor.victim(|_, _| {});
    for at in 0..20 {
        assert_eq!(world.get(0, &format!("/at{at}")), "miss");
    }
    let counts = world.links(0).counts();
    assert!(counts.lost == 1 && counts.asked == 1, "{counts:?}");
    drop(world);
    impostor.thread.join().unwrap();
}

/// Requests for one document while it is on its way, and again behind it. Whether it stays here.
fn is_asked_for_once(replicate: bool) {
    let release = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicUsize::new(0));
    let (released, seen) = (Arc::clone(&release), Arc::clone(&asked));
    let impostor = Impostor::start(move |stream, keys, ask, size_bytes| {
        seen.fetch_add(1, Ordering::SeqCst);
        eventually("the test", || released.load(Ordering::SeqCst));
        // It has never been read here, so any bytes will do.
        let bytes = bytes(size_bytes);
        say(stream, keys, &FromHolder::Document { ask, digest: digest(&bytes), bytes: &bytes });
    });
    let world = impostor.victim(|config, _| {
        config.replicate = replicate;
        (config.fetch_timeout, config.link_timeout) = (PATIENCE, PATIENCE);
    });
    let get = |path: &str| {
        let (mut parts, ()) = http::Request::get(path).header("host", "x").body(()).unwrap().into_parts();
        parts.version = http::Version::HTTP_11;
        let service = world.members[0].service.clone();
        world.runtime.spawn(async move {
            let response = service.answer(&parts).await;
            let cache = response.headers()["x-cache"].to_str().unwrap().to_owned();
            (cache, response.into_body().collect().await.unwrap().to_bytes())
        })
    };
    // Those for which the other node is the home wait there; it answers the first one only then.
    let mut path = None;
    for at in 0.. {
        let candidate = format!("/at{at}");
        let first = get(&candidate);
        eventually("an end, or a question", || first.is_finished() || asked.load(Ordering::SeqCst) == 1);
        if !first.is_finished() {
            path = Some((candidate, first));
            break;
        }
    }
    let (path, first) = path.unwrap();
    let others: Vec<_> = (0..7).map(|_| get(&path)).collect();
    pace(Duration::from_millis(50), Why::SlowPeer);
    assert!(others.iter().all(|other| !other.is_finished()), "they wait");
    release.store(true, Ordering::SeqCst);
    let all = std::iter::once(first).chain(others);
    let mut caches: Vec<_> = all
        .map(|answer| {
            let (cache, body) = world.runtime.block_on(answer).unwrap();
            assert!(body == bytes(SIZE_BYTES as u64));
            cache
        })
        .collect();
    caches.sort();
    assert_eq!(caches, ["joined", "joined", "joined", "joined", "joined", "joined", "joined", "peer"]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let (again, _) = world.runtime.block_on(get(&path)).unwrap();
    assert_eq!(again, if replicate { "hit" } else { "peer" });
    assert_eq!(world.links(0).counts().asked, if replicate { 1 } else { 2 });
    drop(world);
    impostor.thread.join().unwrap();
}

#[test]
fn requests_for_a_document_that_is_on_its_way_wait_for_it() {
    is_asked_for_once(true);
}

#[test]
fn a_document_of_which_no_copy_is_kept_is_asked_for_again() {
    is_asked_for_once(false);
}
