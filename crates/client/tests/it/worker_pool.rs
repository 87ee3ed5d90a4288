//! The worker pool.

use std::sync::mpsc;

use plimsoll_client::{LoadGauge, PoolSizes, WorkerPool, WorkerPoolError};
use plimsoll_testkit::{PATIENCE, eventually};

#[test]
fn what_waits_and_what_is_in_service_is_its_load_and_more_is_refused() {
    let gauge = LoadGauge::new();
    let pool = WorkerPool::new(PoolSizes { workers: 2, queue: 3 }, gauge.clone()).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Arc::new(std::sync::Mutex::new(released));
    let submit = || {
        let released = std::sync::Arc::clone(&released);
        pool.submit(move || released.lock().unwrap().recv_timeout(PATIENCE).unwrap())
    };
    for expected in 1..=5 {
        submit().unwrap();
        assert_eq!(pool.load(), expected);
    }
    assert_eq!(submit(), Err(WorkerPoolError::Full));
    assert_eq!(gauge.load(), 5);
    release.send(()).unwrap();
    eventually("room for one more", || submit().is_ok());
    assert_eq!(submit(), Err(WorkerPoolError::Full));
    (0..5).for_each(|_| release.send(()).unwrap());
    eventually("no load", || pool.load() == 0);
    assert!(gauge.latency_us(1) > 0, "response times are told, too");
    pool.stop();
}

#[tokio::test]
async fn results_come_back_and_a_panic_harms_nobody_else() {
    let pool = WorkerPool::new(PoolSizes { workers: 0, queue: 10 }, LoadGauge::new()).unwrap();
    assert_eq!(pool.run(|| 6 * 7).await, Ok(42));
    let panics = pool.run(|| {
        if std::hint::black_box(true) {
            panic!("on purpose")
        }
    });
    assert_eq!(panics.await, Err(WorkerPoolError::Panicked));
    assert_eq!(pool.run(|| "well").await, Ok("well"));
    eventually("no load", || pool.load() == 0);
    // What was queued is done, also if nobody waits.
    let (done, seen) = mpsc::channel();
    drop(pool.run(move || done.send(1)));
    pool.stop();
    assert_eq!(seen.try_recv(), Ok(1));
}
