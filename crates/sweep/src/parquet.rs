//! Apache Parquet: a column for each column of the table, typed; all of them may be empty.

use crate::failure::Failure;
use crate::shape::Field;
use crate::table::{Out, Writer as RowWriter};
use crate::text::plain;
use aerostat_node::inspect::Kind;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;
use std::sync::Arc;

/// Rows that are in memory at a time: a row group of the file.
const ROWS: usize = 10_000;

/// Writes a file.
pub(crate) struct Writer<'a> {
    kinds: Vec<Kind>,
    rows: Vec<Vec<Value>>,
    out: SerializedFileWriter<Out<'a>>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: Out<'a>, fields: &[Field]) -> Result<Self, Failure> {
        let columns = fields.iter().map(|field| column(field).map(Arc::new));
        let columns = columns.collect::<Result<_, _>>().map_err(failed)?;
        let schema = Type::group_type_builder("schema").with_fields(columns);
        let schema = schema.build().map_err(failed)?;
        let properties = Arc::new(WriterProperties::builder().build());
        let out = SerializedFileWriter::new(out, Arc::new(schema), properties);
        Ok(Self {
            kinds: fields.iter().map(|field| field.kind).collect(),
            rows: Vec::new(),
            out: out.map_err(failed)?,
        })
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.out.next_row_group()?;
        for (at, kind) in self.kinds.iter().enumerate() {
            let Some(column) = group.next_column()? else {
                break;
            };
            let values = rows.iter().map(|row| row.get(at).unwrap_or(&Value::Null));
            match kind {
                Kind::Text | Kind::Counts | Kind::Group(_) => {
                    write::<ByteArrayType>(column, values, |value| {
                        (!value.is_null()).then(|| ByteArray::from(plain(value).as_str()))
                    })
                }
                Kind::Count => write::<Int64Type>(column, values, |value| {
                    // The column is unsigned: the octets are the same.
                    value.as_u64().map(u64::cast_signed)
                }),
                Kind::Number => write::<DoubleType>(column, values, Value::as_f64),
                Kind::Flag => write::<BoolType>(column, values, Value::as_bool),
            }?;
        }
        group.close()?;
        Ok(())
    }
}

impl RowWriter for Writer<'_> {
    fn row(&mut self, _fields: &[Field], row: Vec<Value>) -> Result<(), Failure> {
        self.rows.push(row);
        if self.rows.len() == ROWS {
            self.flush().map_err(failed)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Failure> {
        if !self.rows.is_empty() {
            self.flush().map_err(failed)?;
        }
        self.out.close().map_err(failed)?;
        Ok(())
    }
}

/// A column of the schema.
fn column(field: &Field) -> Result<Type, ParquetError> {
    let (physical, logical) = match field.kind {
        Kind::Text | Kind::Counts | Kind::Group(_) => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        Kind::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(&field.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

/// Writes the values of a column that are there, and which are.
fn write<'a, T: DataType>(
    mut column: SerializedColumnWriter<'_>,
    values: impl Iterator<Item = &'a Value>,
    read: impl Fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.map(read).collect();
    let there: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column
        .typed::<T>()
        .write_batch(&values, Some(&there), None)?;
    column.close()
}

fn failed(error: ParquetError) -> Failure {
    Failure::failed(error.to_string())
}
