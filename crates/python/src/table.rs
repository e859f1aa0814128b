//! A table of the results as columns of Apache Arrow.
//!
//! The columns and their types are those that the table declares, and not those of the values of one run: a table of a
//! lab without such rows has the same schema. Text is `large_utf8`, whose offsets have 64 bits, so that no table is too
//! long for it. Counts are `uint64`.

use aerostat_lab::results::{FlatTable, columns, flat_value};
use aerostat_node::inspect::{Kind, Value};
use aerostat_sweep::shape as sweep;
use aerostat_wire::counted;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, LargeStringArray, RecordBatch,
    RecordBatchIterator, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use serde::Deserialize as _;
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

/// A table of the results. Copies of it share the columns.
#[pyclass(frozen, skip_from_py_object, module = "aerostat")]
#[derive(Clone)]
pub(crate) struct Table {
    name: String,
    batch: RecordBatch,
}

impl Table {
    /// Copies the values into columns.
    pub(crate) fn new(table: &FlatTable<'_>) -> PyResult<Self> {
        let nodes = table.info.of_nodes();
        let declared = columns(table.info);
        let made = declared.iter().map(|column| {
            let array = array(column.kind, table.cells(column));
            let null = column.null || column.rare || nodes;
            (
                Field::new(&column.name, array.data_type().clone(), null),
                array,
            )
        });
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = made.unzip();
        Self::of_columns(&table.info.flat_name(), fields, arrays)
    }

    /// The table of a sweep, with these columns.
    pub(crate) fn of_rows(
        name: &str,
        fields: &[sweep::Field],
        rows: Vec<Vec<serde_json::Value>>,
    ) -> PyResult<Self> {
        let made = fields.iter().enumerate().map(|(at, field)| {
            let cells = rows.iter().map(|row| match row.get(at) {
                Some(cell) => Value::deserialize(cell).unwrap_or(Value::None),
                None => Value::None,
            });
            let array = array(field.kind, cells.map(Cow::Owned));
            let null = field.null || array.null_count() > 0;
            (
                Field::new(&field.name, array.data_type().clone(), null),
                array,
            )
        });
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = made.unzip();
        Self::of_columns(name, fields, arrays)
    }

    fn of_columns(name: &str, fields: Vec<Field>, arrays: Vec<ArrayRef>) -> PyResult<Self> {
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Ok(Self {
            name: name.to_owned(),
            batch: batch.map_err(failed)?,
        })
    }
}

fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// The values of a column. Counts by name are JSON, as in CSV.
fn array<'a>(kind: Kind, cells: impl Iterator<Item = Cow<'a, Value>>) -> ArrayRef {
    match kind {
        Kind::Text | Kind::Counts | Kind::Group(_) => {
            let texts = cells.map(|cell| match cell.as_ref() {
                Value::None => None,
                Value::Text(text) => Some(text.clone()),
                other => match flat_value(json!(other)) {
                    serde_json::Value::String(text) => Some(text),
                    other => Some(other.to_string()),
                },
            });
            Arc::new(texts.collect::<LargeStringArray>())
        }
        Kind::Count => Arc::new(cells.map(|cell| count(&cell)).collect::<UInt64Array>()),
        Kind::Number => Arc::new(cells.map(|cell| cell.number()).collect::<Float64Array>()),
        Kind::Flag => Arc::new(cells.map(|cell| flag(&cell)).collect::<BooleanArray>()),
    }
}

fn count(cell: &Value) -> Option<u64> {
    match cell {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn flag(cell: &Value) -> Option<bool> {
    match cell {
        Value::Flag(flag) => Some(*flag),
        _ => None,
    }
}

/// The value of a row in Python.
fn python<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    let any = array.as_any();
    if let Some(counts) = any.downcast_ref::<UInt64Array>() {
        return Ok(counts.value(row).into_pyobject(py)?.into_any());
    }
    if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        return Ok(numbers.value(row).into_pyobject(py)?.into_any());
    }
    if let Some(flags) = any.downcast_ref::<BooleanArray>() {
        return Ok(flags.value(row).into_pyobject(py)?.to_owned().into_any());
    }
    let texts = any.downcast_ref::<LargeStringArray>();
    let text = texts.map_or("", |texts| texts.value(row));
    Ok(text.into_pyobject(py)?.into_any())
}

/// The name of a type in Arrow's own words.
fn type_name(data: &DataType) -> &'static str {
    match data {
        DataType::UInt64 => "uint64",
        DataType::Float64 => "float64",
        DataType::Boolean => "bool",
        _ => "large_utf8",
    }
}

#[pymethods]
impl Table {
    /// Name of the table.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.batch.schema();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    /// Types of the columns, by name: "uint64", "float64", "bool" or "large_utf8".
    #[getter]
    fn types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let types = PyDict::new(py);
        for field in self.batch.schema().fields() {
            types.set_item(field.name(), type_name(field.data_type()))?;
        }
        Ok(types)
    }

    /// The rows as dictionaries.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = self.columns();
        let rows = PyList::empty(py);
        for row in 0..self.batch.num_rows() {
            let dict = PyDict::new(py);
            for (name, array) in names.iter().zip(self.batch.columns()) {
                dict.set_item(name, python(py, array, row)?)?;
            }
            rows.append(dict)?;
        }
        Ok(rows)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.rows(py)?.try_iter()?.into_any())
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        let rows = counted(self.batch.num_rows(), "row", "rows");
        let columns = counted(self.batch.num_columns(), "column", "columns");
        format!("<aerostat.Table {}: {rows}, {columns}>", self.name)
    }

    /// The columns as a stream of one batch; another schema is not heeded, which the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Names and types of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.batch.schema()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}
