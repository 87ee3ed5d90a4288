//! Datagrams that are no announcements: none is taken, all are counted, and those of real nodes are heard meanwhile.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, SystemTime};

use plimsoll_directory::{
    AnnouncementKey, Announcer, DropReason, MOST_ANNOUNCEMENT_BYTES, Said, TransportSettings,
};
use plimsoll_testkit::{Why, eventually_async, pace_async};
use plimsoll_wire::Key;
use socket2::Socket;

use crate::common::{Meeting, key, knows, names, offer};

const EACH: u64 = 25_000;
/// Sent at once: less than the system keeps.
const BURST: usize = 500;
/// Each sender may say 2,000 things a second.
const SENDERS: u8 = 200;

/// A socket with an address of its own on loopback.
fn attacker(number: u8) -> Socket {
    let socket = Socket::from(UdpSocket::bind((Ipv4Addr::new(127, 66, 0, number), 0)).unwrap());
    socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    socket
}

fn now_ms() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis().try_into().unwrap()
}

/// Forged, replayed, truncated and random, in turn.
fn bad_datagrams(valid: &[u8]) -> impl FnMut(u64) -> Vec<u8> {
    let mut forger = Announcer::new(
        AnnouncementKey::of(&Key::new([8; 32])),
        "forger".to_owned(),
        9,
        Duration::from_secs(2),
    );
    let valid = valid.to_vec();
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    move |number| match number % 4 {
        0 => forger.seal(Said::Offers(vec![offer("s", 6)]), now_ms()),
        1 => valid.clone(),
        2 => valid[..usize::try_from(random()).unwrap() % valid.len()].to_vec(),
        _ => {
            let length = usize::try_from(random()).unwrap() % (2 * MOST_ANNOUNCEMENT_BYTES);
            (0..length).map(|_| random().to_le_bytes()[0]).collect()
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_forged_replayed_truncated_or_random_datagram_is_taken() {
    let meeting = Meeting::multicast();
    let TransportSettings::Multicast(group) = &meeting.transport else { unreachable!() };
    let group = group.group;
    let watching = meeting.node(None, &[]);
    let real = meeting.node(Some("real"), &[offer("s", 1)]);
    knows(&watching, &["s/0 real"]).await;
    // What the attacker has recorded, of a node that has left since.
    let mut gone = Announcer::new(AnnouncementKey::of(&key()), "gone".to_owned(), 5, meeting.ttl);
    let recorded = gone.seal(Said::Offers(vec![offer("s", 7)]), now_ms());
    let goodbye = gone.seal(Said::Goodbye, now_ms());
    let attackers: Vec<Socket> = (1..=SENDERS).map(attacker).collect();
    let send = |sender: usize, bytes: &[u8]| attackers[sender].send_to(bytes, &group.into()).unwrap();
    send(0, &recorded);
    knows(&watching, &["s/0 gone", "s/0 real"]).await;
    send(0, &goodbye);
    knows(&watching, &["s/0 real"]).await;
    let counts = watching.counts();
    let dropped = || DropReason::ALL.iter().map(|&reason| counts.dropped(reason)).sum::<u64>();
    let mut bad = bad_datagrams(&recorded);
    let mut sent = 0;
    // Empty datagrams, which random ones can be, are counted like the others.
    while sent < 4 * EACH {
        for sender in (0..attackers.len()).cycle().take(BURST) {
            send(sender, &bad(sent));
            sent += 1;
        }
        // The socket's buffer must not overflow: what the system drops nobody can count.
        eventually_async("all to be counted", async || dropped() >= sent).await;
        assert_eq!(names(&watching.view()), ["s/0 real"]);
    }
    assert_eq!(dropped(), sent);
    for reason in DropReason::ALL {
        println!("{reason}: {}", counts.dropped(reason));
    }
    let told = [DropReason::Forged, DropReason::Replayed, DropReason::Truncated, DropReason::Foreign];
    assert!(told.iter().all(|&reason| counts.dropped(reason) > 0));
    pace_async(meeting.ttl, Why::TimeIsUp).await;
    assert_eq!(names(&watching.view()), ["s/0 real"], "it was heard all the time");
    eventually_async("its network to be well", async || watching.view().away.is_none()).await;
    drop(real);
}
