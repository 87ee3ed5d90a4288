//! Clients that speak TLS.

mod renegotiation;
mod slow_http2;
mod to_backends;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_testkit::{IssuedFiles, PATIENCE, TestAuthority, Why, eventually, pace};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

use super::common::origin::Origin;
use super::common::strict::{self, Message};
use super::common::{FrontEnd, get, noise};

/// A client's side.
struct Trusting {
    config: Arc<ClientConfig>,
}

type Secured = StreamOwned<ClientConnection, TcpStream>;

impl Trusting {
    /// That trusts this authority alone; `own` is its certificate.
    fn new(
        authority: &TestAuthority,
        versions: &[&'static SupportedProtocolVersion],
        own: Option<&IssuedFiles>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority.file()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = CertificateDer::pem_file_iter(&own.chain).unwrap().map(Result::unwrap).collect();
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&own.key).unwrap()).unwrap()
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { config: Arc::new(config) }
    }

    /// A connection for this host; the handshake comes with the first request.
    fn connect(&self, address: SocketAddr, host: &'static str) -> Secured {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let name = ServerName::try_from(host).unwrap();
        StreamOwned::new(ClientConnection::new(Arc::clone(&self.config), name).unwrap(), stream)
    }

    /// The certificate that a client gets who asks for this host.
    fn certificate(&self, address: SocketAddr, host: &'static str) -> CertificateDer<'static> {
        let mut client = self.connect(address, host);
        assert_eq!(ask(&mut client, &get("/")).unwrap().status(), 200);
        client.conn.peer_certificates().unwrap()[0].clone()
    }
}

/// Sends a request and reads the answer.
fn ask(client: &mut Secured, request: &str) -> std::io::Result<Message> {
    client.write_all(request.as_bytes())?;
    client.flush()?;
    answer(client)
}

/// Reads an answer.
fn answer(client: &mut Secured) -> std::io::Result<Message> {
    let (mut buffer, mut bytes) = (Vec::new(), [0; 16_384]);
    loop {
        let n = client.read(&mut bytes)?;
        buffer.extend_from_slice(&bytes[..n]);
        match strict::response(&buffer, false, n == 0) {
            Ok(Some((message, length))) => {
                assert_eq!(length, buffer.len(), "more than an answer");
                return Ok(message);
            }
            Ok(None) if n == 0 => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(None) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// The tables that say how TLS is spoken, with these certificates.
fn tables(certificates: &[&IssuedFiles], more: &str) -> String {
    let of =
        |files: &&IssuedFiles| format!("[[certificate]]\nchain = {:?}\nkey = {:?}\n", files.chain, files.key);
    let certificates: String = certificates.iter().map(of).collect();
    format!("[[listener]]\naddress = \"127.0.0.2:0\"\ntls = true\n{certificates}{more}")
}

fn before(origin: &Origin, tables: &str) -> String {
    format!("[[backend]]\naddress = \"{}\"\n{tables}", origin.address)
}

/// Where TLS is spoken.
const SECURE: usize = 2;

const OLD: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

#[test]
fn requests_bodies_and_answers_pass_under_either_version() {
    let (authority, origin) = (
        TestAuthority::new(),
        Origin::answering(|request| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len());
            [head.as_bytes(), &request.body].concat()
        }),
    );
    let site = authority.issue("site", &["site.example"]);
    let front_end = FrontEnd::from_text(&before(&origin, &tables(&[&site], "")));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut client =
            Trusting::new(&authority, &[version], None).connect(front_end.address(SECURE), "site.example");
        for size in [0, 1, 4096, 16_384, 16_385, 100_000, 3_000_000] {
            let body = noise(size, size as u64 + 1);
            let head = format!("POST /up HTTP/1.1\r\nHost: site.example\r\nContent-Length: {size}\r\n\r\n");
            client.write_all(head.as_bytes()).unwrap();
            client.write_all(&body).unwrap();
            client.flush().unwrap();
            assert!(answer(&mut client).unwrap().body == body, "{size}");
        }
        assert_eq!(client.conn.protocol_version(), Some(version.version));
        assert_eq!(client.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
    for request in origin.take() {
        assert_eq!(request.one("x-forwarded-proto"), Some("https"));
    }
}

#[test]
fn a_client_gets_the_certificate_for_the_name_that_it_asks_for() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let first = authority.issue("first", &["first.example", "other.example"]);
    let wild = authority.issue("wild", &["*.wild.example"]);
    let front_end = FrontEnd::from_text(&before(&origin, &tables(&[&first, &wild], "")));
    let client = Trusting::new(&authority, BOTH, None);
    let of = |files: &IssuedFiles| CertificateDer::from_pem_file(&files.chain).unwrap();
    for (host, files) in [("first.example", &first), ("a.wild.example", &wild), ("other.example", &first)] {
        assert_eq!(client.certificate(front_end.address(SECURE), host), of(files), "{host}");
    }
    let error = ask(&mut client.connect(front_end.address(SECURE), "nobody.example"), &get("/")).unwrap_err();
    assert!(error.to_string().contains("not valid for"), "{error}");
}

#[test]
fn a_session_goes_on_at_any_worker_and_after_a_reload() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let text = before(&origin, &tables(&[&site], ""));
    let front_end = FrontEnd::from_text(&text);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = Trusting::new(&authority, &[version], None);
        let visit = || {
            let mut client = client.connect(front_end.address(SECURE), "site.example");
            assert_eq!(ask(&mut client, &get("/")).unwrap().status(), 200);
            client.conn.handshake_kind().unwrap()
        };
        assert_eq!(visit(), HandshakeKind::Full);
        // Two workers take connections, by chance.
        assert!((0..20).all(|_| visit() == HandshakeKind::Resumed));
        front_end.reload(&text);
        assert_eq!(visit(), HandshakeKind::Resumed);
    }
}

