//! The keys of every table of the policy file. Invariant: the decoder, the JSON Schema and the reference in the crate
//! docs know the same keys; a test compares the first two by this list.

/// The keys of one kind of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyList {
    /// The kind of table, as in `$defs` of the JSON Schema; `policy` is the file itself.
    pub table: &'static str,
    /// Its keys.
    pub keys: &'static [&'static str],
}

/// Every table that has fixed keys. `[identity]`, `[limits]` and tables by plan or language have free names.
pub const KEYS: &[KeyList] = &[
    POLICY, DIMENSION, CLIENT_IP, DEVICE, PLANS, LIMIT, FIGURES, PENALTY, ROUTE, STEP_UP, CHARGE, EXEMPTION, HTTP,
    CORS, OTP, COOLDOWN, PUMPING, EDGE, EDGE_RULE, KEEP_OUT, EXCEPT, FORWARDED, BODY, LOGGING, MFA, PASSKEYS, TENANTS,
    ADMIN,
];

pub(super) const POLICY: KeyList = KeyList {
    table: "policy",
    keys: &[
        "version",
        "revision",
        "instances",
        "identity",
        "plans",
        "limits",
        "routes",
        "exempt",
        "http",
        "otp",
        "edge",
        "mfa",
    ],
};

pub(super) const DIMENSION: KeyList =
    KeyList { table: "dimension", keys: &["body", "from", "fold", "region", "personal", "log"] };

pub(super) const CLIENT_IP: KeyList =
    KeyList { table: "client_ip", keys: &["trusted_hops", "trusted_proxies", "header", "ipv6_prefix"] };

pub(super) const DEVICE: KeyList = KeyList { table: "device", keys: &["cookie", "bound_to", "max_age"] };

pub(super) const PLANS: KeyList = KeyList { table: "plans", keys: &["names", "default"] };

pub(super) const LIMIT: KeyList = KeyList {
    table: "limit",
    keys: &[
        "key",
        "algorithm",
        "zone",
        "rate",
        "burst",
        "debt",
        "count",
        "on_success",
        "refund_on",
        "delay",
        "max_wait",
        "plans",
        "message",
        "upgrade_url",
        "on_change",
        "own_item",
        "lease",
        "shards",
        "mode",
        "atomic",
        "first",
        "coalesce",
        "deny_cache",
        "on_store_failure",
        "headers",
        "penalty",
        "retry_jitter",
    ],
};

pub(super) const FIGURES: KeyList = KeyList { table: "figures", keys: &["rate", "burst", "debt"] };

pub(super) const PENALTY: KeyList =
    KeyList { table: "penalty", keys: &["first", "factor", "most", "forget", "extend", "edge_after"] };

pub(super) const ROUTE: KeyList =
    KeyList { table: "route", keys: &["match", "charge", "on_store_failure", "atomic", "cors", "step_up"] };

pub(super) const STEP_UP: KeyList = KeyList { table: "step_up", keys: &["max_age", "acr", "amr", "bind"] };

pub(super) const CHARGE: KeyList = KeyList { table: "charge", keys: &["limit", "cost", "settle_within"] };

pub(super) const EXEMPTION: KeyList = KeyList { table: "exemption", keys: &["match", "why"] };

pub(super) const HTTP: KeyList = KeyList { table: "http", keys: &["legacy_headers", "cors"] };

pub(super) const CORS: KeyList = KeyList { table: "cors", keys: &["origins", "credentials"] };

pub(super) const OTP: KeyList = KeyList {
    table: "otp",
    keys: &[
        "purposes",
        "channels",
        "countries",
        "region",
        "digits",
        "ttl",
        "attempts",
        "budget",
        "cooldown",
        "acr",
        "factors",
        "sign_in",
        "message",
        "subject",
        "domain",
        "captcha",
        "pumping",
    ],
};

pub(super) const PUMPING: KeyList = KeyList { table: "pumping", keys: &["prices", "spend", "reduced"] };

pub(super) const COOLDOWN: KeyList = KeyList { table: "cooldown", keys: &["first", "factor", "most", "forget"] };

pub(super) const EDGE: KeyList = KeyList {
    table: "edge",
    keys: &[
        "scope",
        "web_acl",
        "prefix",
        "stage",
        "priority",
        "base_paths",
        "egress",
        "forwarded",
        "bodies",
        "headers",
        "logging",
        "users_per_address",
        "keep_out",
        "rules",
    ],
};

pub(super) const EDGE_RULE: KeyList = KeyList {
    table: "edge_rule",
    keys: &["name", "rate", "paths", "except", "stage", "body", "retry_after", "priority"],
};

pub(super) const KEEP_OUT: KeyList =
    KeyList { table: "keep_out", keys: &["most", "stage", "body", "retry_after", "priority"] };

pub(super) const EXCEPT: KeyList = KeyList { table: "except", keys: &["egress"] };

pub(super) const FORWARDED: KeyList = KeyList { table: "forwarded", keys: &["header", "if_invalid"] };

pub(super) const BODY: KeyList = KeyList { table: "body", keys: &["type", "content"] };

pub(super) const LOGGING: KeyList = KeyList { table: "logging", keys: &["destination", "keep"] };

pub(super) const MFA: KeyList = KeyList {
    table: "mfa",
    keys: &[
        "issuer",
        "acr",
        "max_age",
        "enrol_acr",
        "first_factor",
        "audit_retention",
        "cooldown",
        "cancel_url",
        "passkeys",
        "recovery",
        "tenants",
    ],
};

pub(super) const RECOVERY: KeyList = KeyList { table: "recovery", keys: &["wait"] };

pub(super) const PASSKEYS: KeyList =
    KeyList { table: "passkeys", keys: &["rp_id", "origins", "user_verification", "timeout"] };

pub(super) const TENANTS: KeyList =
    KeyList { table: "tenants", keys: &["allowed", "required", "minimum", "grace", "admin"] };

pub(super) const ADMIN: KeyList = KeyList { table: "admin", keys: &["claim", "value"] };
