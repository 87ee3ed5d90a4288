//! Generated contents: documents with given names and sizes whose bytes follow from their number.
//!
//! The bytes are stored nowhere. Whoever knows a document's number can compute them and check each byte that arrives: word
//! `i` of eight bytes, little-endian, is `mix(number) + i · 0x9e3779b97f4a7c15`. So no two words of a document are equal.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use plimsoll_synth::SynthError;

use super::numbers::numbers_of;

/// Why such contents cannot be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntheticError {
    /// There is no such workload, or a parameter is wrong.
    #[error(transparent)]
    Workload(#[from] SynthError),
    /// Two documents have the same name.
    #[error("two documents are both called {0:?}; each needs a name of its own")]
    TwiceNamed(String),
    /// There are more than 4,294,967,295 documents.
    #[error("there are too many documents; 4,294,967,295 is the most")]
    TooMany,
}

/// A document: its number, which decides its bytes, and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// Decides the bytes; see [`fill`].
    pub number: u64,
    /// Length in bytes.
    pub size_bytes: u64,
}

/// A set of generated documents.
#[derive(Debug, Clone)]
pub struct Synthetic(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// Looked up only, never iterated.
    Table {
        numbers: HashMap<Box<[u8]>, u32, FixedState>,
        sizes_bytes: Vec<u64>,
    },
    Fixed {
        size_bytes: u64,
    },
}

/// After this, a path names the size of its document; for [`Synthetic::fixed`] only.
const SIZE_PREFIX: &str = "/size/";

/// The largest size that a path may ask for: 1 PiB.
const LARGEST_ASKED_BYTES: u64 = 1 << 50;

impl Synthetic {
    /// The targets of the synthetic workload `name` with these parameters, under the names and with the sizes that
    /// `plimsoll trace synth` writes for the same parameters and seed. Document numbers are target numbers.
    ///
    /// # Errors
    /// For an unknown workload or parameter and for values that do not go together.
    pub fn workload(name: &str, overrides: &[(&str, &str)], seed: u64) -> Result<Self, SyntheticError> {
        let workload = plimsoll_synth::build(name, overrides, seed)?;
        let targets = 0..workload.target_count();
        Self::table(targets.map(|t| (workload.target_name(t).into_bytes(), workload.document_size_bytes(t))))
    }

    /// Documents with these names (path and query as in a request) and sizes in bytes, numbered from 0 in this order.
    ///
    /// # Errors
    /// When a name comes twice, or there are too many.
    pub fn table(documents: impl IntoIterator<Item = (Vec<u8>, u64)>) -> Result<Self, SyntheticError> {
        let mut numbers: HashMap<Box<[u8]>, u32, FixedState> = HashMap::default();
        let mut sizes_bytes = Vec::new();
        for (name, size_bytes) in documents {
            let number = u32::try_from(sizes_bytes.len()).map_err(|_| SyntheticError::TooMany)?;
            if numbers.contains_key(name.as_slice()) {
                return Err(SyntheticError::TwiceNamed(String::from_utf8_lossy(&name).into_owned()));
            }
            numbers.insert(name.into_boxed_slice(), number);
            sizes_bytes.push(size_bytes);
        }
        Ok(Self(Kind::Table { numbers, sizes_bytes }))
    }

    /// A document of `size_bytes` at every path. Only `/size/N` and the paths below it have documents of N bytes instead.
    /// A document's number is a hash of its path.
    #[must_use]
    pub fn fixed(size_bytes: u64) -> Self {
        Self(Kind::Fixed { size_bytes })
    }

    /// The document at `path_and_query`. A table that has no such name is searched again without the query.
    #[must_use]
    pub fn find(&self, path_and_query: &str) -> Option<Document> {
        let path = path_and_query.split('?').next().unwrap_or_default();
        match &self.0 {
            Kind::Table { numbers, sizes_bytes } => {
                let number =
                    *numbers.get(path_and_query.as_bytes()).or_else(|| numbers.get(path.as_bytes()))?;
                let size_bytes = *sizes_bytes.get(number as usize)?;
                Some(Document { number: u64::from(number), size_bytes })
            }
            Kind::Fixed { size_bytes } => {
                let size_bytes = match path.strip_prefix(SIZE_PREFIX) {
                    None => *size_bytes,
                    Some(rest) => {
                        let digits = rest.split('/').next().unwrap_or_default();
                        let digits = Some(digits).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
                        digits.parse().ok().filter(|&size| size <= LARGEST_ASKED_BYTES)?
                    }
                };
                Some(Document { number: numbers_of(path.as_bytes()).0, size_bytes })
            }
        }
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads the number over 64 bits; the finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn word(base: u64, index: u64) -> [u8; 8] {
    base.wrapping_add(index.wrapping_mul(STEP)).to_le_bytes()
}

/// Writes the bytes of document `number` from `offset_bytes` on into `buffer`.
pub fn fill(number: u64, offset_bytes: u64, buffer: &mut [u8]) {
    let base = mix(number);
    let into_word = (offset_bytes % 8) as usize;
    let mut index = offset_bytes / 8;
    let (first, rest) = buffer.split_at_mut(((8 - into_word) % 8).min(buffer.len()));
    if !first.is_empty() {
        first.copy_from_slice(&word(base, index)[into_word..into_word + first.len()]);
        index = index.wrapping_add(1);
    }
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&word(base, index)[..chunk.len()]);
        index = index.wrapping_add(1);
    }
}

