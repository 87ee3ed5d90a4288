//! Metrics, tables, JSON, plots and self-contained HTML reports.

mod run;

pub use run::{LoadSeries, PerBackend, Run, Summary, TraceInfo, Utilization};
