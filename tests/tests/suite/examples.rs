//! The axum example as a platform runs it: the file that people copy, in a process of its own, with the variables and signals that App
//! Runner and ECS give it; and the templates that deploy it.

use crate::harness::{TABLE, endpoint, repository};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const AXUM: &str = env!("CARGO_BIN_EXE_axum-example-under-test");

/// The example in a process; it is killed when this is dropped.
struct Service {
    child: Child,
    port: u16,
}

impl Service {
    fn start(endpoint: &str) -> Self {
        // Free now; nobody else is given it for a while.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = command(&port.to_string(), endpoint).stdout(Stdio::null()).spawn().unwrap();
        Self { child, port }
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port))
    }

    /// Waits until it listens.
    fn up(self) -> Self {
        until("it listens", || self.connect().is_ok());
        self
    }

    /// Head and body of the answer to an order, sent through proxies that have written `forwarded`.
    fn order(&self, forwarded: &str) -> String {
        let head = format!("POST /api/orders HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {forwarded}\r\n");
        self.ask(&format!("{head}connection: close\r\ncontent-length: 2\r\n\r\n42"))
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect().unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        read(&mut stream)
    }

    /// What a platform sends before it takes a container away.
    fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn ended(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(port: &str, endpoint: &str) -> Command {
    let mut command = Command::new(AXUM);
    command
        .env_clear()
        .env("PORT", port)
        .env("TOLLGATE_POLICY", repository("crates/tollgate/examples/axum.toml"))
        .env("TOLLGATE_TABLE", TABLE)
        .env("TOLLGATE_ENDPOINT_URL", endpoint);
    command
}

/// Looks a few thousand times, a minute or more: who hangs fails.
fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{what}: never");
}

fn read(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// An address of the documentation's IPv6 block that no other test and no earlier run has used.
fn address() -> String {
    let part = || fastrand::u16(..);
    format!("2001:db8:{:x}:{:x}::1", part(), part())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_counted_is_whom_the_proxy_saw_and_never_whom_the_caller_names() {
    let service = Service::start(&endpoint().await).up();
    let (caller, other) = (address(), address());
    for left in (0..50).rev() {
        let answer = service.order(&format!("{}, {caller}", address()));
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        assert!(answer.ends_with(&format!("2 bytes ordered, {left} orders left\n")), "{answer}");
    }
    let denied = service.order(&format!("{other}, {caller}"));
    assert!(denied.starts_with("HTTP/1.1 429") && denied.contains("\r\nretry-after: "), "{denied}");
    assert!(service.order(&other).starts_with("HTTP/1.1 201"), "another caller is untouched");
    // The platform asks by itself, without a proxy, for as long as it likes.
    for _ in 0..60 {
        let health = service.ask("GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_begun_is_answered_before_the_service_ends() {
    let mut service = Service::start(&endpoint().await).up();
    let mut begun = service.connect().unwrap();
    let head = format!("POST /api/orders HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {}\r\n", address());
    // The interim answer says that the handler is reading the body.
    begun.write_all(format!("{head}expect: 100-continue\r\ncontent-length: 2\r\n\r\n").as_bytes()).unwrap();
    let mut interim = [0; 25];
    begun.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    service.terminate();
    until("it lets nobody in", || service.connect().is_err());
    begun.write_all(b"42").unwrap();
    let answer = read(&mut begun);
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("2 bytes ordered"), "{answer}");
    assert!(service.ended().success());
}

#[test]
fn nobody_is_let_in_before_the_table_has_been_asked() {
    let table = TcpListener::bind("127.0.0.1:0").unwrap();
    let service = Service::start(&format!("http://{}", table.local_addr().unwrap()));
    let (warm_up, _) = table.accept().unwrap();
    assert!(service.connect().is_err(), "it listens before its connection is warm");
    drop((warm_up, table));
    // A table that is gone keeps no instance from starting: its share of the limit decides.
    let answer = service.up().order(&address());
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

#[test]
fn what_it_cannot_run_with_is_told_in_a_line() {
    for (port, policy, says) in [("http", "axum.toml", "PORT is"), ("0", "none.toml", "none.toml")] {
        let policy = repository("crates/tollgate/examples").join(policy);
        let output = command(port, "http://127.0.0.1:1").env("TOLLGATE_POLICY", policy).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains("the service cannot run") && said.contains(says), "{said}");
    }
}

/// Least privilege: what the example's process may do with the table is what a decision takes, and nothing is for any resource.
#[test]
fn the_templates_grant_a_decision_and_no_more() {
    for template in ["app-runner", "ecs-express"] {
        let text = std::fs::read_to_string(repository(&format!("infra/examples/{template}.yaml"))).unwrap();
        let actions = |service: &str| -> Vec<&str> {
            let start = format!("{service}:");
            let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':'));
            words.filter(|word| word.starts_with(&start) && word.len() > start.len()).collect()
        };
        assert_eq!(actions("dynamodb"), ["dynamodb:GetItem", "dynamodb:UpdateItem"], "{template}");
        assert_eq!(actions("ssm"), ["ssm:GetParameter"], "{template}");
        let mut any = text.lines().filter(|line| line.contains("Resource: \"*\"") || line.contains("Resource: '*'"));
        assert!(any.all(|line| line.contains("ecr:GetAuthorizationToken")), "{template}");
    }
}
