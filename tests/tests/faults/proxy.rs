//! What stands between one caller and the table, and the ledger of what it did to each request and what the table did.
//!
//! Invariant: a request that is let through reaches the table once, whatever becomes of its sender, and the ledger has what the table
//! answered. One caller has a proxy of its own and makes one call at a time, so each request is of a call that is known.

use crate::fault::{Cut, Fault, Weather};
use crate::wire::{Message, Wire};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// What a request asks of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Charge,
    /// Charges of several items, all or none.
    Transaction,
    GiveBack,
}

/// What the table did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// It was never asked.
    Nothing,
    /// It answered 200: a write was applied.
    Applied,
    /// It answered 400: nothing was applied.
    Refused,
}

/// One request in the ledger.
#[derive(Debug, Clone)]
pub struct Request {
    /// Of which of the caller's calls; `None` outside of all.
    pub call: Option<usize>,
    pub kind: Kind,
    pub items: Vec<String>,
    pub fault: Fault,
    /// Nanoseconds of the wall clock.
    pub arrived: u64,
    pub did: Did,
    /// The caller gave up before it had a reply.
    pub abandoned: bool,
}

impl Request {
    /// Whether the caller certainly got no reply that says what was done.
    pub fn is_lost(&self) -> bool {
        self.abandoned || self.fault.breaks()
    }

    pub fn is_write(&self) -> bool {
        self.kind != Kind::Read
    }
}

#[derive(Debug, Default)]
struct State {
    weather: Option<(Weather, usize, Duration)>,
    call: Option<usize>,
    requests: Vec<Request>,
    /// Requests that the table has not answered yet.
    under_way: usize,
}

#[derive(Debug)]
struct Shared {
    upstream: String,
    state: Mutex<State>,
    cut: watch::Sender<Option<Cut>>,
    idle: Mutex<Vec<Wire>>,
}

/// A proxy for one caller.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    url: String,
}

/// Nanoseconds of the wall clock.
pub fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

