//! A front-end that is killed, at whatever instant, and started again half a second later: each client that had a connection
//! is answered, goes on, or is reset before long. None is left hanging.

use std::io::{self, ErrorKind, Read as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use plimsoll_testkit::{Why, eventually, pace, uninterrupted};
use socket2::{Domain, Protocol, Socket, Type};

use super::bed::{Bed, Options};
use super::http::{Client, content};

const CLIENTS: usize = 500;
const ROUNDS: usize = 4;
const BODY: usize = 20_000;
const LARGE: usize = 1_500_000;
/// From the kill to the start of the next process.
const DOWN: Duration = Duration::from_millis(500);
/// What is promised: from the kill, or from what a client sent later.
const BOUND: Duration = Duration::from_secs(3);
/// A client that has waited for so long hangs.
const GIVE_UP: Duration = Duration::from_secs(12);

/// What became of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The request that was under way at the kill was answered.
    Answered,
    /// There was no request at the kill, and a later one was answered; or a download did not stop.
    WentOn,
    /// The client was told that the connection is over.
    Reset,
    /// Nothing was heard within the bound.
    Hung,
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Has had an answer, and sends its next request right after the kill.
    Idle,
    /// The same, but it waits until the bound is over.
    Silent,
    /// Sends one request after the other on one connection, which moves with each.
    Moving,
    /// Sends each request on a new connection.
    Arriving,
    /// Reads a large answer slowly.
    Downloading,
}

const PHASES: [Phase; 5] = [Phase::Idle, Phase::Moving, Phase::Arriving, Phase::Downloading, Phase::Silent];

/// One kill, as all clients see it.
struct Round {
    vip: SocketAddr,
    body: Vec<u8>,
    large: Vec<u8>,
    ready: AtomicUsize,
    killed: OnceLock<Instant>,
    kill: Mutex<bool>,
    killing: Condvar,
    fates: Mutex<Vec<(Phase, Fate, Duration)>>,
}

impl Round {
    fn is_over(&self) -> bool {
        self.killed.get().is_some()
    }

