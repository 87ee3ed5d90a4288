//! The requests of a load: the first ones of a synthetic workload, as HTTP paths.

use std::sync::Arc;

use plimsoll_origin::synthetic::{Synthetic, SyntheticError};

use crate::load::{Expect, Req};

/// A sequence of requests for generated documents. Clones share it.
#[derive(Debug, Clone)]
pub struct RequestSequence(Arc<SequenceData>);

#[derive(Debug)]
struct SequenceData {
    paths: Vec<String>,
    sizes_bytes: Vec<u64>,
    sequence: Vec<u32>,
    contents: Synthetic,
}

impl RequestSequence {
    /// The first `limit` requests of the synthetic workload `name` with these parameters: the same sequence that
    /// `synth:NAME` is in the simulator.
    ///
    /// # Errors
    /// For an unknown workload or parameter.
    pub fn synthesize(
        name: &str,
        overrides: &[(&str, &str)],
        seed: u64,
        limit: usize,
    ) -> Result<Self, SyntheticError> {
        let made = plimsoll_synth::build(name, overrides, seed)?;
        let targets = 0..made.target_count();
        let paths: Vec<String> = targets.clone().map(|t| made.target_name(t)).collect();
        let sizes_bytes: Vec<u64> = targets.map(|t| made.document_size_bytes(t)).collect();
        let documents = paths.iter().map(|p| p.clone().into_bytes()).zip(sizes_bytes.iter().copied());
        let contents = Synthetic::table(documents)?;
        let sequence = made.records().take(limit).map(|record| record.target).collect();
        Ok(Self(Arc::new(SequenceData { paths, sizes_bytes, sequence, contents })))
    }

    /// What the origins serve.
    #[must_use]
    pub fn contents(&self) -> Synthetic {
        self.0.contents.clone()
    }

    /// Length of the sequence.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.sequence.len()
    }

    /// Whether there is no request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.sequence.is_empty()
    }

    /// Number of the target that request `number` asks for; the sequence repeats.
    fn target(&self, number: u64) -> Option<usize> {
        let sequence = &self.0.sequence;
        let at = number.checked_rem(sequence.len() as u64)?;
        Some(sequence[usize::try_from(at).ok()?] as usize)
    }

    /// Size of the document that request `number` asks for, in bytes.
    #[must_use]
    pub fn size_bytes(&self, number: u64) -> u64 {
        self.target(number).map_or(0, |target| self.0.sizes_bytes[target])
    }

    /// Request `number`, expecting the document's length. If the sequence is empty, a request for `/`.
    #[must_use]
    pub fn request(&self, number: u64) -> Req {
        let Some(target) = self.target(number) else { return Req::get("/") };
        let expect = Expect::Length(self.0.sizes_bytes[target]);
        Req::get(self.0.paths[target].as_str()).expecting(expect)
    }
}

/// Parameters of the workload `rice` at 1/`scale` of its size: documents, bytes, requests and the published
/// coverage figures are all divided by `scale`. Requests for rare documents are spread over the whole trace
/// (generator `irm`), so that all parts of it are alike.
#[must_use]
pub fn scaled_rice(scale: u32) -> Vec<(&'static str, String)> {
    let scale = f64::from(scale.max(1));
    let whole = |number: f64| format!("{:.0}", (number / scale).floor());
    let mib = |number: f64| (number / scale).to_string();
    vec![
        ("generator", "irm".to_owned()),
        ("targets", whole(37_703.0)),
        ("total_mib", mib(1418.0)),
        ("requests", whole(2_300_000.0)),
        ("cover97_mib", mib(560.0)),
        ("cover98_mib", mib(705.0)),
        ("cover99_mib", mib(927.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_trace_and_comes_again() {
        let overrides = scaled_rice(100);
        let overrides: Vec<_> = overrides.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let workload = RequestSequence::synthesize("rice", &overrides, 1, 100).unwrap();
        assert_eq!(workload.len(), 100);
        let made = plimsoll_synth::build("rice", &overrides, 1).unwrap();
        for (number, record) in made.records().take(100).enumerate() {
            let request = workload.request(number as u64);
            assert_eq!(request.path, made.target_name(record.target));
            assert_eq!(request.expect, Expect::Length(made.document_size_bytes(record.target)));
            assert_eq!(workload.size_bytes(number as u64), made.document_size_bytes(record.target));
        }
        assert_eq!(workload.request(100).path, workload.request(0).path);
        assert!(RequestSequence::synthesize("rise", &[], 1, 1).is_err());
        assert!(RequestSequence::synthesize("rice", &overrides, 1, 0).unwrap().is_empty());
    }
}
