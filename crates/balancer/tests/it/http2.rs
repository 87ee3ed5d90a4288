//! HTTP/2 with clients and to back-ends.

mod floods;
mod peers;
mod renewals;
mod to_backends;
mod upgrades;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response, StatusCode};
use plimsoll_testkit::{PATIENCE, Why, pace};
use tokio::net::TcpStream;

use super::common::origin::Origin;
use super::common::strict::Message;
use super::common::{FrontEnd, noise};

/// Runs what a client does, within bounds.
fn run<T>(talk: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(async { tokio::time::timeout(2 * PATIENCE, talk).await.unwrap() }))
}

/// A client's connection without TLS.
async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    connect_with(address, &Builder::new()).await
}

async fn connect_with(address: SocketAddr, builder: &Builder) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (client, connection) = builder.handshake(stream).await.unwrap();
    tokio::task::spawn_local(async move {
        // Requests tell of its end.
        drop(connection.await);
    });
    client
}

/// A request for this path at `a.example`.
fn request(method: &str, path: &str) -> Request<()> {
    let uri = format!("http://a.example{path}");
    Request::builder().method(method).uri(uri).body(()).unwrap()
}

/// Sends a request; with `ends` it has no body.
async fn send(
    client: &SendRequest<Bytes>,
    request: Request<()>,
    ends: bool,
) -> (ResponseFuture, SendStream<Bytes>) {
    let mut client = client.clone().ready().await.unwrap();
    client.send_request(request, ends).unwrap()
}

/// The answer to a request without a body.
async fn ask(client: &SendRequest<Bytes>, request: Request<()>) -> Result<Answer, h2::Error> {
    let (answer, _) = send(client, request, true).await;
    read(answer.await?).await
}

/// An answer, read to its end.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    fields: HeaderMap,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
}

async fn read(response: Response<RecvStream>) -> Result<Answer, h2::Error> {
    let (head, mut body) = response.into_parts();
    let mut content = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        content.extend_from_slice(&piece);
    }
    let trailers = body.trailers().await?;
    Ok(Answer { status: head.status, fields: head.headers, body: content, trailers })
}

/// Sends a body as far as windows allow, then trailers or the end.
async fn send_body(stream: &mut SendStream<Bytes>, body: Bytes, trailers: Option<HeaderMap>) {
    send_piece(stream, body).await;
    match trailers {
        Some(trailers) => stream.send_trailers(trailers).unwrap(),
        None => stream.send_data(Bytes::new(), true).unwrap(),
    }
}

/// Sends a part of a body as far as windows allow.
async fn send_piece(stream: &mut SendStream<Bytes>, mut piece: Bytes) {
    while !piece.is_empty() {
        stream.reserve_capacity(piece.len());
        while stream.capacity() == 0 {
            std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
        }
        stream.send_data(piece.split_to(stream.capacity().min(piece.len())), false).unwrap();
    }
}

/// An origin that answers with the body that it gets.
fn mirror() -> Origin {
    Origin::answering(|request| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len());
        [head.as_bytes(), &request.body].concat()
    })
}

fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs.iter().map(|&(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

#[test]
fn a_request_is_written_out_as_http_1_1() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[forwarded]\nvia = true\n");
    let answer = run(async {
        let client = connect(front_end.address(0)).await;
        let mut request = request("GET", "/a/b?c=d");
        let headers = request.headers_mut();
        headers.append("cookie", "a=1".parse().unwrap());
        headers.append("cookie", "b=2".parse().unwrap());
        headers.append("te", "trailers".parse().unwrap());
        headers.append("x-own", "v w".parse().unwrap());
        ask(&client, request).await.unwrap()
    });
    assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &b"GET /a/b?c=d\n"[..]), "{answer:?}");
    assert!(answer.fields.contains_key("date") && !answer.fields.contains_key("connection"), "{answer:?}");
    let seen: Vec<Message> = origin.take();
    assert_eq!(seen[0].one("host"), Some("a.example"));
    assert_eq!(seen[0].one("cookie"), Some("a=1; b=2"));
    assert_eq!(seen[0].one("x-own"), Some("v w"));
    assert_eq!(seen[0].one("via"), Some("2.0 plimsoll"));
    assert_eq!((seen[0].one("te"), seen[0].one("transfer-encoding")), (None, None));
}

