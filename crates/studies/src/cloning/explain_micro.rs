//! Why some claims of figure 8 do not hold, from the runs that they are about.

use super::micro::{LARGE_BYTES, MicroLoad, MicroMechanism as M, SIZES_BYTES, SMALL_BYTES};
use super::published::FORWARD_ACK_US;
use super::results::{MicroResults, size_words};

type Results<'a> = &'a [MicroResults];

fn loads(results: Results<'_>, words: impl Fn(&MicroResults, MicroLoad) -> String) -> String {
    let Some(r) = results.first() else { return String::new() };
    MicroLoad::ALL.map(|load| format!("{}: {}", load.title(), words(r, load))).join("; ")
}

fn efficiencies(r: &MicroResults, load: MicroLoad, mechanism: M) -> String {
    let sizes = [SIZES_BYTES[0], SMALL_BYTES, LARGE_BYTES, SIZES_BYTES[SIZES_BYTES.len() - 1]];
    let at = |size| {
        let percent = r.efficiency(mechanism, load, size).map_or(f64::NAN, |value| 100.0 * value);
        format!("{} {percent:.0} %", size_words(size))
    };
    format!("{} {}", mechanism.title(), sizes.map(at).join(", "))
}

/// Which part of the way limits each mechanism.
pub(super) fn stages(results: Results<'_>) -> String {
    let words = loads(results, |r, load| M::FIGURE.map(|m| efficiencies(r, load, m)).join("; "));
    format!(
        "{words}. With many requests at a time the two nodes share the work, and the one with more of it is the limit: one at a time, \
         every delay counts in full, and a fetched chunk is sent three times one after the other."
    )
}

/// What the acknowledgments of a handoff would have to cost.
pub(super) fn acknowledgments(results: Results<'_>) -> String {
    let words =
        loads(results, |r, load| [M::Handoff, M::DearHandoff].map(|m| efficiencies(r, load, m)).join("; "));
    format!(
        "{words}. The published {FORWARD_ACK_US} µs for an acknowledgment of two packets are little beside the 228 µs of CPU time, and 250 µs \
         of the interface, that these packets take to be sent: they cannot cost a fifth. Something else did in the FreeBSD prototype, \
         which the paper does not measure."
    )
}

/// Where CF falls below LARD.
pub(super) fn crossing(results: Results<'_>) -> String {
    let words = loads(results, |r, load| {
        r.crossing_bytes(load).map_or_else(|| "none".to_owned(), |bytes| format!("{bytes:.0} B"))
    });
    format!(
        "The crossover is at: {words}. It moves with what a request costs beside the document, and the two servers are different programs on \
         different machines, of which only one has published costs."
    )
}

/// Two machines.
pub(super) fn machines(results: Results<'_>) -> String {
    let words =
        loads(results, |r, load| [M::Cloning, M::SlowCloning].map(|m| efficiencies(r, load, m)).join("; "));
    format!("{words}. On the slower machine the interface is the limit for larger documents only.")
}
