//! Connections whose link, reader or other direction rests for a while.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_lab::Node;
use plimsoll_testkit::{PATIENCE, Why, eventually, pace, uninterrupted};
use socket2::{Domain, Protocol, Socket, Type};

use super::bed::{Bed, Options};
use super::http::{Client, content};

const TAKEN: &str = "plimsoll_handoffs_total{outcome=\"taken\"}";
const FILES: u64 = 12;
const FILE: usize = 30_000;

/// How much clients get: so much that the kernels cannot have all of it while something goes on.
struct Amount {
    /// Bytes of the file `large`.
    large: usize,
    /// How much of it clients have read before the fault.
    before: usize,
    /// How often a client is answered at least while a link is interrupted.
    answers: usize,
}

impl Amount {
    const fn of(options: &Options) -> Self {
        if options.is_far {
            // What comes to such a client in some 6 s.
            Self { large: 2 << 20, before: 50_000, answers: 5 }
        } else {
            Self { large: 60 << 20, before: 1 << 20, answers: 50 }
        }
    }
}

/// `large`, and `f0` and so on of `FILE` bytes.
fn files(large: usize) -> Vec<(String, Vec<u8>)> {
    let small = (0..FILES).map(|n| (format!("f{n}"), content(n + 1, FILE)));
    small.chain([("large".to_owned(), content(99, large))]).collect()
}

fn bed(options: Options) -> Bed {
    let files = files(Amount::of(&options).large);
    let named: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, body)| (name.as_str(), body.clone())).collect();
    Bed::new(options, &named)
}

fn get(client: &mut Client, file: u64) -> io::Result<String> {
    let answer = client.get(&format!("/f{file}"))?;
    if answer.status != 200 {
        return Err(io::Error::other(answer.head));
    }
    assert!(answer.body == content(file + 1, FILE), "f{file} was spoiled: {}", answer.head);
    Ok(answer.backend())
}

/// Reads the answer with `large` piece by piece, with a rest after each so that it takes this long at least.
fn download(vip: SocketAddr, large: usize, time: Duration) -> io::Result<Client> {
    const PIECES: usize = 60;
    let mut client = Client::connect(vip)?;
    client.send("/large")?;
    let mut all = vec![0; large];
    let mut read = 0;
    for piece in 1..=PIECES {
        let until = large / PIECES * piece;
        while read < until {
            let n = uninterrupted(|| client.stream.read(&mut all[read..until]))?;
            assert!(n > 0, "the download was cut at {read}");
            read += n;
        }
        pace(time / PIECES as u32, Why::SlowPeer);
    }
    let head = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    all.truncate(read);
    let mut rest = vec![0; head + large - read];
    client.stream.read_exact(&mut rest)?;
    all.extend_from_slice(&rest);
    assert!(all[head..] == content(99, large));
    Ok(client)
}

/// How often this asks for files in turn, over one connection after the other, and how often one ended.
fn keep_getting(vip: SocketAddr, files: &[u64], over: &AtomicBool) -> (usize, usize) {
    let (mut answers, mut ends) = (0, 0);
    let mut client = Client::connect(vip).unwrap();
    for file in files.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        match get(&mut client, *file) {
            Ok(_) => answers += 1,
            Err(_) => {
                ends += 1;
                client = Client::connect(vip).unwrap();
            }
        }
        pace(Duration::from_millis(5), Why::SlowPeer);
    }
    (answers, ends)
}

#[test]
fn a_link_that_is_interrupted_for_two_seconds() {
    interrupted(Options::default());
}

