//! How requests at a back-end hold each other up, found out from their response times.
//!
//! A process with one thread answers its requests one after the other. A server with many threads works on all of them at once. What
//! holds a request up decides what to balance: outstanding work where requests stand in one line, their number elsewhere. No
//! back-end says which it is, so models predict each response time, and those that predict best are believed.
//!
//! ```text
//! line:                 response <- cost + work                      a request finds n others with so much work
//! k shared processors:  response <- cost * max(1, (n + 1) / k)
//! a request ends:       e[m] <- ln(response / prediction of m)       mean and variance of e[m], lately
//! line is believed when mean(e^2) is small, and clearly smaller than that of all others; else one shared processor
//! ```
//!
//! "Else" is what least connections does: it is right, or nearly so, for every back-end whose requests share something.

/// Processors of the models with shared processors.
const PROCESSORS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 64.0];
/// How much the latest response tells of a model.
const LATEST: f64 = 1.0 / 256.0;
/// Responses from which on models are compared.
const ENOUGH: u32 = 64;
/// The line is believed from the first of these mean squares down to the second one upwards: predictions within a factor of three. It
/// is as much because costs within a class may differ much; then all predictions are far off, and those by the line still the best.
const GOOD: (f64, f64) = (1.2, 1.5);
/// The same, as parts of the least mean square of the others.
const CLEARLY: (f64, f64) = (0.6, 0.8);
/// Another number of processors takes over when its variance is below this part of the present one's.
const BETTER: f64 = 0.9;

/// What a request finds at a back-end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Backlog {
    /// Requests that are there.
    pub requests: f64,
    /// What is left of the sum of their costs, in nanoseconds, if they stand in line.
    pub work_ns: f64,
}

impl Backlog {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { requests: self.requests + other.requests, work_ns: self.work_ns + other.work_ns }
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self { requests: factor * self.requests, work_ns: factor * self.work_ns }
    }
}

/// The time that a request takes where nothing holds it up, in nanoseconds, as it is measured if requests stand in line, and if they
/// share.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    pub in_line_ns: f64,
    pub shared_ns: f64,
}

impl Cost {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { in_line_ns: self.in_line_ns + other.in_line_ns, shared_ns: self.shared_ns + other.shared_ns }
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self { in_line_ns: factor * self.in_line_ns, shared_ns: factor * self.shared_ns }
    }

    pub(crate) fn at_least_1_ns(self) -> Self {
        Self { in_line_ns: self.in_line_ns.max(1.0), shared_ns: self.shared_ns.max(1.0) }
    }
}

/// Mean and variance of recent errors.
#[derive(Debug, Clone, Copy, Default)]
struct Errors {
    mean: f64,
    variance: f64,
}

impl Errors {
    fn add(&mut self, error: f64, latest: f64) {
        let off = error - self.mean;
        self.mean += latest * off;
        self.variance = (1.0 - latest) * (self.variance + latest * off * off);
    }

    fn mean_square(&self) -> f64 {
        self.mean * self.mean + self.variance
    }
}

/// See the module's documentation.
#[derive(Debug, Clone)]
pub(crate) struct WaitingModel {
    line: Errors,
    shared: [Errors; PROCESSORS.len()],
    responses: u32,
    in_line: bool,
    /// Index in [`PROCESSORS`] of the number that predicts best.
    processors: usize,
}

fn in_line_ns(cost: Cost, backlog: Backlog) -> f64 {
    cost.in_line_ns + backlog.work_ns
}

fn shared_ns(processors: f64, cost: Cost, backlog: Backlog) -> f64 {
    cost.shared_ns * ((backlog.requests + 1.0) / processors).max(1.0)
}

impl WaitingModel {
    pub(crate) fn new() -> Self {
        let none = Errors::default();
        Self { line: none, shared: [none; PROCESSORS.len()], responses: 0, in_line: false, processors: 0 }
    }

    /// The one of the costs that is right.
    pub(crate) fn cost_ns(&self, cost: Cost) -> f64 {
        if self.in_line { cost.in_line_ns } else { cost.shared_ns }
    }

    /// What a request is charged where it finds `backlog`, for comparison with other back-ends.
    pub(crate) fn charge_ns(&self, cost: Cost, backlog: Backlog) -> f64 {
        if self.in_line { in_line_ns(cost, backlog) } else { shared_ns(1.0, cost, backlog) }
    }

    /// The response time in nanoseconds that is expected of it.
    pub(crate) fn expected_ns(&self, cost: Cost, backlog: Backlog) -> f64 {
        match self.in_line {
            true => in_line_ns(cost, backlog),
            false => shared_ns(PROCESSORS[self.processors], cost, backlog),
        }
    }

