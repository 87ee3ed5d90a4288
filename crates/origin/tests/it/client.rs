//! A client on a bare socket, and an origin to talk to.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use plimsoll_origin::synthetic::Synthetic;
use plimsoll_origin::{Origin, OriginConfig, OriginHandle, Source};
use plimsoll_testkit::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// An origin that serves in the background until this is dropped.
pub(crate) struct Running {
    pub(crate) handle: OriginHandle,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(config: OriginConfig) -> Self {
        let origin = Origin::bind(config, "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let handle = origin.handle();
        Self { handle, task: tokio::spawn(origin.serve(std::future::pending())) }
    }

    /// Serves the files below `root`.
    pub(crate) async fn files(root: &Path) -> Self {
        Self::start(OriginConfig::new(Source::files(root, false).unwrap())).await
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.handle.local_addr()
    }

    /// One request on a connection of its own.
    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[]).await
    }

    pub(crate) async fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        Client::connect(self.address()).await.ask(method, target, headers).await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns when origins of this test have read all that was sent to them before: another one, in the same thread, has
/// answered a request that was sent later.
pub(crate) async fn until_all_is_read() {
    let other = Running::start(OriginConfig::new(Source::synthetic(Synthetic::fixed(10)))).await;
    assert_eq!(other.get("/").await.status, 200);
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Value of a header, or "" if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut values = self.head.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let value = values.next().map_or("", |(_, value)| value);
        assert!(values.next().is_none(), "{name} comes twice");
        value
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A connection to an origin.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).await.unwrap();
    }

    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes).await
    }

    pub(crate) async fn ask(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: origin\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send(format!("{head}\r\n").as_bytes()).await;
        self.answer(method).await
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn finish(&mut self) {
        self.0.get_mut().shutdown().await.unwrap();
    }

    /// The next answer; `method` says whether it has a body.
    pub(crate) async fn answer(&mut self, method: &str) -> Answer {
        tokio::time::timeout(PATIENCE, self.read_answer(method)).await.expect("an answer in time")
    }

    async fn read_answer(&mut self, method: &str) -> Answer {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
            assert!(head.len() < 100_000, "an endless head");
        }
        let text = String::from_utf8(head).unwrap();
        let mut lines = text.trim_end().lines();
        let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let head = lines.map(|line| line.split_once(": ").unwrap());
        let mut answer = Answer {
            status,
            head: head.map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
            body: Vec::new(),
        };
        let has_body = method != "HEAD" && !matches!(status, 204 | 304);
        if has_body {
            answer.body = vec![0; answer.header("content-length").parse().unwrap()];
            self.0.read_exact(&mut answer.body).await.unwrap();
        }
        answer
    }

    /// Whether nothing has come that is not read.
    pub(crate) fn has_heard_nothing(&self) -> bool {
        let read = self.0.get_ref().try_read(&mut [0]);
        self.0.buffer().is_empty() && read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// What comes until the origin closes the connection.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(PATIENCE, self.0.read_to_end(&mut rest)).await;
        // A connection that is reset is closed too.
        let _ = read.expect("the connection is closed in time");
        rest
    }
}

/// The second in which all files of [`site`] were last modified.
pub(crate) const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
pub(crate) const MODIFIED_S: u64 = 784_111_777;

/// A directory with these files, last modified in 1994.
pub(crate) fn site(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, content, MODIFIED_S);
    }
    directory
}

/// Writes a file as if in the second `modified_s` since 1970.
pub(crate) fn write(path: &Path, content: &[u8], modified_s: u64) {
    fs::write(path, content).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(modified_s);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}