pub(super) fn interrupted(options: Options) {
    let amount = Amount::of(&options);
    // More time than it takes to come back, on a busy machine too.
    let handoff = "lost_grace = \"20s\"".to_owned();
    let bed = bed(Options { policy: "uri_hash", handoff, ..options });
    let vip = bed.vip();
    let of =
        |path: String| bed.client(|| Client::connect(vip).unwrap().ask("HEAD", &path, "").unwrap().backend());
    let cut_off = of("/large".to_owned());
    let (there, elsewhere): (Vec<u64>, Vec<u64>) = (0..FILES).partition(|n| of(format!("/f{n}")) == cut_off);
    assert!(!there.is_empty() && !elsewhere.is_empty(), "{there:?} {elsewhere:?}");
    let over = &AtomicBool::new(false);
    let (moving, there) = (&[there[0], elsewhere[0]], &there);
    std::thread::scope(|scope| {
        let (idle, downloads, steady, moving) = bed.client(|| {
            let idle: Vec<Client> = (0..4)
                .map(|_| {
                    let mut client = Client::connect(vip).unwrap();
                    get(&mut client, there[0]).unwrap();
                    client
                })
                .collect();
            let download = move || download(vip, amount.large, Duration::from_secs(6)).unwrap();
            let downloads: Vec<_> = (0..2).map(|_| scope.spawn(download)).collect();
            let steady: Vec<_> =
                (0..4).map(|_| scope.spawn(move || keep_getting(vip, there, over))).collect();
            let moving: Vec<_> =
                (0..2).map(|_| scope.spawn(move || keep_getting(vip, moving, over))).collect();
            (idle, downloads, steady, moving)
        });
        pace(Duration::from_millis(500), Why::UnderLoad);
        bed.interrupt_link(cut_off.trim_start_matches('b').parse().unwrap());
        let began = Instant::now();
        eventually("loss of the links", || bed.metric("plimsoll_links") == Some(2.0));
        pace(Duration::from_secs(2).saturating_sub(began.elapsed()), Why::UnderLoad);
        bed.lab.pass_frames().unwrap();
        bed.wait_for_links(2);
        pace(Duration::from_secs(1), Why::UnderLoad);
        over.store(true, Ordering::Relaxed);
        let counts = |clients: Vec<std::thread::ScopedJoinHandle<'_, (usize, usize)>>| -> Vec<_> {
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        };
        let (steady, moving) = (counts(steady), counts(moving));
        eprintln!("answers and ends, steady {steady:?}, moving {moving:?}");
        assert!(steady.iter().all(|&(answers, ends)| answers > amount.answers && ends == 0), "{steady:?}");
        // One that is being given back when the link goes is reset.
        assert!(moving.iter().all(|&(answers, ends)| answers > amount.answers && ends <= 1), "{moving:?}");
        let done: Vec<_> = downloads.into_iter().map(|download| download.join().unwrap()).collect();
        for mut client in done.into_iter().chain(idle) {
            scope.spawn(move || (0..FILES).for_each(|file| drop(get(&mut client, file).unwrap())));
        }
    });
    assert!(bed.metric("plimsoll_connections_adopted_total") >= Some(6.0));
    bed.assert_quiet();
    bed.stop();
}

/// A connection whose kernel takes little that is not read.
fn with_small_window(vip: SocketAddr) -> Client {
    let socket = Socket::new(Domain::for_address(vip), Type::STREAM, Some(Protocol::TCP)).unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    socket.connect_timeout(&vip.into(), PATIENCE).unwrap();
    Client::over(socket.into()).unwrap()
}

