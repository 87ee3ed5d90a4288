//! Back-ends that speak HTTP/2.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Response, StatusCode};
use plimsoll_testkit::eventually;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{connect, fields, read, request, run, send, send_body, send_piece};
use crate::common::{FrontEnd, get, noise};

/// A back-end that answers each request with its body and trailers, piece by piece as they come.
struct Http2Origin {
    /// As back-ends are configured.
    address: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Http2Origin {
    fn new() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Self::accepting(address, || {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            async move || Ok(listener.accept().await?.0)
        })
    }

    /// At this Unix socket.
    fn local(path: &Path) -> Self {
        let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self::accepting(format!("unix:{}", path.display()), || {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            async move || Ok(listener.accept().await?.0)
        })
    }

    /// At this address, where `listen` makes what accepts connections.
    fn accepting<S, A>(address: String, listen: impl FnOnce() -> A + Send + 'static) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        A: AsyncFn() -> std::io::Result<S>,
    {
        let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (opened, asked) = (Arc::clone(&connections), Arc::clone(&requests));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let accept = listen();
                while let Ok(stream) = accept().await {
                    opened.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(serve(stream, Arc::clone(&asked)));
                }
            });
        });
        Self { address, connections, requests }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, asked: Arc<AtomicUsize>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        asked.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            let (head, mut body) = request.into_parts();
            assert_eq!(head.headers["te"], "trailers");
            let mut response = Response::new(());
            match head.uri.path() {
                // As servers of gRPC do, which have no pages.
                "/" if head.headers.get("user-agent").is_some_and(|name| name == "plimsoll-health") => {
                    return respond.send_reset(h2::Reason::INTERNAL_ERROR);
                }
                "/refuse" => return respond.send_reset(h2::Reason::INTERNAL_ERROR),
                "/only" => response.headers_mut().insert("grpc-status", "5".parse().unwrap()),
                "/early" => {
                    let mut early = Response::new(());
                    *early.status_mut() = StatusCode::EARLY_HINTS;
                    respond.send_informational(early).unwrap();
                    None
                }
                _ => None,
            };
            if head.uri.path() == "/only" {
                respond.send_response(response, true).unwrap();
                return;
            }
            let mut stream = respond.send_response(response, false).unwrap();
            while let Some(Ok(piece)) = body.data().await {
                body.flow_control().release_capacity(piece.len()).unwrap();
                send_piece(&mut stream, piece).await;
            }
            let mut trailers = body.trailers().await.unwrap_or_default().unwrap_or_default();
            trailers.insert("grpc-status", "0".parse().unwrap());
            stream.send_trailers(trailers).unwrap();
        });
    }
}

fn before(origin: &Http2Origin, tables: &str) -> FrontEnd {
    FrontEnd::from_text(&format!("[[backend]]\naddress = \"{}\"\nhttp2 = true\n{tables}", origin.address))
}

#[test]
fn requests_share_connections() {
    let directory = tempfile::tempdir().unwrap();
    share_connections(&Http2Origin::new());
    share_connections(&Http2Origin::local(&directory.path().join("app.sock")));
}

fn share_connections(origin: &Http2Origin) {
    let front_end = before(origin, "");
    let mut clients: Vec<_> = (0..20).map(|_| front_end.client()).collect();
    for _ in 0..10 {
        clients.iter_mut().for_each(|client| assert!(client.send(get("/a"))));
        for client in &mut clients {
            let answer = client.response("GET");
            assert_eq!((answer.status(), answer.body.len()), (200, 0));
        }
    }
    assert_eq!(origin.requests.load(Ordering::SeqCst), 200);
    let connections = origin.connections.load(Ordering::SeqCst);
    assert!((1..=2).contains(&connections), "one for each worker, not {connections}");
}

#[test]
fn a_check_for_a_page_that_was_named_is_not_to_be_reset() {
    let origin = Http2Origin::new();
    let text = format!("[[backend]]\naddress = \"{}\"\nhttp2 = true\n", origin.address);
    let front_end = FrontEnd::watching("path = \"/refuse\"\ninterval = \"50ms\"", &text);
    let mut client = front_end.client();
    eventually("it is down", || {
        client.send(get("/a"));
        client.response("GET").status() == 503
    });
}

