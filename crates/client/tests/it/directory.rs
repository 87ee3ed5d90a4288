//! The paper's figure 1: a gateway calls the photo album, which calls the image store of two partitions. All of them find one another by
//! the directory; the photo album is client and server at once. And a directory in etcd that dies under calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_client::{Endpoint, ServiceAccess, ServiceClient};
use plimsoll_directory::{
    DirectorySettings, DirectoryView, EtcdSettings, MulticastSettings, ServiceDirectory, ServiceOffer,
    TransportSettings,
};
use plimsoll_policy::Weight;
use plimsoll_testkit::{EtcdServer, eventually_async};

use crate::cluster::{Server, ask, key, polling};

/// The replicas of one service, as `docs/client.md` shows it.
fn replicas_of(service: &str) -> impl Fn(&Arc<DirectoryView>) -> Vec<Endpoint> + Send + Sync + 'static {
    let service = service.to_owned();
    move |view| {
        let of_service = view.replicas.iter().filter(|replica| replica.offer.key.service == service);
        let endpoint = of_service.map(|replica| {
            let offer = &replica.offer;
            let endpoint =
                Endpoint::new(&replica.node, offer.address).with_partitions([offer.key.partition.as_str()]);
            let weight = Weight::new(f64::from(offer.weight_steps) / 256.0).unwrap_or(Weight::ONE);
            let endpoint = endpoint.with_weight(weight);
            offer.inquiry.map_or(endpoint.clone(), |address| endpoint.with_load_address(address))
        });
        endpoint.collect()
    }
}

/// A node on loopback, in a group of this process.
fn node(name: Option<&str>, offers: &[ServiceOffer]) -> ServiceDirectory {
    let [.., high, low] = std::process::id().to_be_bytes();
    let group = std::net::SocketAddr::from(([239, 254, high, low], 21_500));
    let multicast = MulticastSettings { group, interface: Some("lo".to_owned()), hops: 1 };
    node_by(TransportSettings::Multicast(multicast), Duration::from_secs(2), name, offers)
}

fn node_by(
    transport: TransportSettings,
    ttl: Duration,
    name: Option<&str>,
    offers: &[ServiceOffer],
) -> ServiceDirectory {
    let name = name.map(str::to_owned);
    let directory =
        ServiceDirectory::start(DirectorySettings { key: key(), transport, node: name, ttl, only: None });
    let directory = directory.unwrap();
    directory.publish(offers).unwrap();
    directory
}

fn offer(partition: &str, server: &Server) -> ServiceOffer {
    let offered = server.endpoint();
    let offer = ServiceOffer::new(partition.parse().unwrap(), offered.address());
    ServiceOffer { inquiry: offered.load_address(), ..offer }
}

fn client(directory: &ServiceDirectory, service: &str) -> ServiceClient {
    let builder = ServiceClient::builder().service(service).policy("random_polling:size=2");
    builder.load_polling(polling()).subscribe(directory.subscribe(), replicas_of(service)).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_client_and_server_find_one_another() {
    let (album, store_0, both, store_1) = (
        Server::start("a").await,
        Server::start("b").await,
        Server::start("c").await,
        Server::start("d").await,
    );
    let album_node = node(Some("album"), &[offer("photo_album/0", &album)]);
    let first = node(Some("store-0"), &[offer("image_store/0", &store_0)]);
    let second = node(Some("store-both"), &[offer("image_store/0", &both), offer("image_store/1", &both)]);
    let third = node(Some("store-1"), &[offer("image_store/1", &store_1)]);
    let gateway_node = node(None, &[]);
    let gateway = client(&gateway_node, "photo_album");
    let images = client(&album_node, "image_store");
    eventually_async("all replicas", async || {
        gateway.loads("0").len() == 1 && images.loads("0").len() == 2 && images.loads("1").len() == 2
    })
    .await;

    for number in 0..40_u32 {
        let images = images.clone();
        // What the album does for the gateway: it calls the image store in the midst of an access.
        let page = async |endpoint: Endpoint| {
            images.call(if number % 2 == 0 { "0" } else { "1" }, ask).await.map_err(std::io::Error::other)?;
            ask(endpoint).await
        };
        gateway.call(ServiceAccess::to("0"), page).await.unwrap();
    }
    assert_eq!((album.served(), store_0.served() + both.served() + store_1.served()), (40, 40));
    assert!(store_0.served() <= 20 && store_1.served() <= 20);

    // One leaves, and nothing is asked of it any more.
    first.leave().await;
    eventually_async("one replica of partition 0", async || images.loads("0").len() == 1).await;
    let before = store_0.served();
    for _ in 0..20 {
        images.call("0", ask).await.unwrap();
    }
    assert_eq!(store_0.served(), before);
    assert!(images.loads("1").len() == 2);
    drop((second, third));
}

/// Calls until told to stop; how many there were, of which none failed.
async fn call_until(images: ServiceClient, stop: Arc<AtomicBool>) -> u32 {
    let mut calls = 0;
    while !stop.load(Ordering::Relaxed) {
        images.call("0", ask).await.unwrap();
        calls += 1;
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_dies_under_calls_fails_none() {
    let mut etcd = EtcdServer::start();
    let transport = TransportSettings::Etcd(EtcdSettings::new(vec![etcd.endpoint()]));
    let node =
        |name, offers: &[ServiceOffer]| node_by(transport.clone(), Duration::from_secs(3), name, offers);
    let (a, b, c) = (Server::start("a").await, Server::start("b").await, Server::start("c").await);
    let first = node(Some("a"), &[offer("image_store/0", &a)]);
    let second = node(Some("b"), &[offer("image_store/0", &b)]);
    let listener = node(None, &[]);
    let images = client(&listener, "image_store");
    eventually_async("two replicas", async || images.loads("0").len() == 2).await;

    let stop = Arc::<AtomicBool>::default();
    let calling = tokio::spawn(call_until(images.clone(), Arc::clone(&stop)));
    let mut seen = listener.subscribe();
    for _ in 0..2 {
        etcd.kill();
        seen.wait_for(|view| view.away.is_some()).await.unwrap();
        assert_eq!(images.loads("0").len(), 2, "the last map stays in use");
        let before = a.served() + b.served();
        eventually_async("calls without etcd", async || a.served() + b.served() >= before + 100).await;
        etcd.restart();
        seen.wait_for(|view| view.away.is_none()).await.unwrap();
        assert_eq!(images.loads("0").len(), 2, "etcd has them still");
    }

    // What comes and goes afterwards takes effect.
    let third = node(Some("c"), &[offer("image_store/0", &c)]);
    eventually_async("calls of the third", async || c.served() > 0).await;
    first.leave().await;
    eventually_async("the leave", async || images.loads("0").len() == 2).await;
    stop.store(true, Ordering::Relaxed);
    let calls = calling.await.unwrap();
    let served = a.served() + b.served() + c.served();
    println!("{calls} calls, {served} served, {} retries", images.counts().retries);
    assert_eq!(u64::from(calls), served);
    drop((second, third));
}
