//! What `console` shows of values: for people, so without a promise of completeness.

use rquickjs::{Coerced, Ctx, Error, Value};

use super::json::{NotJson, Reader};
use super::watch::Watch;

/// One line of the console.
pub(super) fn line<'js>(ctx: &Ctx<'js>, watch: &Watch, values: &[Value<'js>]) -> Result<String, Error> {
    let mut line = String::new();
    for value in values {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&shown(ctx, watch, value)?);
    }
    line.push('\n');
    Ok(line)
}

/// A text as it is, JSON where the value is that, else what the language makes of it.
fn shown<'js>(ctx: &Ctx<'js>, watch: &Watch, value: &Value<'js>) -> Result<String, Error> {
    if let Some(text) = value.as_string() {
        return lossy(ctx, watch, text.to_string());
    }
    if value.is_error() {
        return Ok(error_words(value));
    }
    if value.is_object() && !value.is_function() {
        match Reader::new(ctx, watch)?.read(value) {
            Ok(json) => return Ok(json.to_string()),
            Err(NotJson::Engine(error)) if watch.why().is_some() => return Err(error),
            Err(_) => {
                ctx.catch();
            }
        }
    }
    if let Some(symbol) = value.as_symbol() {
        let description = symbol
            .description()
            .and_then(|words| words.get::<Coerced<String>>());
        return Ok(format!(
            "Symbol({})",
            description.map_or_else(|_| String::new(), |words| words.0)
        ));
    }
    let text = value.get::<Coerced<String>>().map(|text| text.0);
    lossy(ctx, watch, text)
}

fn lossy(ctx: &Ctx<'_>, watch: &Watch, text: Result<String, Error>) -> Result<String, Error> {
    match text {
        Ok(text) => Ok(text),
        Err(error) if watch.why().is_some() => Err(error),
        Err(_) => {
            ctx.catch();
            Ok("[a value that cannot be shown]".to_owned())
        }
    }
}

/// An error that was thrown: its name, what it says, and where it came from.
pub(super) fn error_words(value: &Value<'_>) -> String {
    let ctx = value.ctx();
    let Some(object) = value.as_object().filter(|_| value.is_error()) else {
        let text = value.get::<Coerced<String>>();
        ctx.catch();
        return text.map_or_else(|_| "a value that cannot be shown".to_owned(), |text| text.0);
    };
    let part = |name: &str| {
        let part = object.get::<_, Coerced<String>>(name).map(|part| part.0);
        ctx.catch();
        part.unwrap_or_default()
    };
    let (name, message, stack) = (part("name"), part("message"), part("stack"));
    let mut words = match (name.is_empty(), message.is_empty()) {
        (true, _) => message,
        (false, true) => name,
        (false, false) => format!("{name}: {message}"),
    };
    let stack = stack.trim_end();
    if !stack.is_empty() && stack != "undefined" {
        words.push('\n');
        words.push_str(stack);
    }
    words
}