#[test]
fn bodies_pass_both_ways_beside_one_another() {
    let origin = mirror();
    let front_end = FrontEnd::new(&[origin.address], "");
    run(async {
        let client = connect(front_end.address(0)).await;
        let mut talks = Vec::new();
        for size in [0, 1, 100, 4096, 16_384, 16_385, 65_535, 65_536, 200_001, 3_000_000] {
            for told in [true, false] {
                let client = client.clone();
                talks.push(tokio::task::spawn_local(async move {
                    let body = noise(size, size as u64 + 1);
                    let mut request = request("POST", "/up");
                    if told {
                        request.headers_mut().insert("content-length", size.into());
                    }
                    let (answer, mut stream) = send(&client, request, false).await;
                    let trailers = (!told && size % 2 == 0).then(|| fields(&[("x-sum", "1")]));
                    let sent = tokio::task::spawn_local({
                        let body = Bytes::from(body.clone());
                        async move { send_body(&mut stream, body, trailers).await }
                    });
                    let answer = read(answer.await.unwrap()).await.unwrap();
                    assert!(answer.body == body, "{size} {told}: answered {}", answer.body.len());
                    sent.await.unwrap();
                }));
            }
        }
        for talk in talks {
            talk.await.unwrap();
        }
    });
    origin.assert_clean();
    let seen = origin.take();
    let trailers = seen.iter().filter(|request| !request.trailers.is_empty()).count();
    // What says no length goes on as it comes: it may be a stream of messages both ways.
    assert_eq!((trailers, seen.iter().filter(|request| request.chunked).count()), (6, 10));
}

#[test]
fn bodies_of_slow_clients_are_held_until_they_are_whole() {
    let origin = mirror();
    let front_end = FrontEnd::new(&[origin.address], "");
    run(async {
        let client = connect(front_end.address(0)).await;
        let body = Bytes::from(noise(500_000, 3));
        let mut slow = Vec::new();
        for _ in 0..5 {
            let mut request = request("POST", "/slow");
            request.headers_mut().insert("content-length", body.len().into());
            let (answer, mut stream) = send(&client, request, false).await;
            send_piece(&mut stream, body.slice(..100_000)).await;
            slow.push((answer, stream));
        }
        assert_eq!(ask(&client, request("GET", "/")).await.unwrap().status, StatusCode::OK);
        assert_eq!(origin.take_lines(), ["GET /"]);
        for (answer, mut stream) in slow {
            send_body(&mut stream, body.slice(100_000..), None).await;
            assert!(read(answer.await.unwrap()).await.unwrap().body == body);
        }
    });
    front_end.assert_idle();
}

#[test]
fn answers_of_every_kind_pass() {
    let origin = Origin::answering(|request| {
        match request.target() {
            "/chunked" => {
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"
            }
            "/early" => "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "/204" => "HTTP/1.1 204 No Content\r\n\r\n",
            "/304" => "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 9\r\n\r\n",
            "/empty" => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "/hop" => "HTTP/1.1 200 OK\r\nKeep-Alive: 5\r\nConnection: x-hop\r\nX-Hop: 1\r\nContent-Length: 1\r\n\r\na",
            _ => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        }
        .into()
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    run(async {
        let client = connect(front_end.address(0)).await;
        let get = async |path| ask(&client, request("GET", path)).await.unwrap();
        let chunked = get("/chunked").await;
        assert_eq!((&chunked.body[..], chunked.trailers), (&b"hello"[..], Some(fields(&[("x-sum", "7")]))));
        assert_eq!(get("/204").await.status, StatusCode::NO_CONTENT);
        let unchanged = get("/304").await;
        assert_eq!((unchanged.status.as_u16(), unchanged.fields["etag"].as_bytes()), (304, &b"\"a\""[..]));
        assert_eq!(get("/empty").await.fields["content-length"], "0");
        let hop = get("/hop").await;
        assert!(!["keep-alive", "x-hop", "connection"].iter().any(|name| hop.fields.contains_key(*name)));
        let head = ask(&client, request("HEAD", "/head")).await.unwrap();
        assert_eq!((&head.fields["content-length"], head.body.len()), (&"5".parse().unwrap(), 0));
        let (mut answer, _) = send(&client, request("GET", "/early"), true).await;
        let early = std::future::poll_fn(|cx| answer.poll_informational(cx)).await.unwrap().unwrap();
        assert_eq!((early.status().as_u16(), &early.headers()["link"]), (103, &"</a.css>".parse().unwrap()));
        assert_eq!(read(answer.await.unwrap()).await.unwrap().body, b"ok");
    });
}

/// Clients take an answer that comes together with a reset for a failed one.
#[test]
fn an_answer_to_a_request_that_goes_on_comes_without_a_reset() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[limits]\nbody = \"1KiB\"\n");
    run(async {
        let client = connect(front_end.address(0)).await;
        let (answer, mut body) = send(&client, request("POST", "/"), false).await;
        send_piece(&mut body, Bytes::from(noise(2_000, 1))).await;
        assert_eq!(read(answer.await.unwrap()).await.unwrap().status, StatusCode::PAYLOAD_TOO_LARGE);
        let reset = std::future::poll_fn(|cx| body.poll_reset(cx));
        assert!(tokio::time::timeout(Duration::from_millis(50), reset).await.is_err(), "no reset yet");
        // One that does not end is reset at last.
        let reset = std::future::poll_fn(|cx| body.poll_reset(cx)).await;
        assert_eq!(reset.unwrap(), h2::Reason::NO_ERROR);
    });
}

