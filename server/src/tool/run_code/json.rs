//! From a program's value to JSON without loss, or why that cannot be.

use rquickjs::object::Filter;
use rquickjs::{Array, Coerced, Ctx, Error, Object, Type, Value};

use super::watch::Watch;

/// Deeper values are refused: they could not be read again.
const LEVELS: usize = 100;

/// Numbers up to here are whole numbers in JSON, too.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Why a value is no JSON.
#[derive(Debug)]
pub(super) enum NotJson {
    /// What it holds, and where.
    Holds(String),
    /// The engine says something else: reading it threw, or the program is over.
    Engine(Error),
}

impl From<Error> for NotJson {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// Makes JSON of values, and counts what that puts out.
pub(super) struct Reader<'js, 'a> {
    watch: &'a Watch,
    /// The prototype of plain objects.
    plain: Option<Object<'js>>,
    /// What the value lies within.
    within: Vec<Object<'js>>,
    path: String,
}

impl<'js, 'a> Reader<'js, 'a> {
    pub(super) fn new(ctx: &Ctx<'js>, watch: &'a Watch) -> rquickjs::Result<Self> {
        Ok(Self {
            watch,
            plain: Object::new(ctx.clone())?.get_prototype(),
            within: Vec::new(),
            path: String::new(),
        })
    }

    /// Reads a whole value.
    pub(super) fn read(&mut self, value: &Value<'js>) -> Result<serde_json::Value, NotJson> {
        use serde_json::Value as Json;
        Ok(match value.type_of() {
            Type::Null => Json::Null,
            Type::Bool => Json::Bool(value.as_bool().unwrap_or_default()),
            Type::Int => {
                self.count(8)?;
                Json::from(value.as_int().unwrap_or_default())
            }
            Type::Float => {
                self.count(8)?;
                self.number(value.as_float().unwrap_or(f64::NAN))?
            }
            Type::String => Json::String(self.text(value)?),
            Type::Array => match value.as_array() {
                Some(array) => self.array(array)?,
                None => return Err(self.holds("something unknown")),
            },
            Type::Object | Type::Exception => match value.as_object() {
                Some(object) => self.object(object)?,
                None => return Err(self.holds("something unknown")),
            },
            Type::Undefined => return Err(self.holds("undefined")),
            Type::BigInt => return Err(self.holds("a BigInt; make a string of it")),
            Type::Symbol => return Err(self.holds("a symbol")),
            Type::Function | Type::Constructor => return Err(self.holds("a function")),
            Type::Promise => return Err(self.holds("a promise; await it first")),
            Type::Proxy => return Err(self.holds("a proxy")),
            _ => return Err(self.holds("something unknown")),
        })
    }

    fn holds(&self, what: &str) -> NotJson {
        NotJson::Holds(match self.path.is_empty() {
            true => format!("it is {what}"),
            false => format!("it holds, at {}, {what}", self.path),
        })
    }

    /// Counts bytes of the output; an error once the program has to end.
    fn count(&self, bytes: usize) -> Result<(), NotJson> {
        match self.watch.puts_out(bytes) && !self.watch.is_over() {
            true => Ok(()),
            false => Err(NotJson::Engine(Error::Unknown)),
        }
    }

    fn number(&self, number: f64) -> Result<serde_json::Value, NotJson> {
        let is_whole = number.fract() == 0.0 && number.abs() <= LARGEST_EXACT;
        if is_whole && !(number == 0.0 && number.is_sign_negative()) {
            return Ok(serde_json::Value::from(number as i64));
        }
        serde_json::Number::from_f64(number)
            .map(serde_json::Value::Number)
            .ok_or_else(|| {
                self.holds(if number.is_nan() {
                    "NaN"
                } else {
                    "an infinite number"
                })
            })
    }

    fn text(&self, value: &Value<'js>) -> Result<String, NotJson> {
        let text = value.as_string().map(rquickjs::String::to_string);
        match text {
            Some(Ok(text)) => {
                self.count(text.len())?;
                Ok(text)
            }
            Some(Err(Error::Utf8(_))) => Err(self.holds("a text with half of a surrogate pair")),
            Some(Err(error)) => Err(error.into()),
            None => Err(self.holds("something unknown")),
        }
    }

    fn enter(&mut self, object: &Object<'js>) -> Result<(), NotJson> {
        if self.within.contains(object) {
            return Err(self.holds("an object that it lies within (a cycle)"));
        }
        if self.within.len() >= LEVELS {
            return Err(self.holds(&format!("more than {LEVELS} levels")));
        }
        self.within.push(object.clone());
        Ok(())
    }

    fn array(&mut self, array: &Array<'js>) -> Result<serde_json::Value, NotJson> {
        self.enter(array.as_object())?;
        let mut items = Vec::new();
        let before = self.path.len();
        for place in 0..array.len() {
            self.count(2)?;
            self.path.push_str(&format!("[{place}]"));
            let item: Value<'js> = array.get(place)?;
            items.push(self.read(&item)?);
            self.path.truncate(before);
        }
        self.within.pop();
        Ok(serde_json::Value::Array(items))
    }

    fn object(&mut self, object: &Object<'js>) -> Result<serde_json::Value, NotJson> {
        let prototype = object.get_prototype();
        if prototype.is_some() && prototype != self.plain {
            let class = class_of(object);
            return Err(self.holds(&format!("an object of the class {class}, not a plain one")));
        }
        self.enter(object)?;
        if object.own_keys::<Value<'js>>(Filter::new().symbol()).len() > 0 {
            return Err(self.holds("an object with a symbol as a name"));
        }
        let mut fields = serde_json::Map::new();
        let before = self.path.len();
        for key in object.own_keys::<Value<'js>>(Filter::new().string().enum_only()) {
            let key = key?;
            let name = self.text(&key)?;
            self.path.push_str(&match self.path.is_empty() {
                true => name.clone(),
                false => format!(".{name}"),
            });
            let field: Value<'js> = object.get(key)?;
            fields.insert(name, self.read(&field)?);
            self.path.truncate(before);
        }
        self.within.pop();
        Ok(serde_json::Value::Object(fields))
    }
}

/// The name of an object's class, as far as it has one.
fn class_of(object: &Object<'_>) -> String {
    let name = object
        .get::<_, Object<'_>>("constructor")
        .and_then(|constructor| constructor.get::<_, Coerced<String>>("name"));
    match name {
        Ok(Coerced(name)) if !name.is_empty() => name.chars().take(60).collect(),
        _ => {
            // What the look-up threw is of no interest.
            object.ctx().catch();
            "without a name".to_owned()
        }
    }
}
