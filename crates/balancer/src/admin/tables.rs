//! `/policy/tables`: tables of a policy's inner state, such as boundaries and histograms.

use http::StatusCode;
use plimsoll_config::ClassesConfig;
use plimsoll_policy::PolicyTable;
use serde::Serialize;
use serde_json::Value;

use super::of_pool::of_query;
use super::snapshot::Snapshot;
use crate::shared::FrontEndShared;
use plimsoll_observe::reply::{Refused, Reply, json_line};

/// Rows of a table that are shown; the last ones, where there are more.
const MOST_ROWS: usize = 4096;

/// The column that has the index of a back-end, which is shown by its name.
const BACKEND: &str = "backend";
/// The column that has the number of a class of requests, which is shown by its name.
const CLASS: &str = "class";

/// What numbers in tables stand for.
#[derive(Clone, Copy)]
struct TableNames<'a> {
    /// Of back-ends, by index.
    backends: &'a [&'a str],
    classes: Option<&'a ClassesConfig>,
}

impl<'a> TableNames<'a> {
    fn of(self, column: &str, value: f64) -> Option<&'a str> {
        match column {
            BACKEND if value >= 0.0 => self.backends.get(value as usize).copied(),
            CLASS if value >= 0.0 => Some(&*self.classes?.file.table.class(value as u16)?.name),
            _ => None,
        }
    }
}

#[derive(Serialize)]
struct Shown {
    policy: &'static str,
    tables: Vec<ShownTable>,
}

#[derive(Serialize)]
struct ShownTable {
    name: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Vec<Value>>,
    rows_left_out: usize,
}

/// All tables of the policy.
pub(super) fn all(shared: &FrontEndShared, query: Option<&str>) -> Result<Reply, Refused> {
    let (pool, _) = of_query(shared, query)?;
    let config = pool.config.load();
    let policy = config.policy.spec.name;
    let (snapshot, tables) = Snapshot::with_tables(&pool);
    let names: Vec<&str> = snapshot.backends.iter().map(|b| &*b.backend.name).collect();
    let names = TableNames { backends: &names, classes: config.classes.as_ref() };
    let tables = tables.iter().map(|table| shown(table, names)).collect();
    Ok(json_line(StatusCode::OK, &Shown { policy, tables }))
}

fn shown(table: &PolicyTable, names: TableNames<'_>) -> ShownTable {
    let rows_left_out = table.rows.len().saturating_sub(MOST_ROWS);
    let cell =
        |(value, column): (&f64, &&str)| names.of(column, *value).map_or_else(|| number(*value), Value::from);
    let row = |row: &Vec<f64>| row.iter().zip(table.columns).map(cell).collect();
    ShownTable {
        name: table.name,
        columns: table.columns,
        rows: table.rows[rows_left_out..].iter().map(row).collect(),
        rows_left_out,
    }
}

/// A number, whole where it is; nothing for one without end, which is infinite or the largest size there is.
fn number(value: f64) -> Value {
    // Beyond it not every whole number is one of these.
    const EXACT: f64 = (1u64 << 53) as f64;
    if !value.is_finite() || value >= u64::MAX as f64 {
        Value::Null
    } else if value.fract() == 0.0 && value.abs() <= EXACT {
        (value as i64).into()
    } else {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_null_backends_have_names_and_rows_are_bounded() {
        let rows = vec![vec![1.0, 512.0, 0.25], vec![0.0, u64::MAX as f64, f64::INFINITY]];
        let table = PolicyTable { name: "boundaries", columns: &["backend", "size_bytes", "share"], rows };
        let names = TableNames { backends: &["a", "b"], classes: None };
        let text = serde_json::to_string(&shown(&table, names)).unwrap();
        let expected = r#"{"name":"boundaries","columns":["backend","size_bytes","share"],"rows":[["b",512,0.25],["a",null,null]],"rows_left_out":0}"#;
        assert_eq!(text, expected);
        let rows = (0..5000).map(|n| vec![f64::from(n)]).collect();
        let table = PolicyTable { name: "moves", columns: &["requests"], rows };
        let shown = shown(&table, names);
        assert_eq!((shown.rows.len(), shown.rows_left_out, &shown.rows[0][0]), (4096, 904, &904.into()));
    }
}
