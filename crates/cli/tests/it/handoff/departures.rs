//! Back-ends that leave the configuration while their agents have clients' connections.

use super::bed::{Bed, Options};
use super::http::{Client, content};

const CLIENTS: usize = 8;

/// Eight clients on two back-ends, of which one leaves: the back-ends that then answer the clients' next two requests.
fn one_leaves(placement: &str) -> Vec<String> {
    let body = content(7, 5000);
    let handoff = format!("placement = \"{placement}\"");
    let options = Options { handoff, is_quiet: true, ..Options::default() };
    let bed = Bed::new(options, &[("a", body.clone())]);
    let vip = bed.vip();
    let ask = |client: &mut Client| {
        let answer = client.get("/a").unwrap();
        assert!(answer.body == body, "{}", answer.head);
        answer.backend()
    };
    let mut clients = bed.client(|| {
        let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::connect(vip).unwrap()).collect();
        let at_b0 = clients.iter_mut().map(ask).filter(|backend| backend == "b0").count();
        assert_eq!(at_b0, CLIENTS / 2);
        clients
    });
    let text = bed.config_text();
    let (start, end) =
        (text.find("[[backend]]\nname = \"b0\"").unwrap(), text.find("[[backend]]\nname = \"b1\"").unwrap());
    bed.reload(&[&text[..start], &text[end..]].concat());
    let seen = bed.client(|| {
        let twice = clients.iter_mut().flat_map(|client| [ask(client), ask(client)]).collect();
        drop(clients);
        twice
    });
    bed.assert_quiet();
    bed.access_log(3 * CLIENTS);
    assert_eq!(bed.metric("plimsoll_connections_lost_total"), Some(0.0));
    bed.stop();
    seen
}

#[test]
fn a_backend_that_leaves_gives_its_connections_back() {
    let seen = one_leaves("request");
    assert!(seen.iter().all(|backend| backend == "b1"), "{seen:?}");
}

#[test]
fn a_backend_that_leaves_serves_connections_that_are_placed_as_a_whole() {
    let seen = one_leaves("connection");
    // Half of the clients are at the one that left, and each asked twice.
    assert_eq!(seen.iter().filter(|backend| *backend == "b0").count(), 2 * (CLIENTS / 2), "{seen:?}");
}