    fn since_kill(&self) -> Duration {
        self.killed.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// A client has a connection in the phase in which it is wanted.
    fn is_ready(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes what became of a request that was sent then.
    fn note(&self, phase: Phase, sent_at: Instant, answer: &io::Result<()>) {
        let killed = *self.killed.get().expect("nothing is noted before the kill");
        let waited = killed.max(sent_at).elapsed();
        let fate = match answer {
            _ if waited > BOUND => Fate::Hung,
            Ok(()) if sent_at < killed => Fate::Answered,
            Ok(()) => Fate::WentOn,
            Err(error) => {
                assert!(!matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
                Fate::Reset
            }
        };
        self.fates.lock().unwrap().push((phase, fate, waited));
    }

    fn connect(&self, receive_bytes: Option<usize>) -> io::Result<Client> {
        let socket = Socket::new(Domain::for_address(self.vip), Type::STREAM, Some(Protocol::TCP))?;
        if let Some(bytes) = receive_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.connect_timeout(&self.vip.into(), Duration::from_secs(5))?;
        let client = Client::over(socket.into())?;
        client.stream.set_read_timeout(Some(GIVE_UP))?;
        Ok(client)
    }

    /// A request and its answer, which must be whole and right.
    fn get(&self, client: &mut Client) -> io::Result<()> {
        let answer = client.get("/body")?;
        if self.is_over() && answer.status == 503 {
            // The new process does not know yet which back-ends are up.
            return Ok(());
        }
        assert!(answer.status == 200 && answer.body == self.body, "an answer was spoiled: {}", answer.head);
        Ok(())
    }

    fn tell_kill(&self) {
        self.killed.get_or_init(Instant::now);
        *self.kill.lock().unwrap() = true;
        self.killing.notify_all();
    }

    /// Waits until the front-end is killed.
    fn wait_for_kill(&self) {
        let kill = self.kill.lock().unwrap();
        drop(self.killing.wait_while(kill, |is_over| !*is_over).unwrap());
    }

    fn run(&self, phase: Phase, number: usize) {
        match phase {
            Phase::Idle | Phase::Silent => self.rest(phase, number),
            Phase::Moving => self.ask_on(phase, number, false),
            Phase::Arriving => self.ask_on(phase, number, true),
            Phase::Downloading => self.download(),
        }
    }

    fn rest(&self, phase: Phase, number: usize) {
        let mut client = self.connect(None).unwrap();
        self.get(&mut client).unwrap();
        self.is_ready();
        self.wait_for_kill();
        let until = match phase {
            Phase::Silent => BOUND,
            // While there is no front-end, or when the next one starts, or settles.
            _ => Duration::from_millis(number as u64 * 13 % 1500),
        };
        pace(until.saturating_sub(self.since_kill()), Why::UnderLoad);
        let sent_at = Instant::now();
        let answer = self.get(&mut client);
        self.note(phase, sent_at, &answer);
    }

    fn ask_on(&self, phase: Phase, number: usize, anew: bool) {
        let mut client = self.connect(None).unwrap();
        let mut state = number as u64 + 1;
        for count in 0.. {
            let sent_at = Instant::now();
            let answer = self.get(&mut client);
            if self.is_over() {
                return self.note(phase, sent_at, &answer);
            }
            answer.unwrap();
            if count == 0 {
                self.is_ready();
            }
            pace(Duration::from_micros(super::faults::next(&mut state, 80_000)), Why::UnderLoad);
            if anew && !self.is_over() {
                match self.connect(None) {
                    Ok(fresh) => client = fresh,
                    // Killed just now. The connection that it has is the one that counts.
                    Err(_) => self.wait_for_kill(),
                }
            }
        }
    }

    fn download(&self) {
        const PIECE: usize = 15_000;
        let mut client = self.connect(Some(16 << 10)).unwrap();
        client.send("/large").unwrap();
        let mut all = Vec::new();
        let mut buffer = vec![0; PIECE];
        let mut longest = Duration::ZERO;
        let mut began = Instant::now();
        let (mut end, mut is_ready) = (None, false);
        let outcome = loop {
            // A client that rests is not one that waits.
            let asked_at = Instant::now();
            let read = uninterrupted(|| client.stream.read(&mut buffer));
            if self.is_over() {
                longest = longest.max(self.killed.get().unwrap().max(&asked_at).elapsed());
            }
            match read {
                Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => all.extend_from_slice(&buffer[..count]),
                Err(error) => break Err(error),
            }
            if end.is_none() {
                let head = all.windows(4).position(|w| w == b"\r\n\r\n");
                end = head.map(|at| at + 4 + LARGE);
            }
            if end == Some(all.len()) {
                break Ok(());
            }
            if !is_ready {
                self.is_ready();
                is_ready = true;
                began = Instant::now();
            }
            // Not faster than this, so that it is under way at the kill; what is left then, at once.
            let due = began + Duration::from_micros(all.len() as u64 * 20);
            if !self.is_over() {
                pace(due.saturating_duration_since(Instant::now()), Why::UnderLoad);
            }
        };
        self.wait_for_kill();
        if outcome.is_ok() {
            assert!(all[all.len() - LARGE..] == self.large, "a download was spoiled");
        }
        let fate = match outcome {
            _ if longest > BOUND => Fate::Hung,
            Ok(()) => Fate::WentOn,
            Err::<_, io::Error>(_) => Fate::Reset,
        };
        self.fates.lock().unwrap().push((Phase::Downloading, fate, longest));
    }
}

struct Killed<'a>(&'a Round);

impl Drop for Killed<'_> {
    fn drop(&mut self) {
        self.0.tell_kill();
    }
}

/// Five hundred clients, a kill, and what became of them.
fn kill_once(bed: &mut Bed, wait: Duration) -> Vec<(Phase, Fate, Duration)> {
    let round = Round {
        vip: bed.vip(),
        body: content(7, BODY),
        large: content(9, LARGE),
        ready: AtomicUsize::new(0),
        killed: OnceLock::new(),
        kill: Mutex::default(),
        killing: Condvar::new(),
        fates: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let shared = &round;
        bed.client(|| {
            for number in 0..CLIENTS {
                let phase = PHASES[number % PHASES.len()];
                let thread = std::thread::Builder::new().stack_size(256 << 10);
                thread.spawn_scoped(scope, move || shared.run(phase, number)).unwrap();
            }
        });
        // Whatever happens, threads do not wait for ever.
        let _killed = Killed(&round);
        eventually("clients", || round.ready.load(Ordering::Relaxed) == CLIENTS);
        pace(wait, Why::UnderLoad);
        round.killed.set(Instant::now()).unwrap();
        bed.kill_front_end();
        round.tell_kill();
        pace(DOWN, Why::TimeIsUp);
        bed.start_front_end();
    });
    round.fates.into_inner().unwrap()
}

