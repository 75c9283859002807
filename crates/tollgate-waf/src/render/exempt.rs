//! Which requests are exempt: method and path by their bytes. Invariant: no transformation, so that no other spelling of an exempt
//! path, and no path that only passes through one, is exempt.

use super::paths::literal;
use crate::model::{Field, Position, Statement, Transform};
use tollgate_policy::{PathPart, Pattern};

/// Whatever is there, byte by byte.
const NONE: &[Transform] = &[];

/// A segment that a parameter stands for: nothing in it that an origin could decode, resolve or cut off.
const SEGMENT: &str = "[A-Za-z0-9_~-][A-Za-z0-9._~-]*";

/// The requests of an exemption, behind a base path or none; `None` if it is every request, which a policy with `[edge]` cannot have.
pub(super) fn requests(base: &str, pattern: &Pattern) -> Option<Statement> {
    let parts = pattern.path();
    let methods = pattern.methods().map(|methods| {
        let is = |method: &String| exactly(Field::Method, method.clone());
        Statement::any(methods.iter().map(is).collect())
    });
    let conditions = [parts.as_deref().map(|parts| path(base, parts)), methods.flatten()];
    Statement::all(conditions.into_iter().flatten().collect())
}

fn path(base: &str, parts: &[PathPart<'_>]) -> Statement {
    let mut plain = base.to_owned();
    let mut expression = format!("^{}", literal(base));
    let mut is_plain = true;
    for part in parts {
        match part {
            PathPart::Literal(text) => {
                plain = format!("{plain}/{text}");
                expression = format!("{expression}/{}", literal(text));
            }
            PathPart::Rest => {
                is_plain = false;
                expression = format!("{expression}(?:/{SEGMENT})+");
            }
            _ => {
                is_plain = false;
                expression = format!("{expression}/{SEGMENT}");
            }
        }
    }
    if is_plain {
        return exactly(Field::Path, plain);
    }
    Statement::Regex { field: Field::Path, expression: expression + "$", transforms: NONE }
}

fn exactly(field: Field, text: String) -> Statement {
    Statement::Bytes { field, position: Position::Exactly, text, transforms: NONE }
}
