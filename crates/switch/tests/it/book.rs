//! The account of connections, event by event.

use plimsoll_datapath::Flow;
use plimsoll_datapath::switch::{
    ConnChange, ConnEntry, ConnEvent, ConnHolder, ConnTable, SwitchConn, Transport,
};
use plimsoll_policy::{BackendId, Outcome};
use plimsoll_switch::{ConnBook, Distributor, HandshakeCounts, Seen};

/// Notes what it is told.
#[derive(Default)]
struct Notes(Vec<String>);

impl Distributor for Notes {
    type Assignment = String;

    fn prepare(&mut self) -> Option<String> {
        None
    }

    fn backend(&self, _: &String) -> BackendId {
        BackendId::new(0)
    }

    fn take(&mut self, assignment: &mut String, conn: &SwitchConn) {
        self.0.push(format!("{assignment} is taken by {}", conn.flow.client.port()));
    }

    fn withdraw(&mut self, assignment: String) {
        self.0.push(format!("{assignment} is withdrawn"));
    }

    fn stay(&mut self, backend: BackendId, conn: &SwitchConn) -> String {
        self.0.push(format!("{} stays with {}", conn.flow.client.port(), backend.index()));
        format!("stay {}", conn.flow.client.port())
    }

    fn complete(&mut self, assignment: String, outcome: Outcome) {
        self.0.push(format!("{assignment} ends: {outcome:?}"));
    }
}

const HOLDER: ConnHolder = ConnHolder { backend: 2, generation: 0 };

fn conn(port: u16) -> SwitchConn {
    let flow = Flow::new(([10, 0, 0, 9], port).into(), ([10, 0, 0, 1], 80).into());
    SwitchConn { flow, transport: Transport::Tcp }
}

fn event(port: u16, choice: Option<u64>, change: ConnChange) -> ConnEvent {
    ConnEvent { at_ns: 100, conn: conn(port), choice, holder: HOLDER, change }
}

const ESTABLISHED: ConnChange = ConnChange::Established { round_trip_ns: None };

fn entry(choice: Option<u64>) -> ConnEntry {
    ConnEntry {
        last_seen_ns: 100,
        began_ns: 100,
        packets: 2,
        bytes: 60,
        choice,
        holder: HOLDER,
        fin: false,
        rst: false,
        hashed: choice.is_none(),
        seq_end: 0,
        last_ack: 0,
    }
}

struct Trial {
    book: ConnBook<String>,
    notes: Notes,
}

impl Trial {
    fn new(choices: &[u64]) -> Self {
        Self::with_room(choices, 100)
    }

    fn with_room(choices: &[u64], most: usize) -> Self {
        let mut book = ConnBook::new(1, most);
        choices.iter().for_each(|&number| book.prepare(number, format!("choice {number}")));
        Self { book, notes: Notes::default() }
    }

    fn hear(&mut self, port: u16, choice: Option<u64>, change: ConnChange) {
        self.book.hear(&event(port, choice, change), Some(BackendId::new(2)), &mut self.notes);
    }

    fn see(&mut self, port: u16, table: ConnTable, entry: &ConnEntry, past: bool) -> Seen {
        self.book.see(&conn(port), (table, entry), (Some(BackendId::new(2)), past), &mut self.notes)
    }

    fn noted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes.0)
    }
}

#[test]
fn from_choice_to_end() {
    let mut trial = Trial::new(&[7]);
    trial.hear(1, Some(7), ConnChange::Began);
    assert_eq!((trial.book.len(), trial.book.opening(), trial.book.prepared()), (1, 1, 0));
    trial.hear(1, Some(7), ESTABLISHED);
    trial.hear(1, Some(7), ESTABLISHED);
    assert_eq!((trial.book.len(), trial.book.opening()), (1, 0));
    trial.hear(1, Some(8), ConnChange::Ended);
    assert_eq!(trial.book.len(), 1, "that was another connection of these ports");
    trial.hear(1, Some(7), ConnChange::Ended);
    trial.hear(1, Some(7), ConnChange::Lost);
    // Told late, by another CPU.
    trial.hear(1, Some(7), ESTABLISHED);
    assert_eq!(trial.noted(), ["choice 7 is taken by 1", "choice 7 ends: Completed"]);
    assert!(trial.book.is_empty());
}

#[test]
fn lost_events_are_made_good() {
    let mut trial = Trial::new(&[7, 8, 9]);
    // The beginning was not told.
    trial.hear(1, Some(7), ESTABLISHED);
    // Neither were the end and the next beginning.
    trial.hear(1, Some(8), ESTABLISHED);
    assert_eq!((trial.book.len(), trial.book.opening()), (1, 0));
    let noted = ["choice 7 is taken by 1", "choice 7 ends: Completed", "choice 8 is taken by 1"];
    assert_eq!(trial.noted(), noted);
    // Its choice is gone with the back-end before a packet could be sent.
    trial.hear(2, Some(9), ConnChange::Lost);
    assert_eq!(trial.noted(), ["choice 9 is withdrawn"]);
    trial.hear(3, None, ESTABLISHED);
    trial.hear(4, Some(99), ConnChange::Began);
    assert_eq!(trial.noted(), ["3 stays with 2", "4 stays with 2"]);
    assert_eq!(trial.book.lose(HOLDER, &mut trial.notes), 3);
    let ends = ["choice 8 ends: Failed", "stay 3 ends: Failed", "stay 4 ends: Failed"];
    assert_eq!(trial.noted(), ends);
    assert_eq!((trial.book.opening(), trial.book.counts().lost), (0, 3));
}

