//! How likely it is that a back-end no longer has a document that it had.
//!
//! A memory evicts when it reads. So what counts is how many reads the back-end began since it last had a request for the document; for
//! memories that prefer small documents, their size as well. How fast the likelihood grows with them says how large the memories are, and
//! how they choose what goes. It is learned by logistic regression, with one weight of its own for each back-end.

/// Steps of the regression.
const RATE: f64 = 0.3;
/// What a step leaves of the squares of earlier gradients.
const KEPT: f64 = 1.0 - 1.0 / 2048.0;

/// A document at a back-end, as the regression sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SeenCopy {
    /// Binary logarithm of the reads since its last request, less 8.
    age: f64,
    /// Binary logarithm of its size in bytes, less 13; 0 where it is not known.
    size: f64,
}

impl SeenCopy {
    /// `None` where nothing was read since, so that nothing can have been evicted.
    pub(super) fn new(sixteenths_of_reads: u32, size_bytes: Option<u64>) -> Option<Self> {
        if sixteenths_of_reads < 16 {
            return None;
        }
        let size = size_bytes.map_or(0.0, |bytes| log2(bytes.max(1) as f64) - 13.0);
        Some(Self { age: log2(f64::from(sixteenths_of_reads)) - 12.0, size })
    }
}

/// Binary logarithm, exact at powers of two and up to 0.09 too small between them: the same on every machine, and fast.
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as f64 - 1023.0;
    exponent + f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52)) - 1.0
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Evictions {
    /// Of nothing, age and size.
    weights: [f64; 3],
    squares: [f64; 3],
    /// By back-end: what is added for it, and its squares.
    own: Vec<(f64, f64)>,
}

impl Default for Evictions {
    /// Until something is known: half of the documents are gone after 16,384 reads.
    fn default() -> Self {
        Self { weights: [-6.0, 1.0, 0.0], squares: [0.1; 3], own: Vec::new() }
    }
}

impl Evictions {
    /// The likelihood that `b` has to read the document.
    pub(super) fn likelihood(&self, b: usize, seen: SeenCopy) -> f64 {
        let [one, age, size] = self.weights;
        let own = self.own.get(b).map_or(0.0, |own| own.0);
        1.0 / (1.0 + libm::exp(-(one + own + age * seen.age + size * seen.size)))
    }

    /// `b` had to read the document, or had not.
    pub(super) fn learn(&mut self, b: usize, seen: SeenCopy, read: bool) {
        let error = self.likelihood(b, seen) - f64::from(u8::from(read));
        let values = [1.0, seen.age, seen.size];
        for ((weight, squares), value) in self.weights.iter_mut().zip(&mut self.squares).zip(values) {
            step(weight, squares, error * value);
        }
        // Memory evicts the longer unused first.
        self.weights[1] = self.weights[1].max(0.05);
        if self.own.len() <= b {
            self.own.resize(b + 1, (0.0, 0.3));
        }
        let (own, squares) = &mut self.own[b];
        step(own, squares, error);
    }

    /// `b` is another one from now on.
    pub(super) fn forget(&mut self, b: usize) {
        if let Some(own) = self.own.get_mut(b) {
            *own = (0.0, 0.3);
        }
    }
}

fn step(weight: &mut f64, squares: &mut f64, gradient: f64) {
    *squares = *squares * KEPT + gradient * gradient;
    *weight -= RATE * gradient / squares.sqrt();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn logarithms_are_near() {
        for x in [1.0, 2.0, 16.0, 1e9] {
            assert!((log2(x) - x.log2()).abs() < 0.09, "{x}");
        }
        assert_eq!(log2(1024.0), 10.0);
    }

    #[test]
    fn what_was_just_used_is_there() {
        assert_eq!(SeenCopy::new(15, None), None);
        assert!(SeenCopy::new(16, None).is_some());
    }

    /// Memories of 500 reads, and one that holds ten times as much.
    #[test]
    fn sizes_of_memories_are_found() {
        let mut evictions = Evictions::default();
        let mut rng = Rng::new(1, 1);
        for _ in 0..20_000 {
            let b = rng.below(4) as usize;
            let reads = 1 + rng.below(10_000);
            let gone = reads > if b == 3 { 5000 } else { 500 };
            evictions.learn(b, SeenCopy::new(16 * reads as u32, None).unwrap(), gone);
        }
        let of = |b, reads: u32| evictions.likelihood(b, SeenCopy::new(16 * reads, None).unwrap());
        assert!(of(0, 100) < 0.1 && of(0, 3000) > 0.9, "{evictions:?}");
        assert!(of(3, 1000) < 0.1 && of(3, 30_000) > 0.9, "{evictions:?}");
    }
}
