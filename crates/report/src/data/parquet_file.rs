//! Parquet files of plain columns, see <https://parquet.apache.org/docs/file-format/>.

use std::{fs::File, io::BufWriter, path::Path, sync::Arc};

use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel},
    column::writer::ColumnWriter,
    data_type::ByteArray,
    errors::{ParquetError, Result},
    file::{
        properties::WriterProperties,
        writer::{SerializedColumnWriter, SerializedFileWriter},
    },
    schema::types::Type as Schema,
};

use crate::data::columns::{ColumnValue, DataColumn, Type};
use crate::data::error::Cause;

/// A Parquet file being written.
pub(super) struct ParquetWriter(SerializedFileWriter<BufWriter<File>>);

impl ParquetWriter {
    /// Creates the file, with every column optional.
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
            let writer =
                group.next_column()?.ok_or_else(|| ParquetError::General("too few columns".to_owned()))?;
            write_column(writer, column, rows)?;
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

fn field<T>(column: &DataColumn<T>) -> Result<Arc<Schema>> {
    let (physical, logical) = match column.kind {
        Type::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Type::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Type::Number => (Physical::DOUBLE, None),
    };
    let field = Schema::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()?;
    Ok(Arc::new(field))
}

fn write_column<T>(mut writer: SerializedColumnWriter<'_>, column: &DataColumn<T>, rows: &[T]) -> Result<()> {
    let mut present = Vec::with_capacity(rows.len());
    let (mut texts, mut counts, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let value = (column.value)(row);
        // Definition level 1: the value is present.
        present.push(i16::from(value != ColumnValue::Null));
        match value {
            ColumnValue::Null => {}
            ColumnValue::Text(text) => texts.push(ByteArray::from(text.into_bytes())),
            // An unsigned integer is stored with the bits of a signed one.
            ColumnValue::Count(count) => counts.push(count.cast_signed()),
            ColumnValue::Number(number) => numbers.push(number),
        }
    }
    match writer.untyped() {
        ColumnWriter::ByteArrayColumnWriter(typed) => typed.write_batch(&texts, Some(&present), None)?,
        ColumnWriter::Int64ColumnWriter(typed) => typed.write_batch(&counts, Some(&present), None)?,
        ColumnWriter::DoubleColumnWriter(typed) => typed.write_batch(&numbers, Some(&present), None)?,
        _ => {
            return Err(ParquetError::General(format!("column {} has an unexpected type", column.name)));
        }
    };
    writer.close()
}
