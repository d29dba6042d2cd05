//! The OpenAPI 3.1 document, made from the list of calls and from the types of the protocol.
//!
//! A schema of OpenAPI 3.1 is a JSON Schema (draft 2020-12), which is what `schemars` makes of our types by the same
//! serde attributes that read and write them.

use std::sync::LazyLock;

use axum::handler::Handler;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodRouter};
use bytes::Bytes;
use protocol::api::Problem;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::AppState;

/// One call: what answers it, and what the document says of it.
pub(super) struct Call {
    path: &'static str,
    method: &'static str,
    handler: MethodRouter<AppState>,
    id: &'static str,
    summary: &'static str,
    details: Vec<Detail>,
}

type Schema = fn(&mut SchemaGenerator) -> Value;

/// What a call takes or gives beside its path.
enum Detail {
    Query(Schema),
    Header(&'static str, &'static str),
    Body(Schema),
    File,
    Answer(StatusCode, &'static str, Option<Schema>),
    Ranged(&'static str),
    Frames(Schema, Schema),
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

impl Call {
    pub(super) fn get<H, T>(path: &'static str, handler: H, id: &'static str, summary: &'static str) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        Self::new("get", path, routing::get(handler), id, summary)
    }

    pub(super) fn post<H, T>(path: &'static str, handler: H, id: &'static str, summary: &'static str) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        Self::new("post", path, routing::post(handler), id, summary)
    }

    fn new(
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<AppState>,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            path,
            method,
            handler,
            id,
            summary,
            details: Vec::new(),
        }
    }

    fn with(mut self, detail: Detail) -> Self {
        self.details.push(detail);
        self
    }

    /// Parameters behind the `?`: the fields of `T`.
    pub(super) fn query<T: JsonSchema>(self) -> Self {
        self.with(Detail::Query(schema_whole::<T>))
    }

    /// A header that the call understands.
    pub(super) fn header(self, name: &'static str, what: &'static str) -> Self {
        self.with(Detail::Header(name, what))
    }

    /// A JSON body.
    pub(super) fn takes<T: JsonSchema>(self) -> Self {
        self.with(Detail::Body(schema_of::<T>))
    }

    /// A file as its body.
    pub(super) fn takes_file(self) -> Self {
        self.with(Detail::File)
    }

    /// An answer in JSON.
    pub(super) fn answers<T: JsonSchema>(self, status: StatusCode) -> Self {
        self.with(Detail::Answer(status, "application/json", Some(schema_of::<T>)))
    }

    /// An answer of one JSON value a line.
    pub(super) fn answers_lines<T: JsonSchema>(self, status: StatusCode) -> Self {
        self.with(Detail::Answer(
            status,
            "application/x-ndjson",
            Some(schema_of::<T>),
        ))
    }

    /// An answer of some media type.
    pub(super) fn answers_text(self, status: StatusCode, media_type: &'static str) -> Self {
        self.with(Detail::Answer(status, media_type, None))
    }

    /// An answer without a body.
    pub(super) fn answers_nothing(self, status: StatusCode) -> Self {
        self.with(Detail::Answer(status, "", None))
    }

    /// A content of which `Range` asks a part.
    pub(super) fn ranged(self, media_type: &'static str) -> Self {
        self.with(Detail::Ranged(media_type))
    }

    /// A WebSocket with these frames.
    pub(super) fn frames<Client: JsonSchema, Server: JsonSchema>(self) -> Self {
        self.with(Detail::Frames(schema_of::<Client>, schema_of::<Server>))
    }

    /// The part for the router.
    pub(super) fn into_route(self) -> (&'static str, MethodRouter<AppState>) {
        (self.path, self.handler)
    }

    /// The part for the document.
    fn operation(&self, generator: &mut SchemaGenerator) -> Value {
        let mut parameters: Vec<Value> = path_parameters(self.path).collect();
        let mut responses = Map::new();
        let mut operation = json!({ "operationId": self.id, "summary": self.summary });
        for detail in &self.details {
            match detail {
                Detail::Query(schema) => parameters.extend(query_parameters(&schema(generator))),
                Detail::Header(name, what) => parameters.push(json!({
                    "name": name, "in": "header", "description": what, "schema": { "type": "string" },
                })),
                Detail::Body(schema) => {
                    operation["requestBody"] = json!({
                        "required": true, "content": { "application/json": { "schema": schema(generator) } },
                    });
                }
                Detail::File => {
                    operation["requestBody"] = json!({
                        "required": true, "content": { "application/octet-stream": { "schema": {} } },
                    });
                }
                Detail::Answer(status, media_type, schema) => {
                    let mut answer = json!({ "description": words(*status) });
                    if !media_type.is_empty() {
                        let schema = schema.map(|schema| schema(generator)).unwrap_or(json!({}));
                        answer["content"] = json!({ *media_type: { "schema": schema } });
                    }
                    responses.insert(status.as_u16().to_string(), answer);
                }
                Detail::Ranged(media_type) => {
                    parameters.push(json!({
                        "name": "Range", "in": "header", "schema": { "type": "string" },
                        "description": "One range of bytes (RFC 9110 §14). It may cut a character.",
                    }));
                    for status in [StatusCode::OK, StatusCode::PARTIAL_CONTENT] {
                        let content = json!({ *media_type: { "schema": { "type": "string" } } });
                        let answer = json!({ "description": words(status), "content": content });
                        responses.insert(status.as_u16().to_string(), answer);
                    }
                }
                Detail::Frames(client, server) => {
                    let status = StatusCode::SWITCHING_PROTOCOLS;
                    responses.insert(
                        status.as_u16().to_string(),
                        json!({ "description": words(status) }),
                    );
                    operation["x-websocket"] =
                        json!({ "client": client(generator), "server": server(generator) });
                }
            }
        }
        let problem = schema_of::<Problem>(generator);
        responses.insert(
            "default".to_owned(),
            json!({
                "description": "A problem (RFC 9457)",
                "content": { "application/problem+json": { "schema": problem } },
            }),
        );
        operation["responses"] = Value::Object(responses);
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        operation
    }
}

/// The schema itself, not a reference to it: its fields are wanted one by one.
fn schema_whole<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    T::json_schema(generator).to_value()
}

fn words(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("An answer")
}

fn path_parameters(path: &str) -> impl Iterator<Item = Value> {
    path.split('/').filter_map(|segment| {
        let name = segment
            .strip_prefix('{')?
            .strip_suffix('}')?
            .trim_start_matches('*');
        Some(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
    })
}

fn query_parameters(schema: &Value) -> Vec<Value> {
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let fields = schema["properties"].as_object();
    let parameter = |(name, field): (&String, &Value)| json!({ "name": name, "in": "query", "required": required(name), "schema": field });
    fields.into_iter().flatten().map(parameter).collect()
}

/// The whole document.
fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for call in super::api::calls() {
        let operation = call.operation(&mut generator);
        // A path of OpenAPI has no mark for a parameter that takes the rest.
        let path = call.path.replace("{*", "{");
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[call.method] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Runloom",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs of LLM agents, live and on record. docs/protocol.md explains ops, frames and the fold.",
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{}, { "token": [] }],
    })
}

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| openapi().to_string().into());

/// `GET /api/openapi.json`
pub(super) async fn document() -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], DOCUMENT.clone()).into_response()
}
