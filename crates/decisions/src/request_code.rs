//! The encoding of requests: the rest of an offer, and requests that wait when a run starts.

use std::sync::Arc;

use plimsoll_policy::{
    AdmissionControl, AdmissionLimit, BackendId, Features, Kind, OfferOptions, Phase, Request, TargetId,
    Thresholds, Time, Tried, WaitingRequest,
};

use crate::bytes::{ByteCursor, Malformed, StackBytes, put_varint};
use crate::code;

/// The most recorded blocks of a prefix; a record that claims more is damaged.
const MOST_BLOCKS: u64 = 1 << 16;
/// In place of a number of blocks: the back-end of a session follows, and then that number.
const SESSION: u64 = MOST_BLOCKS + 1;
/// The most requests that wait when a run starts; a header that claims more is damaged.
const MOST_WAITING: u64 = 1 << 24;

/// The flags of the optional parts present.
#[inline]
pub(crate) fn flags(request: &Request, options: &OfferOptions) -> u8 {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    flag(request.size_bytes.is_some(), code::MORE_SIZE)
        | flag(request.kind == Kind::Dynamic, code::MORE_DYNAMIC)
        | flag(request.kind == Kind::Connection, code::MORE_CONNECTION)
        | flag(request.class != 0, code::MORE_CLASS)
        | flag(request.features.is_some(), code::MORE_FEATURES)
        | flag(!options.tried.as_slice().is_empty(), code::MORE_TRIED)
        | flag(options.deadline.is_some(), code::MORE_DEADLINE)
        | flag(options.begins != Phase::Active, code::MORE_BEGINS)
}

/// Writes the flags and the common optional parts.
#[inline]
pub(crate) fn put_usual(out: &mut StackBytes, request: &Request, flags: u8) {
    out.byte(flags);
    if let Some(size_bytes) = request.size_bytes {
        out.varint(size_bytes);
    }
    if request.class != 0 {
        out.varint(u64::from(request.class));
    }
}

pub(crate) fn read_usual(request: &mut Request, cursor: &mut ByteCursor<'_>) -> Result<u8, Malformed> {
    let flags = cursor.byte()?;
    if flags & code::MORE_SIZE != 0 {
        request.size_bytes = Some(cursor.varint()?);
    }
    if flags & code::MORE_DYNAMIC != 0 {
        request.kind = Kind::Dynamic;
    }
    if flags & code::MORE_CONNECTION != 0 {
        request.kind = Kind::Connection;
    }
    if flags & code::MORE_CLASS != 0 {
        request.class = cursor.small()?;
    }
    Ok(flags)
}

/// Writes the rare optional parts.
pub(crate) fn put_rare(out: &mut Vec<u8>, request: &Request, options: &OfferOptions) {
    if let Some(features) = &request.features {
        if let Some(session) = features.session {
            put_varint(out, SESSION);
            put_varint(out, u64::from(session.0));
        }
        let blocks = &features.prefix_blocks[..features.prefix_blocks.len().min(MOST_BLOCKS as usize)];
        put_varint(out, blocks.len() as u64);
        blocks.iter().for_each(|block| out.extend_from_slice(&block.to_le_bytes()));
    }
    let tried = options.tried.as_slice();
    if !tried.is_empty() {
        code::put_backends(out, tried);
    }
    if let Some(deadline) = options.deadline {
        put_varint(out, deadline.as_nanos());
    }
    if options.begins != Phase::Active {
        out.push(phase_code(options.begins));
    }
}

pub(crate) fn read_rare(
    request: &mut Request,
    flags: u8,
    cursor: &mut ByteCursor<'_>,
) -> Result<OfferOptions, Malformed> {
    let mut options = OfferOptions::PLAIN;
    if flags & code::MORE_FEATURES != 0 {
        let mut count = cursor.varint()?;
        let mut session = None;
        if count == SESSION {
            session = Some(BackendId(cursor.small()?));
            count = cursor.varint()?;
        }
        if count > MOST_BLOCKS {
            return Err(Malformed("a prefix has more than 65,536 blocks"));
        }
        let prefix_blocks = (0..count).map(|_| cursor.word()).collect::<Result<_, _>>()?;
        request.features = Some(Arc::new(Features { prefix_blocks, session }));
    }
    if flags & code::MORE_TRIED != 0 {
        let tried: Tried = code::read_backends(cursor)?;
        options.tried = tried;
    }
    if flags & code::MORE_DEADLINE != 0 {
        options.deadline = Some(Time::from_nanos(cursor.varint()?));
    }
    if flags & code::MORE_BEGINS != 0 {
        options.begins = read_phase(cursor)?;
    }
    Ok(options)
}

