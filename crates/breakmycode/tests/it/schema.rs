//! Checks a document against a JSON Schema: the part of the language that `breakmycode schema` uses. A word it does not know fails.

use serde_json::Value;

/// What in the document does not fit the schema.
pub(crate) fn faults(document: &Value, schema: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    Checker { root: schema }.check(document, schema, "$", &mut faults);
    faults
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn check(&self, document: &Value, schema: &Value, place: &str, faults: &mut Vec<String>) {
        let schema = match schema {
            Value::Bool(true) => return,
            Value::Bool(false) => return faults.push(format!("{place} must not be there")),
            Value::Object(schema) => schema,
            other => panic!("not a schema: {other}"),
        };
        for (word, argument) in schema {
            match word.as_str() {
                "$schema" | "$defs" | "title" | "description" | "default" => {}
                // Sizes of numbers in Rust; the bounds say the same in words that every validator knows.
                "format" => {}
                "$ref" => {
                    let pointer = argument.as_str().unwrap().strip_prefix('#').unwrap();
                    let target = self
                        .root
                        .pointer(pointer)
                        .unwrap_or_else(|| panic!("{argument} leads nowhere"));
                    self.check(document, target, place, faults);
                }
                "type" => {
                    let types: Vec<&str> = match argument {
                        Value::Array(types) => {
                            types.iter().map(|kind| kind.as_str().unwrap()).collect()
                        }
                        one => vec![one.as_str().unwrap()],
                    };
                    if !types.iter().any(|kind| is_a(document, kind)) {
                        faults.push(format!("{place} is {document}, not {types:?}"));
                    }
                }
                "const" if document != argument => {
                    faults.push(format!("{place} is {document}, not {argument}"))
                }
                "enum" if !argument.as_array().unwrap().contains(document) => {
                    faults.push(format!("{place} is {document}, not one of {argument}"));
                }
                "const" | "enum" => {}
                "minimum" | "maximum" => {
                    let bound = argument.as_f64().unwrap();
                    let beyond = |n: f64| {
                        if word == "minimum" {
                            n < bound
                        } else {
                            n > bound
                        }
                    };
                    if document.as_f64().is_some_and(beyond) {
                        faults.push(format!("{place} is {document}, the {word} is {argument}"));
                    }
                }
                "minItems" | "maxItems" => {
                    let bound = argument.as_u64().unwrap() as usize;
                    let beyond = |n: usize| {
                        if word == "minItems" {
                            n < bound
                        } else {
                            n > bound
                        }
                    };
                    if document.as_array().is_some_and(|items| beyond(items.len())) {
                        faults.push(format!(
                            "{place} has not as many items as {word} {argument} says"
                        ));
                    }
                }
                "required" => {
                    for name in argument.as_array().unwrap() {
                        let name = name.as_str().unwrap();
                        if document.is_object() && document.get(name).is_none() {
                            faults.push(format!("{place} has no {name}"));
                        }
                    }
                }
                "properties" => {
                    for (name, inner) in argument.as_object().unwrap() {
                        if let Some(value) = document.get(name) {
                            self.check(value, inner, &format!("{place}.{name}"), faults);
                        }
                    }
                }
                "items" => {
                    for (index, item) in document.as_array().into_iter().flatten().enumerate() {
                        self.check(item, argument, &format!("{place}[{index}]"), faults);
                    }
                }
                "prefixItems" => {
                    for (index, inner) in argument.as_array().unwrap().iter().enumerate() {
                        if let Some(item) = document.get(index) {
                            self.check(item, inner, &format!("{place}[{index}]"), faults);
                        }
                    }
                }
                "allOf" => {
                    for inner in argument.as_array().unwrap() {
                        self.check(document, inner, place, faults);
                    }
                }
                "anyOf" | "oneOf" => self.choose(document, word, argument, place, faults),
                other => panic!("the schema has a word that is not checked here: {other}"),
            }
        }
    }

    fn choose(
        &self,
        document: &Value,
        word: &str,
        choices: &Value,
        place: &str,
        faults: &mut Vec<String>,
    ) {
        let mut fitting = 0;
        let mut reasons = Vec::new();
        for choice in choices.as_array().unwrap() {
            let mut inner = Vec::new();
            self.check(document, choice, place, &mut inner);
            if inner.is_empty() {
                fitting += 1;
            }
            reasons.extend(inner);
        }
        if fitting == 0 || (word == "oneOf" && fitting > 1) {
            faults.push(format!("{place}: {fitting} of {word} fit: {reasons:?}"));
        }
    }
}

fn is_a(document: &Value, kind: &str) -> bool {
    match kind {
        "null" => document.is_null(),
        "boolean" => document.is_boolean(),
        "string" => document.is_string(),
        "array" => document.is_array(),
        "object" => document.is_object(),
        "number" => document.is_number(),
        "integer" => document.is_i64() || document.is_u64(),
        other => panic!("the schema has a type that is not checked here: {other}"),
    }
}

#[test]
fn a_document_that_does_not_fit_is_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"],
        "properties": {"a": {"$ref": "#/$defs/word"}, "b": {"type": ["integer", "null"], "minimum": 0}, "c": {"items": {"type": "number"}}},
        "$defs": {"word": {"oneOf": [{"const": "x"}, {"enum": ["y", "z"]}]}},
    });
    let count = |document: Value| faults(&document, &schema).len();
    assert_eq!(
        count(serde_json::json!({"a": "x", "b": null, "c": [1, 2.5]})),
        0
    );
    assert_eq!(count(serde_json::json!({"a": "y", "b": 3})), 0);
    assert_eq!(count(serde_json::json!({"b": -1})), 2);
    assert_eq!(
        count(serde_json::json!({"a": "w", "b": 1.5, "c": ["1"]})),
        3
    );
}
