use std::net::TcpStream;

use plimsoll_config::{PeerConfig, PeersConfig};
use plimsoll_testkit::{PATIENCE, eventually_async};
use plimsoll_wire::Key;
use tokio::io::AsyncReadExt as _;

use super::*;

/// A front-end that is called `name`, with these others, and where it listens.
fn peers(name: &str, key: &Key, others: &[(&str, u16)]) -> Arc<Peers> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let other = |&(name, port): &(&str, u16)| PeerConfig {
        name: name.to_owned(),
        host: "127.0.0.1".to_owned(),
        port,
    };
    let config = PeersConfig {
        name: name.to_owned(),
        local: "b".into(),
        address: listener.local_addr().unwrap(),
        key: key.clone(),
        others: others.iter().map(other).collect(),
        period: Duration::from_millis(100),
        keep: Duration::from_secs(5),
    };
    Arc::new(Peers::new(config, listener).unwrap())
}

fn serving(peers: &Arc<Peers>) -> tokio::task::JoinHandle<()> {
    let listener = peers.listener.lock().unwrap().take().unwrap();
    tokio::spawn(serve(Arc::clone(peers), listener))
}

async fn ask(peers: &Arc<Peers>) -> io::Result<()> {
    tokio::time::timeout(Duration::from_secs(5), exchange::ask(peers, &peers.config.others[0])).await.unwrap()
}

#[tokio::test]
async fn both_sides_hear_the_other_and_add_up() {
    let key = Key::generate().unwrap();
    let a = peers("a", &key, &[("b", 1)]);
    let b = peers("b", &key, &[("a", a.address.port())]);
    let task = serving(&a);
    a.tell(1, vec![(10, 100), (20, 5)]);
    b.tell(1, vec![(5, 1), (20, 7)]);
    ask(&b).await.unwrap();
    let both = [(5, 1), (10, 100), (20, 12)];
    assert_eq!((a.sum(), b.sum()), (both.to_vec(), both.to_vec()));
    assert!(a.states()[0].agrees && b.states()[0].agrees && a.states()[0].age.is_some());
    // The next one takes the place of the one before, and what was overtaken on the way does not.
    let before = (*b.told()).clone();
    b.tell(2, vec![(5, 2)]);
    ask(&b).await.unwrap();
    a.heard("b", before);
    assert_eq!(a.sum(), [(5, 2), (10, 100), (20, 5)]);
    assert!(!a.states()[0].agrees);
    // A process that was started anew begins to count anew.
    let b = peers("b", &key, &[("a", a.address.port())]);
    b.tell(1, vec![(5, 3)]);
    ask(&b).await.unwrap();
    assert_eq!(a.sum(), [(5, 3), (10, 100), (20, 5)]);
    task.abort();
}

#[tokio::test]
async fn another_key_another_name_and_strangers_are_refused() {
    let key = Key::generate().unwrap();
    let a = peers("a", &key, &[("b", 1)]);
    let task = serving(&a);
    a.tell(1, vec![(10, 100)]);
    let port = a.address.port();
    let wrong_key = peers("b", &Key::generate().unwrap(), &[("a", port)]);
    let error = ask(&wrong_key).await.unwrap_err().to_string();
    assert!(error.contains("key"), "{error}");
    let wrong_name = peers("b", &key, &[("c", port)]);
    let error = ask(&wrong_name).await.unwrap_err().to_string();
    assert!(error.contains("it calls itself a"), "{error}");
    let stranger = peers("x", &key, &[("a", port)]);
    stranger.tell(1, vec![(1, 1)]);
    ask(&stranger).await.unwrap_err();
    for one in [&wrong_key, &wrong_name, &stranger] {
        assert!(one.known().values().all(|peer| peer.told.last(0).is_none()));
    }
    assert_eq!(a.sum(), [(10, 100)]);
    eventually_async("three refusals", async || a.refused.get() == 3).await;
    task.abort();
}

#[tokio::test]
async fn what_is_no_exchange_ends_and_costs_little() {
    let key = Key::generate().unwrap();
    let a = peers("a", &key, &[("b", 1)]);
    let task = serving(&a);
    let mut junk = tokio::net::TcpStream::connect(a.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut junk, &[0x5a; 1000]).await.unwrap();
    // It is closed, by a reset as it was not read to its end.
    let mut byte = [0; 64];
    let read = tokio::time::timeout(PATIENCE, junk.read(&mut byte)).await.unwrap();
    assert!(!matches!(read, Ok(1..)), "{read:?}");
    // Those that say nothing make room after a while, however many they are.
    let silent: Vec<TcpStream> =
        (0..CONNECTIONS + 5).map(|_| TcpStream::connect(a.address).unwrap()).collect();
    let b = peers("b", &key, &[("a", a.address.port())]);
    b.tell(1, vec![(5, 1)]);
    eventually_async("an exchange", async || ask(&b).await.is_ok()).await;
    drop(silent);
    task.abort();
}
