//! Frames of a link that come again, or in another order: the link is closed, and nothing else happens.

use plimsoll_testkit::eventually;
use plimsoll_wire::message::{FromAgent, ToAgent};

use super::bed::{Bed, Options};
use super::http::{Client, content};
use super::relay::{Relay, Trick, Way};

const BODY: usize = 50_000;
const RELAY_PORT: u16 = 7401;

struct Tampering {
    bed: Bed,
    relay: Relay,
    client: Client,
    /// How often a link was to be closed, by front-end and agent.
    closed: [usize; 2],
}

impl Tampering {
    fn begin(options: Options) -> Self {
        // The agent sees the relay in place of the front-end.
        let agent = ["--front-end", "front-end=10.77.0.11"].map(str::to_owned).to_vec();
        let bed = Bed::new(Options { backends: 1, agent, ..options }, &[("body", content(7, BODY))]);
        let relay = Relay::start(&bed, RELAY_PORT);
        let (direct, relayed) = (bed.agent_address(0).to_string(), relay.address().to_string());
        bed.reload(&bed.config_text().replace(&direct, &relayed));
        let is_up = |session| !relay.recorded(|f| f.way == Way::FromAgent && f.session == session).is_empty();
        eventually("links by way of the relay", || is_up(0) && is_up(1));
        // The direct ones are given up.
        bed.wait_for_links(1);
        let vip = bed.vip();
        let client = bed.client(|| Client::connect(vip).unwrap());
        Self { bed, relay, client, closed: [0; 2] }
    }

    /// The connection goes on, and another one can begin. Before its lease is confirmed, a connection does not outlast its link.
    fn get(&mut self) {
        assert!(self.client.get("/body").unwrap().body == content(7, BODY));
        let vip = self.bed.vip();
        let mut another = self.bed.client(|| Client::connect(vip).unwrap());
        assert!(another.get("/body").unwrap().body == content(7, BODY));
        eventually("leases that are confirmed", || {
            let is_confirm = |m: &ToAgent<'_>| matches!(m, ToAgent::Confirm { .. });
            // One frame may confirm several.
            let confirming = self.relay.recorded(|frame| frame.tells(is_confirm));
            let confirmed: usize = confirming.iter().map(|frame| frame.told(is_confirm)).sum();
            self.bed.metric("plimsoll_handoffs_total{outcome=\"taken\"}") == Some(confirmed as f64)
        });
        drop(another);
        eventually("the end of the other one", || self.bed.metric("plimsoll_connections_open") == Some(1.0));
    }

    /// Tampers with a session. Its link is closed with a line in the log, another one is opened, and the connection goes on.
    fn tamper(&mut self, way: Way, tricks: impl FnOnce(&Relay)) {
        let before = self.relay.sessions();
        tricks(&self.relay);
        eventually("the end of the link", || self.relay.has_played() && self.relay.sessions() > before);
        self.bed.wait_for_links(1);
        let (log, closed) = match way {
            Way::ToAgent => ("b0.log", &mut self.closed[1]),
            Way::FromAgent => ("front-end.log", &mut self.closed[0]),
        };
        *closed += 1;
        let log = std::fs::read_to_string(self.bed.path(log)).unwrap();
        let told = log.lines().filter(|line| line.contains("is not authentic")).count();
        assert_eq!(told, *closed, "{log}");
        self.get();
    }

    /// The session of the latest frame that went to the agent: one that lasts.
    fn session(&self) -> usize {
        self.relay.recorded(|frame| frame.way == Way::ToAgent).pop().unwrap().session
    }
}

#[test]
fn frames_that_come_again_or_too_early_close_the_link() {
    tampered(Options::default());
}

pub(super) fn tampered(options: Options) {
    let mut test = Tampering::begin(options);
    test.get();
    let is_handoff = |message: &ToAgent<'_>| matches!(message, ToAgent::Handoff { .. });
    let handoff = test.relay.recorded(|frame| frame.tells(is_handoff)).remove(0);
    let is_end = |message: &FromAgent<'_>| matches!(message, FromAgent::Ended { .. });
    let report = test.relay.recorded(|frame| frame.reports(is_end)).remove(0);
    // In the same session, and in later ones.
    for _ in 0..2 {
        for frame in [&handoff, &report] {
            let session =
                if frame.session < 2 && test.relay.sessions() == 2 { frame.session } else { test.session() };
            test.tamper(frame.way, |relay| relay.repeat(frame, session));
        }
    }
    for way in [Way::ToAgent, Way::FromAgent] {
        let session = test.session();
        test.tamper(way, |relay| relay.play(session, way, Trick::Swap));
    }
    assert_eq!(test.bed.metric("plimsoll_connections_reset_total"), Some(0.0));
    drop(test.client);
    test.bed.assert_quiet();
    test.bed.stop();
}
