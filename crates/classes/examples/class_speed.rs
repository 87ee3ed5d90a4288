//! What it costs to classify a request: `class_speed [REQUESTS]` prints one JSON line for each of several tables of 1,000 patterns and
//! kinds of requests, with nanoseconds of CPU time per request.

use std::collections::BTreeMap;
use std::hint::black_box;

use plimsoll_classes::{ClassPattern, ClassTable, ContentClass, PathPattern};

#[path = "../../../benches/common/cpu_time.rs"]
mod cpu_time;

const ENTRIES: usize = 1000;

type Bad = Box<dyn std::error::Error>;

fn table(
    patterns: impl Iterator<Item = (String, BTreeMap<Vec<u8>, Option<Vec<u8>>>)>,
) -> Result<ClassTable, Bad> {
    let class = |at| ContentClass {
        name: format!("class {at}"),
        cpu_s: 0.01,
        disk_s: 0.0,
        size_bytes: 1e4,
        deviation_s: 0.002,
        requests: 1,
    };
    let mut all = Vec::new();
    for ((path, parameters), class) in patterns.take(ENTRIES).zip(1..) {
        let path = PathPattern::parse(&path).map_err(|(what, _)| format!("{path} {what}"))?;
        all.push(ClassPattern { parameters, ..ClassPattern::of_path(class, path) });
    }
    Ok(ClassTable::new((0..all.len()).map(class).collect(), Vec::new(), all)?)
}

fn parameters(pairs: &[(&str, &str)]) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let value = |text: &str| (text != "*").then(|| text.as_bytes().to_vec());
    pairs.iter().map(|(name, text)| (name.as_bytes().to_vec(), value(text))).collect()
}

/// As a site has them: directories, applications, and for some of these, parameters.
fn mixed() -> Result<ClassTable, Bad> {
    table((0..ENTRIES).map(|at| match at % 4 {
        0 => (format!("/shop/department-{}/**", at / 4), BTreeMap::new()),
        1 => (format!("/cgi-bin/area-{}/application-{at}", at % 25), BTreeMap::new()),
        2 => {
            let view = format!("view-{}", at % 16);
            (
                format!("/cgi-bin/reports/{}", at / 40),
                parameters(&[("view", &view), ("from", &at.to_string())]),
            )
        }
        _ => (format!("/api/*/resource-{at}"), parameters(&[("expand", "*")])),
    }))
}

/// All at one path, by the value of a parameter.
fn by_value() -> Result<ClassTable, Bad> {
    table(
        (0..ENTRIES)
            .map(|at| ("/graphql".to_owned(), parameters(&[("operationName", &format!("Operation{at}"))]))),
    )
}

/// All at one path, by the name of a parameter.
fn by_name() -> Result<ClassTable, Bad> {
    table((0..ENTRIES).map(|at| ("/index.php".to_owned(), parameters(&[(&format!("action{at}"), "*")]))))
}

fn measure(name: &str, table: &ClassTable, targets: &[String], requests: usize) -> Result<(), Bad> {
    let classified = targets.iter().filter(|target| table.class_of(b"GET", target.as_bytes()) != 0).count();
    let before_s = cpu_time::cpu_s()?;
    let mut sum = 0u64;
    for target in targets.iter().cycle().take(requests) {
        sum += u64::from(table.class_of(b"GET", black_box(target.as_bytes())));
    }
    black_box(sum);
    let ns = (cpu_time::cpu_s()? - before_s) * 1e9 / requests as f64;
    let share = classified as f64 / targets.len() as f64;
    println!(
        "{{\"table\":\"{name}\",\"entries\":{},\"classified\":{share:.3},\"ns_per_request\":{ns:.1}}}",
        table.patterns().len()
    );
    Ok(())
}

fn main() -> Result<(), Bad> {
    let requests = std::env::args().nth(1).map_or(Ok(3_000_000), |text| text.parse())?;
    // Not in the order of the table.
    let places = (0..ENTRIES).map(|n| n * 619 % ENTRIES);
    let usual: Vec<String> = places
        .clone()
        .map(|at| match at % 5 {
            0 => format!("/shop/department-{}/sale/item-{at}.html?ref=mail", at % 250),
            1 => format!(
                "/cgi-bin/area-{}/application-{}?user=42&lang=en",
                (at / 4 * 4 + 1) % 25,
                at / 4 * 4 + 1
            ),
            2 => {
                let at = at / 4 * 4 + 2;
                format!("/cgi-bin/reports/{}?from={at}&to=2026&view=view-{}&page=3", at / 40, at % 16)
            }
            3 => format!("/api/v2/resource-{}?fields=a%2Cb&expand=all", at / 4 * 4 + 3),
            _ => format!("/images/{at}/logo.png"),
        })
        .collect();
    measure("mixed", &mixed()?, &usual, requests)?;
    let operations: Vec<String> =
        places.clone().map(|at| format!("/graphql?operationName=Operation{at}&id=7")).collect();
    measure("by_value", &by_value()?, &operations, requests)?;
    let actions: Vec<String> = places.map(|at| format!("/index.php?lang=en&action{at}=1")).collect();
    measure("by_name", &by_name()?, &actions, requests)?;
    let hostile = format!("/{}?{}", "a/%2e%2e/".repeat(200), "action1=%31&".repeat(2000));
    measure("hostile", &by_name()?, &[hostile], requests / 100 + 1)
}
