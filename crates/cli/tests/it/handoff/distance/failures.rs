//! Clients that are far away, when the front-end or an agent fails, or one does not hear of the other.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use plimsoll_lab::{Conditions, Lab, Node};
use plimsoll_testkit::{Why, eventually, pace, uninterrupted};

use super::super::bed::{Bed, ORIGIN_PORT, Options};
use super::super::http::{Answer, Client};
use super::{LARGE, body, far_bed, stop, with_small_window};

/// What became of clients that went on asking while something failed.
#[derive(Debug, Default)]
struct Fates {
    answered: AtomicUsize,
    ended: AtomicUsize,
    hung: AtomicUsize,
}

/// Asks on this connection until it ends, or `over` says that it is enough; then once more on a new one, which must be answered.
/// A client that waits for longer than `bound` hangs.
fn ask_until(mut client: Client, over: &(dyn Fn() -> bool + Sync), bound: Duration, fates: &Fates) {
    let count = |fate: &AtomicUsize| fate.fetch_add(1, Ordering::Relaxed);
    let vip = client.stream.peer_addr().unwrap();
    client.stream.set_read_timeout(Some(bound)).unwrap();
    for step in 0.. {
        if over() {
            break;
        }
        let name = ["f3", "f1", "f4"][step % 3];
        let answer = client.send(&format!("/{name}")).and_then(|()| client.answer());
        match answer {
            Ok(answer) if answer.status == 200 => {
                assert!(answer.body == body(name), "{name} was spoiled: {}", answer.head);
                count(&fates.answered);
            }
            Ok(answer) => {
                assert!(answer.status >= 502, "{}", answer.head);
                pace(Duration::from_millis(50), Why::SlowPeer);
            }
            Err(error) => {
                count(if error.kind() == ErrorKind::WouldBlock { &fates.hung } else { &fates.ended });
                break;
            }
        }
    }
    eventually("an answer on a new connection", || {
        let answer = Client::connect(vip).and_then(|mut client| client.get("/f1"));
        answer.is_ok_and(|answer| answer.status == 200 && answer.body == body("f1"))
    });
}

/// Reads `large` with a rest before each piece; an end before its time is no error, wrong bytes are.
fn download(vip: SocketAddr, started: &AtomicUsize, bound: Duration) -> Result<(), ErrorKind> {
    let mut client = with_small_window(vip);
    client.stream.set_read_timeout(Some(bound)).unwrap();
    client.send("/large").unwrap();
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let expected = body("large");
    let mut is_counted = false;
    loop {
        match uninterrupted(|| client.stream.read(&mut buffer)) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof),
            Ok(length) => all.extend_from_slice(&buffer[..length]),
            Err(error) => return Err(error.kind()),
        }
        if all.len() < 100_000 {
            continue;
        }
        if !is_counted {
            started.fetch_add(1, Ordering::Relaxed);
            is_counted = true;
        }
        let head = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        assert!(expected.starts_with(&all[head..]), "a download was spoiled");
        if all.len() == head + LARGE {
            return Ok(());
        }
        pace(Duration::from_millis(5), Why::SlowPeer);
    }
}

/// What is promised is 3 s from the kill; a lost RST is repeated when the client repeats a request or an acknowledgment,
/// which it does after a second, two and four.
const BOUND: Duration = Duration::from_secs(12);

/// Eight clients that ask until `over`, and as many that download. All are under way.
fn busy_clients<'scope>(
    scope: &'scope Scope<'scope, '_>,
    bed: &Bed,
    over: &'scope (dyn Fn() -> bool + Sync),
    fates: &'scope Fates,
) -> Vec<ScopedJoinHandle<'scope, Result<(), ErrorKind>>> {
    const CLIENTS: usize = 8;
    let (vip, started) = (bed.vip(), Arc::new(AtomicUsize::new(0)));
    let downloads = bed.client(|| {
        for _ in 0..CLIENTS {
            let client = Client::connect(vip).unwrap();
            scope.spawn(move || ask_until(client, over, BOUND, fates));
        }
        let download_in = |started: Arc<AtomicUsize>| scope.spawn(move || download(vip, &started, BOUND));
        (0..CLIENTS).map(|_| download_in(Arc::clone(&started))).collect()
    });
    eventually("downloads", || started.load(Ordering::Relaxed) >= CLIENTS);
    eventually("answers", || fates.answered.load(Ordering::Relaxed) >= 2 * CLIENTS);
    downloads
}