#[test]
fn a_sweep_finds_what_was_not_told() {
    let mut trial = Trial::new(&[1, 2, 3, 4]);
    for port in [1, 2, 3] {
        trial.hear(port, Some(u64::from(port)), ESTABLISHED);
    }
    trial.noted();
    trial.book.start_sweep();
    assert_eq!(trial.see(1, ConnTable::Established, &entry(Some(1)), false), Seen::Stays);
    let over = ConnEntry { fin: true, ..entry(Some(2)) };
    assert_eq!(trial.see(2, ConnTable::Established, &over, false), Seen::Stays);
    assert_eq!(trial.see(2, ConnTable::Established, &over, true), Seen::Past);
    assert_eq!(trial.see(5, ConnTable::Hashed, &entry(None), false), Seen::Stays);
    assert_eq!(trial.see(6, ConnTable::Hashed, &entry(None), true), Seen::Past);
    // Younger than the sweep: it need not have seen it.
    let late = ConnEvent { at_ns: 300, ..event(7, None, ESTABLISHED) };
    trial.book.hear(&late, Some(BackendId::new(2)), &mut trial.notes);
    trial.book.start_sweep();
    trial.see(1, ConnTable::Established, &entry(Some(1)), false);
    trial.see(5, ConnTable::Hashed, &entry(None), true);
    let gone = trial.book.unseen(200);
    trial.book.finish_sweep(&gone, &[4], &mut trial.notes);
    let noted = [
        "choice 2 ends: Completed",
        "5 stays with 2",
        "7 stays with 2",
        "stay 5 ends: Completed",
        "choice 3 ends: Completed",
    ];
    assert_eq!(trial.noted(), noted);
    assert_eq!((trial.book.len(), trial.book.counts().forgotten, trial.book.counts().ended), (2, 2, 1));
    // A choice that is in no ring is withdrawn after a while.
    for (waiting, withdrawn) in [(&[4][..], 0), (&[], 0), (&[], 1)] {
        trial.book.finish_sweep(&[], waiting, &mut trial.notes);
        assert_eq!(trial.book.counts().withdrawn, withdrawn);
    }
    trial.book.clear(&mut trial.notes);
    assert!(trial.book.is_empty() && trial.book.prepared() == 0);
}

#[test]
fn a_single_packet_that_the_hash_has_placed_is_no_load() {
    let mut trial = Trial::new(&[]);
    let single = ConnEntry { packets: 1, ..entry(None) };
    assert_eq!(trial.see(1, ConnTable::Hashed, &single, false), Seen::Stays);
    assert!(trial.book.is_empty());
    trial.see(1, ConnTable::Hashed, &entry(None), false);
    assert_eq!(trial.book.len(), 1);
}

#[test]
fn the_account_is_bounded() {
    let mut trial = Trial::with_room(&[1, 2, 3], 2);
    for port in [1, 2] {
        trial.hear(port, Some(u64::from(port)), ESTABLISHED);
    }
    trial.noted();
    trial.hear(3, Some(3), ESTABLISHED);
    trial.hear(4, None, ESTABLISHED);
    // Both ends are told later, and change nothing.
    trial.hear(3, Some(3), ConnChange::Ended);
    trial.hear(4, None, ConnChange::Ended);
    assert_eq!(trial.noted(), ["choice 3 is taken by 3", "choice 3 ends: Completed"]);
    assert_eq!((trial.book.len(), trial.book.counts().forgotten, trial.book.counts().stayed), (2, 1, 0));
    trial.hear(1, Some(1), ConnChange::Ended);
    trial.hear(4, None, ESTABLISHED);
    assert_eq!(trial.book.len(), 2);
}

#[test]
fn handshakes_are_counted_by_back_end() {
    let mut trial = Trial::new(&[1, 2]);
    trial.hear(1, Some(1), ConnChange::Began);
    trial.hear(2, Some(2), ConnChange::Began);
    assert_eq!(trial.book.handshakes(HOLDER).opening, 2);
    for round_trip_ns in [Some(500_001), None] {
        trial.hear(1, Some(1), ConnChange::Established { round_trip_ns });
    }
    trial.hear(2, Some(2), ConnChange::Ended);
    let counts = trial.book.handshakes(HOLDER);
    assert_eq!((counts.opening, counts.handshakes[2], counts.handshakes_ns), (0, 1, 500_001));
    assert_eq!(counts.handshakes.iter().sum::<u64>(), 1);
    assert_eq!(trial.book.handshakes(ConnHolder { generation: 1, ..HOLDER }), HandshakeCounts::default());
}
