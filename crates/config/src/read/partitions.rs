//! Checks the table `[partitions]` and what back-ends hold against the rest of the file.

use toml::de::DeTable;

use crate::read::peers::Answering;
use crate::read::tables::{if_there, one};
use crate::reader::{ConfigReader, DeclaredTable};
use crate::sections::{MechanismKind, PartitionsConfig};

/// The partitions, if there are any; back-ends and other tables are checked against them.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    root: &'a DeTable<'a>,
    backends: &[Answering],
    mechanism: MechanismKind,
) -> Option<Option<PartitionsConfig>> {
    let section = one(reader, root, "partitions")?;
    let partitions = if_there(reader, &section, PartitionsConfig::read);
    if section.table.is_some() {
        beside(reader, &section, root, mechanism);
    }
    held(reader, (&section, partitions.as_ref()), backends, root.get("discovery").is_some());
    Some(partitions)
}

/// Each partition has a back-end, if there are no `others` to be told of later, and none holds one that there is not.
fn held(
    reader: &mut ConfigReader<'_>,
    (section, partitions): (&DeclaredTable<'_>, Option<&PartitionsConfig>),
    backends: &[Answering],
    others: bool,
) {
    let numbers = |backend: &Answering| backend.config.partitions.clone();
    if section.table.is_none() {
        for backend in backends.iter().filter(|b| !b.config.partitions.is_empty()) {
            let remedy = "add [partitions] with their `count`, or remove it".to_owned();
            let wrong = ("is not used without [partitions]".to_owned(), remedy);
            reader.wrong(&backend.partitions_path, backend.partitions_span.clone(), wrong);
        }
        return;
    }
    let Some(count) = partitions.map(|p| p.count) else { return };
    for backend in backends {
        if let Some(beyond) = numbers(backend).into_iter().find(|&n| u32::from(n) >= count) {
            let what = format!("there is no partition {beyond}: `partitions.count` is {count}");
            let remedy = format!("name partitions from 0 to {}", count.saturating_sub(1));
            reader.wrong(&backend.partitions_path, backend.partitions_span.clone(), (what, remedy));
        }
    }
    if others {
        return;
    }
    let is_held = |n: u32| {
        let holds = |held: Vec<u16>| held.is_empty() || held.iter().any(|&h| u32::from(h) == n);
        backends.iter().any(|b| holds(numbers(b)))
    };
    if let Some(bare) = (0..count).find(|&n| !is_held(n)) {
        let what = format!("no back-end holds partition {bare}");
        let remedy = format!("add \"{bare}\" to `partitions` of a [[backend]]");
        reader.wrong(&section.key("count"), section.span_of("count"), (what, remedy));
    }
}

/// What does not go together with partitions.
fn beside<'a>(
    reader: &mut ConfigReader<'a>,
    section: &DeclaredTable<'a>,
    root: &'a DeTable<'a>,
    mechanism: MechanismKind,
) {
    let partition = root.get("discovery").and_then(|table| table.get_ref().as_table()?.get("partition"));
    if let Some(partition) = partition {
        let remedy = "remove it: the replicas of all partitions are taken".to_owned();
        let what = "is one alone, and there is [partitions]".to_owned();
        reader.wrong("discovery.partition", partition.span(), (what, remedy));
    }
    if mechanism.hands_off() {
        let what =
            "with [partitions] requests are proxied: the next one of a connection may be for any partition";
        let remedy = "write `mechanism = \"proxy\"`, or remove [partitions]".to_owned();
        let span = root.get("mechanism").map_or(0..0, |mechanism| mechanism.span());
        reader.wrong("mechanism", span, (what.to_owned(), remedy));
    }
    for (other, what) in [
        ("peers", "front-ends do not share what they see of single partitions"),
        ("shadow", "a shadow policy is not scored by partition"),
    ] {
        if let Some(table) = root.get(other) {
            let remedy = format!("remove [{other}] or {}", section.spec.header());
            reader.wrong(other, table.span(), (what.to_owned(), remedy));
        }
    }
}
