//! Figure 1 of the fine-grain paper (Shen, Yang and Chu, IPDPS 2002) on one machine: a gateway shows pages of a photo album, and the photo
//! album asks an image store of two partitions for the images. Nodes publish what they offer by multicast on loopback, with the methods
//! that can be called, and choose replicas by polls. The photo album is server and client at once.
//!
//! `cargo run -p plimsoll-client --example photo_album`
#![allow(clippy::print_stdout, reason = "a program that shows something")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{
    Endpoint, Key, LoadGauge, LoadPolling, LoadResponder, PoolSizes, ServiceAccess, ServiceClient, WorkerPool,
};
use plimsoll_directory::{
    DirectorySettings, DirectoryView, MulticastSettings, Replica, ServiceDirectory, ServiceOffer,
    TransportSettings,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

const PAGES: usize = 12;
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

type Failure = Box<dyn Error + Send + Sync>;

/// A node of the cluster: what it publishes, and what it knows of others.
struct Node {
    name: String,
    directory: ServiceDirectory,
    key: Key,
}

impl Node {
    fn start(name: &str, key: &Key) -> Result<Self, Failure> {
        // A group of this process alone, so that two runs do not hear one another.
        let [.., high, low] = std::process::id().to_be_bytes();
        let group = SocketAddr::from(([239, 253, high, low], 21_501));
        let multicast = MulticastSettings { group, interface: Some("lo".to_owned()), hops: 1 };
        let directory = ServiceDirectory::start(DirectorySettings {
            key: key.clone(),
            transport: TransportSettings::Multicast(multicast),
            node: Some(name.to_owned()),
            ttl: Duration::from_secs(2),
            only: None,
        })?;
        Ok(Self { name: name.to_owned(), directory, key: key.clone() })
    }

    /// Serves these partitions, written `service/partition`, with two workers, and publishes that.
    async fn serve(
        &self,
        partitions: &[&str],
        method: &str,
        images: Option<ServiceClient>,
    ) -> Result<(), Failure> {
        let listener = TcpListener::bind(ANY_PORT).await?;
        let gauge = LoadGauge::new();
        let responder = LoadResponder::start(ANY_PORT, &self.key, gauge.clone())?;
        let offer = |partition: &&str| -> Result<ServiceOffer, Failure> {
            Ok(ServiceOffer {
                inquiry: Some(responder.address()),
                methods: vec![method.to_owned()],
                ..ServiceOffer::new(partition.parse()?, listener.local_addr()?)
            })
        };
        let offers = partitions.iter().map(offer).collect::<Result<Vec<_>, _>>()?;
        self.directory.publish(&offers)?;
        let pool = Arc::new(WorkerPool::new(PoolSizes { workers: 2, queue: 64 }, gauge)?);
        let name = self.name.clone();
        tokio::spawn(async move {
            let _answers_inquiries = responder;
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, name.clone(), Arc::clone(&pool), images.clone()));
            }
        });
        Ok(())
    }

    /// A client of a service, for whatever replicas the directory knows.
    fn client_of(&self, service: &'static str) -> Result<ServiceClient, Failure> {
        let replicas = move |view: &Arc<DirectoryView>| {
            let of_service = view.replicas.iter().filter(|replica| replica.offer.key.service == service);
            of_service.map(endpoint).collect::<Vec<_>>()
        };
        let builder = ServiceClient::builder().service(service).policy("random_polling:size=2");
        let builder = builder.load_polling(LoadPolling::new(self.key.clone()));
        Ok(builder.subscribe(self.directory.subscribe(), replicas).build()?)
    }
}

fn endpoint(replica: &Arc<Replica>) -> Endpoint {
    let offer = &replica.offer;
    let endpoint =
        Endpoint::new(&replica.node, offer.address).with_partitions([offer.key.partition.as_str()]);
    offer.inquiry.map_or(endpoint.clone(), |address| endpoint.with_load_address(address))
}