#[test]
fn a_new_certificate_is_for_new_connections_and_none_is_lost() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let front_end = FrontEnd::from_text(&before(&origin, &tables(&[&site], "")));
    let before_it = CertificateDer::from_pem_file(&site.chain).unwrap();
    let client = || Trusting::new(&authority, BOTH, None);
    let mut open = client().connect(front_end.address(SECURE), "site.example");
    assert_eq!(ask(&mut open, &get("/")).unwrap().status(), 200);
    let site = authority.issue("site", &["site.example"]);
    front_end.reload(&before(&origin, &tables(&[&site], "")));
    let after_it = CertificateDer::from_pem_file(&site.chain).unwrap();
    assert_ne!(before_it, after_it);
    assert_eq!(client().certificate(front_end.address(SECURE), "site.example"), after_it);
    assert_eq!(ask(&mut open, &get("/")).unwrap().status(), 200);
    assert_eq!(open.conn.peer_certificates().unwrap()[0], before_it);
}

#[test]
fn clients_with_and_without_certificates() {
    let (authority, stranger, origin) = (TestAuthority::new(), TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let (ann, eve) = (authority.issue("Ann", &["ann.example"]), stranger.issue("Eve", &["eve.example"]));
    let tls = |word: &str| {
        let more =
            format!("[tls]\nclient_certificates = \"{word}\"\nclient_authorities = {:?}\n", authority.file());
        before(&origin, &tables(&[&site], &more))
    };
    let front_end = FrontEnd::from_text(&tls("required"));
    let visit = |own: Option<&IssuedFiles>| {
        let mut client =
            Trusting::new(&authority, BOTH, own).connect(front_end.address(SECURE), "site.example");
        let forged = "GET / HTTP/1.1\r\nHost: a\r\nClient-Cert: :AAAA:\r\nX-Client-Cert-Subject: CN=root\r\nX_Client-Cert-Subject: x\r\n\r\n";
        ask(&mut client, forged).map(|answer| answer.status())
    };
    assert!(visit(None).is_err() && visit(Some(&eve)).is_err());
    assert_eq!(visit(Some(&ann)).unwrap(), 200);
    let seen = origin.take();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].one("x-client-cert-subject").unwrap().contains("CN=Ann"), "{seen:?}");
    assert!(
        seen[0].one("client-cert").unwrap().len() > 100 && seen[0].all("x_client-cert-subject").is_empty()
    );
    front_end.reload(&tls("optional"));
    assert!(visit(Some(&eve)).is_err());
    assert_eq!((visit(None).unwrap(), visit(Some(&ann)).unwrap()), (200, 200));
    let named: Vec<bool> = origin.take().iter().map(|request| request.one("client-cert").is_some()).collect();
    assert_eq!(named, [false, true], "what a client says of itself is not passed on");
}

#[test]
fn an_old_session_is_no_way_around_a_certificate() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let text = |more: &str| before(&origin, &tables(&[&site], more));
    let front_end = FrontEnd::from_text(&text(""));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        front_end.reload(&text(""));
        let trusting = Trusting::new(&authority, &[version], None);
        let visit = || {
            let mut client = trusting.connect(front_end.address(SECURE), "site.example");
            ask(&mut client, &get("/")).map(|answer| (answer.status(), client.conn.handshake_kind().unwrap()))
        };
        assert_eq!(visit().unwrap(), (200, HandshakeKind::Full));
        assert_eq!(visit().unwrap(), (200, HandshakeKind::Resumed));
        front_end.reload(&text(&format!(
            "[tls]\nclient_certificates = \"required\"\nclient_authorities = {:?}\n",
            authority.file()
        )));
        assert!(visit().is_err());
    }
}