    /// It took `response_ns`, the slowness of its back-end left out.
    pub(crate) fn learn(&mut self, cost: Cost, backlog: Backlog, response_ns: f64) {
        self.responses = self.responses.saturating_add(1);
        let latest = LATEST.max(1.0 / f64::from(self.responses));
        self.line.add(libm::log(response_ns / in_line_ns(cost, backlog)), latest);
        for (errors, processors) in self.shared.iter_mut().zip(PROCESSORS) {
            errors.add(libm::log(response_ns / shared_ns(processors, cost, backlog)), latest);
        }
        if self.responses >= ENOUGH {
            self.compare();
        }
    }

    /// The least mean square of the models with shared processors.
    fn least_of_others(&self) -> f64 {
        self.shared.iter().map(Errors::mean_square).fold(f64::INFINITY, f64::min)
    }

    fn compare(&mut self) {
        let variance = |index: usize| self.shared[index].variance;
        let best =
            (1..PROCESSORS.len()).fold(0, |best, i| if variance(i) < variance(best) { i } else { best });
        if variance(best) < BETTER * variance(self.processors) {
            self.processors = best;
        }
        let line = self.line.mean_square();
        let others = self.least_of_others();
        if line < GOOD.0.min(CLEARLY.0 * others) {
            self.in_line = true;
        } else if line > GOOD.1.min(CLEARLY.1 * others) {
            self.in_line = false;
        }
    }

    /// Whether requests stand in line, the processors that they share if not, and the mean squares of errors: of the line, and the
    /// least of the others.
    pub(crate) fn row(&self) -> Vec<f64> {
        let others = self.least_of_others();
        vec![f64::from(u8::from(self.in_line)), PROCESSORS[self.processors], self.line.mean_square(), others]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn both(ns: f64) -> Cost {
        Cost { in_line_ns: ns, shared_ns: ns }
    }

    /// What is learned when costs of 1 to 100 ms take as long as `response` says.
    fn learned(response: impl Fn(Cost, Backlog, &mut Rng) -> f64) -> WaitingModel {
        let mut model = WaitingModel::new();
        let mut rng = Rng::new(1, 1);
        for _ in 0..2000 {
            let cost = both(1e6 * libm::exp(rng.unit() * 4.6));
            let requests = rng.below(8) as f64;
            let backlog = Backlog { requests, work_ns: requests * 30e6 * rng.unit() };
            let response_ns = response(cost, backlog, &mut rng);
            model.learn(cost, backlog, response_ns);
        }
        model
    }

    #[test]
    fn a_line_is_recognised() {
        let model = learned(|cost, backlog, rng| in_line_ns(cost, backlog) * (0.7 + 0.6 * rng.unit()));
        assert_eq!(model.row()[0], 1.0, "{model:?}");
        let backlog = Backlog { requests: 2.0, work_ns: 5e6 };
        assert_eq!(model.charge_ns(both(1e6), backlog), 6e6);
        assert_eq!(model.expected_ns(both(1e6), backlog), 6e6);
    }

    #[test]
    fn shared_processors_are_counted() {
        let model = learned(|cost, backlog, rng| shared_ns(4.0, cost, backlog) * (0.7 + 0.6 * rng.unit()));
        assert_eq!(model.row()[..2], [0.0, 4.0], "{model:?}");
        let backlog = Backlog { requests: 3.0, work_ns: 500e6 };
        assert_eq!(model.expected_ns(both(1e6), backlog), 1e6);
        // Comparison is by number even so.
        assert_eq!(model.charge_ns(both(1e6), backlog), 4e6);
    }

    #[test]
    fn without_evidence_requests_are_counted() {
        let noisy = |width: f64| {
            let noise = move |rng: &mut Rng| libm::exp(width * (rng.unit() - 0.5));
            learned(move |cost, backlog, rng| in_line_ns(cost, backlog) * noise(rng))
        };
        let (little, much) = (noisy(3.0), noisy(6.0));
        assert_eq!(little.row()[0], 1.0, "predictions are wrong by a factor of 2.4: {little:?}");
        assert_eq!(much.row()[0], 0.0, "predictions are wrong by a factor of 5.7: {much:?}");
        assert_eq!(WaitingModel::new().row()[..2], [0.0, 1.0]);
    }

    #[test]
    fn what_it_believes_can_change() {
        let mut model = learned(|cost, backlog, _| in_line_ns(cost, backlog));
        assert!(model.in_line);
        for n in 0..3000 {
            let backlog = Backlog { requests: f64::from(n % 6), work_ns: f64::from(n % 6) * 20e6 };
            model.learn(both(1e6), backlog, shared_ns(1.0, both(1e6), backlog));
        }
        assert!(!model.in_line, "{model:?}");
    }
}
