//! What a clone costs to start.

use plimsoll_report::Section;

use super::live::LiveStartup;
use super::published::{CLONE_US, HANDOFF_US, SLOW_CLONE_US};
use super::results::columns;

/// Mechanism, machine, and µs from sending the message until the socket is made.
const STARTUP_COSTS: [(&str, &str, f64); 3] = [
    ("SC", "Pentium III, 733 MHz", CLONE_US),
    ("SC", "Pentium II, 300 MHz", SLOW_CLONE_US),
    ("LARD's handoff", "Pentium II, 300 MHz", HANDOFF_US),
];

/// The table.
pub(super) fn section(live: Option<LiveStartup>) -> Section {
    let mut table = columns(["machine", "µs", "over a clone there"].map(str::to_owned));
    for (what, machine, us) in STARTUP_COSTS {
        let clone_us = if us == CLONE_US { CLONE_US } else { SLOW_CLONE_US };
        table.row([what.to_owned(), machine.to_owned(), format!("{us:.0}"), format!("{:.2}", us / clone_us)]);
    }
    if let Some(of) = live {
        let machine = format!("this machine, median of {}; 99 % within {:.0} µs", of.clones, of.p99_us);
        table.row(["SC, live".to_owned(), machine, format!("{:.0}", of.median_us), "1.00".to_owned()]);
    }
    let text = "From sending the message until the socket is made (section 4.1). Published values, and what was measured live, if so. The simulator has the 46 µs of the Pentium III, half of \
                them at each node.";
    Section::new("Startup cost").paragraph(text).table(table)
}
