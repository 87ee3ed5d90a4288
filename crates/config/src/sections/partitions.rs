//! Parts of the data, each of which only some back-ends hold.

use crate::declare::{KeyForm, keys, words};
use crate::keys::Default::Is;
use crate::keys::KeyKind::{Choice, Integer};
use crate::reader::{ConfigReader, DeclaredTable, FoundKey, ListForm};
use crate::value::ConfigValue;

/// The most partitions.
const PARTITIONS_MAX: u32 = 64;

keys! {
    /// Parts of the data, each of which only some back-ends hold: a request goes only to a back-end that holds its partition, whatever
    /// the policy. Without this table each back-end can answer each request. See [discovery](discovery.md#partitions).
    ["partitions"] pub struct PartitionsConfig {
        /// How many there are; they are numbered from 0.
        "count" count: u32 = Is("1"), Integer { min: 1, max: 64 }, restart;
        /// What the partition of a request follows from: `target`, the key of its target; `segment`, the first segment of its path, so
        /// that all below `/alice` is in one partition.
        "by" by: PartitionBy = Is("target"), Choice(PartitionBy::WORDS), restart;
    }
}

words! {
    /// What the partition of a request follows from.
    pub enum PartitionBy {
        Target = "target" / "The key of its target.",
        Segment = "segment" / "The first segment of its path.",
    }
}

/// Numbers of partitions, none of them twice.
pub(super) struct HeldPartitions;

impl KeyForm<Vec<u16>> for HeldPartitions {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Vec<u16>> {
        let form = ListForm { most: PARTITIONS_MAX as usize, fewer: "name at most 64", remedy: NUMBER };
        let mut held = reader.list(section, name, form, |text| match text.parse() {
            Ok(number) if u32::from(number) < PARTITIONS_MAX => Ok(number),
            _ => Err(("is no number of a partition".to_owned(), NUMBER.to_owned())),
        });
        let is_empty = |found: &FoundKey<'_>| found.value.as_array().is_some_and(|items| items.is_empty());
        if let Some(found) = section.found(name).filter(is_empty) {
            let remedy = "remove it, so that it holds all, or name one".to_owned();
            reader.wrong(&found.key, found.span, ("names no partition".to_owned(), remedy));
        }
        held.sort_unstable();
        held.dedup();
        Some(held)
    }

    fn show(held: &Vec<u16>) -> Option<ConfigValue> {
        let held: Vec<String> = held.iter().map(u16::to_string).collect();
        (!held.is_empty()).then_some(ConfigValue::List(held))
    }
}

const NUMBER: &str = "write \"0\" to \"63\", in quotes";
