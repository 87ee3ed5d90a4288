//! Back-ends that speak TLS.

use std::sync::Mutex;

use rustls::{ServerConfig, ServerConnection};

use super::*;

/// The name that a connection asked for, and whether it showed a certificate.
type Asked = (Option<String>, bool);

/// A server with this certificate that answers each request with its number on its connection; it asks for certificates of clients
/// if `clients` is an authority.
struct SecureOrigin {
    address: SocketAddr,
    /// The name that each connection asked for, and whether it showed a certificate.
    seen: Arc<Mutex<Vec<Asked>>>,
}

fn secure_origin(files: &IssuedFiles, clients: Option<&TestAuthority>) -> SecureOrigin {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(authority.file()).unwrap()).unwrap();
            let checking =
                rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(checking.build().unwrap())
        }
    };
    let chain = CertificateDer::pem_file_iter(&files.chain).unwrap().map(Result::unwrap).collect();
    let config =
        Arc::new(builder.with_single_cert(chain, PrivateKeyDer::from_pem_file(&files.key).unwrap()).unwrap());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = SecureOrigin { address: listener.local_addr().unwrap(), seen: Arc::default() };
    let seen = Arc::clone(&origin.seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let (config, seen) = (Arc::clone(&config), Arc::clone(&seen));
            std::thread::spawn(move || serve(stream, config, &seen));
        }
    });
    origin
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, seen: &Mutex<Vec<Asked>>) {
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let (mut buffer, mut bytes, mut count) = (Vec::new(), [0; 16_384], 0);
    loop {
        while let Ok(Some((request, length))) = strict::request(&buffer) {
            buffer.drain(..length);
            count += 1;
            if count == 1 {
                let name = stream.conn.server_name().map(str::to_owned);
                seen.lock().unwrap().push((name, stream.conn.peer_certificates().is_some()));
            }
            let body = [format!("{count} ").as_bytes(), &request.body[..]].concat();
            let kept = "Connection: keep-alive\r\n";
            let head = format!("HTTP/1.1 200 OK\r\n{kept}Content-Length: {}\r\n\r\n", body.len());
            if stream.write_all(&[head.as_bytes(), &body].concat()).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(n) => buffer.extend_from_slice(&bytes[..n]),
        }
    }
}

fn text(origin: &SecureOrigin, name: &str, tables: &str) -> String {
    format!("[[backend]]\naddress = \"{}\"\ntls = true\ntls_name = \"{name}\"\n{tables}", origin.address)
}

fn trusting(authority: &TestAuthority, more: &str) -> String {
    format!("[backend_tls]\nauthorities = {:?}\n{more}", authority.file())
}

#[test]
fn requests_and_bodies_pass_and_connections_are_kept() {
    let authority = TestAuthority::new();
    let origin = secure_origin(&authority.issue("app", &["app.internal"]), None);
    let front_end = FrontEnd::from_text(&text(&origin, "app.internal", &trusting(&authority, "")));
    let mut client = front_end.client();
    for (number, size) in [0, 10, 100_000, 2_000_000].into_iter().enumerate() {
        let body = noise(size, 5);
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n"));
        client.send(&body);
        let answered = client.response("POST").body;
        assert!(answered == [format!("{} ", number + 1).as_bytes(), &body].concat(), "{size}");
    }
    assert_eq!(*origin.seen.lock().unwrap(), [(Some("app.internal".to_owned()), false)]);
}

#[test]
fn a_back_end_that_cannot_be_known_gets_nothing() {
    let (authority, stranger) = (TestAuthority::new(), TestAuthority::new());
    let files = authority.issue("app", &["app.internal"]);
    let origin = secure_origin(&files, None);
    let status = |front_end: &FrontEnd| front_end.client().get("/").status();
    for (name, by) in [("other.internal", &authority), ("app.internal", &stranger)] {
        let front_end = FrontEnd::from_text(&text(&origin, name, &trusting(by, "")));
        assert!((502..=503).contains(&status(&front_end)), "{name}");
    }
    assert!(origin.seen.lock().unwrap().is_empty());
    let unchecked = FrontEnd::from_text(&text(&origin, "other.internal", "[backend_tls]\nverify = false\n"));
    assert_eq!(status(&unchecked), 200);
    unchecked.reload(&text(&origin, "other.internal", &trusting(&authority, "")));
    assert!((502..=503).contains(&status(&unchecked)), "kept connections are of the old configuration");
}

#[test]
fn back_ends_can_know_the_front_end() {
    let authority = TestAuthority::new();
    let origin = secure_origin(&authority.issue("app", &["app.internal"]), Some(&authority));
    let own = authority.issue("front-end", &["front-end.internal"]);
    let status = |tables: &str| {
        let front_end = FrontEnd::from_text(&text(&origin, "app.internal", tables));
        front_end.client().get("/").status()
    };
    assert!((502..=503).contains(&status(&trusting(&authority, ""))));
    let with_own = format!("chain = {:?}\nkey = {:?}\n", own.chain, own.key);
    assert_eq!(status(&trusting(&authority, &with_own)), 200);
    assert_eq!(*origin.seen.lock().unwrap(), [(Some("app.internal".to_owned()), true)]);
}

#[test]
fn health_checks_speak_tls() {
    let authority = TestAuthority::new();
    let files = authority.issue("app", &["app.internal"]);
    let origin = secure_origin(&files, None);
    let keys = "probe = \"http\"\ninterval = \"50ms\"\nfast_interval = \"50ms\"\nfall = 1\nrise = 1";
    let good = text(&origin, "app.internal", &trusting(&authority, ""));
    let front_end = FrontEnd::watching(keys, &good);
    eventually("checks", || origin.seen.lock().unwrap().len() > 2);
    assert_eq!(front_end.client().get("/").status(), 200);
    let wrong = FrontEnd::watching(keys, &text(&origin, "other.internal", &trusting(&authority, "")));
    eventually("a back-end that is down", || wrong.client().get("/").status() == 503);
}