fn read_exactly(client: &mut Client, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    client.stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_reader_that_rests_before_the_end_of_its_answer() {
    resting(Options { is_quiet: true, ..Options::default() }, 3 << 20);
}

/// Clients read all but the end of an answer of this length.
pub(super) fn resting(options: Options, length: usize) {
    /// What the kernels have when everything is written.
    const LAST: usize = 100_000;
    /// More than a client is given to end its side after ours, and more than the front-end waits for a FIN.
    const REST: Duration = Duration::from_secs(6);
    let bed = Bed::new(options, &[("body", content(5, length)), ("f0", content(1, FILE))]);
    let vips = [bed.vip(), bed.vip_v6()];
    let rest_and_read = |vip: SocketAddr, field: &str, ends_its_side: bool| {
        let mut client = with_small_window(vip);
        let request = format!("GET /body HTTP/1.1\r\nHost: lab\r\n{field}\r\n");
        client.stream.write_all(request.as_bytes()).unwrap();
        let mut all = read_exactly(&mut client, length - LAST);
        if ends_its_side {
            client.stream.shutdown(Shutdown::Write).unwrap();
        }
        pace(REST, Why::SlowPeer);
        let head = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        all.extend(read_exactly(&mut client, head + LAST));
        assert!(all[head..] == content(5, length), "an answer was spoiled");
        if ends_its_side || !field.is_empty() {
            assert!(client.is_closed());
        } else {
            get(&mut client, 0).unwrap();
        }
    };
    bed.client(|| assert_eq!(Client::connect(vips[0]).unwrap().get("/body").unwrap().status, 200));
    // The size of this answer is known now: connections that end with it are handed off, too.
    bed.assert_quiet();
    std::thread::scope(|scope| {
        bed.client(|| {
            for vip in vips {
                for (field, ends_its_side) in [("", false), ("Connection: close\r\n", false), ("", true)] {
                    scope.spawn(move || rest_and_read(vip, field, ends_its_side));
                }
            }
        });
    });
    assert!(bed.metric(TAKEN) >= Some(7.0));
    assert_eq!(bed.metric("plimsoll_connections_lost_total"), Some(0.0));
    bed.assert_quiet();
    bed.stop();
}

/// Clients in the middle of an answer that have ended their side: one that reads on, and one that does not for a while.
fn half_closed(vip: SocketAddr, before: usize) -> [Client; 2] {
    [(); 2].map(|()| {
        let mut client = with_small_window(vip);
        client.send("/large").unwrap();
        read_exactly(&mut client, before);
        // Earlier, it would have been proxied.
        client.stream.shutdown(Shutdown::Write).unwrap();
        client
    })
}

/// Longer than it takes to end them: pings tell within 1.5 s, and an agent gets 2 s more to come back.
const RESTS: Duration = Duration::from_secs(6);

/// Both end before their answer does: the one that rests has been told when it reads on. Without us they would wait for ever.
fn assert_ended([mut reading, mut resting]: [Client; 2], amount: &Amount) {
    let began = Instant::now();
    for client in [&mut reading, &mut resting] {
        let mut rest = Vec::new();
        let end = client.stream.read_to_end(&mut rest).map_err(|error| error.kind());
        eprintln!("{end:?} after {:?}", began.elapsed());
        assert!(matches!(end, Ok(_) | Err(io::ErrorKind::ConnectionReset)), "{end:?}");
        assert!(rest.len() < amount.large - amount.before, "nothing was missing");
        pace(RESTS.saturating_sub(began.elapsed()), Why::SlowPeer);
    }
}

#[test]
fn clients_that_have_ended_their_side_when_the_agent_is_killed() {
    half_closed_at_a_kill(Options { is_quiet: true, ..Options::default() });
}

pub(super) fn half_closed_at_a_kill(options: Options) {
    let amount = Amount::of(&options);
    let mut bed = bed(Options { backends: 1, ..options });
    let vip = bed.vip();
    let clients = bed.client(|| half_closed(vip, amount.before));
    assert_eq!(bed.metric(TAKEN), Some(2.0));
    bed.kill_agent(0);
    assert_ended(clients, &amount);
    bed.assert_quiet();
    bed.start_agent(0);
    bed.wait_for_links(1);
    eventually("answers", || bed.client(|| get(&mut Client::connect(vip)?, 0)).is_ok());
    bed.assert_quiet();
    bed.stop();
}

#[test]
fn clients_that_have_ended_their_side_when_the_back_end_is_cut_off() {
    half_closed_at_a_cut(Options { is_quiet: true, ..Options::default() });
}

pub(super) fn half_closed_at_a_cut(options: Options) {
    let amount = Amount::of(&options);
    let bed = bed(Options { backends: 1, ..options });
    let vip = bed.vip();
    let clients = bed.client(|| half_closed(vip, amount.before));
    assert_eq!(bed.metric(TAKEN), Some(2.0));
    bed.lab.link(Node::Backend(0)).unwrap().down().unwrap();
    assert_ended(clients, &amount);
    bed.assert_quiet();
    bed.lab.link(Node::Backend(0)).unwrap().up().unwrap();
    bed.wait_for_links(1);
    eventually("answers", || bed.client(|| get(&mut Client::connect(vip)?, 0)).is_ok());
    bed.assert_quiet();
    bed.stop();
}

/// A client that only waits sends nothing that a kernel could answer by another RST.
#[test]
fn a_reset_that_is_lost_is_followed_by_another() {
    let bed = bed(Options { is_quiet: true, backends: 1, ..Options::default() });
    let amount = Amount::of(&Options::default());
    let mut client = bed.client(|| with_small_window(bed.vip()));
    client.send("/large").unwrap();
    read_exactly(&mut client, amount.before);
    client.stream.shutdown(Shutdown::Write).unwrap();
    // The first RST has some 40 bytes.
    bed.lab.drop_frames("oifname \"client\" tcp flags & rst == rst quota until 60 bytes").unwrap();
    bed.lab.link(Node::Backend(0)).unwrap().down().unwrap();
    let end = client.stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
    assert_eq!(end, Err(io::ErrorKind::ConnectionReset));
    assert_eq!(bed.metric("plimsoll_connections_reset_total"), Some(1.0));
    bed.lab.link(Node::Backend(0)).unwrap().up().unwrap();
    bed.wait_for_links(1);
    bed.assert_quiet();
    bed.stop();
}
