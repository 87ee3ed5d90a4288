//! The parts of messages as bytes.

use crate::{FLOW_KEY_BYTES, Flow};

use super::error::{DecodeError, TooLong};
use crate::message::{AnswerReport, Conn};

pub(super) fn within(field: &'static str, bytes: usize, most: usize) -> Result<(), TooLong> {
    if bytes <= most { Ok(()) } else { Err(TooLong { field, bytes, most }) }
}

pub(super) fn start(out: &mut Vec<u8>, kind: u8, conn: Conn) {
    out.push(kind);
    put(out, conn.0.to_le_bytes());
}

pub(super) fn put<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) {
    out.extend_from_slice(&bytes);
}

/// The caller has checked that the length is within its bound, which is far below 4 GiB.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(super) fn put_ended(out: &mut Vec<u8>, ended: &AnswerReport) {
    put(out, ended.request.to_le_bytes());
    put(out, ended.status.to_le_bytes());
    out.push(u8::from(ended.complete));
    put(out, ended.content_bytes.to_le_bytes());
    put(out, ended.first_byte_us.to_le_bytes());
    put(out, ended.total_us.to_le_bytes());
}

/// What is left to decode.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(first)
    }

    pub(super) fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(*self.take()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(*self.take()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(*self.take()?))
    }

    pub(super) fn conn(&mut self) -> Result<Conn, DecodeError> {
        self.u64().map(Conn)
    }

    pub(super) fn truth(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(DecodeError::Value { field, value }),
        }
    }

    pub(super) fn flow(&mut self) -> Result<Flow, DecodeError> {
        Ok(Flow::from_key(self.take::<FLOW_KEY_BYTES>()?))
    }

    pub(super) fn bytes(&mut self, field: &'static str, most: usize) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        within(field, length, most)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn ended(&mut self) -> Result<AnswerReport, DecodeError> {
        Ok(AnswerReport {
            request: self.u32()?,
            status: self.u16()?,
            complete: self.truth("complete")?,
            content_bytes: self.u64()?,
            first_byte_us: self.u32()?,
            total_us: self.u32()?,
        })
    }
}
