//! The pages of `tollgate dev`, which are in the executable: the console at `/`, second factors at `/mfa`.
//!
//! Invariant: a page runs and shows what this server serves and nothing else ([`POLICY`]); it has no other way to a figure than the
//! routes that everybody has.

use super::routes::problem;
use axum::extract::Path;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// What a browser may load into a page, and run: scripts of files, none that stands in the page. Pictures may be in an address (`data:`):
/// a QR code is one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A file of a page: its name below `/dev/assets`, type and text.
type File = (&'static str, &'static str, &'static str);

macro_rules! file {
    ($name:literal, $kind:expr) => {
        ($name, $kind, include_str!(concat!("../../assets/", $name)))
    };
}

const FILES: [File; 13] = [
    file!("buckets.js", SCRIPT),
    file!("console.css", STYLE),
    file!("console.js", SCRIPT),
    file!("icon.svg", "image/svg+xml"),
    file!("mfa.js", SCRIPT),
    file!("passkeys.js", SCRIPT),
    file!("scenarios.js", SCRIPT),
    file!("server.js", SCRIPT),
    file!("step-up.js", SCRIPT),
    file!("style.css", STYLE),
    file!("timeline.js", SCRIPT),
    file!("uplot/uPlot.iife.min.js", SCRIPT),
    file!("uplot/uPlot.min.css", STYLE),
];

/// `GET /`.
pub(super) async fn console() -> Response {
    served((HTML, include_str!("../../assets/console.html")))
}

/// `GET /mfa`.
pub(super) async fn mfa() -> Response {
    served((HTML, include_str!("../../assets/mfa.html")))
}

/// `GET /dev/assets/{name}`.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => served((kind, text)),
        None => problem(StatusCode::NOT_FOUND, "no page has such a file"),
    }
}

fn served((kind, text): (&'static str, &'static str)) -> Response {
    const NO_SNIFFING: (HeaderName, &str) = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // The next build of the command may have other ones.
    let asked_again = (header::CACHE_CONTROL, "no-cache");
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        NO_SNIFFING,
        asked_again,
    ];
    (headers, text).into_response()
}
