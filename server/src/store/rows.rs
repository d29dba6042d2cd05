//! Rows ↔ things of the protocol. A row that does not fit names its table and key.

use protocol::Extra;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgRow, PgTypeInfo};
use sqlx::types::Json;
use sqlx::{Postgres, Row as _, Type};

use super::StoreError;

/// The type `json` and the type of its arrays, as `pg_type` numbers them.
const JSON: PgTypeInfo = PgTypeInfo::with_oid(Oid(114));
const JSON_ARRAY: PgTypeInfo = PgTypeInfo::with_oid(Oid(199));

/// A value that is written to a column of type `json`. sqlx's own type would send it as `jsonb`, which refuses NUL in
/// texts and puts members into another order.
#[derive(Debug)]
pub(super) struct AsJson<T>(pub(super) T);

impl<T> Type<Postgres> for AsJson<T> {
    fn type_info() -> PgTypeInfo {
        JSON
    }
}

impl<T> PgHasArrayType for AsJson<T> {
    fn array_type_info() -> PgTypeInfo {
        JSON_ARRAY
    }
}

impl<T: Serialize> Encode<'_, Postgres> for AsJson<T> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        serde_json::to_writer(&mut **buffer, &self.0)?;
        Ok(IsNull::No)
    }
}

/// A value as the JSON that a column holds.
pub(super) fn json<T: Serialize>(table: &'static str, row: &str, value: &T) -> Result<Value, StoreError> {
    serde_json::to_value(value).map_err(|error| StoreError::row(table, row, error))
}

/// Builds a thing of the protocol from the columns of a row, which have the names of its fields. Absent columns stay
/// out, so that the protocol's own rules (which fields go together) decide whether the row is sound.
pub(super) struct Fields<'a> {
    table: &'static str,
    key: String,
    row: &'a PgRow,
    fields: Extra,
}

impl<'a> Fields<'a> {
    /// Begins with the row's key.
    pub(super) fn of(table: &'static str, key: &str, row: &'a PgRow) -> Result<Self, StoreError> {
        let id: String = row.try_get(key)?;
        let mut fields = Extra::new();
        // What this version did not know when it was written stands beside the known fields.
        if let Json(Value::Object(extra)) = row.try_get::<Json<Value>, _>("extra")? {
            fields.extend(extra);
        }
        fields.insert(key.to_owned(), Value::String(id.clone()));
        Ok(Self {
            table,
            key: id,
            row,
            fields,
        })
    }

    /// Text columns.
    pub(super) fn text(mut self, names: &[&str]) -> Result<Self, StoreError> {
        for name in names {
            if let Some(text) = self.row.try_get::<Option<String>, _>(*name)? {
                self.fields.insert((*name).to_owned(), Value::String(text));
            }
        }
        Ok(self)
    }

    /// Columns of 32-bit numbers.
    pub(super) fn small(mut self, names: &[&str]) -> Result<Self, StoreError> {
        for name in names {
            if let Some(number) = self.row.try_get::<Option<i32>, _>(*name)? {
                self.fields.insert((*name).to_owned(), number.into());
            }
        }
        Ok(self)
    }

    /// Columns of 64-bit numbers.
    pub(super) fn number(mut self, names: &[&str]) -> Result<Self, StoreError> {
        for name in names {
            if let Some(number) = self.row.try_get::<Option<i64>, _>(*name)? {
                self.fields.insert((*name).to_owned(), number.into());
            }
        }
        Ok(self)
    }

    /// JSON columns.
    pub(super) fn json(mut self, names: &[&str]) -> Result<Self, StoreError> {
        for name in names {
            if let Some(Json(value)) = self.row.try_get::<Option<Json<Value>>, _>(*name)? {
                self.fields.insert((*name).to_owned(), value);
            }
        }
        Ok(self)
    }

    /// A JSON column whose members are fields of the thing itself.
    pub(super) fn spread(mut self, name: &str) -> Result<Self, StoreError> {
        if let Json(Value::Object(members)) = self.row.try_get::<Json<Value>, _>(name)? {
            self.fields.extend(members);
        }
        Ok(self)
    }

    /// A field that is a word, as far as it is known by now.
    pub(super) fn word(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    /// A field that comes from elsewhere.
    pub(super) fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// The thing.
    pub(super) fn build<T: DeserializeOwned>(self) -> Result<T, StoreError> {
        serde_json::from_value(Value::Object(self.fields))
            .map_err(|error| StoreError::row(self.table, self.key, error))
    }
}
