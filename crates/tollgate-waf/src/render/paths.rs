//! Which requests are under a path, however they are spelled.
//!
//! Origins differ in what they take for `/api/auth`: they decode once or twice, fold case, merge slashes, resolve `..`, take `\` for
//! `/`, cut off `;parameters`, add `.json`. Whoever finds a spelling that his origin reads and the rule does not has no limit. So a
//! request counts if one of these holds:
//!
//! 1. decoded, normalised and in small letters it is the path, or begins with it and a slash: what people mean by the rule;
//! 2. decoded as far as origins do and not normalised, its first segments are those of the path, with any slashes between, and
//!    whatever ends the last one but a letter, a digit, `_` or `-`;
//! 3. it has what origins resolve or cut off, a `.` or `..` segment or a `;`, and the path's segments in their order: however the
//!    origin does it, it could come out there. Browsers and libraries resolve dots before they send.
//!
//! Normalising alone is not enough, since no two normalise alike: Tomcat takes `/x/y/..;/../api/auth` and `/;a%2fb/api/auth` for
//! `/api/auth`, and WAF the one for `/x/y/api/auth`, the other for `/;a/b/api/auth`.

use crate::model::{Field, Position, Statement, Transform};

/// As a person reads it.
const READ: &[Transform] = &[Transform::UrlDecode, Transform::NormalizePath, Transform::Lowercase];

/// Decoded by whoever decodes twice. What was decoded enough after once stays as it is: a path of a policy has no `%`.
const DECODED: &[Transform] = &[Transform::UrlDecodeUni, Transform::UrlDecode, Transform::Lowercase];

/// Slashes of any kind.
const SLASHES: &str = r"[/\\]+";

/// What can follow the last segment.
const END: &str = "(?:[^a-z0-9_-]|$)";

/// A `.` or `..` segment, or parameters of one, which may hide slashes.
const CROOKED: &str = r";|[/\\]\.\.?(?:[/\\]|$)";

/// Whatever lies between two segments of such a path; also line feeds, which `.` is not.
const AND_LATER: &str = r"(?:[/\\;][\d\D]*)?[/\\]";

/// The requests under one of these paths; `None` if there are none.
pub(super) fn under_any(paths: &[String]) -> Option<Statement> {
    let mut any: Vec<Statement> = paths.iter().flat_map(|path| read(path)).collect();
    any.extend(paths.iter().map(|path| decoded(&format!("^{SLASHES}{}{END}", joined(path, SLASHES)))));
    let crooked = paths.iter().map(|path| decoded(&format!(r"[/\\]{}{END}", joined(path, AND_LATER))));
    let crooked = Statement::any(crooked.collect())?;
    any.push(Statement::All(vec![decoded(CROOKED), crooked]));
    Statement::any(any)
}

fn read(path: &str) -> [Statement; 2] {
    let is = |position, text| Statement::Bytes { field: Field::Path, position, text, transforms: READ };
    [is(Position::Exactly, path.to_owned()), is(Position::StartsWith, format!("{path}/"))]
}

fn decoded(expression: &str) -> Statement {
    Statement::Regex { field: Field::Path, expression: expression.to_owned(), transforms: DECODED }
}

/// The segments of a path as an expression.
fn joined(path: &str, between: &str) -> String {
    path.split('/').filter(|segment| !segment.is_empty()).map(literal).collect::<Vec<_>>().join(between)
}

/// Text that stands for itself.
pub(super) fn literal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '_' | '~' | '%' | '@' | '\'' | ',' | ':' | '=' | '&' | '!' | '/') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
