//! Columns of a Parquet file, read in batches and converted row by row.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::Result as ParquetResult;
use parquet::schema::types::ColumnDescriptor;

use crate::ingest::{MAX_SIZE_BYTES, decimal};
use crate::line_error::LineError;
use crate::time::{MAX_S, NS_PER_S, seconds_to_ns};

/// The non-null values of a batch, end to end.
enum Values {
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

/// The unit of a whole number in a column of times.
#[derive(Debug, Clone, Copy)]
enum StampUnit {
    /// This many units per second.
    PerSecond(u64),
    /// A decimal with this many fractional digits.
    Decimal(u32),
}

/// One column of one row group.
pub(crate) struct Column {
    reader: ColumnReader,
    nullable: bool,
    unit: StampUnit,
    values: Values,
    levels: Vec<i16>,
    /// For each row of the batch its place in `values`; `u32::MAX` stands for null.
    places: Vec<u32>,
}

/// Why a column is unusable, or `None` if it is usable.
pub(crate) fn unfit(descriptor: &ColumnDescriptor) -> Option<String> {
    if descriptor.max_rep_level() > 0 || descriptor.path().parts().len() != 1 {
        return Some(format!("column {} is nested or repeated", descriptor.name()));
    }
    match descriptor.physical_type() {
        Physical::BOOLEAN | Physical::INT96 => Some(format!(
            "column {} is of type {}, which holds neither numbers nor text",
            descriptor.name(),
            descriptor.physical_type()
        )),
        _ => None,
    }
}

fn unit(descriptor: &ColumnDescriptor) -> StampUnit {
    match descriptor.logical_type_ref() {
        Some(LogicalType::Timestamp(stamp)) => {
            return StampUnit::PerSecond(match stamp.unit {
                TimeUnit::MILLIS => 1_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => NS_PER_S,
            });
        }
        Some(LogicalType::Decimal(decimal)) => {
            return StampUnit::Decimal(u32::try_from(decimal.scale).unwrap_or(0));
        }
        _ => {}
    }
    match descriptor.converted_type() {
        ConvertedType::TIMESTAMP_MILLIS => StampUnit::PerSecond(1_000),
        ConvertedType::TIMESTAMP_MICROS => StampUnit::PerSecond(1_000_000),
        ConvertedType::DECIMAL => StampUnit::Decimal(u32::try_from(descriptor.type_scale()).unwrap_or(0)),
        _ => StampUnit::PerSecond(1),
    }
}

impl Column {
    /// `None` for a type that [`unfit`] refuses.
    pub(crate) fn new(reader: ColumnReader, descriptor: &ColumnDescriptor) -> Option<Self> {
        let values = match &reader {
            ColumnReader::Int32ColumnReader(_) => Values::I32(Vec::new()),
            ColumnReader::Int64ColumnReader(_) => Values::I64(Vec::new()),
            ColumnReader::FloatColumnReader(_) => Values::F32(Vec::new()),
            ColumnReader::DoubleColumnReader(_) => Values::F64(Vec::new()),
            ColumnReader::ByteArrayColumnReader(_) => Values::Bytes(Vec::new()),
            ColumnReader::FixedLenByteArrayColumnReader(_) => Values::Fixed(Vec::new()),
            ColumnReader::BoolColumnReader(_) | ColumnReader::Int96ColumnReader(_) => return None,
        };
        Some(Self {
            reader,
            nullable: descriptor.max_def_level() > 0,
            unit: unit(descriptor),
            values,
            levels: Vec::new(),
            places: Vec::new(),
        })
    }

    /// Reads up to `rows` rows; returns how many there were.
    pub(crate) fn read(&mut self, rows: usize) -> ParquetResult<usize> {
        let Self { reader, nullable, values, levels, places, .. } = self;
        levels.clear();
        let levels_wanted = nullable.then_some(&mut *levels);
        let count = match (reader, values) {
            (ColumnReader::Int32ColumnReader(r), Values::I32(v)) => fill(r, rows, levels_wanted, v),
            (ColumnReader::Int64ColumnReader(r), Values::I64(v)) => fill(r, rows, levels_wanted, v),
            (ColumnReader::FloatColumnReader(r), Values::F32(v)) => fill(r, rows, levels_wanted, v),
            (ColumnReader::DoubleColumnReader(r), Values::F64(v)) => fill(r, rows, levels_wanted, v),
            (ColumnReader::ByteArrayColumnReader(r), Values::Bytes(v)) => fill(r, rows, levels_wanted, v),
            (ColumnReader::FixedLenByteArrayColumnReader(r), Values::Fixed(v)) => {
                fill(r, rows, levels_wanted, v)
            }
            _ => Ok(0),
        }?;
        places.clear();
        if *nullable {
            let mut next = 0;
            places.extend(levels.iter().map(|&level| {
                if level == 0 {
                    u32::MAX
                } else {
                    next += 1;
                    next - 1
                }
            }));
        } else {
            places.extend(0..count as u32);
        }
        Ok(count)
    }

