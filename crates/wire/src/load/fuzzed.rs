//! Takes bytes as datagrams of load information, for the fuzz targets.

use std::net::{IpAddr, Ipv4Addr};

use super::datagram::{DATAGRAM_BYTES, Datagram, DatagramFields, DatagramKind, LoadKeys, MOST_LOAD};
use super::{
    AnswerLimits, BootId, IndexClient, IndexLimits, InquiryLimits, LoadAnswerer, LoadIndex, LoadInquirer,
    LoadTaken, asks_for_host,
};
use crate::Key;

const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Everyone who takes datagrams, with inquiries under way.
struct Parties {
    answerer: LoadAnswerer,
    index: LoadIndex,
    inquirer: LoadInquirer,
    client: IndexClient,
}

impl Parties {
    fn new(keys: &LoadKeys, boot: u64) -> Self {
        let boot = BootId::new(boot.to_le_bytes());
        let backends = ["a".to_owned(), "b".to_owned()];
        let limits = IndexLimits::default();
        let mut this = Self {
            answerer: LoadAnswerer::new(keys.clone(), boot, AnswerLimits::default(), 1),
            index: LoadIndex::new(keys.clone(), boot, &backends, limits, 1),
            inquirer: LoadInquirer::new(keys.clone(), [2; 8], InquiryLimits::default()),
            client: IndexClient::new(keys.clone(), [2; 8], &backends, 4),
        };
        this.inquirer.ask(0, 1);
        this.inquirer.ask_host(1, 1);
        this.client.acquire(1);
        this
    }

    /// Has all of them take it; whether one has believed it.
    fn take(&mut self, datagram: &[u8], now_ns: u64) -> bool {
        let mut believed = false;
        if asks_for_host(datagram) {
            let answer = self.answerer.answer_host(SOURCE, datagram, now_ns, Default::default);
            believed |= answer.is_some();
        } else {
            believed |= self.answerer.answer(SOURCE, datagram, now_ns, || (u32::MAX, 3)).is_some();
        }
        believed |= self.index.answer(SOURCE, datagram, now_ns).is_some();
        let taken = self.inquirer.take(datagram, now_ns);
        if let Ok(LoadTaken::Load { load, .. }) = taken {
            assert!(load <= MOST_LOAD);
        }
        believed |= taken.is_ok();
        believed |= self.inquirer.take_host(datagram, now_ns).is_ok();
        believed |= self.inquirer.take_announcement(datagram, now_ns).is_ok();
        believed |= self.client.take(datagram, now_ns).is_ok();
        believed
    }
}

/// Nobody believes what has no code; what has one is taken by every kind of recipient, more than once, without harm.
pub(crate) fn datagrams(bytes: &[u8]) {
    let keys = LoadKeys::new(&Key::new([7; 32]));
    let mut parties = Parties::new(&keys, 9);
    assert!(!parties.take(bytes, 2), "nobody without the key is believed");
    let Some((now, body)) = bytes.split_first_chunk::<8>() else { return };
    let now_ns = u64::from_le_bytes(*now);
    for (number, piece) in (1..=16).zip(body.chunks(DATAGRAM_BYTES)) {
        let Some(fields) = fields(piece) else { return };
        let sealed: Datagram = fields.seal(&keys);
        parties.take(&sealed, now_ns);
        parties.take(&sealed, now_ns);
        let accesses: u32 = parties.index.queues().iter().sum();
        assert!(accesses <= number, "an access is not counted twice");
        let mut forged = sealed;
        forged[usize::from(piece[0]) % DATAGRAM_BYTES] ^= 1;
        assert!(!parties.take(&forged, now_ns), "a changed datagram is not believed");
    }
}

/// The fields in a piece: kind, then numbers; small ones where the byte before says so, so that they match what is under way.
fn fields(piece: &[u8]) -> Option<DatagramFields> {
    let kinds = [
        DatagramKind::Inquiry,
        DatagramKind::Reply,
        DatagramKind::Renewal,
        DatagramKind::Announcement,
        DatagramKind::Acquire,
        DatagramKind::Grant,
        DatagramKind::Release,
        DatagramKind::Released,
        DatagramKind::HostInquiry,
        DatagramKind::HostReply,
    ];
    let (&[kind, usual], rest) = piece.split_first_chunk::<2>()?;
    let long = |at: usize| Some(u64::from_le_bytes(rest.get(at..at + 8)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    let own = |bit: u8, own: u64, told: u64| if usual & bit == 0 { own } else { told };
    Some(DatagramFields {
        kind: kinds[usize::from(kind) % kinds.len()],
        boot: own(1, 9, long(0)?),
        client: own(2, u64::from_le_bytes([2; 8]), long(8)?),
        sequence: own(4, u64::from(kind) / 10 + 1, long(16)?),
        clock_ns: own(8, 2, long(24)?),
        first: short(32)?,
        second: short(36)?,
    })
}