/// Whether `bytes` are those of document `number` from `offset_bytes` on.
#[must_use]
pub fn matches(number: u64, offset_bytes: u64, bytes: &[u8]) -> bool {
    let mut expected = [0; 4096];
    bytes.chunks(expected.len()).enumerate().all(|(at, chunk)| {
        let expected = &mut expected[..chunk.len()];
        fill(number, offset_bytes.wrapping_add(at as u64 * 4096), expected);
        expected == chunk
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_a_part_of_the_whole() {
        let mut whole = [0; 100];
        fill(7, 0, &mut whole);
        for start in 0..20 {
            for length in 0..40 {
                let mut part = vec![0; length];
                fill(7, start as u64, &mut part);
                assert_eq!(part, whole[start..start + length], "{start} {length}");
                assert!(matches(7, start as u64, &part));
            }
        }
        assert!(!matches(8, 0, &whole), "another document differs");
        assert!(!matches(7, 8, &whole), "another place differs");
        let mut long = vec![0; 10_000];
        fill(3, 5, &mut long);
        assert!(matches(3, 5, &long));
        long[9_999] ^= 1;
        assert!(!matches(3, 5, &long));
        let mut end = [0; 16];
        fill(1, u64::MAX - 9, &mut end);
    }

    #[test]
    fn workload_targets_have_the_names_and_sizes_of_the_trace() {
        let parameters = [("targets", "500"), ("total_mib", "4"), ("requests", "5000")];
        let free = [("cover97_mib", "0"), ("cover98_mib", "0"), ("cover99_mib", "0")];
        let overrides = [parameters, free].concat();
        let workload = plimsoll_synth::build("rice", &overrides, 3).unwrap();
        let synthetic = Synthetic::workload("rice", &overrides, 3).unwrap();
        for target in 0..workload.target_count() {
            let name = workload.target_name(target);
            let size_bytes = workload.document_size_bytes(target);
            assert_eq!(synthetic.find(&name), Some(Document { number: u64::from(target), size_bytes }));
        }
        assert_eq!(synthetic.find("/rice/00007.html?x=1"), synthetic.find("/rice/00007.html"));
        assert_eq!(synthetic.find("/rice/99999.html"), None);
        assert!(Synthetic::workload("rise", &[], 1).unwrap_err().to_string().contains("rice"));
    }

    #[test]
    fn fixed_sizes_and_sizes_in_the_path() {
        let synthetic = Synthetic::fixed(100);
        let size = |path| synthetic.find(path).map(|document| document.size_bytes);
        assert_eq!(size("/"), Some(100));
        assert_eq!(size("/any/thing?x"), Some(100));
        assert_eq!(size("/size/12345"), Some(12_345));
        assert_eq!(size("/size/0/a"), Some(0));
        assert_eq!(size("/size/"), None);
        assert_eq!(size("/size/+1"), None);
        assert_eq!(size("/size/99999999999999999999"), None);
        assert_ne!(synthetic.find("/a").unwrap().number, synthetic.find("/b").unwrap().number);
    }

    #[test]
    fn a_name_stands_for_one_document() {
        let twice = Synthetic::table([(b"/a".to_vec(), 1), (b"/a".to_vec(), 2)]);
        assert_eq!(twice.unwrap_err(), SyntheticError::TwiceNamed("/a".to_owned()));
        let table = Synthetic::table([(b"/a".to_vec(), 1), (b"/a?q=1".to_vec(), 2)]).unwrap();
        assert_eq!(table.find("/a?q=1"), Some(Document { number: 1, size_bytes: 2 }));
        assert_eq!(table.find("/a?q=2"), Some(Document { number: 0, size_bytes: 1 }));
    }
}
