//! Watches the frames that go to a client: streams that the `h2` crate resets of itself, of which it tells nobody.

/// Bytes of a frame's head (RFC 9113, section 4.1), and of that with what RST_STREAM says.
const HEAD_BYTES: usize = 9;
const RESET_BYTES: usize = HEAD_BYTES + 4;
const RST_STREAM: u8 = 3;

/// PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR and COMPRESSION_ERROR: with these a client has broken a rule.
const BROKEN_RULES: [u32; 4] = [1, 3, 6, 9];

/// Finds resets in a stream of bytes.
pub(super) struct ResetWatch {
    /// Bytes up to the next frame's head.
    skip: usize,
    frame: [u8; RESET_BYTES],
    have: usize,
}

impl ResetWatch {
    pub(super) fn new() -> Self {
        Self { skip: 0, frame: [0; RESET_BYTES], have: 0 }
    }

    /// Looks at bytes that went; how many resets in them say that a rule was broken.
    pub(super) fn went(&mut self, mut bytes: &[u8]) -> u32 {
        let mut broken = 0;
        loop {
            let n = self.skip.min(bytes.len());
            self.skip -= n;
            bytes = &bytes[n..];
            let is_reset = self.have >= HEAD_BYTES;
            let n = (if is_reset { RESET_BYTES } else { HEAD_BYTES } - self.have).min(bytes.len());
            if n == 0 {
                return broken;
            }
            self.frame[self.have..self.have + n].copy_from_slice(&bytes[..n]);
            self.have += n;
            bytes = &bytes[n..];
            let [a, b, c, kind, _, _, _, _, _, code @ ..] = self.frame;
            if self.have == RESET_BYTES {
                self.have = 0;
                broken += u32::from(BROKEN_RULES.contains(&u32::from_be_bytes(code)));
            } else if self.have == HEAD_BYTES && kind != RST_STREAM {
                self.have = 0;
                self.skip = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        [&[0, 0, payload.len() as u8, kind, 0, 0, 0, 0, 1][..], payload].concat()
    }

    #[test]
    fn resets_for_broken_rules_are_found_in_pieces_of_any_size() {
        let resets: Vec<u8> =
            [1, 2, 7, 8, 9].iter().flat_map(|&code| frame(RST_STREAM, &[0, 0, 0, code])).collect();
        // A payload that looks like one.
        let data = frame(0, &frame(RST_STREAM, &[0, 0, 0, 1]));
        let settings = frame(4, &[]);
        let all = [&settings[..], &data, &resets, &data, &settings, &resets].concat();
        for size in 1..=all.len() {
            let mut watch = ResetWatch::new();
            let found: u32 = all.chunks(size).map(|piece| watch.went(piece)).sum();
            assert_eq!(found, 4, "{size}");
        }
    }
}
