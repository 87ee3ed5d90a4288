//! Policy state as bytes: 64-bit words in little-endian order.

use crate::capability::BadState;
use crate::cluster::BackendId;

/// Appends words.
#[derive(Default)]
pub(crate) struct StateWriter(Vec<u8>);

impl StateWriter {
    pub(crate) fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    pub(crate) fn words(&mut self, words: impl IntoIterator<Item = u64>) {
        words.into_iter().for_each(|word| self.word(word));
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads words.
pub(crate) struct StateReader<'a>(&'a [u8]);

impl<'a> StateReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn word(&mut self) -> Result<u64, BadState> {
        let (word, rest) = self.0.split_first_chunk().ok_or(BadState("it ends too early"))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// Reads the number of items that follow, each at least one word long.
    pub(crate) fn count(&mut self) -> Result<usize, BadState> {
        let count = self.word()?;
        let there = self.0.len() / 8;
        usize::try_from(count).ok().filter(|&n| n <= there).ok_or(BadState("it ends too early"))
    }

    pub(crate) fn backend(&mut self) -> Result<BackendId, BadState> {
        let index = u16::try_from(self.word()?).map_err(|_| BadState("it names a back-end above 65,535"))?;
        Ok(BackendId(index))
    }

    pub(crate) fn finish(self) -> Result<(), BadState> {
        if self.0.is_empty() { Ok(()) } else { Err(BadState("something follows its end")) }
    }
}