#[test]
fn five_hundred_clients_of_a_front_end_that_is_killed() {
    let files = [("body", content(7, BODY)), ("large", content(9, LARGE))];
    let config = "[admission]\nlimit = 10000\n".to_owned();
    let mut bed = Bed::new(Options { config, ..Options::default() }, &files);
    let mut state = u64::from(std::process::id());
    eprintln!("answered, went on, reset, hung; longest wait of each phase, ms");
    for _ in 0..ROUNDS {
        let fates = kill_once(&mut bed, Duration::from_micros(super::faults::next(&mut state, 300_000)));
        let of = |fate| fates.iter().filter(|(_, f, _)| *f == fate).count();
        let [answered, went_on, reset, hung] =
            [Fate::Answered, Fate::WentOn, Fate::Reset, Fate::Hung].map(of);
        let worst =
            |phase| fates.iter().filter(|(p, ..)| *p == phase).map(|(.., waited)| waited.as_millis()).max();
        let worst: Vec<String> =
            PHASES.iter().map(|p| format!("{p:?} {}", worst(*p).unwrap_or_default())).collect();
        eprintln!("{answered:4} {went_on:4} {reset:4} {hung:4}  {}", worst.join(", "));
        let hanging: Vec<_> = fates.iter().filter(|(_, fate, _)| *fate == Fate::Hung).collect();
        assert!(hanging.is_empty(), "{hanging:?}");
        assert_eq!(fates.len(), CLIENTS);
        bed.wait_for_links(2);
        bed.assert_quiet();
    }
    bed.stop_after_crash();
}

/// Clients that sent a request while something kept it from being answered, then a kill: each must be told.
fn assert_all_told(bed: &mut Bed, clients: Vec<Client>, repair: impl FnOnce(&Bed)) {
    let killed = Instant::now();
    bed.kill_front_end();
    repair(bed);
    pace(DOWN, Why::TimeIsUp);
    bed.start_front_end();
    for mut client in clients {
        client.stream.set_read_timeout(Some(GIVE_UP)).unwrap();
        let end = client.answer().map(|answer| answer.status);
        let waited = killed.elapsed();
        let silent = end.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(!silent && waited < BOUND, "{end:?} after {waited:?}");
    }
    bed.wait_for_links(2);
    bed.assert_quiet();
}

#[test]
fn clients_whose_handoff_was_not_confirmed_are_told() {
    const COUNT: usize = 40;
    let handoff = "take_over_timeout = \"5s\"".to_owned();
    let mut bed = Bed::new(Options { handoff, ..Options::default() }, &[("body", content(7, BODY))]);
    let vip = bed.vip();
    // The agents find the handoffs only after the front-end is gone.
    bed.agents.iter().flatten().for_each(|agent| agent.pause().unwrap());
    let clients: Vec<Client> = bed.client(|| {
        let mut clients: Vec<Client> = (0..COUNT).map(|_| Client::connect(vip).unwrap()).collect();
        clients.iter_mut().for_each(|client| client.send("/body").unwrap());
        clients
    });
    eventually("handoffs", || bed.metric("plimsoll_flows") == Some(COUNT as f64));
    assert_all_told(&mut bed, clients, |bed| {
        bed.agents.iter().flatten().for_each(|agent| agent.resume().unwrap());
    });
    bed.stop_after_crash();
}

#[test]
fn a_client_whose_connection_was_being_given_back_is_told() {
    let mut bed = Bed::new(Options::default(), &[("body", content(7, BODY))]);
    let vip = bed.vip();
    let mut client = bed.client(|| Client::connect(vip).unwrap());
    assert_eq!(client.get("/body").unwrap().status, 200);
    let returned = |bed: &Bed| bed.metric("plimsoll_handoffs_on_total").unwrap();
    let before = returned(&bed);
    // The agent asks, and hears that the connection is to come back. The longer message with which it does is lost.
    bed.lab.drop_frames("tcp sport 7400 ip length > 160").unwrap();
    client.send("/body").unwrap();
    let here = |bed: &Bed| -> usize {
        (0..2)
            .map(|index| {
                let node = bed.lab.node(plimsoll_lab::Node::Backend(index)).unwrap();
                let arguments = ["-tanH", "state", "established", "src", &vip.to_string()];
                let sockets = node.command("ss").args(arguments).output().unwrap();
                String::from_utf8_lossy(&sockets.stdout).lines().count()
            })
            .sum()
    };
    eventually("return", || here(&bed) == 0);
    assert_eq!(returned(&bed), before, "a connection arrived elsewhere");
    assert_all_told(&mut bed, vec![client], |bed| bed.lab.pass_frames().unwrap());
    bed.stop_after_crash();
}
