//! Asks an agent over a socket of its own.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use plimsoll_testkit::{PATIENCE, uninterrupted};
use plimsoll_wire::load::{DATAGRAM_BYTES, Datagram, InquiryLimits, LoadInquirer, LoadKeys, LoadTaken};

use super::key;

/// A socket that is connected to the agent.
pub(crate) fn asking(agent: SocketAddr) -> UdpSocket {
    let here = if agent.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let socket = UdpSocket::bind(here).unwrap();
    socket.connect(agent).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

pub(crate) struct Asker {
    socket: UdpSocket,
    pub(crate) inquirer: LoadInquirer,
    origin: Instant,
    /// The last inquiry.
    pub(crate) recorded: Datagram,
}

impl Asker {
    pub(crate) fn of(agent: SocketAddr) -> Self {
        let random = plimsoll_wire::random().unwrap();
        let inquirer = LoadInquirer::new(LoadKeys::new(&key()), random, InquiryLimits::default());
        Self { socket: asking(agent), inquirer, origin: Instant::now(), recorded: [0; DATAGRAM_BYTES] }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap()
    }

    /// Load and latency, at the second attempt at the latest.
    pub(crate) fn load(&mut self) -> (u32, u32) {
        for _ in 0..2 {
            let (_, inquiry) = self.inquirer.ask(0, self.now_ns()).unwrap();
            self.recorded = inquiry;
            uninterrupted(|| self.socket.send(&inquiry)).unwrap();
            let mut reply = [0; 100];
            let bytes = uninterrupted(|| self.socket.recv(&mut reply)).unwrap();
            assert!(bytes <= inquiry.len());
            let taken = self.inquirer.take(&reply[..bytes], self.now_ns()).unwrap();
            if let LoadTaken::Load { load, latency_us, .. } = taken {
                return (load, latency_us);
            }
        }
        panic!("renewed twice");
    }

    /// Asks somebody who is not there.
    pub(crate) fn in_vain(&mut self) {
        let (sequence, inquiry) = self.inquirer.ask(0, self.now_ns()).unwrap();
        // The system may say at once that nobody is there.
        let answer = self.socket.send(&inquiry).and_then(|_| self.socket.recv(&mut [0; 100]));
        assert!(answer.is_err());
        self.inquirer.give_up(sequence);
    }
}