#[test]
fn a_front_end_that_is_killed_and_started_again_during_downloads() {
    let mut bed = far_bed(Options::default());
    let (fates, over) = (Fates::default(), AtomicBool::new(false));
    let is_over = || over.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let downloads = busy_clients(scope, &bed, &is_over, &fates);
        bed.kill_front_end();
        pace(Duration::from_millis(500), Why::UnderLoad);
        bed.start_front_end();
        bed.wait_for_links(2);
        pace(Duration::from_secs(1), Why::UnderLoad);
        over.store(true, Ordering::Relaxed);
        // Back-ends have them, and go on.
        let ends: Vec<_> = downloads.into_iter().map(|download| download.join().unwrap()).collect();
        assert!(ends.iter().all(|end| end.is_ok()), "{ends:?}");
    });
    eprintln!("{fates:?}");
    assert_eq!(fates.hung.load(Ordering::Relaxed), 0, "{fates:?}");
    assert!(bed.metric("plimsoll_connections_adopted_total") >= Some(1.0));
    bed.assert_far();
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn an_agent_that_is_killed() {
    let mut bed = far_bed(Options { backends: 2, ..Options::default() });
    let (fates, over) = (Fates::default(), AtomicBool::new(false));
    let is_over = || over.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let downloads = busy_clients(scope, &bed, &is_over, &fates);
        let began = Instant::now();
        bed.kill_agent(0);
        pace(Duration::from_secs(1), Why::UnderLoad);
        bed.start_agent(0);
        bed.wait_for_links(2);
        over.store(true, Ordering::Relaxed);
        let ends: Vec<_> = downloads.into_iter().map(|download| download.join().unwrap()).collect();
        eprintln!("{ends:?} after {:?}", began.elapsed());
        // Those of the other back-end are whole; those of the dead one end, and none is left waiting.
        assert!(ends.iter().any(|end| end.is_ok()), "{ends:?}");
        let told = |kind| matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset);
        assert!(ends.iter().all(|end| end.is_ok() || end.is_err_and(told)), "{ends:?}");
    });
    eprintln!("{fates:?}");
    assert_eq!(fates.hung.load(Ordering::Relaxed), 0, "{fates:?}");
    stop(bed);
}

/// A server of a back-end that answers each request with other bytes.
struct CountingServer(TcpListener);

impl CountingServer {
    const LENGTH: usize = 50_000;

    fn start(lab: &Lab, index: usize) -> Self {
        let node = lab.node(Node::Backend(index)).unwrap();
        let listener = node.run(|| TcpListener::bind((node.address(), ORIGIN_PORT))).unwrap().unwrap();
        let accepting = listener.try_clone().unwrap();
        std::thread::spawn(move || {
            let count = Arc::new(AtomicUsize::new(0));
            while let Ok((stream, _)) = accepting.accept() {
                let count = Arc::clone(&count);
                std::thread::spawn(move || Self::serve(stream, &count));
            }
        });
        Self(listener)
    }

    fn serve(mut stream: TcpStream, count: &AtomicUsize) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let mut line = String::new();
            while reader.read_line(&mut line).ok()? > 0 && !line.ends_with("\r\n\r\n") {}
            if line.is_empty() {
                return None;
            }
            let letter = b'a' + (count.fetch_add(1, Ordering::Relaxed) % 26) as u8;
            let mut answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", Self::LENGTH).into_bytes();
            answer.resize(answer.len() + Self::LENGTH, letter);
            stream.write_all(&answer).ok()?;
        }
    }
}

impl Drop for CountingServer {
    fn drop(&mut self) {
        // The thread that waits for connections ends.
        let _ = socket2::SockRef::from(&self.0).shutdown(Shutdown::Both);
    }
}

#[test]
fn an_answer_is_never_made_of_two() {
    // The client is farther away than the lease of a connection that is not confirmed is long: when it is over, the client's
    // acknowledgments of what the back-end sent under it are still on their way.
    let options = Options {
        is_quiet: true,
        handoff: "take_over_timeout = \"200ms\"".to_owned(),
        serve: Some(format!("copy:ADDRESS:{ORIGIN_PORT}")),
        ..Options::default()
    };
    let mut servers = Vec::new();
    let bed = Bed::new_with(options, &[], |lab, _| {
        servers.extend((0..2).map(|index| CountingServer::start(lab, index)));
        Vec::new()
    });
    let vip = bed.vip();
    bed.lab.link(Node::Client).unwrap().set(&Conditions::delayed(Duration::from_millis(150))).unwrap();
    let is_whole = |answer: &Answer| {
        answer.body.len() == CountingServer::LENGTH && answer.body.iter().all(|byte| *byte == answer.body[0])
    };
    let clients: Vec<Client> = bed.client(|| {
        // From then on the back-ends know the client's MAC address.
        let mut first = Client::connect(vip).unwrap();
        (0..2).for_each(|_| assert!(is_whole(&first.get("/").unwrap())));
        (0..8).map(|_| Client::connect(vip).unwrap()).collect()
    });
    // What agents say is lost from now on: they take connections over, and the front-end does not hear of it.
    bed.lab.drop_frames("tcp sport 7400").unwrap();
    let ask = |mut client: Client| {
        client.stream.set_read_timeout(Some(BOUND)).unwrap();
        match client.get("/") {
            Ok(answer) if answer.status == 200 => {
                assert!(is_whole(&answer), "an answer was made of two: {}", answer.head);
                "answered"
            }
            Ok(answer) => {
                assert!(answer.status >= 502, "{}", answer.head);
                "refused"
            }
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::WouldBlock, "it was left waiting");
                "ended"
            }
        }
    };
    let ends: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = clients.into_iter().map(|client| scope.spawn(move || ask(client))).collect();
        all.into_iter().map(|client| client.join().unwrap()).collect()
    });
    eprintln!("{ends:?}");
    bed.lab.pass_frames().unwrap();
    bed.wait_for_links(2);
    assert!(bed.metric("plimsoll_handoffs_total{outcome=\"timed_out\"}") >= Some(8.0));
    bed.assert_quiet();
    bed.stop();
}
