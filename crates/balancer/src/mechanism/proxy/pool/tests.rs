//! Connections that are kept for one client each.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use plimsoll_policy::BackendId;
use tokio::io::{AsyncRead, ReadBuf, Sink};

use super::*;
use crate::backend_address::BackendAddress;
use crate::net::deadline::Deadlines;
use crate::net::halves::{Halves, Input, OutputHalf};

/// A connection on which nothing comes, unless it `has_excess`.
#[derive(Debug, Default)]
struct Silent {
    has_excess: bool,
}

impl AsyncRead for Silent {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl Input for Silent {
    fn poll_broken(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl OutputHalf for Sink {}

impl Halves for Silent {
    type Input<'a> = Self;
    type Output<'a> = Sink;

    fn halves(&mut self) -> io::Result<(Self, Sink)> {
        Ok((Self::default(), tokio::io::sink()))
    }
}

impl BackendIo for Silent {
    type Shared = ();

    async fn open(
        _: &Arc<Backend>,
        address: &BackendAddress,
        _: Option<&ConnectionEnds>,
        (): &(),
    ) -> io::Result<Self> {
        if address.tcp().is_some_and(|address| address.port() == LETS_NONE_IN) {
            std::future::pending::<()>().await;
        }
        Ok(Self::default())
    }

    fn has_excess(&self) -> bool {
        self.has_excess
    }

    fn is_open(&self, _: bool) -> bool {
        !self.has_excess
    }
}

/// Where connections are never let in.
const LETS_NONE_IN: u16 = 999;
const HOUR: Duration = Duration::from_secs(3600);

fn client(port: u16) -> ConnectionEnds {
    let end = |port| SocketAddr::from(([192, 0, 2, 1], port));
    ConnectionEnds { source: end(port), destination: end(80) }
}

/// A pool with a connection to each of two back-ends for each of so many clients, with which both are full.
fn full(clients: u16) -> (Pool<Silent>, [Arc<Backend>; 2]) {
    let pool = Pool::new(Deadlines::new());
    let backends = [0, 1].map(|index| {
        let address = Ok(([127, 0, 0, 1], 1 + index).into());
        let id = BackendId(index);
        Arc::new(Backend::new(id, "b".into(), address, "b".into(), clients.into(), 1))
    });
    for port in 1..=clients {
        for backend in &backends {
            pool.put(open(&pool, backend, port).expect("there is room"));
        }
    }
    (pool, backends)
}

fn open(pool: &Pool<Silent>, backend: &Arc<Backend>, port: u16) -> Option<BackendConnection<Silent>> {
    open_for(pool, backend, Some(&client(port)))
}

fn open_for(
    pool: &Pool<Silent>,
    backend: &Arc<Backend>,
    client: Option<&ConnectionEnds>,
) -> Option<BackendConnection<Silent>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(pool.connect(backend, client, Duration::from_millis(1), None)).ok()
}

/// The clients for which there is a connection.
fn kept(pool: &Pool<Silent>, backend: &Arc<Backend>, clients: u16) -> Vec<u16> {
    let is_kept = |port: &u16| {
        let taken = pool.take(backend, Some(&client(*port)), KeptFor::Repeatable);
        taken.map(|connection| pool.put(connection)).is_some()
    };
    (1..=clients).filter(is_kept).collect()
}

#[test]
fn one_that_needs_a_place_gets_that_of_the_oldest() {
    let (pool, [first, second]) = full(5);
    // It is used, so the next one is the oldest.
    pool.put(pool.take(&first, Some(&client(1)), KeptFor::Repeatable).unwrap());
    assert!(pool.take(&first, Some(&client(9)), KeptFor::Repeatable).is_none());
    let new = open(&pool, &first, 9).unwrap();
    assert_eq!(kept(&pool, &first, 9), [1, 3, 4, 5]);
    assert_eq!(kept(&pool, &second, 9), [1, 2, 3, 4, 5], "another back-end is full, and nobody asks for it");
    pool.put(new);
    assert_eq!(kept(&pool, &first, 9), [1, 3, 4, 5, 9]);
}

#[test]
fn as_many_are_given_up_as_others_wait() {
    let (pool, [first, second]) = full(5);
    pool.sweep(HOUR);
    assert_eq!(kept(&pool, &first, 5).len(), 5);
    first.waiting.store(2, Ordering::Relaxed);
    pool.sweep(HOUR);
    first.waiting.store(0, Ordering::Relaxed);
    assert_eq!((kept(&pool, &first, 5), kept(&pool, &second, 5).len()), (vec![3, 4, 5], 5));
    first.waiting.store(9, Ordering::Relaxed);
    pool.sweep(HOUR);
    assert!(kept(&pool, &first, 5).is_empty());
    pool.sweep(Duration::ZERO);
    assert!(kept(&pool, &second, 5).is_empty());
}

#[test]
fn those_of_a_client_end_with_it() {
    let (pool, [first, second]) = full(3);
    let mut told = ToldConnections::default();
    for port in [1, 2] {
        for backend in [&first, &second] {
            let connection = pool.take(backend, Some(&client(port)), KeptFor::Repeatable).unwrap();
            told.put(client(port), Idle::now(connection, 0));
        }
    }
    told.client_ended(&client(1));
    assert!(told.take(&first, &client(1), false, 0).is_none());
    assert_eq!(told.make_room(&first, 5), 1, "nothing else of it is remembered");
    assert!(told.take(&second, &client(2), false, 0).is_some());
    assert!(told.is_empty());
}

/// A pool with one idle connection, for no client, to a back-end that takes so many.
fn one_idle(max_connections: u32) -> (Pool<Silent>, Arc<Backend>) {
    let pool = Pool::new(Deadlines::new());
    let address = Ok(([127, 0, 0, 1], 1).into());
    let backend = Arc::new(Backend::new(BackendId(0), "b".into(), address, "b".into(), max_connections, 1));
    pool.put(open_for(&pool, &backend, None).unwrap());
    (pool, backend)
}

#[test]
fn what_must_not_be_sent_twice_leaves_one_to_see_whether_it_stays_open() {
    let (pool, backend) = one_idle(2);
    assert!(pool.take(&backend, None, KeptFor::Once).is_none());
    assert_eq!(backend.connections(), 1, "it is left");
    pool.put(open_for(&pool, &backend, None).unwrap());
    assert!(pool.take(&backend, None, KeptFor::Once).is_none());
    assert_eq!(backend.connections(), 1, "the second is not");
    backend.leaves_open.said();
    assert!(pool.take(&backend, None, KeptFor::Once).is_some());
}

#[test]
fn where_there_is_no_other_place_none_is_left() {
    let (pool, backend) = one_idle(1);
    assert!(pool.take(&backend, None, KeptFor::Once).is_none());
    assert_eq!(backend.connections(), 0);
    let (pool, backend) = one_idle(2);
    backend.leaves_open.saw_closed(0);
    assert!(pool.take(&backend, None, KeptFor::Once).is_none());
    assert_eq!(backend.connections(), 0, "it can show nothing now");
}

#[test]
fn connections_to_one_that_sends_more_than_belongs_to_an_answer_are_not_kept() {
    let (pool, backend) = one_idle(2);
    backend.sent_excess();
    pool.put(open_for(&pool, &backend, None).unwrap());
    assert_eq!(backend.connections(), 1, "it is not kept");
    assert!(pool.take(&backend, None, KeptFor::Repeatable).is_none());
    pool.sweep(HOUR);
    assert_eq!(backend.connections(), 0);
}

#[test]
fn bytes_that_come_right_after_an_answer_are_excess() {
    for sweeps in [false, true] {
        let (pool, backend) = one_idle(2);
        let mut connection = pool.take(&backend, None, KeptFor::Repeatable).unwrap();
        connection.stream.has_excess = true;
        pool.put(connection);
        assert!(!backend.excess.is_expected());
        if sweeps {
            pool.sweep(HOUR);
        } else {
            assert!(pool.take(&backend, None, KeptFor::Repeatable).is_none());
        }
        assert!(backend.excess.is_expected() && backend.leaves_open.can_be_shown());
    }
}

/// A connection that is there already, to a back-end that leaves connections open, was near, and lets no further one in.
fn of_one_that_lets_none_in(max_connections: u32) -> (Pool<Silent>, BackendConnection<Silent>) {
    let pool = Pool::new(Deadlines::new());
    let address = Ok(([127, 0, 0, 1], LETS_NONE_IN).into());
    let backend = Arc::new(Backend::new(BackendId(0), "b".into(), address, "b".into(), max_connections, 1));
    backend.leaves_open.said();
    backend.is_near.store(true, Ordering::Relaxed);
    (pool, one_to(&backend))
}

/// A connection that is there already.
fn one_to(backend: &Arc<Backend>) -> BackendConnection<Silent> {
    let permit = Arc::clone(&backend.permits).try_acquire_owned().unwrap();
    let (stream, backend) = (Silent::default(), Arc::clone(backend));
    BackendConnection { stream, backend, is_new: true, idle_ms: 0, client: None, _permit: permit }
}

const REPEATABLE: Option<KeptFor> = Some(KeptFor::Repeatable);
/// Long enough for whoever is not let in to wait for a free one.
const WAITS: Duration = Duration::from_millis(200);

#[tokio::test]
async fn whoever_is_not_let_in_takes_one_that_becomes_free() {
    let (pool, connection) = of_one_that_lets_none_in(10);
    let backend = Arc::clone(&connection.backend);
    let (waits, later) =
        (pool.connect(&backend, None, HOUR, REPEATABLE), pool.connect(&backend, None, HOUR, REPEATABLE));
    let (mut waits, mut later) = (pin!(waits), pin!(later));
    assert!(tokio::time::timeout(WAITS, &mut waits).await.is_err());
    assert!(tokio::time::timeout(WAITS, &mut later).await.is_err());
    pool.put(connection);
    assert!(tokio::time::timeout(WAITS, &mut later).await.is_err(), "it is the first one's turn");
    let given = waits.await.unwrap();
    assert!(given.is_kept());
    pool.put(given);
    assert!(later.await.is_ok() && !pool.freed.is_awaited(&backend));
}

#[tokio::test]
async fn whoever_is_not_let_in_takes_one_that_has_become_free_before() {
    let (pool, connection) = of_one_that_lets_none_in(10);
    let backend = Arc::clone(&connection.backend);
    let mut waits = pin!(pool.connect(&backend, None, HOUR, REPEATABLE));
    assert!(tokio::time::timeout(SLOW_CONNECT / 2, &mut waits).await.is_err());
    pool.put(connection);
    assert!(tokio::time::timeout(WAITS, waits).await.is_ok_and(|given| given.is_ok()));
}

#[tokio::test]
async fn one_that_becomes_free_as_time_is_over_is_taken() {
    let (pool, connection) = of_one_that_lets_none_in(10);
    let backend = Arc::clone(&connection.backend);
    let mut waits = pin!(pool.connect(&backend, None, WAITS, REPEATABLE));
    assert!(tokio::time::timeout(WAITS / 4 * 3, &mut waits).await.is_err());
    assert!(tokio::time::timeout(WAITS, std::future::pending::<()>()).await.is_err());
    pool.put(connection);
    assert!(waits.await.is_ok());
}

#[tokio::test]
async fn whoever_goes_in_its_turn_leaves_it_to_the_next() {
    let (pool, connection) = of_one_that_lets_none_in(10);
    let backend = Arc::clone(&connection.backend);
    let mut later = pin!(pool.connect(&backend, None, HOUR, REPEATABLE));
    {
        let mut gone = pin!(pool.connect(&backend, None, HOUR, REPEATABLE));
        assert!(tokio::time::timeout(WAITS, &mut gone).await.is_err());
        assert!(tokio::time::timeout(WAITS, &mut later).await.is_err());
        pool.put(connection);
    }
    assert!(tokio::time::timeout(WAITS, later).await.is_ok_and(|given| given.is_ok()));
}

#[tokio::test]
async fn one_that_is_taken_frees_a_place_of_a_full_back_end() {
    let (pool, connection) = of_one_that_lets_none_in(2);
    let backend = Arc::clone(&connection.backend);
    let mut not_let_in = pin!(pool.connect(&backend, None, HOUR, REPEATABLE));
    let mut placeless = pin!(pool.connect(&backend, None, HOUR, REPEATABLE));
    assert!(tokio::time::timeout(WAITS, &mut not_let_in).await.is_err());
    assert!(tokio::time::timeout(WAITS, &mut placeless).await.is_err());
    assert_eq!((backend.waiting.load(Ordering::Relaxed), backend.permits.available_permits()), (1, 0));
    pool.put(connection);
    let _given = not_let_in.await.unwrap();
    assert!(tokio::time::timeout(WAITS, &mut placeless).await.is_err());
    assert_eq!((backend.waiting.load(Ordering::Relaxed), backend.permits.available_permits()), (0, 0));
}

#[tokio::test]
async fn one_that_is_not_let_in_keeps_one_place_from_others_that_wait_for_it() {
    let (pool, connection) = of_one_that_lets_none_in(3);
    let backend = Arc::clone(&connection.backend);
    let further = one_to(&backend);
    let mut not_let_in = pin!(pool.connect(&backend, None, HOUR, REPEATABLE));
    let mut placeless = pin!(pool.connect(&backend, None, HOUR, REPEATABLE));
    assert!(tokio::time::timeout(WAITS, &mut not_let_in).await.is_err());
    assert!(tokio::time::timeout(WAITS, &mut placeless).await.is_err());
    pool.put(connection);
    pool.put(further);
    assert_eq!(pool.idle.borrow()[&key(&backend)].len(), 1, "the other one makes room");
    assert!(not_let_in.await.is_ok());
    assert!(tokio::time::timeout(WAITS, &mut placeless).await.is_err());
    assert_eq!(backend.waiting.load(Ordering::Relaxed), 0);
}

/// What is free is not taken by a request that is not let in, and stays.
async fn leaves_a_free_one(
    (pool, connection): (Pool<Silent>, BackendConnection<Silent>),
    kept_for: KeptFor,
    change: impl FnOnce(&Backend),
) {
    let backend = Arc::clone(&connection.backend);
    let mut waits = pin!(pool.connect(&backend, None, HOUR, Some(kept_for)));
    assert!(tokio::time::timeout(WAITS, &mut waits).await.is_err());
    change(&backend);
    pool.put(connection);
    assert!(tokio::time::timeout(WAITS, waits).await.is_err());
    assert!(pool.take(&backend, None, KeptFor::Repeatable).is_some(), "it is kept");
}

#[tokio::test]
async fn none_is_taken_where_it_may_be_closed() {
    // It has left them open until then.
    leaves_a_free_one(of_one_that_lets_none_in(10), KeptFor::Once, |b| b.leaves_open.saw_closed(0)).await;
    leaves_a_free_one(of_one_that_lets_none_in(10), KeptFor::Repeatable, |b| b.leaves_open.saw_closed(0))
        .await;
}

#[tokio::test]
async fn what_is_opened_is_not_given_up_where_the_way_is_long() {
    let of_one = of_one_that_lets_none_in(10);
    of_one.1.backend.is_near.store(false, Ordering::Relaxed);
    leaves_a_free_one(of_one, KeptFor::Repeatable, |_| ()).await;
}

#[tokio::test]
async fn one_that_is_not_open_any_more_is_not_taken() {
    let (pool, mut connection) = of_one_that_lets_none_in(10);
    let backend = Arc::clone(&connection.backend);
    let mut waits = pin!(pool.connect(&backend, None, HOUR, REPEATABLE));
    assert!(tokio::time::timeout(WAITS, &mut waits).await.is_err());
    connection.stream.has_excess = true;
    pool.put(connection);
    assert!(tokio::time::timeout(WAITS, waits).await.is_err() && backend.excess.is_expected());
}

#[test]
fn one_that_lets_in_soon_is_near() {
    let (pool, [backend, _]) = full(1);
    assert!(backend.is_near.load(Ordering::Relaxed));
    drop(pool);
}
