//! An HTTP event as AWS writes it, read leniently.
//!
//! Invariant: a field with another type than documented counts as absent and never fails the event, and what looks like
//! an HTTP event in any way is one, so that nothing that came over HTTP is taken for a direct invocation.
//!
//! Formats: [REST APIs](https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html),
//! [HTTP APIs](https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html),
//! [function URLs](https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html),
//! [load balancers](https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html).

use serde_json::{Map, Value};

/// Which kind of HTTP event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// API Gateway, payload format 1.0: REST APIs, and HTTP APIs that ask for it.
    Version1,
    /// API Gateway HTTP APIs and function URLs, payload format 2.0.
    Version2,
    /// An Application Load Balancer.
    LoadBalancer,
    /// HTTP in some way, but none of these: other senders, or an event that was tampered with.
    Unknown,
}

/// One HTTP event.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    fields: &'a Map<String, Value>,
    kind: Kind,
}

impl<'a> Event<'a> {
    /// `value` as an HTTP event, if it is one.
    #[must_use]
    pub fn recognise(value: &'a Value) -> Option<Self> {
        let fields = value.as_object()?;
        // None of these is a field of a decision.
        let signs = ["requestContext", "httpMethod", "rawPath", "routeKey", "headers", "multiValueHeaders"];
        if !signs.iter().any(|sign| fields.contains_key(*sign)) {
            return None;
        }
        let context = |name: &str| fields.get("requestContext").and_then(|c| c.get(name)).is_some();
        let kind = if context("elb") {
            Kind::LoadBalancer
        } else if context("http") {
            Kind::Version2
        } else if context("identity") {
            Kind::Version1
        } else {
            Kind::Unknown
        };
        Some(Self { fields, kind })
    }

    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The method, empty if it has none.
    #[must_use]
    pub fn method(&self) -> &'a str {
        match self.kind {
            Kind::Version2 => self.context("http").and_then(|http| http.get("method")).and_then(Value::as_str),
            _ => self.text("httpMethod"),
        }
        .unwrap_or_default()
    }

    /// The path within the stage, empty if it has none.
    #[must_use]
    pub fn path(&self) -> &'a str {
        if self.kind != Kind::Version2 {
            return self.text("path").unwrap_or_default();
        }
        let path = self.text("rawPath").unwrap_or_default();
        // Format 2.0 has a named stage in the path, format 1.0 has not.
        let stage = self.context("stage").and_then(Value::as_str).unwrap_or_default();
        let within = path.strip_prefix('/').and_then(|path| path.strip_prefix(stage));
        within.filter(|rest| rest.starts_with('/')).unwrap_or(path)
    }

    /// The body as it was sent, empty if there is none.
    ///
    /// # Errors
    ///
    /// What to tell the caller if it is no text.
    pub fn body(&self) -> Result<&'a str, &'static str> {
        match self.fields.get("body") {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err("the event's body is not text"),
        }
    }

    /// Whether the body is base64 text.
    #[must_use]
    pub fn is_base64(&self) -> bool {
        self.fields.get("isBase64Encoded").and_then(Value::as_bool).unwrap_or_default()
    }

    /// Whether the response has to give its headers as lists: a load balancer whose target group is set to that.
    #[must_use]
    pub fn wants_multi_value_headers(&self) -> bool {
        self.kind == Kind::LoadBalancer && self.fields.contains_key("multiValueHeaders")
    }

    /// An entry of `requestContext`, which AWS alone writes.
    #[must_use]
    pub fn context(&self, name: &str) -> Option<&'a Value> {
        self.fields.get("requestContext")?.get(name)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.fields.get(name).and_then(Value::as_str)
    }
}