    fn place(&self, row: usize) -> Option<usize> {
        self.places.get(row).filter(|&&place| place != u32::MAX).map(|&place| place as usize)
    }

    /// Bytes of a text, or the decimal digits of a number; `None` for null.
    pub(crate) fn text<'a>(
        &'a self,
        row: usize,
        digits: &'a mut [u8; 20],
    ) -> Result<Option<&'a [u8]>, LineError> {
        let Some(at) = self.place(row) else {
            return Ok(None);
        };
        match &self.values {
            Values::Bytes(values) => Ok(values.get(at).map(ByteArray::data)),
            Values::Fixed(values) => Ok(values.get(at).map(|v| v.data())),
            _ => match self.whole(at) {
                Some(number) => u64::try_from(number)
                    .map(|number| Some(decimal(number, digits)))
                    .map_err(|_| LineError::Text("target or client is a negative number")),
                None => Err(LineError::Text("target or client is neither text nor a whole number")),
            },
        }
    }

    fn whole(&self, at: usize) -> Option<i64> {
        match &self.values {
            Values::I32(values) => values.get(at).map(|&v| i64::from(v)),
            Values::I64(values) => values.get(at).copied(),
            _ => None,
        }
    }

    /// A whole number not below 0, such as a size; `None` for null.
    pub(crate) fn number(&self, row: usize) -> Result<Option<u64>, LineError> {
        let Some(at) = self.place(row) else {
            return Ok(None);
        };
        let number = match &self.values {
            Values::F64(values) => values
                .get(at)
                .and_then(|&v| (v.fract() == 0.0 && v.abs() <= MAX_SIZE_BYTES as f64).then_some(v as i64)),
            _ => self.whole(at),
        };
        match number.map(u64::try_from) {
            None => Err(LineError::Text("size_bytes or class is not a whole number")),
            Some(Err(_)) => Err(LineError::Text("size is negative")),
            Some(Ok(number)) if number > MAX_SIZE_BYTES => Err(LineError::Text("size is beyond 2^53 bytes")),
            Some(Ok(number)) => Ok(Some(number)),
        }
    }

    /// Nanoseconds of a time or duration; `None` for null.
    pub(crate) fn nanoseconds(&self, row: usize) -> Result<Option<u64>, LineError> {
        let Some(at) = self.place(row) else {
            return Ok(None);
        };
        match &self.values {
            Values::F32(values) => values.get(at).map(|&v| seconds_to_ns(f64::from(v))),
            Values::F64(values) => values.get(at).map(|&v| seconds_to_ns(v)),
            Values::Bytes(values) => values.get(at).map(|v| self.scaled(big_endian(v.data())?)),
            Values::Fixed(values) => values.get(at).map(|v| self.scaled(big_endian(v.data())?)),
            Values::I32(_) | Values::I64(_) => self.whole(at).map(|v| self.scaled(i128::from(v))),
        }
        .transpose()
    }

    fn scaled(&self, value: i128) -> Result<u64, LineError> {
        if value < 0 {
            return Err(LineError::Text("time is negative"));
        }
        let ns = match self.unit {
            StampUnit::PerSecond(units) => value.checked_mul(i128::from(NS_PER_S / units)),
            StampUnit::Decimal(scale @ 0..=9) => value.checked_mul(10i128.pow(9 - scale)),
            StampUnit::Decimal(scale) => Some(10i128.checked_pow(scale - 9).map_or(0, |unit| value / unit)),
        };
        ns.and_then(|ns| u64::try_from(ns).ok())
            .filter(|ns| ns / NS_PER_S <= MAX_S)
            .ok_or(LineError::Text("time is beyond the year 2554"))
    }
}

/// A decimal as Parquet keeps it in bytes: big-endian two's complement.
fn big_endian(bytes: &[u8]) -> Result<i128, LineError> {
    if bytes.is_empty() || bytes.len() > 16 {
        return Err(LineError::Text("time is not a decimal number"));
    }
    let sign = if bytes[0] & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 16];
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    Ok(i128::from_be_bytes(wide))
}

fn fill<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    mut levels: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> ParquetResult<usize> {
    values.clear();
    let mut count = 0;
    // With nulls, one call may stop at the end of a page.
    while count < rows {
        let (records, _, _) = reader.read_records(rows - count, levels.as_deref_mut(), None, values)?;
        if records == 0 {
            break;
        }
        count += records;
    }
    Ok(count)
}
