//! What clients ask for, and how far away they are.

use plimsoll_policy::{Kind, Nanos, Rng, SniffedKind, mix};
use plimsoll_synth::{AnswerKind, Normals};

use super::params::ApacheParams;
use crate::workload::SimRequest;

/// A request as a back-end serves it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedPage {
    pub(super) kind: SniffedKind,
    pub(super) target: u32,
    /// Class of a dynamic request.
    pub(super) class: u16,
    /// Bytes of the response.
    pub(super) bytes: u64,
    /// CPU time of a dynamic request, in nanoseconds.
    pub(super) compute: u64,
}

impl AskedPage {
    /// Whether the answer has a body.
    pub(super) fn has_document(&self) -> bool {
        !matches!(self.kind, SniffedKind::Conditional | SniffedKind::Invalid)
    }
}

/// Streams of the run's seed.
const ROUND_TRIPS: u64 = 0x6170_5254;
const DYNAMIC: u64 = 0x6170_4459;
const CLASSES: u64 = 0x6170_434C;

/// Draws what the input leaves open. Each request draws alike whatever the policy does.
#[derive(Debug)]
pub(super) struct WebClients {
    share: f64,
    classes: Vec<u16>,
    classes_of_input: bool,
    class_ns: f64,
    deviation: f64,
    dynamic_bytes: u64,
    round_trip_ns: f64,
    /// Reciprocal of the shape of the Pareto distribution; 0 for equal round trips.
    exponent: f64,
    least_ns: f64,
    most: Nanos,
    http11_share: f64,
    http11_of_input: bool,
    seed: u64,
    round_trips: Rng,
    dynamic: Rng,
    /// Draws classes, too.
    costs: Normals<Rng>,
}

/// From this shape on all round trips are equal.
const EQUAL: f64 = 1000.0;

impl WebClients {
    pub(super) fn new(p: &ApacheParams, seed: u64) -> Self {
        let equal = p.round_trip_shape >= EQUAL;
        let mean_ns = p.round_trip_s.as_nanos() as f64;
        let least_of_mean = if equal { 1.0 } else { (p.round_trip_shape - 1.0) / p.round_trip_shape };
        Self {
            share: p.dynamic_share,
            classes: classes(p.dynamic_classes),
            classes_of_input: p.input_classes == 1,
            class_ns: p.dynamic_class_us * 1000.0,
            deviation: p.dynamic_deviation,
            dynamic_bytes: p.dynamic_bytes,
            round_trip_ns: mean_ns,
            exponent: if equal { 0.0 } else { 1.0 / p.round_trip_shape },
            least_ns: mean_ns * least_of_mean,
            most: p.most_round_trip_s,
            http11_share: p.http11_share,
            http11_of_input: p.http11_of_input == 1,
            seed,
            round_trips: Rng::new(seed, ROUND_TRIPS),
            dynamic: Rng::new(seed, DYNAMIC),
            costs: Normals::new(Rng::new(seed, CLASSES)),
        }
    }

    /// The round-trip time of a connection.
    #[inline]
    pub(super) fn round_trip(&mut self) -> Nanos {
        let ns = if self.exponent == 0.0 {
            self.round_trip_ns
        } else {
            self.least_ns * libm::exp(self.exponent * self.round_trips.exponential())
        };
        Nanos::new(ns as u64).min(self.most)
    }

    /// What `request` asks for.
    #[inline]
    pub(super) fn ask(&mut self, request: &SimRequest) -> AskedPage {
        let dynamic = self.share > 0.0 && self.dynamic.unit() < self.share;
        if dynamic || request.kind == Kind::Dynamic {
            return self.dynamic(request);
        }
        let kind = match request.answer {
            AnswerKind::Document => SniffedKind::Static,
            AnswerKind::NotModified => SniffedKind::Conditional,
            AnswerKind::Invalid => SniffedKind::Invalid,
        };
        let bytes = if kind == SniffedKind::Static { request.size_bytes } else { 0 };
        AskedPage { kind, target: request.target, class: 0, bytes, compute: request.service.as_nanos() }
    }

