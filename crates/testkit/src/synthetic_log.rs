//! The requests of a server whose true costs are known: an exact simulation of queues, in time that is only computed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How the server shares its capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrueDiscipline {
    /// So many workers take requests in the order of arrival.
    InTurn(u32),
    /// All requests share so many cores equally.
    Shared(u32),
}

/// How the demands of one class are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemandSpread {
    /// Normally, with a standard deviation of 20 % of the mean.
    Normal,
    /// Exponentially.
    Exponential,
    /// Lognormally, with a standard deviation of 20 % of the mean.
    Lognormal,
}

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub struct SyntheticLog {
    /// How each server shares its capacity.
    pub discipline: TrueDiscipline,
    /// The distribution within classes.
    pub spread: DemandSpread,
    /// Part of its capacity that a server uses on average.
    pub load: f64,
    /// Number of requests.
    pub requests: usize,
    /// Servers, which take requests at random.
    pub backends: u32,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// A request with its truth.
#[derive(Debug, Clone, PartialEq)]
pub struct SyntheticRequest {
    /// The place of its class in [`TRUE_COSTS_S`].
    pub class: usize,
    /// When it arrived.
    pub begins_ns: u64,
    /// When it was answered.
    pub ends_ns: u64,
    /// The method.
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// The size of the response.
    pub size_bytes: u64,
    /// The server.
    pub backend: u32,
}

/// The mean demands of the classes, in seconds.
pub const TRUE_COSTS_S: [f64; 8] = [0.002, 0.0036, 0.0065, 0.0117, 0.021, 0.038, 0.068, 0.122];

/// How often requests of each class come, by their weight.
const WEIGHTS: [f64; 8] = [30.0, 25.0, 15.0, 12.0, 8.0, 5.0, 3.0, 2.0];

/// Numbers by SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

impl SyntheticLog {
    /// The requests in the order of arrival.
    #[must_use]
    pub fn run(&self) -> Vec<SyntheticRequest> {
        let mut numbers = Numbers(self.seed);
        let total: f64 = WEIGHTS.iter().sum();
        let mean_s =
            TRUE_COSTS_S.iter().zip(WEIGHTS).map(|(cost, weight)| cost * weight).sum::<f64>() / total;
        let (TrueDiscipline::InTurn(units) | TrueDiscipline::Shared(units)) = self.discipline;
        let rate = self.load * f64::from(units) * f64::from(self.backends) / mean_s;
        let mut now_s = 0.0;
        let mut jobs = Vec::with_capacity(self.requests);
        for _ in 0..self.requests {
            now_s += numbers.exponential() / rate;
            let mut pick = numbers.unit() * total;
            let class = WEIGHTS.iter().position(|weight| {
                pick -= weight;
                pick <= 0.0
            });
            let class = class.unwrap_or(WEIGHTS.len() - 1);
            let relative = match self.spread {
                DemandSpread::Normal => (1.0 + 0.2 * numbers.normal()).max(0.05),
                DemandSpread::Exponential => numbers.exponential(),
                DemandSpread::Lognormal => {
                    let variance = 0.04f64.ln_1p();
                    (variance.sqrt() * numbers.normal() - variance / 2.0).exp()
                }
            };
            let (method, target) = uri(class, &mut numbers);
            let backend = numbers.below(u64::from(self.backends)) as u32;
            let size_bytes = 500 + numbers.below(30_000);
            jobs.push((
                now_s,
                TRUE_COSTS_S[class] * relative,
                backend,
                SyntheticRequest { class, begins_ns: 0, ends_ns: 0, method, target, size_bytes, backend },
            ));
        }
        let mut ends_s = vec![0.0; jobs.len()];
        for backend in 0..self.backends {
            let own: Vec<(usize, f64, f64)> = jobs
                .iter()
                .enumerate()
                .filter(|(_, job)| job.2 == backend)
                .map(|(at, (arrival_s, demand_s, ..))| (at, *arrival_s, *demand_s))
                .collect();
            match self.discipline {
                TrueDiscipline::InTurn(workers) => in_turn(&own, workers, &mut ends_s),
                TrueDiscipline::Shared(cores) => shared(&own, cores, &mut ends_s),
            }
        }
        let ns = |s: f64| (s * 1e9).round() as u64;
        let finish = |((begins_s, _, _, request), ends_s): ((f64, f64, u32, SyntheticRequest), f64)| {
            SyntheticRequest { begins_ns: ns(begins_s), ends_ns: ns(ends_s), ..request }
        };
        jobs.into_iter().zip(ends_s).map(finish).collect()
    }
}

/// Method and target of a request of a class: by directory, id, parameter, application, and method.
fn uri(class: usize, numbers: &mut Numbers) -> (&'static str, String) {
    let (id, session) = (numbers.below(1_000_000), numbers.next());
    let target = match class {
        0 => format!("/img/logo{}.png", id % 12),
        1 => format!("/shop/item/{id}?ref=mail&session={session:x}"),
        2 => format!("/cgi-bin/sports/soccer?cmd=list&session={session:x}"),
        3 if id % 3 == 0 => format!("/search?q=word{id}"),
        3 => format!("/cgi-bin/sports/soccer?session={session:x}&cmd=show&id={id}"),
        4 => format!("/cgi-bin/news/{}", ["today", "weather", "world", "arts"][(id % 4) as usize]),
        5 if id % 2 == 0 => return ("POST", "/api/orders".to_owned()),
        5 => format!("/graphql?operationName=Basket&v={id}"),
        6 => format!("/search?sort=price&q=word{id}"),
        7 if id % 2 == 0 => "/admin/report".to_owned(),
        _ => format!("/graphql?v={id}&operationName=Report"),
    };
    // Cheap requests to the same place as dear ones.
    if class == 1 && id % 10 == 0 { ("GET", "/api/orders".to_owned()) } else { ("GET", target) }
}

/// Requests as place, arrival and demand, in the order of arrival.
fn in_turn(requests: &[(usize, f64, f64)], workers: u32, ends_s: &mut [f64]) {
    // Times that are not negative have the order of their bits.
    let mut free: BinaryHeap<Reverse<u64>> = (0..workers).map(|_| Reverse(0f64.to_bits())).collect();
    for (at, arrival_s, demand_s) in requests {
        let free_s = free.pop().map_or(0.0, |Reverse(bits)| f64::from_bits(bits));
        let end_s = arrival_s.max(free_s) + demand_s;
        ends_s[*at] = end_s;
        free.push(Reverse(end_s.to_bits()));
    }
}

fn shared(requests: &[(usize, f64, f64)], cores: u32, ends_s: &mut [f64]) {
    // By the progress at which each is done; progress is that of a request that was there from the beginning.
    let mut present: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let (mut now_s, mut progress_s) = (0.0f64, 0.0f64);
    let rate = |count: usize| (f64::from(cores) / count.max(1) as f64).min(1.0);
    for (at, arrival_s, demand_s) in requests.iter().copied().chain([(usize::MAX, f64::INFINITY, 0.0)]) {
        while let Some(Reverse((bits, done))) = present.peek().copied() {
            let end_s = now_s + (f64::from_bits(bits) - progress_s) / rate(present.len());
            if end_s > arrival_s {
                break;
            }
            present.pop();
            (now_s, progress_s) = (end_s, f64::from_bits(bits));
            ends_s[done] = end_s;
        }
        if at == usize::MAX {
            break;
        }
        if !present.is_empty() {
            progress_s += (arrival_s - now_s) * rate(present.len());
        }
        now_s = arrival_s;
        present.push(Reverse(((progress_s + demand_s).to_bits(), at)));
    }
}

/// The Rand index of two divisions of the same things: the share of pairs that both put together, or both apart.
#[must_use]
pub fn rand_index(one: &[usize], other: &[usize]) -> f64 {
    use std::collections::BTreeMap;
    let mut both: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    let (mut of_one, mut of_other) = (BTreeMap::<usize, f64>::new(), BTreeMap::<usize, f64>::new());
    for (a, b) in one.iter().zip(other) {
        *both.entry((*a, *b)).or_default() += 1.0;
        *of_one.entry(*a).or_default() += 1.0;
        *of_other.entry(*b).or_default() += 1.0;
    }
    let pairs = |n: f64| n * (n - 1.0) / 2.0;
    let all = pairs(one.len().min(other.len()) as f64);
    let together: f64 = both.values().map(|n| pairs(*n)).sum();
    let sum = |counts: &BTreeMap<usize, f64>| counts.values().map(|n| pairs(*n)).sum::<f64>();
    (all + 2.0 * together - sum(&of_one) - sum(&of_other)) / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_those_worked_out_by_hand() {
        let requests = [(0, 0.0, 3.0), (1, 1.0, 1.0), (2, 10.0, 1.0)];
        let mut ends_s = [0.0; 3];
        in_turn(&requests, 1, &mut ends_s);
        assert_eq!(ends_s, [3.0, 4.0, 11.0]);
        in_turn(&requests, 2, &mut ends_s);
        assert_eq!(ends_s, [3.0, 2.0, 11.0]);
        // From 1 on both have half a core; the short one is done at 3, the other one at 4.
        shared(&requests, 1, &mut ends_s);
        assert_eq!(ends_s, [4.0, 3.0, 11.0]);
        shared(&requests, 2, &mut ends_s);
        assert_eq!(ends_s, [3.0, 2.0, 11.0]);
    }

    #[test]
    fn equal_divisions_have_rand_index_1() {
        assert_eq!(rand_index(&[0, 0, 1, 1], &[5, 5, 2, 2]), 1.0);
        assert_eq!(rand_index(&[0, 0, 1, 1], &[0, 1, 0, 1]), 1.0 / 3.0);
    }
}
