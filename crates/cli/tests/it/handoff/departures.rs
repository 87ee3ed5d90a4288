//! Back-ends that leave the configuration while their agents have clients' connections.

use std::time::Duration;

use plimsoll_testkit::{PATIENCE, Why, eventually, pace};

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

#[test]
fn an_agent_that_is_told_to_stop_leaves_clients_that_rest_their_time() {
    let body = content(9, 60 << 20);
    let agent = vec!["--drain-timeout".to_owned(), "50".to_owned()];
    let mut bed =
        Bed::new(Options { agent, is_quiet: true, ..Options::default() }, &[("large", body.clone())]);
    let vip = bed.vip();
    // One at each back-end; neither reads.
    let clients: Vec<Client> = bed.client(|| {
        let asking = |_| {
            let mut client = Client::connect(vip).unwrap();
            client.send("/large").unwrap();
            client
        };
        (0..2).map(asking).collect()
    });
    eventually("both are handed off", || {
        bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}") == Some(2.0)
    });
    let agent = bed.agents[0].take().unwrap();
    let stopped = std::thread::spawn(move || agent.stop_within(PATIENCE).unwrap());
    eventually("its health checks fail", || {
        bed.metric("plimsoll_backend_state{backend=\"b0\",state=\"down\"}") == Some(1.0)
    });
    // Longer than it takes to find clients of a back-end that is down to whom nothing comes.
    pace(Duration::from_millis(1500), Why::TimeIsUp);
    for mut client in clients {
        let answer = client.answer().unwrap();
        assert!(answer.body == body, "{}", answer.head);
    }
    assert_eq!(stopped.join().unwrap().and_then(|status| status.code()), Some(0));
    assert_eq!(bed.metric("plimsoll_connections_lost_total"), Some(0.0));
    bed.start_agent(0);
    bed.stop();
}
