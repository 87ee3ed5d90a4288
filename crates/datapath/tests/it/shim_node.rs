//! The shim in Node, which closes descriptors by `syscall`, and reads files through numbers that were connections.

use std::io::Write;
use std::os::unix::net::UnixStream;

use plimsoll_datapath::shim::Header;
use plimsoll_testkit::PATIENCE;

use crate::shim_server::{Server, answer, answered, connection, get, given_back, large, let_go};

/// As with a front-end that takes requests with a body back: a GET on the connection that was handed in, then a POST on an
/// ordinary connection, whose file gets the number that the first connection had.
#[test]
fn files_get_the_numbers_of_connections() {
    let server = Server::node();
    for _ in 0..5 {
        let (mut client, agents) = connection();
        get(&mut client, "/large.bin");
        let header = Header { give_back_at_next_request: true, ..Header::default() };
        let unix = server.hand(agents, header);
        assert_eq!(answer(&mut client, false).1, large());
        assert!(answered(&unix).complete);
        get(&mut client, "/small.txt");
        let returned = given_back(&unix);
        let_go(&unix);
        let mut proxied = UnixStream::connect(server.socket()).unwrap();
        proxied.set_read_timeout(Some(PATIENCE)).unwrap();
        for path in ["/small.txt", "/large.bin", "/kept"] {
            let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
            proxied.write_all(head.as_bytes()).unwrap();
            proxied.write_all(b"some body").unwrap();
            let (head, content) = answer(&mut proxied, false);
            assert!(head.contains("x-body: 9\r\n"), "{head}");
            let wanted = match path {
                "/large.bin" => large(),
                "/kept" => b"kept".to_vec(),
                _ => b"small".to_vec(),
            };
            assert!(content == wanted, "{path}: {} bytes", content.len());
        }
        let unix = server.hand(returned, header);
        assert_eq!(answer(&mut client, false).1, b"small");
        assert!(answered(&unix).complete);
        drop(client);
        let_go(&unix);
    }
}
