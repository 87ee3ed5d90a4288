//! Metrics, tables, JSON, plots and self-contained HTML reports.

mod claim;
mod data;
mod escape;
pub mod format;
mod json;
mod labelled;
mod mark;
mod plot;
mod report;
mod run;
mod runs_report;
mod runs_table;
mod table;
mod table_column;
mod text_plot;

pub use claim::{
    Claim, Measured, Verdict, claims_conclusion, claims_table, controls_conclusion, measurements_table,
};
pub use data::{DataError, write_load_csv, write_load_parquet, write_runs_csv, write_runs_parquet};
pub use json::json_line;
pub use mark::{MARK_WITHIN_BYTES, ReportMark};
pub use plot::{AxisUnit, Plot, Series, SeriesLook, SeriesStyle};
pub use report::{Report, Section};
pub use run::{
    ConnectionFigures, LoadSeries, LoadTraffic, PerBackend, Run, StateTable, Summary, TraceInfo, Utilization,
};
pub use runs_report::{RunsContext, bottleneck, runs_report};
pub use runs_table::{TableView, runs_table};
pub use table::{Cell, Row, Table, Tone};
pub use table_column::{Align, TableColumn};
pub use text_plot::{bar_chart, sparkline};
