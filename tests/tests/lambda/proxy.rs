//! A way to the table on which charges pass and what gives them back is kept, until somebody lets it go on.

use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A request that was kept on its way.
pub struct Kept {
    bytes: Vec<u8>,
    upstream: Arc<str>,
}

impl Kept {
    /// Lets it arrive, late; the status of the answer.
    pub async fn deliver(self) -> u16 {
        let mut server = TcpStream::connect(&*self.upstream).await.unwrap();
        server.write_all(&self.bytes).await.unwrap();
        let answer = message(&mut server).await.unwrap();
        std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap()
    }
}

/// Starts the proxy in front of `upstream`; every refund goes to the receiver instead of the table.
pub async fn keeping_refunds(upstream: &str) -> (String, mpsc::UnboundedReceiver<Kept>) {
    let upstream: Arc<str> = upstream.trim_start_matches("http://").trim_end_matches('/').into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (kept, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(connection(client, upstream.clone(), kept.clone()));
        }
    });
    (url, received)
}

async fn connection(mut client: TcpStream, upstream: Arc<str>, kept: mpsc::UnboundedSender<Kept>) {
    let mut server = TcpStream::connect(&*upstream).await.unwrap();
    while let Some(bytes) = message(&mut client).await {
        if is_refund(&bytes) {
            let _ = kept.send(Kept { bytes, upstream: upstream.clone() });
            continue;
        }
        server.write_all(&bytes).await.unwrap();
        let Some(answer) = message(&mut server).await else { return };
        if client.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// Only what gives back leaves the item's `expires_at` as it is.
fn is_refund(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    text.contains("UpdateItem") && !text.contains("expires_at")
}

/// One HTTP message with its body; `None` at the end of the connection.
async fn message(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        bytes.push(from.read_u8().await.ok()?);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    from.read_exact(&mut body).await.ok()?;
    bytes.append(&mut body);
    Some(bytes)
}
