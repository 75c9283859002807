//! A policy in an object of S3 (`GetObject`). Invariant: an object that has not changed is not sent again
//! (`If-None-Match`).

use super::aws::{Call, Client, Kind};
use super::reader::Fetched;
use super::{PolicySource, ReaderOptions, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const S3: Kind = Kind { host: "s3", signed_as: "s3", endpoint_variable: "AWS_ENDPOINT_URL_S3" };

/// All but unreserved characters and the slash.
const KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

#[derive(Debug)]
pub(super) struct Object {
    client: Client,
    url: String,
    etag: Option<String>,
}

impl Object {
    pub(super) async fn open(place: &PolicySource, bucket: &str, key: &str, options: &ReaderOptions) -> Result<Self> {
        let client = Client::open(place, S3, options).await?;
        let key = utf8_percent_encode(key, KEY);
        // A bucket with dots in its name has no certificate as a host name.
        let host = client.regional_host_under(bucket).filter(|_| !bucket.contains('.'));
        let url = match host {
            Some(host) => format!("{host}/{key}"),
            None => format!("{}/{bucket}/{key}", client.endpoint()),
        };
        Ok(Self { client, url, etag: None })
    }

    /// Has the object sent whole the next time.
    pub(super) fn forget(&mut self) {
        self.etag = None;
    }

    pub(super) async fn fetch(&mut self) -> Result<Fetched> {
        let etag = self.etag.take();
        let headers = etag.iter().map(|etag| ("if-none-match", etag.as_str())).collect();
        let call = Call { action: "s3:GetObject", method: "GET", url: self.url.clone(), headers, body: Vec::new() };
        let answer = self.client.call(call).await?;
        let unchanged = answer.status == 304;
        self.etag = answer.headers.get("etag").map(str::to_owned).or(etag.filter(|_| unchanged));
        let bytes = (!unchanged).then_some(answer.body);
        Ok(Fetched { bytes, version: self.etag.clone(), poll_after: None })
    }
}