    /// A dynamic request. A service time of the input is its cost.
    #[inline(never)]
    fn dynamic(&mut self, request: &SimRequest) -> AskedPage {
        let of_input = request.kind == Kind::Dynamic && self.classes_of_input;
        let class = if of_input {
            request.class
        } else {
            self.classes[self.costs.rng.below(self.classes.len() as u64) as usize]
        };
        let normal = self.costs.draw();
        let compute = if request.service.is_zero() {
            let factor = (1.0 + self.deviation * normal).max(0.0);
            (f64::from(class) * self.class_ns * factor + 0.5) as u64
        } else {
            request.service.as_nanos()
        };
        let (kind, bytes) = (SniffedKind::Dynamic, self.dynamic_bytes);
        AskedPage { kind, target: request.target, class, bytes, compute }
    }

    /// Whether the client of `request` uses HTTP/1.1.
    #[inline]
    pub(super) fn uses_http11(&self, request: &SimRequest) -> bool {
        if self.http11_of_input && request.http11 {
            return true;
        }
        // A client keeps to its version.
        let unit = || (mix(self.seed ^ mix(u64::from(request.client))) >> 11) as f64 / (1u64 << 53) as f64;
        self.http11_share > 0.0 && unit() < self.http11_share
    }
}

/// The classes that the digits name.
fn classes(digits: u64) -> Vec<u16> {
    let digit = |d: u8| if d == b'0' { 10 } else { u16::from(d - b'0') };
    digits.to_string().bytes().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(client: u32) -> SimRequest {
        SimRequest { size_bytes: 100, client, class: 7, ..SimRequest::default() }
    }

    #[test]
    fn digits_are_classes() {
        assert_eq!(classes(3), [3]);
        assert_eq!(classes(24_680), [2, 4, 6, 8, 10]);
    }

    #[test]
    fn round_trips_have_the_shape_that_is_asked_for() {
        let params = ApacheParams::default();
        let mut clients = WebClients::new(&params, 1);
        let draws: Vec<f64> = (0..200_000).map(|_| clients.round_trip().as_secs_f64()).collect();
        let least = 0.15 * 0.6 / 1.6;
        assert!(draws.iter().all(|&s| (least - 1e-9..=60.0).contains(&s)));
        // Half of them are below least · 2^(1/1.6), a thousandth above least · 1000^(1/1.6).
        let below = draws.iter().filter(|&&s| s < least * 0.5f64.powf(-1.0 / 1.6)).count() as f64;
        assert!((below / 200_000.0 - 0.5).abs() < 0.006, "{below}");
        let above = draws.iter().filter(|&&s| s > least * 0.001f64.powf(-1.0 / 1.6)).count();
        assert!((130..270).contains(&above), "{above}");
        let equal = ApacheParams { round_trip_shape: 1000.0, ..params };
        assert_eq!(WebClients::new(&equal, 1).round_trip(), Nanos::from_millis(150));
    }

    #[test]
    fn a_share_is_dynamic_with_normal_costs() {
        let params = ApacheParams { dynamic_share: 0.05, dynamic_classes: 25, ..ApacheParams::default() };
        let mut clients = WebClients::new(&params, 1);
        let asked: Vec<AskedPage> = (0..400_000).map(|_| clients.ask(&request(0))).collect();
        let dynamic: Vec<&AskedPage> = asked.iter().filter(|a| a.kind == SniffedKind::Dynamic).collect();
        // Five standard errors.
        assert!(dynamic.len().abs_diff(20_000) < 690, "{}", dynamic.len());
        for class in [2u16, 5] {
            let costs: Vec<f64> =
                dynamic.iter().filter(|a| a.class == class).map(|a| a.compute as f64 / 1e7).collect();
            assert!(costs.len().abs_diff(10_000) < 600, "{}", costs.len());
            let n = costs.len() as f64;
            let mean = costs.iter().sum::<f64>() / n;
            let deviation = (costs.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n).sqrt();
            let class = f64::from(class);
            assert!((mean / class - 1.0).abs() < 0.01, "{mean}");
            assert!((deviation / class - 0.2).abs() < 0.008, "{deviation}");
        }
    }

    #[test]
    fn a_client_keeps_to_its_version() {
        let params = ApacheParams { http11_share: 0.25, ..ApacheParams::default() };
        let clients = WebClients::new(&params, 1);
        let share = (0..10_000).filter(|&c| clients.uses_http11(&request(c))).count();
        assert!(share.abs_diff(2_500) < 220, "{share}");
        let none = WebClients::new(&ApacheParams::default(), 1);
        assert!(!none.uses_http11(&SimRequest { http11: true, ..request(1) }));
        let input = WebClients::new(&ApacheParams { http11_of_input: 1, ..params }, 1);
        assert!(input.uses_http11(&SimRequest { http11: true, ..request(1) }));
    }
}