/// Writes a waiting request with its options.
pub(crate) fn put_waiting(out: &mut Vec<u8>, waiting: &WaitingRequest) {
    let WaitingRequest { request, options } = waiting;
    put_varint(out, request.number);
    out.extend_from_slice(&request.target.0.to_le_bytes());
    out.extend_from_slice(&request.client.to_le_bytes());
    let flags = flags(request, options);
    let mut usual = StackBytes::new(flags);
    put_usual(&mut usual, request, flags);
    // The first byte is a tag, which the flags stand in for here.
    out.extend_from_slice(&usual.as_slice()[1..]);
    put_rare(out, request, options);
}

pub(crate) fn read_waiting(cursor: &mut ByteCursor<'_>) -> Result<WaitingRequest, Malformed> {
    let number = cursor.varint()?;
    let mut request = Request::of(number, TargetId(cursor.word()?));
    request.client = cursor.word()?;
    let flags = read_usual(&mut request, cursor)?;
    let options = read_rare(&mut request, flags, cursor)?;
    Ok(WaitingRequest { request, options })
}

pub(crate) fn read_all_waiting(cursor: &mut ByteCursor<'_>) -> Result<Vec<WaitingRequest>, Malformed> {
    let count = cursor.varint()?;
    if count > MOST_WAITING {
        return Err(Malformed("more than 16,777,216 requests wait"));
    }
    // No preallocation: the count may be damaged.
    let mut waiting = Vec::new();
    for _ in 0..count {
        waiting.push(read_waiting(cursor)?);
    }
    Ok(waiting)
}

pub(crate) fn phase_code(phase: Phase) -> u8 {
    match phase {
        Phase::Prepared => 0,
        Phase::Connecting => 1,
        Phase::Active => 2,
        Phase::Stalled => 3,
    }
}

pub(crate) fn read_phase(cursor: &mut ByteCursor<'_>) -> Result<Phase, Malformed> {
    match cursor.byte()? {
        0 => Ok(Phase::Prepared),
        1 => Ok(Phase::Connecting),
        2 => Ok(Phase::Active),
        3 => Ok(Phase::Stalled),
        _ => Err(Malformed("a request is in no known phase")),
    }
}

pub(crate) fn put_admission(out: &mut Vec<u8>, admission: AdmissionControl) {
    match admission.limit {
        AdmissionLimit::Unlimited => out.push(0),
        AdmissionLimit::Fixed(limit) => {
            out.push(1);
            put_varint(out, limit);
        }
        AdmissionLimit::Lard(thresholds) => put_thresholds(out, 2, thresholds),
        AdmissionLimit::Adaptive(thresholds) => put_thresholds(out, 3, thresholds),
    }
    put_varint(out, admission.queue as u64);
}

fn put_thresholds(out: &mut Vec<u8>, kind: u8, Thresholds { t_low, t_high }: Thresholds) {
    out.push(kind);
    put_varint(out, u64::from(t_low));
    put_varint(out, u64::from(t_high));
}

fn read_thresholds(cursor: &mut ByteCursor<'_>) -> Result<Thresholds, Malformed> {
    Ok(Thresholds { t_low: cursor.small()?, t_high: cursor.small()? })
}

pub(crate) fn read_admission(cursor: &mut ByteCursor<'_>) -> Result<AdmissionControl, Malformed> {
    let limit = match cursor.byte()? {
        0 => AdmissionLimit::Unlimited,
        1 => AdmissionLimit::Fixed(cursor.varint()?),
        2 => AdmissionLimit::Lard(read_thresholds(cursor)?),
        3 => AdmissionLimit::Adaptive(read_thresholds(cursor)?),
        _ => return Err(Malformed("an admission limit is of no known kind")),
    };
    Ok(AdmissionControl { limit, queue: cursor.small()? })
}
