//! Numbers with seven bits to a byte: small ones take little room.

/// Appends a number, seven bits to a byte, the lowest first; the top bit says that more follow.
#[inline]
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The bytes that follow what was decoded.
pub(crate) struct Undecoded<'a>(&'a [u8]);

impl<'a> Undecoded<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// One byte; `None` at the end.
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// A number as [`put`] writes it; `None` when it does not end, or has more than ten bytes.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        const STOP: u64 = 0x8080_8080_8080_8080;
        let Some(bytes) = self.0.first_chunk() else { return self.any_number() };
        let word = u64::from_le_bytes(*bytes);
        // The top bit of a byte is clear in the last one.
        let stop = !word & STOP;
        if stop == 0 {
            return self.any_number();
        }
        self.0 = &self.0[stop.trailing_zeros() as usize / 8 + 1..];
        let sevens = word & (stop ^ (stop - 1)) & !STOP;
        let fourteens = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
        let halves = fourteens & 0x0000_3fff_0000_3fff | (fourteens & 0x3fff_0000_3fff_0000) >> 2;
        Some(halves & 0x0fff_ffff | halves >> 32 << 28)
    }

    /// One byte after the other: for numbers of more than eight bytes, and near the end.
    #[inline(never)]
    fn any_number(&mut self) -> Option<u64> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        let numbers: Vec<u64> = (0..64).flat_map(|bit| [u64::MAX >> bit, 1 << bit]).chain([0]).collect();
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&number| put(&mut bytes, number));
        let mut rest = Undecoded::new(&bytes);
        for &number in &numbers {
            assert_eq!(rest.number(), Some(number));
        }
        assert_eq!((rest.len(), rest.number()), (0, None));
    }

    #[test]
    fn what_does_not_end_or_is_too_long_is_no_number() {
        for cut in 1..10 {
            let mut bytes = Vec::new();
            put(&mut bytes, u64::MAX);
            bytes.truncate(cut);
            assert_eq!(Undecoded::new(&bytes).number(), None, "{cut} bytes");
        }
        assert_eq!(Undecoded::new(&[0x80; 12]).number(), None);
    }
}
