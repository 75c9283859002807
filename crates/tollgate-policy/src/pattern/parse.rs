//! Reading a `match`. Invariant: a segment is a literal, a parameter or a rest as a whole, and nothing follows a rest.

use super::{Methods, Segment};
use crate::rate::Problem;
use crate::suggest;

pub(super) const EXAMPLE: &str =
    "write a method and a path, like \"POST /api/orders\", \"GET,HEAD /items/{id}\" or \"* /api/*\"";

/// The methods before the path: one, a list, `*` or `ANY`.
pub(super) fn methods(text: &str) -> Result<Methods, Problem> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    if let ["*" | "ANY"] = names[..] {
        return Ok(Methods::Any);
    }
    let mut list: Vec<String> = Vec::new();
    for name in names {
        // RFC 9110 section 5.6.2: a method is a token, and section 9.1: it is case-sensitive.
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&b);
        if name.is_empty() || name == "ANY" || !name.bytes().all(token) {
            return Err(Problem::new(format!("{name:?} is not a method"), EXAMPLE));
        }
        if name.bytes().any(|b| b.is_ascii_lowercase()) {
            let message = format!("method `{name}` is not in upper case; methods are compared with regard to case");
            return Err(Problem::new(message, format!("write `{}`", name.to_ascii_uppercase())));
        }
        if list.iter().any(|earlier| earlier == name) {
            return Err(Problem::new(format!("method `{name}` is given twice"), "write each method once"));
        }
        list.push(name.to_owned());
    }
    Ok(Methods::Only(list))
}

/// The path of a pattern.
pub(super) fn path(path: &str) -> Result<Vec<Segment>, Problem> {
    if matches!(path, "*" | "/*" | "/**") {
        return Ok(vec![Segment::Anything]);
    }
    let Some(inner) = path.strip_prefix('/') else {
        return Err(Problem::new(format!("path `{path}` does not start with `/`"), format!("write `/{path}`")));
    };
    if path.contains(['?', '#']) {
        let message = "a pattern matches the path only, never the query";
        return Err(Problem::new(message, "remove everything from `?` or `#` on"));
    }
    let texts: Vec<&str> = inner.split('/').collect();
    let last = texts.len() - 1;
    let segments = texts.iter().enumerate().map(|(i, text)| segment(text, i == last));
    let segments = segments.collect::<Result<Vec<_>, _>>()?;
    let mut seen: Vec<&str> = Vec::new();
    for segment in &segments {
        if let Segment::Param(name) | Segment::Rest(Some(name)) = segment {
            if seen.contains(&name.as_str()) {
                return Err(Problem::new(
                    format!("parameter {{{name}}} occurs twice"),
                    "give each parameter its own name",
                ));
            }
            seen.push(name);
        }
    }
    Ok(segments)
}

fn segment(text: &str, is_last: bool) -> Result<Segment, Problem> {
    if is_last && matches!(text, "*" | "**") {
        return Ok(Segment::Rest(None));
    }
    if text.is_empty() && !is_last {
        return Err(Problem::new("the path has an empty segment (`//`)", "write single slashes"));
    }
    if !text.contains(['{', '}', '*']) {
        return Ok(Segment::Literal(text.to_owned()));
    }
    let name = text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).ok_or_else(|| {
        let help = "write `{name}` for one whole segment, or `*` or `{name+}` as the last one for any rest";
        Problem::new(format!("`{text}` is neither a literal segment nor a parameter"), help)
    })?;
    let (name, greedy) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if name.is_empty() || !name.bytes().all(allowed) {
        let message = format!("`{text}` is not the name of a parameter");
        return Err(Problem::new(message, "use letters, digits, `_` and `-`, like {id}"));
    }
    match (greedy, is_last) {
        (false, _) => Ok(Segment::Param(name.to_owned())),
        (true, true) => Ok(Segment::Rest(Some(name.to_owned()))),
        (true, false) => Err(Problem::new(
            format!("`{text}` takes the rest of the path, so nothing can follow it"),
            format!(
                "write {} for one segment, or end the path there",
                suggest::quoted([format!("{{{name}}}").as_str()])
            ),
        )),
    }
}
