//! What theory says of servers with Poisson arrivals and exponential service times.

/// Mean response time of a server that is picked at random, in service times (M/M/1).
pub(super) fn random(load: f64) -> f64 {
    1.0 / (1.0 - load)
}

/// Mean response time in service times where the less loaded of two servers is taken, for many servers (Mitzenmacher 2001: the
/// supermarket model): Σ ρ^(2^i − 2) over i from 1.
pub(super) fn two_choices(load: f64) -> f64 {
    (1..12).map(|i| load.powf(f64::from((1u32 << i) - 2))).sum()
}

/// The inaccuracy of a load index of unlimited age, in requests (equation 1): 2ρ/(1 − ρ²).
pub(super) fn inaccuracy_bound(load: f64) -> f64 {
    2.0 * load / (1.0 - load * load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert!((random(0.9) - 10.0).abs() < 1e-9);
        assert!((inaccuracy_bound(0.5) - 4.0 / 3.0).abs() < 1e-12);
        // 1 + 0.25 + 0.5^6 + 0.5^14 + …
        assert!((two_choices(0.5) - 1.265_686).abs() < 1e-5);
    }
}
