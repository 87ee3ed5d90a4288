//! Clients in all phases of a connection, a fault at whatever instant, and what becomes of them: each is answered, goes on, or
//! is reset within the bound. None is left hanging.

use std::io::{self, ErrorKind, Read as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use plimsoll_testkit::{Why, eventually, pace, uninterrupted};
use socket2::{Domain, Protocol, Socket, Type};

use super::bed::Bed;
use super::http::{Client, content};

pub(super) const BODY: usize = 20_000;
const LARGE: usize = 1_500_000;
/// What is promised: from the fault, or from what a client sent later.
pub(super) const BOUND: Duration = Duration::from_secs(3);
/// A client that has waited for so long hangs.
pub(super) const GIVE_UP: Duration = Duration::from_secs(12);

/// What became of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The request that was under way at the fault was answered.
    Answered,
    /// There was no request at the fault, and a later one was answered; or a download did not stop.
    WentOn,
    /// The client was told that the connection is over.
    Reset,
    /// Nothing was heard within the bound.
    Hung,
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Has had an answer, and sends its next request right after the fault.
    Idle,
    /// The same, but it sends at some time after the link was given up and before its client is reset.
    Late,
    /// The same, but it waits until the bound is over.
    Silent,
    /// Sends one request after the other on one connection, which moves with each.
    Moving,
    /// Sends each request on a new connection.
    Arriving,
    /// Reads a large answer slowly.
    Downloading,
}

pub(super) const PHASES: [Phase; 5] =
    [Phase::Idle, Phase::Moving, Phase::Arriving, Phase::Downloading, Phase::Silent];

/// One fault, as all clients see it.
struct Round {
    vip: SocketAddr,
    body: Vec<u8>,
    large: Vec<u8>,
    ready: AtomicUsize,
    fault_at: OnceLock<Instant>,
    happened: Mutex<bool>,
    happening: Condvar,
    fates: Mutex<Vec<(Phase, Fate, Duration)>>,
}

impl Round {
    fn is_over(&self) -> bool {
        self.fault_at.get().is_some()
    }

    fn since_fault(&self) -> Duration {
        self.fault_at.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// A client has a connection in the phase in which it is wanted.
    fn is_ready(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes what became of a request that was sent then.
    fn note(&self, phase: Phase, sent_at: Instant, answer: &io::Result<()>) {
        let fault_at = *self.fault_at.get().expect("nothing is noted before the fault");
        let waited = fault_at.max(sent_at).elapsed();
        let fate = match answer {
            _ if waited > BOUND => Fate::Hung,
            Ok(()) if sent_at < fault_at => Fate::Answered,
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
        if self.is_over() && matches!(answer.status, 502 | 503) {
            // A new process does not know yet which back-ends are up; or what answered has just failed.
            return Ok(());
        }
        assert!(answer.status == 200 && answer.body == self.body, "an answer was spoiled: {}", answer.head);
        Ok(())
    }

    fn tell(&self) {
        self.fault_at.get_or_init(Instant::now);
        *self.happened.lock().unwrap() = true;
        self.happening.notify_all();
    }

    /// Waits until the fault has happened.
    fn wait_for_fault(&self) {
        let happened = self.happened.lock().unwrap();
        drop(self.happening.wait_while(happened, |is_over| !*is_over).unwrap());
    }

    fn run(&self, phase: Phase, number: usize) {
        match phase {
            Phase::Idle | Phase::Late | Phase::Silent => self.rest(phase, number),
            Phase::Moving => self.ask_on(phase, number, false),
            Phase::Arriving => self.ask_on(phase, number, true),
            Phase::Downloading => self.download(),
        }
    }

    fn rest(&self, phase: Phase, number: usize) {
        let mut client = self.connect(None).unwrap();
        self.get(&mut client).unwrap();
        self.is_ready();
        self.wait_for_fault();
        let until = match phase {
            Phase::Silent => BOUND,
            Phase::Late => Duration::from_millis(1550 + number as u64 * 7 % 300),
            // While there is no front-end, or when the next one starts, or settles.
            _ => Duration::from_millis(number as u64 * 13 % 1500),
        };
        pace(until.saturating_sub(self.since_fault()), Why::UnderLoad);
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
                    // It has happened just now. The connection that it has is the one that counts.
                    Err(_) => self.wait_for_fault(),
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
                longest = longest.max(self.fault_at.get().unwrap().max(&asked_at).elapsed());
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
            // Not faster than this, so that it is under way at the fault; what is left then, at once.
            let due = began + Duration::from_micros(all.len() as u64 * 20);
            if !self.is_over() {
                pace(due.saturating_duration_since(Instant::now()), Why::UnderLoad);
            }
        };
        self.wait_for_fault();
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

struct Told<'a>(&'a Round);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.tell();
    }
}

/// What is served in a bed whose clients see faults.
pub(super) fn files() -> [(&'static str, Vec<u8>); 2] {
    [("body", content(7, BODY)), ("large", content(9, LARGE))]
}

/// Clients in these phases, a fault, then a repair, and what became of the clients. The fault comes `wait` after they are ready.
/// Prints a line, and panics if one hangs.
pub(super) fn see(
    bed: &mut Bed,
    (clients, phases): (usize, &[Phase]),
    wait: Duration,
    fault: impl FnOnce(&mut Bed),
    repair: impl FnOnce(&mut Bed),
) -> Vec<(Phase, Fate, Duration)> {
    let round = Round {
        vip: bed.vip(),
        body: content(7, BODY),
        large: content(9, LARGE),
        ready: AtomicUsize::new(0),
        fault_at: OnceLock::new(),
        happened: Mutex::default(),
        happening: Condvar::new(),
        fates: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let shared = &round;
        bed.client(|| {
            for number in 0..clients {
                let phase = phases[number % phases.len()];
                let thread = std::thread::Builder::new().stack_size(256 << 10);
                thread.spawn_scoped(scope, move || shared.run(phase, number)).unwrap();
            }
        });
        // Whatever happens, threads do not wait for ever.
        let _told = Told(&round);
        eventually("clients", || round.ready.load(Ordering::Relaxed) == clients);
        pace(wait, Why::UnderLoad);
        round.fault_at.set(Instant::now()).unwrap();
        fault(bed);
        round.tell();
        repair(bed);
    });
    let fates = round.fates.into_inner().unwrap();
    show(&fates, phases);
    let hanging: Vec<_> = fates.iter().filter(|(_, fate, _)| *fate == Fate::Hung).collect();
    assert!(hanging.is_empty(), "{hanging:?}");
    assert_eq!(fates.len(), clients);
    fates
}

fn show(fates: &[(Phase, Fate, Duration)], phases: &[Phase]) {
    let of = |fate| fates.iter().filter(|(_, f, _)| *f == fate).count();
    let [answered, went_on, reset, hung] = [Fate::Answered, Fate::WentOn, Fate::Reset, Fate::Hung].map(of);
    let worst =
        |phase| fates.iter().filter(|(p, ..)| *p == phase).map(|(.., waited)| waited.as_millis()).max();
    let worst: Vec<String> =
        phases.iter().map(|p| format!("{p:?} {}", worst(*p).unwrap_or_default())).collect();
    eprintln!(
        "{answered} answered, {went_on} went on, {reset} reset, {hung} hung; longest waits in ms: {}",
        worst.join(", ")
    );
}
