//! Policies beside those of HAProxy and nginx, live, in cells where one way of choosing is known to lose; and what the simulator says there.

mod cells;
mod measure;
mod peer;
mod simulated;
mod systems;

pub use cells::{CELLS, CellLoser, CompareCell};
pub use measure::{CompareTimes, MeasuredSystem, measure_system};
pub use peer::find_peer;
pub use simulated::simulated_rps;
pub use systems::{ComparedChooser, ComparedSystem, PeerProgram, SYSTEMS, systems};
