//! The services of AWS that the functions of codes and factors ask, at the wire: what they were asked, and the answers that a test wants.

use crate::wire::{Message, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// What is answered instead of what the service would say.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// The service has done it, and its answer is lost.
    Lost,
    /// A status and a code.
    Status(u16, &'static str),
}

#[derive(Debug, Default)]
struct State {
    asked: Vec<(String, Value)>,
    faults: HashMap<String, Fault>,
    users: HashMap<String, Value>,
}

/// The services, all at one address.
#[derive(Debug, Clone)]
pub struct Aws {
    pub url: String,
    state: Arc<Mutex<State>>,
}

impl Aws {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<State>>::default();
        let aws = Self { url, state };
        let serving = aws.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let aws = serving.clone();
                tokio::spawn(async move {
                    let mut wire = Wire::new(stream);
                    while let Some(request) = wire.message().await {
                        match aws.answer(&request) {
                            Some(answer) => assert!(wire.send(answer.as_bytes()).await),
                            None => return,
                        }
                    }
                });
            }
        });
        aws
    }

    /// What an operation was asked, in order.
    pub fn asked(&self, operation: &str) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        state.asked.iter().filter(|(name, _)| name == operation).map(|(_, body)| body.clone()).collect()
    }

    /// The bodies of the messages that were queued.
    pub fn queued(&self) -> Vec<String> {
        self.asked("SendMessage").iter().map(|sent| sent["MessageBody"].as_str().unwrap().to_owned()).collect()
    }

    /// What an operation answers from now on; `None`: what the service would.
    pub fn fail(&self, operation: &str, fault: Option<Fault>) {
        let faults = &mut self.state.lock().unwrap().faults;
        match fault {
            Some(fault) => drop(faults.insert(operation.to_owned(), fault)),
            None => drop(faults.remove(operation)),
        }
    }

    /// A user of the pool.
    pub fn add(&self, user: &str, attributes: &[(&str, &str)]) {
        let attributes: Vec<_> =
            attributes.iter().map(|(name, value)| json!({ "Name": name, "Value": value })).collect();
        let user_of_pool =
            json!({ "Username": user, "Enabled": true, "UserStatus": "CONFIRMED", "UserAttributes": attributes });
        self.state.lock().unwrap().users.insert(user.to_owned(), user_of_pool);
    }

    fn answer(&self, request: &Message) -> Option<String> {
        let (head, body) = (String::from_utf8_lossy(&request.bytes), request.json());
        let fields = head.lines().take_while(|line| !line.is_empty());
        let target =
            fields.skip(1).find_map(|line| line.strip_prefix("x-amz-target: ")?.rsplit('.').next().map(str::to_owned));
        let operation = target.unwrap_or_else(|| head.split(' ').nth(1).unwrap_or_default().to_owned());
        let mut state = self.state.lock().unwrap();
        state.asked.push((operation.clone(), body.clone()));
        let (status, answer) = match state.faults.get(&operation) {
            Some(Fault::Lost) => return None,
            Some(Fault::Status(status, code)) => (*status, json!({ "__type": code, "message": body.to_string() })),
            None => match operation.as_str() {
                "AdminGetUser" => match state.users.get(body["Username"].as_str().unwrap()) {
                    Some(user) => (200, user.clone()),
                    None => (400, json!({ "__type": "UserNotFoundException", "message": "User does not exist." })),
                },
                "SendTextMessage" => (200, json!({ "MessageId": format!("sms-{}", state.asked.len()) })),
                "PutMessageFeedback" => {
                    (200, json!({ "MessageId": body["MessageId"], "MessageFeedbackStatus": "RECEIVED" }))
                }
                "PutEvents" => (200, json!({ "FailedEntryCount": 0, "Entries": [{ "EventId": "e" }] })),
                "Encrypt" => (200, json!({ "CiphertextBlob": sealed(&body), "KeyId": body["KeyId"] })),
                "Decrypt" => match opened(&body) {
                    Some(plain) => (200, json!({ "Plaintext": plain, "KeyId": body["KeyId"] })),
                    None => (400, json!({ "__type": "InvalidCiphertextException", "message": null })),
                },
                "SendMessage" | "/v2/email/outbound-emails" => (200, json!({ "MessageId": "m" })),
                "/turnstile/v0/siteverify" => {
                    (200, json!({ "success": body["response"] == "solved", "error-codes": [] }))
                }
                other => panic!("{other} is not asked"),
            },
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.1\r\ncontent-length: {}",
            answer.len()
        );
        Some(format!("{head}\r\n\r\n{answer}"))
    }
}

/// What KMS makes of a secret: nobody but the key opens it, and for that context only.
fn sealed(asked: &Value) -> String {
    let all = json!([asked["KeyId"], asked["EncryptionContext"], asked["Plaintext"]]).to_string();
    STANDARD.encode(all.bytes().map(|byte| byte ^ 0x55).collect::<Vec<_>>())
}

fn opened(asked: &Value) -> Option<Value> {
    let sealed = STANDARD.decode(asked["CiphertextBlob"].as_str()?).ok()?;
    let all: Value = serde_json::from_slice(&sealed.iter().map(|byte| byte ^ 0x55).collect::<Vec<_>>()).ok()?;
    (all[0] == asked["KeyId"] && all[1] == asked["EncryptionContext"]).then(|| all[2].clone())
}
