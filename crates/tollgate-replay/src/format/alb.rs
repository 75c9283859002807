//! One line of the access log of an Application Load Balancer.
//!
//! ```text
//! type time elb client:port target:port request_processing_time target_processing_time response_processing_time
//! elb_status_code target_status_code received_bytes sent_bytes "request" "user_agent" ssl_cipher ssl_protocol
//! target_group_arn "trace_id" "domain_name" "chosen_cert_arn" matched_rule_priority request_creation_time
//! "actions_executed" …
//! ```
//!
//! Invariant: what follows the request is optional, since AWS adds fields at the end and older logs have fewer. Format:
//! <https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html#access-log-entry-format>.

use super::cursor::{Cursor, number};
use super::request_line;
use crate::date;
use crate::entry::{Entry, Fields, Flaw, LineError};
use crate::escape::text;
use std::net::{IpAddr, SocketAddr};

/// The values of the first field.
const TYPES: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// What stands behind the request, in order; those in quotes are `true`.
const AFTER: [(&str, bool); 9] = [
    ("user_agent", true),
    ("ssl_cipher", false),
    ("ssl_protocol", false),
    ("target_group_arn", false),
    ("trace_id", true),
    ("domain_name", true),
    ("chosen_cert_arn", true),
    ("matched_rule_priority", false),
    ("request_creation_time", false),
];

/// Whether a line begins as one of this format does.
pub(super) fn looks_like(line: &[u8]) -> bool {
    let mut words = line.splitn(3, |b| *b == b' ');
    let kind = words.next().is_some_and(|kind| TYPES.contains(&kind));
    kind && words.next().is_some_and(|time| date::iso(time).is_some())
}

pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, LineError> {
    let mut rest = Cursor::new(line);
    if !TYPES.contains(&rest.word("type")?) {
        return Err(LineError::whole(Flaw::Lacks("type of connection (http, https, h2, grpcs, ws, wss)")));
    }
    let start = rest.at;
    let answered = date::iso(rest.word("time")?).ok_or_else(|| rest.error(start, Flaw::TimeOf("time")))?;
    rest.word("elb")?;
    let client_ip = address(rest.word("client")?);
    for field in ["target", "request_processing_time", "target_processing_time", "response_processing_time"] {
        rest.word(field)?;
    }
    // `-` if the connection was closed before there was an answer.
    let status = match rest.rest() {
        [b'-', b' ', ..] => rest.word("elb_status_code").map(|_| 0)?,
        _ => rest.status()?,
    };
    rest.word("target_status_code")?;
    rest.word("received_bytes")?;
    let size = number(rest.word("sent_bytes")?);
    // A request that cannot be read is logged as `- http://host:port- `.
    let request = request_line(rest.quoted("request")?).filter(|request| request.method != "-");
    let mut fields = Fields::default();
    let mut time = answered;
    for (name, is_quoted) in AFTER {
        let start = rest.at;
        let Ok(value) = (if is_quoted { rest.quoted(name) } else { rest.word(name) }) else { break };
        if name == "request_creation_time" {
            // When the request came: limits are asked then, and of a WebSocket `time` is when it was closed.
            time = date::iso(value).ok_or_else(|| rest.error(start, Flaw::TimeOf(name)))?;
        } else {
            fields.push(name, text(value));
        }
    }
    Ok(Entry { time, client_ip, user: None, request, status, size, fields, waf: None })
}

/// The address of `192.168.131.39:2817`; of IPv6, with brackets or without.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let whole = text.parse::<SocketAddr>().map(|address| address.ip()).ok();
    whole.or_else(|| text.parse().ok()).or_else(|| text.rsplit_once(':')?.0.parse().ok())
}
