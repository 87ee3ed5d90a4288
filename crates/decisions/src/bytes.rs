//! Bytes of the format: LEB128 varints, zigzag differences, fixed 64-bit words in little-endian order.

/// Why bytes cannot have been written by a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// A small buffer on the stack, so that an event is appended at once.
pub(crate) struct StackBytes {
    bytes: [u8; Self::ROOM],
    len: usize,
}

impl StackBytes {
    /// The longest event without texts and poll answers has 78 bytes.
    const ROOM: usize = 96;

    pub(crate) fn new(tag: u8) -> Self {
        let mut bytes = [0; Self::ROOM];
        bytes[0] = tag;
        Self { bytes, len: 1 }
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    pub(crate) fn word(&mut self, word: u64) {
        self.bytes[self.len..self.len + 8].copy_from_slice(&word.to_le_bytes());
        self.len += 8;
    }

    #[inline]
    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    #[inline]
    pub(crate) fn set_tag(&mut self, tag: u8) {
        self.bytes[0] = tag;
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// The difference `to - from`, small in either direction.
#[inline]
pub(crate) const fn zigzag(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub(crate) const fn unzigzag(from: u64, value: u64) -> u64 {
    from.wrapping_add((value >> 1) ^ (value & 1).wrapping_neg())
}

/// Reads these encodings.
pub(crate) struct ByteCursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteCursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed("it ends in the middle of an event"))?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn slice(&mut self, len: u64) -> Result<&'a [u8], Malformed> {
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        let slice = end.and_then(|end| self.bytes.get(self.at..end));
        let slice = slice.ok_or(Malformed("it ends in the middle of an event"))?;
        self.at += slice.len();
        Ok(slice)
    }

    pub(crate) fn word(&mut self) -> Result<u64, Malformed> {
        let mut word = [0; 8];
        word.copy_from_slice(self.slice(8)?);
        Ok(u64::from_le_bytes(word))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number does not fit into 64 bits"))
    }

    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.varint()?).map_err(|_| Malformed("a number is out of range"))
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let len = self.varint()?;
        let text = std::str::from_utf8(self.slice(len)?).map_err(|_| Malformed("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(a: u64, b: u64, shift in 0u32..64) {
            let (a, b) = (a >> shift, b);
            let mut out = Vec::new();
            put_varint(&mut out, a);
            let mut scratch = StackBytes::new(out[0]);
            scratch.varint(a);
            prop_assert_eq!(&scratch.as_slice()[1..], &out[..]);
            let mut cursor = ByteCursor::new(&out, 0);
            prop_assert_eq!(cursor.varint(), Ok(a));
            prop_assert_eq!(cursor.at(), out.len());
            prop_assert_eq!(unzigzag(a, zigzag(a, b)), b);
        }
    }

    #[test]
    fn small_differences_are_short() {
        assert_eq!(zigzag(10, 10), 0);
        assert_eq!(zigzag(10, 9), 1);
        assert_eq!(zigzag(10, 11), 2);
    }

    #[test]
    fn numbers_beyond_64_bits_are_refused() {
        assert!(ByteCursor::new(&[0xff; 11], 0).varint().is_err());
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(ByteCursor::new(&most, 0).varint(), Ok(u64::MAX));
        most[9] = 2;
        assert!(ByteCursor::new(&most, 0).varint().is_err());
    }
}