#[test]
fn what_http_1_would_misread_is_refused() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    run(async {
        let client = connect(front_end.address(0)).await;
        let status = async |change: &dyn Fn(&mut Request<()>)| {
            let mut request = request("GET", "/a");
            change(&mut request);
            ask(&client, request).await.map(|answer| answer.status.as_u16()).map_err(|e| e.to_string())
        };
        let with = |name: &'static str, value: &'static str| {
            move |request: &mut Request<()>| {
                request.headers_mut().append(name, value.parse().unwrap());
            }
        };
        assert_eq!(status(&with("host", "A.example:80")).await, Ok(200), "the same place");
        assert_eq!(status(&with("host", "b.example")).await, Ok(400));
        assert_eq!(status(&with("content-length", "+1")).await.unwrap_or(400), 400);
        assert_eq!(status(&with("expect", "200-ok")).await, Ok(417));
        let traced = |request: &mut Request<()>| *request.method_mut() = http::Method::TRACE;
        assert_eq!(status(&traced).await, Ok(501));
        let connects = |request: &mut Request<()>| {
            *request.method_mut() = http::Method::CONNECT;
            *request.uri_mut() = "b.example:443".parse().unwrap();
        };
        assert_eq!(status(&connects).await, Ok(501));
        let user = |request: &mut Request<()>| *request.uri_mut() = "http://u@a.example/a".parse().unwrap();
        assert_eq!(status(&user).await, Ok(400));
    });
    origin.assert_clean();
    assert!(origin.take_lines().iter().all(|line| line == "GET /a"));
}

#[test]
fn who_goes_in_the_middle_leaves_nothing_behind() {
    let origin = Origin::scripted(|conn| {
        while conn.request().is_some() {
            conn.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegun");
            while conn.read() > 0 {}
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    run(async {
        let client = connect(front_end.address(0)).await;
        for n in 0..30 {
            let (answer, mut stream) = send(&client, request("GET", "/long"), true).await;
            let mut answer = answer.await.unwrap();
            assert_eq!(answer.body_mut().data().await.unwrap().unwrap(), "begun");
            if n % 3 == 0 {
                stream.send_reset(h2::Reason::CANCEL);
            }
        }
    });
    front_end.assert_idle();
}

#[test]
fn an_answer_that_breaks_off_is_no_whole_one() {
    let origin = Origin::scripted(|conn| {
        if conn.request().is_some() {
            conn.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n");
        }
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let error = run(async {
        let client = connect(front_end.address(0)).await;
        ask(&client, request("GET", "/")).await.unwrap_err()
    });
    assert_eq!(error.reason(), Some(h2::Reason::INTERNAL_ERROR));
}

#[test]
fn a_reload_that_ends_a_listener_loses_no_request() {
    let origin = Origin::answering(|_| {
        pace(Duration::from_millis(20), Why::Pieces);
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into()
    });
    let text =
        format!("[[backend]]\naddress = \"{}\"\n[limits]\nrequests_per_connection = 7\n", origin.address);
    let front_end = FrontEnd::from_text(&text);
    run(async {
        let mut client = connect(front_end.address(0)).await;
        let (mut answered, mut connections) = (0, 1);
        while answered < 30 {
            let Ok(mut ready) = client.clone().ready().await else {
                client = connect(front_end.address(0)).await;
                connections += 1;
                continue;
            };
            let answer = ready.send_request(request("GET", "/"), true).unwrap().0;
            match answer.await {
                Ok(answer) => {
                    assert_eq!(read(answer).await.unwrap().body, b"ok");
                    answered += 1;
                }
                // Told to go before it was sent.
                Err(error) => assert!(error.is_go_away() || error.is_reset(), "{error}"),
            }
        }
        assert!((4..=6).contains(&connections), "{connections}");
    });
}

#[test]
fn streams_that_outlast_the_end_are_answered() {
    let origin = Origin::scripted(|conn| while conn.request().is_some() {});
    let front_end = FrontEnd::new(&[origin.address], "");
    run(async {
        let client = connect(front_end.address(0)).await;
        let (answer, _) = send(&client, request("GET", "/"), true).await;
        let stops = tokio::task::spawn_blocking(move || {
            front_end.load_once(1);
            front_end.stop_within(Duration::from_millis(50));
        });
        stops.await.unwrap();
        let answer = read(answer.await.unwrap()).await.unwrap();
        assert_eq!((answer.status.as_u16(), &*answer.body), (503, &b"the front-end stops\n"[..]));
    });
}

#[test]
fn where_clients_may_not_speak_it_it_is_refused() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "[http2]\nclients = false\n");
    let (answer, _) = front_end.talk(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 505 "), "{}", answer.escape_ascii());
}
