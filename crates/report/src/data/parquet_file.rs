//! Parquet files, see <https://parquet.apache.org/docs/file-format/>. Columns of lists and maps become one column for each field, with
//! levels that say where a list begins and what is missing (Dremel encoding).

use std::{fs::File, io::BufWriter, path::Path, sync::Arc};

use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel},
    column::writer::ColumnWriter,
    data_type::ByteArray,
    errors::{ParquetError, Result},
    file::{
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::Type as Schema,
};

use crate::data::columns::{ColumnValue, DataColumn, Shape, Type};
use crate::data::error::Cause;

/// A Parquet file being written.
pub(super) struct ParquetWriter(SerializedFileWriter<BufWriter<File>>);

impl ParquetWriter {
    /// Creates the file, with every plain column optional.
    pub(super) fn create<T>(
        path: &Path,
        name: &str,
        columns: &[DataColumn<T>],
    ) -> std::result::Result<Self, Cause> {
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = Schema::group_type_builder(name).with_fields(fields).build()?;
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let file = BufWriter::new(File::create(path)?);
        Ok(Self(SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?))
    }

    /// Appends rows as one row group; none for no rows.
    pub(super) fn row_group<T>(
        &mut self,
        columns: &[DataColumn<T>],
        rows: &[T],
    ) -> std::result::Result<(), Cause> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.0.next_row_group()?;
        for column in columns {
            for leaf in leaves(column, rows) {
                leaf.write(&mut group)?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer.
    pub(super) fn finish(self) -> std::result::Result<(), Cause> {
        // Also flushes the buffer and reports its errors.
        self.0.into_inner()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        Ok(())
    }
}

/// The schema of a column.
fn field<T>(column: &DataColumn<T>) -> Result<Arc<Schema>> {
    match column.shape {
        Shape::Value(kind) => primitive(column.name, kind, Repetition::OPTIONAL),
        Shape::Structs(fields) => {
            let optional = |(name, kind): &(&str, Type)| primitive(name, *kind, Repetition::OPTIONAL);
            let fields = fields.iter().map(optional).collect::<Result<Vec<_>>>()?;
            let element = group("element", fields, Repetition::REQUIRED, None)?;
            let list = group("list", vec![element], Repetition::REPEATED, None)?;
            group(column.name, vec![list], Repetition::REQUIRED, Some(LogicalType::List))
        }
        Shape::Map(kind) => {
            let key = primitive("key", Type::Text, Repetition::REQUIRED)?;
            let value = primitive("value", kind, Repetition::OPTIONAL)?;
            let entries = group("key_value", vec![key, value], Repetition::REPEATED, None)?;
            group(column.name, vec![entries], Repetition::REQUIRED, Some(LogicalType::Map))
        }
    }
}

fn group(
    name: &str,
    fields: Vec<Arc<Schema>>,
    repetition: Repetition,
    logical: Option<LogicalType>,
) -> Result<Arc<Schema>> {
    let builder = Schema::group_type_builder(name).with_fields(fields).with_repetition(repetition);
    Ok(Arc::new(builder.with_logical_type(logical).build()?))
}

fn primitive(name: &str, kind: Type, repetition: Repetition) -> Result<Arc<Schema>> {
    let (physical, logical) = match kind {
        Type::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Type::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Type::Number => (Physical::DOUBLE, None),
    };
    let builder = Schema::primitive_type_builder(name, physical).with_logical_type(logical);
    Ok(Arc::new(builder.with_repetition(repetition).build()?))
}

/// The values of one column of the file: of a plain column, or of one field of a nested one.
#[derive(Debug, Default)]
struct Leaf {
    texts: Vec<ByteArray>,
    counts: Vec<i64>,
    numbers: Vec<f64>,
    /// How much of the path to each value is there.
    definitions: Vec<i16>,
    /// 0 where a row begins, 1 for further values of its list; only in lists.
    repetitions: Vec<i16>,
}

/// The columns of the file that a column becomes.
fn leaves<T>(column: &DataColumn<T>, rows: &[T]) -> Vec<Leaf> {
    let values = rows.iter().map(|row| (column.value)(row));
    let fields = match column.shape {
        Shape::Value(_) => {
            let mut leaf = Leaf::default();
            values.for_each(|value| leaf.push(value, 0));
            return vec![leaf];
        }
        Shape::Structs(fields) => fields.len(),
        Shape::Map(_) => 2,
    };
    // The key of a map is required, so that it has no level of its own.
    let required = |field| field == 0 && matches!(column.shape, Shape::Map(_));
    let mut leaves: Vec<Leaf> = (0..fields).map(|_| Leaf::default()).collect();
    for value in values {
        let elements = if let ColumnValue::Nested(elements) = value { elements } else { Vec::new() };
        for (field, leaf) in leaves.iter_mut().enumerate() {
            if elements.is_empty() {
                leaf.definitions.push(0);
                leaf.repetitions.push(0);
            }
            for (index, element) in elements.iter().enumerate() {
                leaf.repetitions.push(i16::from(index > 0));
                let value = element.get(field).cloned().unwrap_or(ColumnValue::Null);
                leaf.push(value, if required(field) { 0 } else { 1 });
            }
        }
    }
    leaves
}

impl Leaf {
    /// Appends a value; `above`: levels of its path that are there without it.
    fn push(&mut self, value: ColumnValue, above: i16) {
        let mut definition = above + 1;
        match value {
            ColumnValue::Text(text) => self.texts.push(ByteArray::from(text.into_bytes())),
            // An unsigned integer is stored with the bits of a signed one.
            ColumnValue::Count(count) => self.counts.push(count.cast_signed()),
            ColumnValue::Number(number) => self.numbers.push(number),
            ColumnValue::Null | ColumnValue::Nested(_) => definition = above,
        }
        self.definitions.push(definition);
    }

    /// Writes it as the next column.
    fn write(&self, group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>) -> Result<()> {
        let mut writer: SerializedColumnWriter<'_> =
            group.next_column()?.ok_or_else(|| ParquetError::General("too few columns".to_owned()))?;
        let definitions = Some(self.definitions.as_slice());
        let repetitions = Some(self.repetitions.as_slice()).filter(|levels| !levels.is_empty());
        match writer.untyped() {
            ColumnWriter::ByteArrayColumnWriter(typed) => {
                typed.write_batch(&self.texts, definitions, repetitions)?
            }
            ColumnWriter::Int64ColumnWriter(typed) => {
                typed.write_batch(&self.counts, definitions, repetitions)?
            }
            ColumnWriter::DoubleColumnWriter(typed) => {
                typed.write_batch(&self.numbers, definitions, repetitions)?
            }
            _ => return Err(ParquetError::General("a column has an unexpected type".to_owned())),
        };
        writer.close()
    }
}
