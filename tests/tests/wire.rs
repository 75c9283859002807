//! HTTP/1.1 messages as bytes, for what stands between a process under test and the table.
//!
//! Invariant: a message is handed on byte for byte, and read for nothing but what a proxy has to know of it.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One side of a connection.
#[derive(Debug)]
pub struct Wire {
    pub stream: TcpStream,
    /// What was read of the next message.
    ahead: Vec<u8>,
}

/// A request or a response, whole.
#[derive(Debug)]
pub struct Message {
    pub bytes: Vec<u8>,
    /// Where the body begins.
    body: usize,
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        // A proxy must not be what a request waits for.
        let _ = stream.set_nodelay(true);
        Self { stream, ahead: Vec::new() }
    }

    /// The next message; `None` at the end of the connection.
    pub async fn message(&mut self) -> Option<Message> {
        loop {
            if let Some(body) = self.ahead.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4) {
                let head = String::from_utf8_lossy(&self.ahead[..body]).to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
                let end = body + length.unwrap_or(0);
                while self.ahead.len() < end {
                    self.more().await?;
                }
                let rest = self.ahead.split_off(end);
                return Some(Message { bytes: std::mem::replace(&mut self.ahead, rest), body });
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Option<()> {
        match self.stream.read_buf(&mut self.ahead).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }

    /// Sends bytes; whether they went.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }
}

impl Message {
    /// The status of a response.
    pub fn status(&self) -> u16 {
        std::str::from_utf8(&self.bytes[9..12]).unwrap().parse().unwrap()
    }

    /// The JSON that it carries; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes[self.body..]).unwrap_or_default()
    }

    /// Whether it is a write that gives back what was charged: only such a write leaves the item's `expires_at` as it is.
    pub fn gives_back(&self) -> bool {
        let text = String::from_utf8_lossy(&self.bytes);
        text.contains("UpdateItem") && !text.contains("expires_at")
    }
}
