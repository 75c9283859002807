//! A way to the table on which charges pass and what gives them back is kept, until somebody lets it go on.

use crate::wire::{Message, Wire};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A request that was kept on its way.
pub struct Kept {
    request: Message,
    upstream: Arc<str>,
}

impl Kept {
    /// Lets it arrive, late; the status of the answer.
    pub async fn deliver(self) -> u16 {
        let mut server = Wire::new(TcpStream::connect(&*self.upstream).await.unwrap());
        assert!(server.send(&self.request.bytes).await);
        let answer = server.message().await.unwrap();
        assert!(answer.json().is_object(), "DynamoDB answers in JSON, whatever it says");
        answer.status()
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
            tokio::spawn(connection(Wire::new(client), upstream.clone(), kept.clone()));
        }
    });
    (url, received)
}

async fn connection(mut client: Wire, upstream: Arc<str>, kept: mpsc::UnboundedSender<Kept>) {
    let mut server = Wire::new(TcpStream::connect(&*upstream).await.unwrap());
    while let Some(request) = client.message().await {
        if request.gives_back() {
            let _ = kept.send(Kept { request, upstream: upstream.clone() });
            continue;
        }
        assert!(server.send(&request.bytes).await);
        let Some(answer) = server.message().await else { return };
        if !client.send(&answer.bytes).await {
            return;
        }
    }
}
