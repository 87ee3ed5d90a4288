//! What requests of a web site are answered, and by which version of HTTP they are asked.

use super::error::SynthError;
use super::random::uniform;
use super::spec::{Parameter, Parameters};
use crate::record::{AnswerKind, Record, RecordKind};
use rand_pcg::Pcg64;

/// Number of parameters of the mix.
pub(super) const ANSWER_COUNT: usize = 4;

/// The parameters of the mix, with the shares of table 1 of the CSLD study (Hyun et al., 2003) in per cent.
pub(super) const ANSWER_PARAMETERS: [Parameter; ANSWER_COUNT] = [
    Parameter::number("dynamic_percent", "%", 0.02, PERCENT, "requests for dynamic pages"),
    Parameter::number("not_modified_percent", "%", 27.87, PERCENT, "conditional requests, answered 304"),
    Parameter::number("invalid_percent", "%", 0.35, PERCENT, "requests for what is not there"),
    Parameter::number("http11_percent", "%", 19.69, PERCENT, "requests by HTTP/1.1"),
];
const PERCENT: (f64, f64) = (0.0, 100.0);

/// Shares of the kinds of requests, each drawn independently.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerMix {
    dynamic: f64,
    not_modified: f64,
    invalid: f64,
    http11: f64,
}

impl AnswerMix {
    /// `None` where everything is a document that is asked for by HTTP/1.0.
    pub(super) fn new(parameters: &Parameters) -> Option<Self> {
        let share = |name| parameters.get(name) / 100.0;
        let mix = Self {
            dynamic: share("dynamic_percent"),
            not_modified: share("not_modified_percent"),
            invalid: share("invalid_percent"),
            http11: share("http11_percent"),
        };
        (mix.special() + mix.http11 > 0.0).then_some(mix)
    }

    /// Share of the requests that are not answered with a stored document.
    fn special(&self) -> f64 {
        self.dynamic + self.not_modified + self.invalid
    }

    /// Whether there may be dynamic requests.
    pub(super) fn has_dynamic(&self) -> bool {
        self.dynamic > 0.0
    }

    /// Refuses shares that are more than all.
    pub(super) fn check(parameters: &Parameters) -> Result<(), SynthError> {
        match Self::new(parameters) {
            Some(mix) if mix.special() > 1.0 => Err(parameters.contradiction(
                "dynamic_percent, not_modified_percent and invalid_percent are more than 100 together"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Decides what one request is. Nothing but a document has a body of the target's size.
    pub(super) fn draw(&self, record: &mut Record, rng: &mut Pcg64) {
        let place = 1.0 - uniform(rng);
        if place < self.dynamic {
            record.kind = RecordKind::Dynamic;
        } else if place < self.dynamic + self.not_modified {
            record.answer = AnswerKind::NotModified;
        } else if place < self.special() {
            record.answer = AnswerKind::Invalid;
        }
        if record.answer != AnswerKind::Document {
            record.size_bytes = 0;
        }
        record.http11 = 1.0 - uniform(rng) < self.http11;
    }
}

/// Requests over which [`share_percent`] counts.
const COUNTED: usize = 500_000;

/// Share in per cent of one kind of requests among the first ones; `None` for another name.
pub(super) fn share_percent(name: &str, records: impl Iterator<Item = Record>) -> Option<f64> {
    let is: fn(&Record) -> bool = match name {
        "static_percent" => |r| r.kind == RecordKind::Static && r.answer == AnswerKind::Document,
        "dynamic_percent" => |r| r.kind == RecordKind::Dynamic,
        "not_modified_percent" => |r| r.answer == AnswerKind::NotModified,
        "invalid_percent" => |r| r.answer == AnswerKind::Invalid,
        "http11_percent" => |r| r.http11,
        _ => return None,
    };
    let (mut all, mut such) = (0_u64, 0_u64);
    for record in records.take(COUNTED) {
        all += 1;
        such += u64::from(is(&record));
    }
    (all > 0).then(|| 100.0 * such as f64 / all as f64)
}
