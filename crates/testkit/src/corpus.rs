//! Replays the corpus of fuzz targets, and mutations of it, as a test on a stable compiler.

use std::path::Path;

/// A fuzz target: its name, and what it does with an input. It panics where a property does not hold.
pub type FuzzTarget = (&'static str, fn(&[u8]));

/// Runs each target on all of its seeds in `corpus` (`fuzz/corpus` of the workspace) and on so many mutations of each seed, which are
/// the same in each run. `FUZZ_MUTATIONS` in the environment takes the place of that number.
///
/// # Panics
/// When a target panics, or has no seed.
pub fn replay_corpus(targets: &[FuzzTarget], corpus: &Path, mutations: u32) {
    let mutations = match std::env::var("FUZZ_MUTATIONS") {
        Ok(number) => number.parse().expect("FUZZ_MUTATIONS is a number"),
        Err(_) => mutations,
    };
    let mut failures = Vec::new();
    for &(name, run) in targets {
        let directory = corpus.join(name);
        let entries = std::fs::read_dir(&directory)
            .unwrap_or_else(|error| panic!("{name} has no seeds in {}: {error}", directory.display()));
        let mut seeds: Vec<_> = entries.map(|entry| entry.expect("the corpus can be read").path()).collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "{name} has no seeds in {}", directory.display());
        let seeds: Vec<Vec<u8>> =
            seeds.iter().map(|path| std::fs::read(path).expect("a seed can be read")).collect();
        let mut mutator = Mutator { state: 0x9e37_79b9_7f4a_7c15 };
        let before = failures.len();
        for seed in &seeds {
            failures.extend(failure(name, run, seed));
            failures.extend((0..mutations).find_map(|_| failure(name, run, &mutator.mutate(seed, &seeds))));
            if failures.len() > before {
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs one target on one input; on which input it has failed, if it has.
fn failure(name: &str, run: fn(&[u8]), input: &[u8]) -> Option<String> {
    let result = std::panic::catch_unwind(|| run(input));
    result.is_err().then(|| format!("{name} fails on b\"{}\"", input.escape_ascii()))
}

/// Bytes that decide something in some format.
const TELLING: &[u8] = b"\0\r\n\t :;,.=/\\%\"{}[]0159aAzZ-+_\x7f\x80\xff";

struct Mutator {
    state: u64,
}

impl Mutator {
    /// A number below `most`, which is at least 1 (xorshift64*: Vigna, ACM Transactions on Mathematical Software 2016).
    fn below(&mut self, most: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let high = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap_or(0) % most.max(1)
    }

    /// The seed with one to four changes.
    fn mutate(&mut self, seed: &[u8], seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, seeds);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(bytes.len() + 1);
        let end = (at + 1 + self.below(16)).min(bytes.len());
        let telling = TELLING[self.below(TELLING.len())];
        match self.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, telling),
            2 if at < bytes.len() => bytes[at] = telling,
            3 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let piece = bytes[at..end].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            6 => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let random = u8::try_from(self.below(256)).unwrap_or(0);
                bytes.insert(at, random);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_target_is_told_with_its_input() {
        let corpus = tempfile::tempdir().unwrap();
        std::fs::create_dir(corpus.path().join("digits")).unwrap();
        std::fs::write(corpus.path().join("digits/one"), b"12345").unwrap();
        replay_corpus(&[("digits", |_| {})], corpus.path(), 100);
        let fails: FuzzTarget = ("digits", |bytes| assert!(bytes.iter().all(u8::is_ascii_digit)));
        let failed = std::panic::catch_unwind(|| replay_corpus(&[fails], corpus.path(), 1000));
        let text = failed.unwrap_err().downcast::<String>().unwrap();
        assert!(text.starts_with("digits fails on b\""), "{text}");
        assert!(std::panic::catch_unwind(|| replay_corpus(&[("none", |_| {})], corpus.path(), 1)).is_err());
    }
}
