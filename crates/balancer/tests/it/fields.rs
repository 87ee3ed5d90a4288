//! Fields that are removed, added to and passed on, both ways.

use std::time::Duration;

use plimsoll_testkit::{Why, pace};

use super::common::FrontEnd;
use super::common::origin::Origin;
use super::common::strict::Message;

fn names(message: &Message) -> Vec<String> {
    message.fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect()
}

const OWN: [&str; 4] = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "via"];

#[test]
fn fields_of_one_connection_go_no_further() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 200 OK\r\nServer: s\r\nConnection: keep-alive, X-Hop\r\nconnection: x-other\r\nX-Hop: 1\r\n\
          X-Other: 2\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\nX-Stays: a,  b\r\n\
          Set-Cookie: a=b\r\nSet-Cookie: c=d\r\nVia: 1.1 inner\r\nContent-Length: 0\r\n\r\n"
            .to_vec()
    });
    let front_end = FrontEnd::new(&[origin.address], "[forwarded]\nvia = true\n");
    let mut client = front_end.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive, X-Hop, Authorization ,host\r\nconnection:\tX-Other\r\n\
         X-Hop: 1\r\nx-other: 2\r\nAuthorization: secret\r\nTE: trailers\r\nUpgrade: websocket\r\nKeep-Alive: 5\r\n\
         Proxy-Connection: close\r\nX-Stays: a,  b\r\nAccept: */*\r\nAccept: text/html\r\nCookie: a=b\r\n\
         Max-Forwards: 7\r\n\r\n",
    );
    let answer = client.response("GET");
    let wanted = ["server", "x-stays", "set-cookie", "set-cookie", "via", "content-length", "date"];
    assert_eq!(names(&answer), wanted);
    assert_eq!((answer.one("x-stays"), answer.one("via")), (Some("a,  b"), Some("1.1 inner")));
    let got = origin.take().remove(0);
    let mut wanted = vec!["host", "x-stays", "accept", "accept", "cookie", "max-forwards"];
    wanted.extend(OWN);
    assert_eq!(names(&got), wanted);
    assert_eq!((got.one("host"), got.one("max-forwards")), (Some("a"), Some("6")));
    assert_eq!(got.all("accept"), ["*/*", "text/html"]);
}

#[test]
fn too_many_connection_options_are_refused() {
    let origin = Origin::echo();
    let front_end = FrontEnd::new(&[origin.address], "");
    let mut client = front_end.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {}\r\n\r\n", "a,".repeat(5000)));
    assert_eq!(client.response("GET").status(), 431);
    assert_eq!(origin.take(), []);
}

#[test]
fn forwarding_fields() {
    let spoofed = "GET http://Real:80/ HTTP/1.1\r\nHost: real\r\nX-Forwarded-For: 6.6.6.6\r\nx-forwarded-for: 7.7.7.7\r\n\
                   X-Forwarded-For:\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\nVia: 1.1 outer\r\n\r\n";
    for (trusted, wanted) in [
        ("[forwarded]\n", ["127.0.0.1", "http", "Real:80"]),
        ("[forwarded]\ntrusted = [\"10.0.0.0/8\"]\n", ["127.0.0.1", "http", "Real:80"]),
        (
            "[forwarded]\ntrusted = [\"127.0.0.0/8\"]\n",
            ["6.6.6.6, 7.7.7.7, 127.0.0.1", "https", "shop.example"],
        ),
    ] {
        let origin = Origin::echo();
        let front_end = FrontEnd::new(&[origin.address], &format!("{trusted}via = true\n"));
        let mut client = front_end.client();
        client.send(spoofed);
        client.response("GET");
        let got = origin.take().remove(0);
        let found = OWN.map(|name| if name == "via" { None } else { got.one(name) });
        assert_eq!(found[..3], wanted.map(Some), "{trusted}");
        assert_eq!(got.all("via"), ["1.1 outer", "1.1 plimsoll"]);
        assert_eq!(got.one("host"), Some("Real:80"));
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        client.response("GET");
        let got = origin.take().remove(0);
        // Where it has connected, as servers refuse an empty host.
        let address = front_end.address(0).to_string();
        assert_eq!(
            (got.one("via"), got.one("host"), got.one("x-forwarded-host")),
            (Some("1.0 plimsoll"), Some(&*address), None)
        );
    }
}

#[test]
fn the_field_forwarded_is_written_for_a_chain_of_front_ends() {
    let origin = Origin::echo();
    let keys = "[forwarded]\ntrusted = [\"127.0.0.0/8\"]\nfield = \"append\"\nby = \"_inner\"\n";
    let inner = FrontEnd::new(&[origin.address], keys);
    let outer = FrontEnd::new(&[inner.address(0)], "[forwarded]\nfield = \"append\"\n");
    let mut client = outer.client_v6();
    client.send("GET / HTTP/1.1\r\nHost: a.example:80\r\nForwarded: for=6.6.6.6\r\n\r\n");
    assert_eq!(client.response("GET").status(), 200);
    let first = "for=\"[::1]\";host=\"a.example:80\";proto=http";
    let second = "for=127.0.0.1;by=_inner;host=\"a.example:80\";proto=http";
    let request = origin.take().remove(0);
    assert_eq!(request.all("forwarded"), [format!("{first}, {second}")]);
    assert_eq!(request.one("x-forwarded-for"), Some("::1, 127.0.0.1"));
    inner.reload(&format!(
        "[[backend]]\naddress = \"{}\"\n[forwarded]\ntrusted = [\"127.0.0.0/8\"]\nfield = \"replace\"\n",
        origin.address
    ));
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(origin.take()[0].all("forwarded"), ["for=127.0.0.1;host=a;proto=http"]);
}

/// A response tells when it was made, not when it was asked for.
#[test]
fn a_late_response_has_its_own_date() {
    let (asked, is_asked) = std::sync::mpsc::channel();
    let (answer, answers) = std::sync::mpsc::channel();
    let (asked, answers) = (std::sync::Mutex::new(asked), std::sync::Mutex::new(answers));
    let origin = Origin::answering(move |_| {
        asked.lock().unwrap().send(()).unwrap();
        answers.lock().unwrap().recv().unwrap();
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
    });
    let front_end = FrontEnd::new(&[origin.address], "");
    let (mut client, mut other) = (front_end.client(), front_end.client());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    is_asked.recv().unwrap();
    other.send("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n");
    let asked_at = other.response("TRACE").one("date").unwrap().to_owned();
    // Dates have whole seconds.
    pace(Duration::from_millis(1_100), Why::TimeIsUp);
    answer.send(()).unwrap();
    assert_ne!(client.response("GET").one("date"), Some(&*asked_at));
}