#[test]
fn clients_of_http_1_get_bodies_trailers_and_interim_answers() {
    let origin = Http2Origin::new();
    let front_end = before(&origin, "");
    for size in [0usize, 1, 65_536, 200_000] {
        // An answer that begins before the request has ended closes the connection.
        let mut client = front_end.client();
        let body = noise(size, 3);
        client.send(format!("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n"));
        client.send(&body);
        let answer = client.response("POST");
        assert!(answer.body == body, "{size}");
        assert_eq!(answer.trailers, [("grpc-status".to_owned(), "0".to_owned())]);
    }
    let mut client = front_end.client();
    client.send(get("/early"));
    assert_eq!(client.any_response("GET").status(), 103);
    assert_eq!(client.any_response("GET").status(), 200);
    client.send(get("/only"));
    assert_eq!(client.response("GET").one("grpc-status"), Some("5"));
    client.send("POST /refuse HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.response("POST").status(), 502);
}

/// As gRPC talks: both sides send by turns, and the answer begins before the request ends.
#[test]
fn both_directions_stay_open_at_once() {
    let directory = tempfile::tempdir().unwrap();
    talk_by_turns(&Http2Origin::new());
    talk_by_turns(&Http2Origin::local(&directory.path().join("app.sock")));
}

fn talk_by_turns(origin: &Http2Origin) {
    let front_end = before(origin, "");
    run(async {
        let client = connect(front_end.address(0)).await;
        let mut call = request("POST", "/grpc.Service/Talk");
        call.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        call.headers_mut().insert("te", "trailers".parse().unwrap());
        let (answer, mut stream) = send(&client, call, false).await;
        stream.send_data(Bytes::from_static(b"\0\0\0\0\x01a"), false).unwrap();
        let answer = answer.await.unwrap();
        let (_, mut body) = answer.into_parts();
        for n in 0..50u8 {
            let mut heard = Vec::new();
            while heard.len() < 6 {
                let piece = body.data().await.unwrap().unwrap();
                body.flow_control().release_capacity(piece.len()).unwrap();
                heard.extend_from_slice(&piece);
            }
            assert_eq!(heard.len(), 6, "{n}");
            stream.send_data(Bytes::copy_from_slice(&[0, 0, 0, 0, 1, n]), false).unwrap();
        }
        stream.send_trailers(fields(&[("x-end", "1")])).unwrap();
        while let Some(piece) = body.data().await {
            piece.unwrap();
        }
        let trailers = body.trailers().await.unwrap().unwrap();
        assert_eq!(
            (&trailers["grpc-status"], &trailers["x-end"]),
            (&"0".parse().unwrap(), &"1".parse().unwrap())
        );
    });
    run(async {
        let client = connect(front_end.address(0)).await;
        let body = noise(2_000_000, 9);
        let (answer, mut stream) = send(&client, request("POST", "/up"), false).await;
        let sent = tokio::task::spawn_local({
            let body = Bytes::from(body.clone());
            async move { send_body(&mut stream, body, None).await }
        });
        assert!(read(answer.await.unwrap()).await.unwrap().body == body);
        sent.await.unwrap();
    });
}

#[test]
fn a_back_end_without_it_is_told_by_its_health() {
    let origin = crate::common::origin::Origin::scripted(|conn| while conn.read() > 0 {});
    let text =
        format!("[[backend]]\naddress = \"{}\"\nhttp2 = true\n[limits]\nretries = 0\n", origin.address);
    let front_end = FrontEnd::watching("interval = \"50ms\"\nfall = 1", &text);
    eventually("the back-end to be down", || {
        let mut client = front_end.client();
        client.send(get("/"));
        client.response("GET").status() == 503
    });
    let good = Http2Origin::new();
    let text = format!("[[backend]]\naddress = \"{}\"\nhttp2 = true\n", good.address);
    let front_end = FrontEnd::watching("interval = \"50ms\"\nfall = 1\nrise = 1", &text);
    // Their streams are reset, which is an answer where nobody has said what to ask for.
    eventually("checks", || good.requests.load(Ordering::SeqCst) >= 3);
    let mut client = front_end.client();
    client.send(get("/"));
    assert_eq!(client.response("GET").status(), 200);
}