impl Proxy {
    /// Starts a proxy in front of `upstream`.
    pub async fn start(upstream: &str) -> Self {
        let upstream = upstream.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let shared =
            Shared { upstream, state: Mutex::default(), cut: watch::Sender::new(None), idle: Mutex::default() };
        let shared = Arc::new(shared);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(accept(shared.clone(), listener));
        Self { shared, url }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on the requests of `caller` meet this weather.
    pub fn set_weather(&self, weather: Option<(Weather, usize, Duration)>) {
        self.shared.state().weather = weather;
    }

    /// What comes from now on is of this call.
    pub async fn begin(&self, call: usize, cut: Option<Cut>) {
        self.shared.state().call = Some(call);
        let before = self.shared.cut.send_replace(cut);
        if before == Some(Cut::Refused) && cut != before {
            // It listens again before anybody calls.
            while TcpStream::connect(self.url.trim_start_matches("http://")).await.is_err() {
                sleep(Duration::from_millis(1)).await;
            }
        }
        if cut == Some(Cut::Refused) {
            while TcpStream::connect(self.url.trim_start_matches("http://")).await.is_ok() {
                sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Waits, but not for long, until so many requests of the call are in the ledger: one that its sender gave up on may still be read.
    pub async fn has_seen(&self, call: usize, requests: usize) {
        for _ in 0..50 {
            if self.shared.state().requests.iter().filter(|request| request.call == Some(call)).count() >= requests {
                return;
            }
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until the table has answered whatever is on its way there; takes the ledger.
    pub async fn take_ledger(&self) -> Vec<Request> {
        while self.shared.state().under_way > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let mut state = self.shared.state();
        state.call = None;
        std::mem::take(&mut state.requests)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn is_refused(&self) {
        let _ = self.cut.subscribe().wait_for(|cut| *cut == Some(Cut::Refused)).await;
    }

    /// Enters a request, with what is to happen to it; returns its place in the ledger.
    fn enter(&self, request: &Message) -> (usize, Fault) {
        let (kind, items) = read(request);
        let cut = *self.cut.borrow();
        let mut state = self.state();
        let fault = match (&state.weather, state.call, items.first()) {
            _ if cut.is_some() => Fault::Lost,
            (Some((weather, caller, deadline)), Some(call), Some(item)) => {
                let of_item = |r: &&Request| r.call == Some(call) && r.items.contains(item);
                weather.fault(*caller, call, item, state.requests.iter().filter(of_item).count(), *deadline)
            }
            _ => Fault::Nothing,
        };
        let call = state.call;
        let request = Request { call, kind, items, fault, arrived: now(), did: Did::Nothing, abandoned: false };
        state.requests.push(request);
        (state.requests.len() - 1, fault)
    }

    /// Sends a request to the table; the reply. It goes on whatever becomes of its sender.
    async fn forward(self: Arc<Self>, request: Message, place: usize, after: Duration) -> Message {
        sleep(after).await;
        let idle = self.idle.lock().unwrap().pop();
        let mut table = match idle {
            Some(table) => table,
            None => Wire::new(TcpStream::connect(&self.upstream).await.unwrap()),
        };
        assert!(table.send(&request.bytes).await);
        let reply = table.message().await.expect("the table answers");
        self.idle.lock().unwrap().push(table);
        let mut state = self.state();
        state.under_way -= 1;
        state.requests[place].did = match reply.status() {
            200 => Did::Applied,
            400 => Did::Refused,
            status => panic!("the table answered {status}"),
        };
        reply
    }
}

/// What a request is, and the items that it is on.
fn read(request: &Message) -> (Kind, Vec<String>) {
    let text = request.json();
    let item = |text: &Value| text["Key"]["pk"]["S"].as_str().map(str::to_owned);
    let writes = text["TransactItems"].as_array();
    let kind = match (writes, text.get("UpdateExpression")) {
        (Some(_), _) => Kind::Transaction,
        (None, None) => Kind::Read,
        (None, Some(_)) if request.gives_back() => Kind::GiveBack,
        (None, Some(_)) => Kind::Charge,
    };
    let items = match writes {
        Some(writes) => writes.iter().filter_map(|write| item(&write["Update"])).collect(),
        None => item(&text).into_iter().collect(),
    };
    (kind, items)
}

async fn accept(shared: Arc<Shared>, mut listener: TcpListener) {
    let address = listener.local_addr().unwrap();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted.ok(),
            () = shared.is_refused() => None,
        };
        match accepted {
            Some((client, _)) => drop(tokio::spawn(connection(shared.clone(), Wire::new(client)))),
            None => {
                drop(listener);
                let _ = shared.cut.subscribe().wait_for(|cut| *cut != Some(Cut::Refused)).await;
                listener = loop {
                    match TcpListener::bind(address).await {
                        Ok(listener) => break listener,
                        // A connection of somebody else's has the port for a moment.
                        Err(_) => sleep(Duration::from_millis(5)).await,
                    }
                };
            }
        }
    }
}

async fn connection(shared: Arc<Shared>, mut client: Wire) {
    loop {
        let request = tokio::select! {
            request = client.message() => request,
            () = shared.is_refused() => return reset(client),
        };
        let Some(request) = request else { return };
        let (place, fault) = shared.enter(&request);
        match answer(&shared, &mut client, request, place, fault).await {
            Next::GoOn => {}
            Next::Close => return,
            Next::Reset => return reset(client),
        }
    }
}

/// What becomes of the connection.
enum Next {
    GoOn,
    Close,
    Reset,
}

async fn answer(shared: &Arc<Shared>, client: &mut Wire, request: Message, place: usize, fault: Fault) -> Next {
    let reply = match fault {
        Fault::Lost => {
            gone(client).await;
            return Next::Close;
        }
        Fault::ResetBefore => return Next::Reset,
        Fault::ErrorBefore => return say(client, 500, "InternalServerError", "").await,
        Fault::Throttled => return say(client, 400, "ProvisionedThroughputExceededException", "").await,
        Fault::HotKey => {
            let why = r#","ThrottlingReasons":[{"reason":"TableWriteKeyRangeThroughputExceeded","resource":"arn:aws:dynamodb:eu-west-1:1:table/t"}]"#;
            return say(client, 400, "ProvisionedThroughputExceededException", why).await;
        }
        _ => {
            let after = if let Fault::LateThere(late) = fault { late } else { Duration::ZERO };
            shared.state().under_way += 1;
            let forwarding = tokio::spawn(shared.clone().forward(request, place, after));
            tokio::select! {
                reply = forwarding => reply.expect("the table answers"),
                () = gone(client) => return abandoned(shared, place),
            }
        }
    };
    match fault {
        Fault::ReplyDropped => Next::Close,
        Fault::ReplyHeld => {
            gone(client).await;
            Next::Close
        }
        Fault::ReplyCut => {
            let _ = client.send(&reply.bytes[..reply.bytes.len() - 1]).await;
            Next::Close
        }
        Fault::ResetAfter => Next::Reset,
        Fault::ErrorAfter => say(client, 500, "InternalServerError", "").await,
        Fault::LateBack(late) => tokio::select! {
            () = sleep(late) => pass(shared, client, &reply, place).await,
            () = gone(client) => abandoned(shared, place),
        },
        _ => pass(shared, client, &reply, place).await,
    }
}

/// Hands on the table's reply.
async fn pass(shared: &Shared, client: &mut Wire, reply: &Message, place: usize) -> Next {
    if client.send(&reply.bytes).await { Next::GoOn } else { abandoned(shared, place) }
}

fn abandoned(shared: &Shared, place: usize) -> Next {
    shared.state().requests[place].abandoned = true;
    Next::Close
}

/// Answers in the table's place.
async fn say(client: &mut Wire, status: u16, code: &str, more: &str) -> Next {
    let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"because"{more}}}"#);
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    if client.send((head + &body).as_bytes()).await { Next::GoOn } else { Next::Close }
}

/// Waits until the other side has closed the connection.
async fn gone(client: &Wire) {
    match client.stream.peek(&mut [0; 1]).await {
        Ok(0) | Err(_) => {}
        // It sends more before it has an answer: it is there.
        Ok(_) => std::future::pending().await,
    }
}

/// Closes a connection with RST.
fn reset(client: Wire) {
    let _ = client.stream.set_zero_linger();
}
