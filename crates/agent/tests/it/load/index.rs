//! The load index manager over real sockets.

use std::net::UdpSocket;
use std::time::Instant;

use plimsoll_agent::load::{LoadConfig, LoadRole, PreparedLoad};
use plimsoll_testkit::uninterrupted;
use plimsoll_wire::load::{Datagram, IndexAnswer, IndexClient, LoadKeys};

use super::asker::asking;
use super::{key, loopback};

struct IndexAsker {
    socket: UdpSocket,
    client: IndexClient,
    origin: Instant,
}

impl IndexAsker {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap()
    }

    fn tell(&mut self, first: Datagram) -> IndexAnswer {
        let mut datagram = first;
        loop {
            uninterrupted(|| self.socket.send(&datagram)).unwrap();
            let mut answer = [0; 100];
            let bytes = uninterrupted(|| self.socket.recv(&mut answer)).unwrap();
            let now_ns = self.now_ns();
            match self.client.take(&answer[..bytes], now_ns).unwrap() {
                IndexAnswer::Renewed { sequence } => datagram = self.client.repeat(sequence, now_ns).unwrap(),
                answer => return answer,
            }
        }
    }
}

#[test]
fn clients_share_back_ends_evenly() {
    let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    let config = LoadConfig::new(loopback(), key(), LoadRole::Index(names.clone()));
    let service = PreparedLoad::new(config).unwrap().start().unwrap();
    let mut clients: Vec<IndexAsker> = (0..3)
        .map(|_| {
            let random = plimsoll_wire::random().unwrap();
            let client = IndexClient::new(LoadKeys::new(&key()), random, &names, 100);
            IndexAsker { socket: asking(service.address()), client, origin: Instant::now() }
        })
        .collect();
    let mut held = Vec::new();
    let mut of_each = [0; 4];
    for round in 0..20 {
        let who = round % 3;
        let asker = &mut clients[who];
        let (_, acquire) = asker.client.acquire(asker.now_ns()).unwrap();
        let IndexAnswer::Granted { sequence, backend } = asker.tell(acquire) else { panic!() };
        of_each[backend] += 1;
        held.push((who, sequence));
    }
    assert_eq!(of_each, [5; 4]);
    for (who, sequence) in held {
        let asker = &mut clients[who];
        let release = asker.client.release(sequence, asker.now_ns()).unwrap();
        assert_eq!(asker.tell(release), IndexAnswer::Released { sequence });
    }
    assert_eq!(service.status().counts.refused_total(), 0);
    service.stop();
}
