//! A small AWS WAF in memory: ACLs and IP sets with lock tokens and tags, logging, associations. What it answers next can be said, and
//! somebody else can write at any moment.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use tollgate_waf::converge::{Failure, Operation, Waf};

/// Somebody else, who writes before a call is answered.
type Other = Box<dyn FnOnce(&mut State) + Send>;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) acls: BTreeMap<String, Value>,
    pub(crate) ip_sets: BTreeMap<String, Value>,
    pub(crate) logging: BTreeMap<String, Value>,
    pub(crate) on: BTreeMap<String, String>,
    /// Calls that were made, and their inputs.
    pub(crate) calls: Vec<(Operation, Value)>,
    failures: VecDeque<(Operation, &'static str)>,
    others: VecDeque<(Operation, Other)>,
    next: u64,
}

impl State {
    pub(crate) fn fresh(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}-{}", self.next)
    }

    /// Changes an ACL as its console would.
    pub(crate) fn edit(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let token = self.fresh("lock");
        let acl = self.acls.get_mut(name).unwrap();
        change(acl);
        acl["LockToken"] = token.into();
    }

    pub(crate) fn rule_names(&self, acl: &str) -> Vec<String> {
        let rules = self.acls[acl]["Rules"].as_array().unwrap();
        rules.iter().map(|rule| rule["Name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn writes(&self) -> Vec<Operation> {
        self.calls.iter().map(|(operation, _)| *operation).filter(|operation| operation.is_write()).collect()
    }
}

#[derive(Default)]
pub(crate) struct Fake(pub(crate) Mutex<State>);

impl Fake {
    /// The next call of this operation fails so.
    pub(crate) fn fail(&self, operation: Operation, code: &'static str) {
        self.0.lock().unwrap().failures.push_back((operation, code));
    }

    /// Somebody else writes just before the next call of this operation.
    pub(crate) fn before(&self, operation: Operation, other: impl FnOnce(&mut State) + Send + 'static) {
        self.0.lock().unwrap().others.push_back((operation, Box::new(other)));
    }

    pub(crate) fn state<T>(&self, of: impl FnOnce(&mut State) -> T) -> T {
        of(&mut self.0.lock().unwrap())
    }

    /// The writes since the last time.
    pub(crate) fn take_writes(&self) -> Vec<Operation> {
        self.state(|state| {
            let writes = state.writes();
            state.calls.clear();
            writes
        })
    }

    /// An ACL of somebody else, with these rules.
    pub(crate) fn others_acl(&self, name: &str, rules: Value) {
        self.state(|state| {
            let (id, token) = (state.fresh("acl"), state.fresh("lock"));
            let acl = json!({
                "Name": name, "Id": id, "ARN": format!("arn:acl/{id}"), "Capacity": 10, "LabelNamespace": "awswaf:1:webacl:x:",
                "DefaultAction": { "Allow": {} }, "Rules": rules, "TokenDomains": ["example.com"],
                "CustomResponseBodies": { "theirs": { "ContentType": "TEXT_PLAIN", "Content": "no" } }, "Description": "",
                "VisibilityConfig": { "SampledRequestsEnabled": true, "CloudWatchMetricsEnabled": true, "MetricName": name },
                "SomethingNewer": { "Mode": "ON" }, "LockToken": token,
            });
            state.acls.insert(name.to_owned(), acl);
        });
    }
}

impl Waf for Fake {
    async fn call(&self, operation: Operation, input: Value) -> Result<Value, Failure> {
        let mut state = self.0.lock().unwrap();
        state.calls.push((operation, input.clone()));
        let fail = |code: &str| Failure { operation, code: Some(code.to_owned()), message: "said the fake".to_owned() };
        if let Some(at) = state.failures.iter().position(|(of, _)| *of == operation) {
            let (_, code) = state.failures.remove(at).unwrap();
            return Err(fail(code));
        }
        if let Some(at) = state.others.iter().position(|(of, _)| *of == operation) {
            let (_, other) = state.others.remove(at).unwrap();
            other(&mut state);
        }
        answer(&mut state, operation, &input).map_err(fail)
    }
}

type Answer = Result<Value, &'static str>;
const GONE: &str = "WAFNonexistentItemException";

fn answer(state: &mut State, operation: Operation, input: &Value) -> Answer {
    let name = input["Name"].as_str().unwrap_or_default().to_owned();
    match operation {
        Operation::ListWebAcls => Ok(page(&state.acls, "WebACLs", input)),
        Operation::ListIpSets => Ok(page(&state.ip_sets, "IPSets", input)),
        Operation::GetWebAcl => get(&state.acls, &name, "WebACL"),
        Operation::GetIpSet => get(&state.ip_sets, &name, "IPSet"),
        Operation::CreateWebAcl | Operation::CreateIpSet => create(state, operation, &name, input),
        Operation::UpdateWebAcl => {
            let token = state.fresh("lock");
            let of = locked(&mut state.acls, &name, input)?;
            // Whatever is not in the request is taken away; what is read-only is refused, as by the API's own validation.
            for key in ["ARN", "Capacity", "LabelNamespace"] {
                assert!(input.get(key).is_none(), "{key} is in the request");
            }
            let (id, arn) = (of["Id"].clone(), of["ARN"].clone());
            let tags = of["Tags"].clone();
            *of = input.clone();
            (of["Id"], of["ARN"], of["Tags"], of["LockToken"]) = (id, arn, tags, token.into());
            Ok(json!({ "NextLockToken": of["LockToken"] }))
        }
        Operation::UpdateIpSet => {
            let token = state.fresh("lock");
            let of = locked(&mut state.ip_sets, &name, input)?;
            (of["Addresses"], of["LockToken"]) = (input["Addresses"].clone(), token.into());
            Ok(json!({ "NextLockToken": of["LockToken"] }))
        }
        Operation::DeleteWebAcl => {
            let arn = locked(&mut state.acls, &name, input)?["ARN"].as_str().unwrap().to_owned();
            if state.on.values().any(|acl| *acl == arn) {
                return Err("WAFAssociatedItemException");
            }
            state.acls.remove(&name);
            Ok(json!({}))
        }
        Operation::DeleteIpSet => {
            let arn = locked(&mut state.ip_sets, &name, input)?["ARN"].clone();
            if state.acls.values().any(|acl| acl["Rules"].to_string().contains(arn.as_str().unwrap())) {
                return Err("WAFAssociatedItemException");
            }
            state.ip_sets.remove(&name);
            Ok(json!({}))
        }
        Operation::ListTags => {
            let all = state.acls.values().chain(state.ip_sets.values());
            let of = all.filter(|of| of["ARN"] == input["ResourceARN"]).map(|of| of["Tags"].clone()).next();
            Ok(json!({ "TagInfoForResource": { "TagList": of.unwrap_or_default() } }))
        }
        Operation::GetLogging => {
            let of = state.logging.get(input["ResourceArn"].as_str().unwrap()).ok_or(GONE)?;
            Ok(json!({ "LoggingConfiguration": of }))
        }
        Operation::PutLogging => {
            let config = &input["LoggingConfiguration"];
            state.logging.insert(config["ResourceArn"].as_str().unwrap().to_owned(), config.clone());
            Ok(json!({}))
        }
        Operation::DeleteLogging => {
            state.logging.remove(input["ResourceArn"].as_str().unwrap()).map(|_| json!({})).ok_or(GONE)
        }
        Operation::GetAclOfResource => {
            let arn = state.on.get(input["ResourceArn"].as_str().unwrap());
            Ok(json!({ "WebACL": arn.map(|arn| json!({ "ARN": arn })) }))
        }
        Operation::ListResources => {
            let on = state.on.iter().filter(|(_, acl)| input["WebACLArn"] == acl.as_str()).map(|(arn, _)| arn.clone());
            let is_asked_for = |arn: &String| match input["ResourceType"].as_str() {
                Some("AMPLIFY") => arn.contains(":amplify:"),
                Some("APPLICATION_LOAD_BALANCER") => arn.contains(":elasticloadbalancing:"),
                _ => false,
            };
            Ok(json!({ "ResourceArns": on.filter(is_asked_for).collect::<Vec<_>>() }))
        }
        Operation::Associate => {
            let of = |key: &str| input[key].as_str().unwrap().to_owned();
            state.on.insert(of("ResourceArn"), of("WebACLArn"));
            Ok(json!({}))
        }
        Operation::Disassociate => {
            state.on.remove(input["ResourceArn"].as_str().unwrap());
            Ok(json!({}))
        }
        Operation::GetLimitedKeys => Ok(json!({
            "ManagedKeysIPV4": { "Addresses": ["192.0.2.1/32"] }, "ManagedKeysIPV6": { "Addresses": ["2001:db8::1/128"] },
        })),
        Operation::GetSampledRequests => {
            let request = |uri: &str, weight: u64| json!({ "Request": { "ClientIP": "192.0.2.1", "Method": "POST", "URI": uri }, "Weight": weight });
            Ok(
                json!({ "SampledRequests": [request("/a", 1), request("/api/auth/login?x", 3), request("/api/auth/login", 4)] }),
            )
        }
        _ => Err("UnknownOperationException"),
    }
}

/// Two a page, so that there is more than one.
fn page(of: &BTreeMap<String, Value>, key: &str, input: &Value) -> Value {
    let from = input["NextMarker"].as_str().unwrap_or_default();
    let mut rest = of.iter().filter(|(name, _)| name.as_str() > from);
    let list: Vec<Value> = rest.by_ref().take(2).map(|(_, of)| json!({ "Name": of["Name"], "Id": of["Id"] })).collect();
    // A marker comes with the last page, too.
    let marker = list.last().map(|last| last["Name"].clone());
    json!({ key: list, "NextMarker": marker })
}

fn get(of: &BTreeMap<String, Value>, name: &str, key: &str) -> Answer {
    let found = of.get(name).ok_or(GONE)?;
    let mut told = found.clone();
    told.as_object_mut().unwrap().remove("Tags");
    if key == "WebACL" {
        (told["Capacity"], told["LabelNamespace"]) = (json!(50), json!("awswaf:1:webacl:x:"));
    }
    Ok(json!({ key: told, "LockToken": found["LockToken"] }))
}

fn create(state: &mut State, operation: Operation, name: &str, input: &Value) -> Answer {
    let (id, token) = (state.fresh("id"), state.fresh("lock"));
    let of = if operation == Operation::CreateWebAcl { &mut state.acls } else { &mut state.ip_sets };
    if of.contains_key(name) {
        return Err("WAFDuplicateItemException");
    }
    let mut made: Map<String, Value> = input.as_object().unwrap().clone();
    made.insert("Id".to_owned(), id.clone().into());
    made.insert("ARN".to_owned(), format!("arn:{name}/{id}").into());
    made.insert("LockToken".to_owned(), token.into());
    let summary = json!({ "Name": name, "Id": made["Id"], "ARN": made["ARN"], "LockToken": made["LockToken"] });
    of.insert(name.to_owned(), made.into());
    Ok(json!({ "Summary": summary }))
}

fn locked<'a>(of: &'a mut BTreeMap<String, Value>, name: &str, input: &Value) -> Result<&'a mut Value, &'static str> {
    let found = of.get_mut(name).ok_or(GONE)?;
    if found["LockToken"] == input["LockToken"] { Ok(found) } else { Err("WAFOptimisticLockException") }
}