/// Answers one line with another: an image, or a page with its image.
async fn answer(
    stream: TcpStream,
    name: String,
    pool: Arc<WorkerPool>,
    images: Option<ServiceClient>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut asked = String::new();
    stream.read_line(&mut asked).await?;
    let mut shown = format!("{name} shows {}", asked.trim());
    if let Some(images) = images {
        let number: usize = asked.trim().trim_start_matches("page ").parse().unwrap_or(0);
        let image = format!("image {number}\n");
        let access = ServiceAccess::to(if number.is_multiple_of(2) { "0" } else { "1" }).repeatable();
        let got = images.call(access, |replica| ask(replica, image.clone())).await;
        shown = format!("{shown}: {}", got.map_err(io::Error::other)?);
    }
    let work = pool.run(|| std::thread::sleep(Duration::from_millis(1))).await;
    work.map_err(io::Error::other)?;
    stream.get_mut().write_all(format!("{shown}\n").as_bytes()).await
}

async fn ask(replica: Endpoint, line: String) -> io::Result<String> {
    let mut stream = BufReader::new(TcpStream::connect(replica.address()).await?);
    stream.get_mut().write_all(line.as_bytes()).await?;
    let mut answer = String::new();
    match stream.read_line(&mut answer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(answer.trim().to_owned()),
    }
}

/// Waits, for 10 s at most, until a node knows so many replicas.
async fn until_known(node: &Node, count: usize) -> Result<Arc<DirectoryView>, Failure> {
    let mut views = node.directory.subscribe();
    let known = views.wait_for(|view| view.replicas.len() == count);
    Ok(Arc::clone(&*tokio::time::timeout(Duration::from_secs(10), known).await??))
}

/// Shows some pages; what each was answered.
async fn show_pages() -> Result<Vec<String>, Failure> {
    let key = Key::generate()?;
    let stores = [
        ("store-0", vec!["image_store/0"]),
        ("store-1", vec!["image_store/1"]),
        ("store-both", vec!["image_store/0", "image_store/1"]),
    ];
    let mut nodes = Vec::new();
    for (name, partitions) in stores {
        let node = Node::start(name, &key)?;
        node.serve(&partitions, "image NUMBER", None).await?;
        nodes.push(node);
    }
    for name in ["album-a", "album-b"] {
        let node = Node::start(name, &key)?;
        node.serve(&["photo_album/0"], "page NUMBER", Some(node.client_of("image_store")?)).await?;
        nodes.push(node);
    }
    let gateway = Node::start("gateway", &key)?;
    // Four partitions of image stores, and two albums. The albums have to know them, too.
    for node in nodes.iter().chain([&gateway]) {
        until_known(node, 6).await?;
    }
    for replica in &until_known(&gateway, 6).await?.replicas {
        let offer = &replica.offer;
        println!("{} offers {} at {}: {}", replica.node, offer.key, offer.address, offer.methods.join(", "));
    }
    let album = gateway.client_of("photo_album")?;
    let mut pages = Vec::new();
    for number in 0..PAGES {
        let access = ServiceAccess::to("0").repeatable();
        let page = format!("page {number}\n");
        pages.push(album.call(access, |replica| ask(replica, page.clone())).await?);
    }
    Ok(pages)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let pages = show_pages().await?;
    let mut counts = BTreeMap::new();
    for page in &pages {
        println!("{page}");
        for name in page.split(": ").filter_map(|part| part.split(' ').next()) {
            *counts.entry(name).or_insert(0) += 1;
        }
    }
    println!("{PAGES} pages: {counts:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn every_page_has_its_image_from_a_store_of_its_partition() {
        let pages = show_pages().await.unwrap();
        assert_eq!(pages.len(), PAGES);
        for (number, page) in pages.iter().enumerate() {
            let (album, image) = page.split_once(": ").unwrap();
            assert!(
                album.starts_with("album-") && album.ends_with(&format!(" shows page {number}")),
                "{page}"
            );
            let stores = [
                format!("store-{} shows image {number}", number % 2),
                format!("store-both shows image {number}"),
            ];
            assert!(stores.contains(&image.to_owned()), "{page}");
        }
    }
}
