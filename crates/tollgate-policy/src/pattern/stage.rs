//! Paths as API Gateway's stages are put in front of them.
//!
//! Invariant: only a whole first segment that is the stage's name goes.

/// A path without the stage that API Gateway puts in front of it, as in `$context.path` and the raw path of an event; `$default` is in
/// none. Policies are written with the paths of the API's routes
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-stages.html>).
#[must_use]
pub fn without_stage<'a>(path: &'a str, stage: Option<&str>) -> &'a str {
    let rest = stage.filter(|stage| *stage != "$default").and_then(|stage| path.strip_prefix('/')?.strip_prefix(stage));
    match rest {
        Some("") => "/",
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}
