//! Front-ends by which agents announce their loads, lie, are killed, or stopped.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use plimsoll_testkit::{OwnLoopback, eventually, uninterrupted};
use plimsoll_wire::Key;
use plimsoll_wire::load::{Inquiry, LoadAnnouncement, LoadKeys, LoadReply};

use super::load_information::{KEY, KeyFile, LOAD_PORT, Told, counted, load, put};
use super::processes::{FrontEnd, Process};

#[test]
fn announced_loads_are_used_and_their_silence_is_noticed() {
    let key = KeyFile::new();
    let listener = OwnLoopback::new();
    let listen = listener.at(7403).to_string();
    let announce = ["--load-announce", &listen, "--load-interval", "0.02"];
    let mut backends: Vec<Told> = (0..3).map(|n| Told::start(&key, &format!("b{n}"), &announce)).collect();
    let addresses: Vec<SocketAddr> = backends.iter().map(|b| b.origin).collect();
    let table = key.table("broadcast", &format!("listen = \"{listen}\"\ninterval = \"50ms\"\n"));
    let health = "[health]\nprobe = \"none\"\n[policy]\nname = \"least_connections\"\n";
    let front_end = FrontEnd::start(&addresses, &format!("{health}{table}"));
    eventually("loads come in", || counted(&front_end, "plimsoll_load_reports_total") > 20.0);
    load(front_end.address, 300);
    // What others have assigned shows, once it is told.
    put(backends[0].api, "other", 9);
    put(backends[1].api, "other", 3);
    let shown = |n: usize| front_end.get("/backends")[n]["shown_load"].as_u64().unwrap();
    eventually("both are seen", || shown(0) == 9 && shown(1) == 3 && shown(2) == 0);
    // One that is killed is in the middle of the others.
    backends[0].process.kill();
    eventually("it is like the others", || shown(0) == 2);
    assert!(counted(&front_end, "plimsoll_load_neutral_total") >= 1.0);
    assert!(backends[1].load.port() == LOAD_PORT);
}

/// An agent that answers no inquiry but with its boot id, and announces what it is told to.
struct Announces {
    socket: UdpSocket,
    keys: LoadKeys,
    origin: Instant,
    sequence: u64,
    to: SocketAddr,
}

impl Announces {
    fn start(own: &OwnLoopback, to: SocketAddr) -> Self {
        let socket = UdpSocket::bind(own.at(LOAD_PORT)).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, keys: LoadKeys::new(&Key::new(KEY)), origin: Instant::now(), sequence: 0, to }
    }

    fn clock_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap()
    }

    /// Tells its boot id to whoever has asked for it meanwhile.
    fn tell_boot_id(&self) {
        let (mut buffer, clock_ns) = ([0; 100], self.clock_ns());
        while let Ok((bytes, source)) = uninterrupted(|| self.socket.recv_from(&mut buffer)) {
            if let Ok(Inquiry { boot: 0, client, sequence, .. }) = Inquiry::open(&buffer[..bytes], &self.keys)
            {
                let reply = LoadReply { boot: 1, client, sequence, clock_ns, load: None, latency_us: 0 };
                self.socket.send_to(&reply.seal(&self.keys), source).unwrap();
            }
        }
    }

    fn announce(&mut self, load: u32, interval_ns: u64) {
        self.tell_boot_id();
        self.sequence += 1;
        let (boot, sequence, clock_ns) = (1, self.sequence, self.clock_ns());
        let said = LoadAnnouncement { boot, sequence, clock_ns, interval_ns, load, latency_us: 0 };
        self.socket.send_to(&said.seal(&self.keys), self.to).unwrap();
    }
}

/// A front-end by which loads are announced: two back-ends with loads of 9 and 3, and a third one.
struct Announced {
    front_end: FrontEnd,
    _others: Vec<Told>,
    third: OwnLoopback,
    listen: SocketAddr,
    _listener: OwnLoopback,
}

impl Announced {
    fn start(key: &KeyFile) -> Self {
        let (listener, third) = (OwnLoopback::new(), OwnLoopback::new());
        let listen = listener.at(7403);
        let to = listen.to_string();
        let announce = ["--load-announce", &to, "--load-interval", "0.02"];
        let others: Vec<Told> = (0..2).map(|n| Told::start(key, &format!("b{n}"), &announce)).collect();
        let addresses = [others[0].origin, others[1].origin, third.at(8000)];
        let table = key.table("broadcast", &format!("listen = \"{listen}\"\ninterval = \"50ms\"\n"));
        let health = "[health]\nprobe = \"none\"\n[policy]\nname = \"least_connections\"\n";
        let front_end = FrontEnd::start(&addresses, &format!("{health}{table}"));
        put(others[0].api, "other", 9);
        put(others[1].api, "other", 3);
        Self { front_end, _others: others, third, listen, _listener: listener }
    }

    fn shown(&self) -> [u64; 3] {
        let backends = self.front_end.get("/backends");
        [0, 1, 2].map(|n| backends[n]["shown_load"].as_u64().unwrap())
    }
}

#[test]
fn an_announcing_agent_that_lies_or_falls_silent_becomes_like_the_others() {
    let key = KeyFile::new();
    let announced = Announced::start(&key);
    let mut liar = Announces::start(&announced.third, announced.listen);
    // It tells of no load, and that it will be heard next in 584 years.
    eventually("its load is taken", || {
        liar.announce(1, u64::MAX);
        announced.shown() == [9, 3, 1]
    });
    liar.announce(0, u64::MAX);
    eventually("its silence is noticed", || announced.shown() == [9, 3, 6]);
    eventually("it is heard again", || {
        liar.announce(1, u64::MAX);
        announced.shown() == [9, 3, 1]
    });
    let refused = "plimsoll_load_refused_total{reason=\"implausible\"}";
    let before = counted(&announced.front_end, refused);
    eventually("what no back-end has is refused", || {
        liar.announce(u32::MAX, 1);
        counted(&announced.front_end, refused) > before
    });
    eventually("it is like the others", || announced.shown() == [9, 3, 6]);
}

#[test]
fn an_announcing_agent_that_is_stopped_becomes_like_the_others_until_it_goes_on() {
    let key = KeyFile::new();
    let announced = Announced::start(&key);
    let (load, to) = (announced.third.at(LOAD_PORT).to_string(), announced.listen.to_string());
    let agent = Process::start(&[
        "agent",
        "--key",
        &key.path,
        "--load-listen",
        &load,
        "--load-api",
        "127.0.0.1:0",
        "--load-announce",
        &to,
        "--load-interval",
        "0.02",
    ]);
    put(agent.address("taking loads on http://"), "other", 1);
    eventually("its load is taken", || announced.shown() == [9, 3, 1]);
    agent.signal("-STOP");
    eventually("its silence is noticed", || announced.shown() == [9, 3, 6]);
    agent.signal("-CONT");
    eventually("it is heard again", || announced.shown() == [9, 3, 1]);
}