#[test]
fn old_versions_and_what_is_no_tls_are_refused() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let front_end =
        FrontEnd::from_text(&before(&origin, &tables(&[&site], "[tls]\nmin_version = \"1.3\"\n")));
    let visit = |versions: &[&'static SupportedProtocolVersion]| {
        let mut client =
            Trusting::new(&authority, versions, None).connect(front_end.address(SECURE), "site.example");
        ask(&mut client, &get("/")).map(|answer| answer.status())
    };
    assert!(visit(OLD).is_err());
    assert_eq!(visit(BOTH).unwrap(), 200);
    for garbage in [
        get("/").into_bytes(),
        noise(5_000, 7),
        vec![22, 3, 1, 255, 255],
        vec![22, 3, 1, 0, 4, 1, 255, 255, 255],
    ] {
        let mut stream = TcpStream::connect(front_end.address(SECURE)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&garbage).unwrap();
        drop(stream.shutdown(std::net::Shutdown::Write));
        let mut rest = Vec::new();
        // It is closed or reset; an alert may come before.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty() || rest[0] == 21, "{rest:?}");
    }
    assert_eq!(visit(BOTH).unwrap(), 200);
    assert!(origin.take().iter().all(|request| request.target() == "/"));
}

#[test]
fn a_handshake_that_stops_ends() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let front_end =
        FrontEnd::from_text(&before(&origin, &tables(&[&site], "[timeouts]\nhead = \"300ms\"\n")));
    for begun in [0, 1, 3] {
        let mut stream = TcpStream::connect(front_end.address(SECURE)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&[22, 3, 1][..begun]).unwrap();
        assert!(
            !stream
                .read(&mut [0; 100])
                .is_err_and(|e| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
        );
    }
}

#[test]
fn an_answer_that_is_cut_off_does_not_end_well() {
    let authority = TestAuthority::new();
    let files = authority.issue("site", &["site.example"]);
    let origin = Origin::scripted(|conn| {
        if conn.request().is_some() {
            conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
        }
    });
    let front_end = FrontEnd::from_text(&before(&origin, &tables(&[&files], "")));
    let mut client = Trusting::new(&authority, BOTH, None).connect(front_end.address(SECURE), "site.example");
    client.write_all(get("/").as_bytes()).unwrap();
    let mut rest = Vec::new();
    // A good end (close_notify) would give no error.
    assert!(client.read_to_end(&mut rest).is_err(), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn a_client_that_reads_slowly_gets_all_of_it() {
    const SIZE: usize = 4_000_000;
    let authority = TestAuthority::new();
    let files = authority.issue("site", &["site.example"]);
    let origin = Origin::answering(|_| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        [head.as_bytes(), &noise(SIZE, 3)].concat()
    });
    let front_end = FrontEnd::from_text(&before(&origin, &tables(&[&files], "")));
    let mut client = Trusting::new(&authority, BOTH, None).connect(front_end.address(SECURE), "site.example");
    client.write_all(get("/").as_bytes()).unwrap();
    // Its window and the front-end's buffers are full.
    pace(Duration::from_millis(300), Why::SlowPeer);
    assert!(answer(&mut client).unwrap().body == noise(SIZE, 3));
    assert_eq!(ask(&mut client, &get("/")).unwrap().body.len(), SIZE);
}

#[test]
fn plain_http_is_sent_to_https() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let text = before(
        &origin,
        &tables(&[&site], "[[listener]]\naddress = \"127.0.0.3:0\"\nredirect = \"https:8443\"\n"),
    );
    let front_end = FrontEnd::from_text(&text);
    let mut client = super::common::Client::connect(front_end.address(3));
    for target in ["/a?b", "/"] {
        let sent = client.get(target);
        assert_eq!(
            (sent.status(), sent.one("location").unwrap()),
            (308, &*format!("https://a:8443{target}"))
        );
    }
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(client.response_or_end("POST").status(), 308);
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_front_end_that_stops_tells_its_clients() {
    let (authority, origin) = (TestAuthority::new(), Origin::echo());
    let site = authority.issue("site", &["site.example"]);
    let front_end = FrontEnd::from_text(&before(&origin, &tables(&[&site], "")));
    let mut client = Trusting::new(&authority, BOTH, None).connect(front_end.address(SECURE), "site.example");
    assert_eq!(ask(&mut client, &get("/")).unwrap().status(), 200);
    drop(front_end);
    eventually("a good end", || client.read(&mut [0]).is_ok_and(|n| n == 0));
}
