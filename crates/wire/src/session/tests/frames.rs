use super::*;
use proptest::prelude::*;

/// A frame each for these connections, and a reader for them.
fn frames(count: u64) -> (Vec<Vec<u8>>, FrameReader) {
    let (mut front_end, agent) = link();
    let frames = (0..count).map(|n| {
        let writer = &mut front_end.keys.writer;
        writer.push(&ToAgent::Confirm { conn: Conn(n) }).unwrap();
        let frame = writer.finish().to_vec();
        writer.consume(frame.len());
        frame
    });
    (frames.collect(), agent.keys.reader)
}

#[test]
fn nothing_is_free() {
    let (mut front_end, _) = link();
    let writer = &mut front_end.keys.writer;
    assert!(writer.is_empty());
    assert_eq!(writer.finish(), b"");
    let state = vec![0; crate::message::MOST_STATE_BYTES + 1];
    let handoff = ToAgent::Handoff { conn: Conn(1), request: 0, lease_until_ns: 0, ask: true, state: &state };
    assert!(writer.push(&handoff).is_err());
    assert!(writer.is_empty());
    writer.push(&ToAgent::Ping { token: 1 }).unwrap();
    assert!(writer.push(&handoff).is_err());
    assert_eq!(writer.finish().len(), 4 + 3 + 16);
}

#[test]
fn messages_of_a_turn_share_a_frame() {
    let (mut front_end, mut agent) = link();
    let writer = &mut front_end.keys.writer;
    for conn in 0..100 {
        writer.push(&ToAgent::Confirm { conn: Conn(conn) }).unwrap();
    }
    let bytes = writer.finish().to_vec();
    assert_eq!(bytes.len(), 4 + 300 + 16);
    assert_eq!(writer.queued_bytes(), bytes.len());
    agent.keys.reader.feed(&bytes);
    assert_eq!(confirmed(&mut agent.keys.reader).unwrap(), (0..100).collect::<Vec<_>>());
    assert!(!agent.keys.reader.is_within_frame());
}

#[test]
fn what_one_frame_cannot_hold_goes_into_the_next() {
    let (mut front_end, mut agent) = link();
    let state = vec![7; 6 << 20];
    let writer = &mut front_end.keys.writer;
    for conn in 0..5 {
        let conn = Conn(conn);
        writer
            .push(&ToAgent::Handoff { conn, request: 0, lease_until_ns: 0, ask: true, state: &state })
            .unwrap();
    }
    let reader = &mut agent.keys.reader;
    let mut counts = Vec::new();
    // Sent in parts as a socket takes them.
    for _ in 0..100_000 {
        let bytes = writer.finish();
        if bytes.is_empty() {
            break;
        }
        let space = reader.space();
        let count = bytes.len().min(space.len()).min(300_000);
        space[..count].copy_from_slice(&bytes[..count]);
        writer.consume(count);
        reader.filled(count);
        while let Some(area) = reader.next_frame().unwrap() {
            counts.push(messages::<ToAgent<'_>>(area).map(Result::unwrap).count());
        }
    }
    assert_eq!(counts, [2, 2, 1]);
    assert!(writer.is_empty());
}

#[test]
fn repeated_reordered_dropped() {
    let (frames, mut reader) = frames(3);
    reader.feed(&frames[0]);
    assert_eq!(confirmed(&mut reader), Ok(vec![0]));
    reader.feed(&frames[0]);
    assert_eq!(confirmed(&mut reader), Err(FrameError::Forged { number: 1 }));
    // The link has failed, whatever comes.
    reader.feed(&frames[1]);
    assert_eq!(confirmed(&mut reader), Err(FrameError::Failed));
    let (frames, mut reader) = super::frames::frames(3);
    reader.feed(&frames[1]);
    assert_eq!(confirmed(&mut reader), Err(FrameError::Forged { number: 0 }));
    let (frames, mut reader) = super::frames::frames(3);
    reader.feed(&frames[0]);
    reader.feed(&frames[2]);
    assert_eq!(reader.next_frame().map(|area| area.is_some()), Ok(true));
    assert_eq!(confirmed(&mut reader), Err(FrameError::Forged { number: 1 }));
}

#[test]
fn own_frames_sent_back_and_those_of_other_links() {
    let (mut front_end, mut agent) = link();
    front_end.keys.writer.push(&ToAgent::Ping { token: 1 }).unwrap();
    let frame = front_end.keys.writer.finish();
    front_end.keys.reader.feed(frame);
    assert_eq!(front_end.keys.reader.next_frame(), Err(FrameError::Forged { number: 0 }));
    let key = Key::new([3; 32]);
    let (mut other, hello) = FrontEndHandshake::new(&key, &id(), [6; 32]).unwrap();
    let welcome = AgentHandshake::new(&key, terms(), [2; 32]).unwrap().feed(&hello, 0).unwrap().send;
    let mut keys = other.feed(&welcome).unwrap().done.unwrap().keys;
    keys.writer.push(&ToAgent::Ping { token: 1 }).unwrap();
    agent.keys.reader.feed(keys.writer.finish());
    assert_eq!(agent.keys.reader.next_frame(), Err(FrameError::Forged { number: 0 }));
}

#[test]
fn impossible_lengths() {
    for bytes in [0, MOST_FRAME_BYTES as u32 + 1, u32::MAX] {
        let (_, mut reader) = frames(0);
        reader.feed(&bytes.to_le_bytes());
        assert_eq!(reader.next_frame(), Err(FrameError::Length { bytes }));
        assert!(reader.space().len() < 100_000, "no memory for it");
        assert_eq!(reader.next_frame(), Err(FrameError::Failed));
    }
}

proptest! {
    #[test]
    fn however_it_is_cut(cuts in prop::collection::vec(1..60_usize, 1..40)) {
        let (frames, mut reader) = frames(20);
        let all = frames.concat();
        let (mut rest, mut got) = (&all[..], Vec::new());
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let (now, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            reader.feed(now);
            got.extend(confirmed(&mut reader).unwrap());
            rest = later;
        }
        prop_assert_eq!(got, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_cut_frame_is_none(end: prop::sample::Index) {
        let (frames, mut reader) = frames(1);
        let end = end.index(frames[0].len());
        reader.feed(&frames[0][..end]);
        prop_assert_eq!(confirmed(&mut reader), Ok(vec![]));
        prop_assert_eq!(reader.is_within_frame(), end > 0);
    }

    #[test]
    fn a_flipped_bit(at: prop::sample::Index, bit in 0..8) {
        let (frames, mut reader) = frames(2);
        let mut all = frames.concat();
        let at = at.index(all.len());
        all[at] ^= 1_u8 << bit;
        reader.feed(&all);
        // A greater length waits for what never comes; what came before the change was good.
        let mut good = 0;
        while let Ok(Some(_)) = reader.next_frame() {
            good += 1;
        }
        prop_assert_eq!(good, usize::from(at >= frames[0].len()));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let (_, mut reader) = frames(0);
        reader.feed(&bytes);
        prop_assert!(!matches!(reader.next_frame(), Ok(Some(_))));
    }
}
