//! The two ends of a pipe to a browser.
//!
//! Invariant: an answer is its command's; whatever the page complains of is kept until it is asked for.

use crate::harness::PATIENCE;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, channel};

/// A pipe to a browser.
pub(super) struct Pipe {
    commands: ChildStdin,
    messages: Receiver<Value>,
    said: u64,
    complaints: Vec<String>,
}

impl Pipe {
    pub(super) fn new(commands: ChildStdin, answers: ChildStdout) -> Self {
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut answers = BufReader::new(answers);
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(parsed) = serde_json::from_slice(&message) else { break };
                if sender.send(parsed).is_err() {
                    break;
                }
                message.clear();
            }
        });
        Self { commands, messages, said: 0, complaints: Vec::new() }
    }

    /// Sends a command, to a page if one is named, and waits for nothing; its number.
    pub(super) fn tell(&mut self, session: Option<&str>, method: &str, params: &Value) -> u64 {
        self.said += 1;
        let mut command = json!({ "id": self.said, "method": method });
        if !params.is_null() {
            command["params"] = params.clone();
        }
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        // A browser that is gone is told of by whoever waits for its answer.
        let _ = self.commands.write_all(format!("{command}\0").as_bytes());
        self.said
    }

    /// Sends a command and returns its result.
    pub(super) fn ask(&mut self, session: Option<&str>, method: &str, params: &Value) -> Value {
        let id = self.tell(session, method, params);
        loop {
            let message = self.messages.recv_timeout(PATIENCE);
            let mut message = message.unwrap_or_else(|error| panic!("{method}: the browser says nothing: {error}"));
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.complaints.extend(complaint(&message));
        }
    }

    /// What the page has complained of since this was last asked.
    pub(super) fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }
}

/// What an event says that must not happen. An answer that is no success is logged, too, and is often what is asked for.
fn complaint(event: &Value) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
        "Log.entryAdded" if params["entry"]["level"] == "error" && params["entry"]["source"] != "network" => {
            Some(params["entry"].to_string())
        }
        _ => None,
    }
}
