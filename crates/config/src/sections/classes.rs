//! The class table: which class a request belongs to, and what requests of each class cost.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_classes::{ClassTable, FILE_BYTES_MOST};
use plimsoll_policy::Nanos;
use plimsoll_policy::estimator::ClassCost;

use crate::declare::{KeyForm, KeyValue, keys};
use crate::keys::Default::{Is, Required};
use crate::keys::KeyKind::{self, Text};
use crate::path::path;
use crate::reader::{ConfigReader, DeclaredTable, Wrong, quoted};
use crate::value::ConfigValue;

keys! {
    /// Classes of requests, by which the policy `csld` knows what requests cost; without this table requests have no classes.
    ["classes"] pub struct ClassesConfig {
        /// The class file, as `plimsoll classify` writes it. It is read again on reload; a policy that uses classes then begins anew
        /// if the file has changed.
        "file" file: ClassFile = Required, Text("the path of a file");
        /// Field of requests that names their GraphQL operation, for requests whose query has no `operationName`; `none` for no such
        /// field.
        "operation_header" operation_header: Option<String> =
            Is("x-apollo-operation-name"), Text("the name of a field, or \"none\"") => OperationHeader;
    }
}

/// A class file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its table.
    pub table: Arc<ClassTable>,
    /// What its classes cost, from class 1 on.
    pub costs: Arc<[ClassCost]>,
    /// What is no error but most likely not meant, each with its lines.
    pub warnings: Vec<String>,
    /// Whether classes depend on names of GraphQL operations.
    pub names_operations: bool,
}

// Its numbers are finite.
impl Eq for ClassFile {}

impl KeyValue for ClassFile {
    fn read<'a>(reader: &mut ConfigReader<'a>, section: &DeclaredTable<'a>, name: &str) -> Option<Self> {
        let text = reader.text(section, name, |text| path(text).map(str::to_owned))?;
        let path = reader.file(&text);
        let contents = match contents(&path) {
            Ok(contents) => contents,
            Err(wrong) => {
                reader.wrong(&section.key(name), section.span_of(name), wrong);
                return None;
            }
        };
        match ClassTable::read(&contents) {
            Ok(read) => Some(Self {
                path,
                costs: class_costs(&read.table),
                names_operations: names_operations(&read.table),
                table: Arc::new(read.table),
                warnings: read.warnings,
            }),
            Err(errors) => {
                for error in errors.errors() {
                    let wrong = (error.what.clone(), error.remedy.clone());
                    reader.wrong_elsewhere(&path, error.line, &error.key, wrong);
                }
                None
            }
        }
    }

    fn show(&self, _: KeyKind) -> Option<ConfigValue> {
        Some(ConfigValue::Text(self.path.display().to_string()))
    }
}

/// What the classes of a table cost, as policies get it: from class 1 on.
#[must_use]
pub fn class_costs(table: &ClassTable) -> Arc<[ClassCost]> {
    let nanos = |seconds: f64| Nanos::from_secs_f64(seconds).unwrap_or(Nanos::ZERO);
    let cost = |class: &plimsoll_classes::ContentClass| ClassCost {
        cpu: nanos(class.cpu_s),
        disk: nanos(class.disk_s),
        size_bytes: class.size_bytes as u64,
    };
    table.classes().iter().map(cost).collect()
}

fn names_operations(table: &ClassTable) -> bool {
    table.patterns().iter().any(|pattern| pattern.parameters.contains_key(&b"operationName"[..]))
}

fn contents(path: &Path) -> Result<String, Wrong> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    file.and_then(|file| file.take(FILE_BYTES_MOST as u64 + 1).read_to_end(&mut bytes)).map_err(|error| {
        let remedy =
            "name a class file that this user may read; `plimsoll classify LOG` makes one".to_owned();
        (format!("{shown}: {error}"), remedy)
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].split(|&b| b == b'\n').count();
        (format!("{shown}, line {line}: is not UTF-8"), "save the file as UTF-8".to_owned())
    })
}

/// The name of a field in lower case; none is `none`.
struct OperationHeader;

impl KeyForm<Option<String>> for OperationHeader {
    fn read<'a>(
        reader: &mut ConfigReader<'a>,
        section: &DeclaredTable<'a>,
        name: &str,
    ) -> Option<Option<String>> {
        let text = reader.text(section, name, |text| {
            // A token of RFC 9110, section 5.6.2.
            let good = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if text.is_empty() || text.len() > 256 || !text.chars().all(good) {
                let remedy = "write e.g. \"x-apollo-operation-name\", or \"none\"".to_owned();
                return Err((format!("{} is no name of a field", quoted(text)), remedy));
            }
            Ok(text.to_ascii_lowercase())
        })?;
        Some((text != "none").then_some(text))
    }

    fn show(header: &Option<String>) -> Option<ConfigValue> {
        Some(ConfigValue::Text(header.clone().unwrap_or_else(|| "none".to_owned())))
    }
}
