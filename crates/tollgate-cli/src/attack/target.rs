//! The development server that is attacked: one of our own on the embedded table and a manual clock, or the one that is named.
//!
//! Invariant: its address is one of this machine's.

use crate::args::{ClockKind, DevArgs, GuessArgs, Json, Target as Table};
use crate::dev::{Dev, router};
use crate::error::{CliError, Result};
use axum::body::{Body, to_bytes};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// The longest answer that is read.
const LONGEST: usize = 1 << 20;

/// What was answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
    /// The cookie that it sets, without attributes.
    pub(super) cookie: Option<String>,
}

/// A server, and what it takes to ask it.
#[derive(Clone)]
pub(super) struct Target {
    url: String,
    client: Client<HttpConnector, Body>,
}

impl Target {
    /// The server that `args` names, or a new one.
    pub(super) async fn of(args: &GuessArgs) -> Result<Self> {
        let url = match &args.url {
            Some(url) => here(url)?,
            None => start(args).await?,
        };
        Ok(Self { url, client: Client::builder(TokioExecutor::new()).build_http() })
    }

    /// Asks as `who`, from the address `from`.
    pub(super) async fn ask(
        &self,
        (method, path): (&str, &str),
        (who, from): (Option<&str>, &str),
        cookie: Option<&str>,
        body: &Value,
    ) -> Result<Answer> {
        let failed = |e: &dyn std::fmt::Display| CliError::System(format!("{} gives no answer: {e}", self.url));
        let mut request = axum::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        request = request.header("content-type", "application/json").header("x-dev-source-ip", from);
        if let Some(who) = who {
            request = request.header("x-dev-principal", format!("user={who}"));
        }
        if let Some(cookie) = cookie {
            request = request.header("cookie", cookie);
        }
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Body::from(text)).map_err(|e| failed(&e))?;
        let (parts, body) = self.client.request(request).await.map_err(|e| failed(&e))?.into_parts();
        let bytes = to_bytes(Body::new(body), LONGEST).await.map_err(|e| failed(&e))?;
        let cookie = parts.headers.get("set-cookie").and_then(|value| value.to_str().ok());
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).map(str::to_owned);
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(Answer { status: parts.status.as_u16(), body, cookie })
    }

    /// Moves the server's clock.
    pub(super) async fn advance(&self, by: Duration) -> Result<()> {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        let moved = self.dev("POST", "/dev/clock", &json!({ "advance_ms": ms })).await?;
        if moved.status == 200 {
            return Ok(());
        }
        Err(CliError::Input(format!("{} has the system's clock; start it with --clock manual", self.url)))
    }

    /// Asks for what only a development server has.
    pub(super) async fn dev(&self, method: &str, path: &str, body: &Value) -> Result<Answer> {
        self.ask((method, path), (None, "127.0.0.1"), None, body).await
    }
}

/// An address of this machine, as it is written.
fn here(url: &str) -> Result<String> {
    let elsewhere =
        || CliError::Input(format!("{url} is not http://ADDRESS:PORT of this machine; nobody else is attacked"));
    let authority = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/')).ok_or_else(elsewhere)?;
    let address: SocketAddr = authority.replace("localhost", "127.0.0.1").parse().map_err(|_| elsewhere())?;
    if address.ip().is_loopback() { Ok(format!("http://{address}")) } else { Err(elsewhere()) }
}

/// A server of our own, for as long as this process runs.
async fn start(args: &GuessArgs) -> Result<String> {
    let address = SocketAddr::from((IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
    let target = Table { endpoint_url: None, region: None, table: "tollgate".to_owned() };
    let args = DevArgs {
        addr: address,
        clock: ClockKind::Manual,
        profiles: None,
        issuer: None,
        audience: Vec::new(),
        algorithm: Vec::new(),
        policy: args.policy.clone(),
        target,
        json: Json { json: true },
    };
    let dev = Box::pin(Dev::start(&args)).await?;
    let taken = |e: std::io::Error| CliError::System(format!("cannot listen on {address}: {e}"));
    let listener = TcpListener::bind(address).await.map_err(taken)?;
    let url = format!("http://{}", listener.local_addr().map_err(taken)?);
    let service = router(Arc::new(dev)).into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    Ok(url)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::here;

    #[test]
    fn nobody_elsewhere_is_attacked() {
        for url in ["http://127.0.0.1:8787", "http://localhost:8787/", "http://[::1]:8787"] {
            assert!(here(url).is_ok(), "{url}");
        }
        for url in [
            "http://example.com:80",
            "http://203.0.113.7:80",
            "https://127.0.0.1:8787",
            "http://127.0.0.1.example.com:80",
            "http://localhost.example.com:80",
            "http://127.0.0.1:80@example.com",
        ] {
            assert!(here(url).is_err(), "{url}");
        }
    }
}
