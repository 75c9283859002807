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
    /// Keys of the format that this version refuses, and what to do about them.
    pub(crate) later: &'static [(&'static str, &'static str)],
}

/// Every table that has fixed keys. `[identity]`, `[limits]` and tables by plan or language have free names.
pub const KEYS: &[KeyList] = &[
    POLICY, DIMENSION, CLIENT_IP, DEVICE, PLANS, LIMIT, FIGURES, PENALTY, ROUTE, STEP_UP, CHARGE, EXEMPTION, HTTP,
    CORS, OTP, COOLDOWN, PUMPING, MFA,
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
        "mfa",
    ],
    later: &[("edge", "remove the [edge] tables; manage rules of AWS WAF separately")],
};

pub(super) const DIMENSION: KeyList =
    KeyList { table: "dimension", keys: &["body", "from", "fold", "region", "personal"], later: &[] };

pub(super) const CLIENT_IP: KeyList =
    KeyList { table: "client_ip", keys: &["trusted_hops", "trusted_proxies", "header", "ipv6_prefix"], later: &[] };

pub(super) const DEVICE: KeyList = KeyList { table: "device", keys: &["cookie", "bound_to", "max_age"], later: &[] };

pub(super) const PLANS: KeyList = KeyList { table: "plans", keys: &["names", "default"], later: &[] };

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
    later: &[],
};

pub(super) const FIGURES: KeyList = KeyList { table: "figures", keys: &["rate", "burst", "debt"], later: &[] };

pub(super) const PENALTY: KeyList =
    KeyList { table: "penalty", keys: &["first", "factor", "most", "forget", "extend"], later: &[] };

pub(super) const ROUTE: KeyList =
    KeyList { table: "route", keys: &["match", "charge", "on_store_failure", "atomic", "cors", "step_up"], later: &[] };

pub(super) const STEP_UP: KeyList = KeyList { table: "step_up", keys: &["max_age", "acr", "amr", "bind"], later: &[] };

pub(super) const CHARGE: KeyList = KeyList { table: "charge", keys: &["limit", "cost", "settle_within"], later: &[] };

pub(super) const EXEMPTION: KeyList = KeyList { table: "exemption", keys: &["match", "why"], later: &[] };

pub(super) const HTTP: KeyList = KeyList { table: "http", keys: &["legacy_headers", "cors"], later: &[] };

pub(super) const CORS: KeyList = KeyList { table: "cors", keys: &["origins", "credentials"], later: &[] };

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
        "message",
        "subject",
        "domain",
        "captcha",
        "pumping",
    ],
    later: &[],
};

pub(super) const PUMPING: KeyList = KeyList { table: "pumping", keys: &["prices", "spend", "reduced"], later: &[] };

pub(super) const MFA: KeyList = KeyList { table: "mfa", keys: &["issuer", "acr", "max_age"], later: &[] };

pub(super) const COOLDOWN: KeyList =
    KeyList { table: "cooldown", keys: &["first", "factor", "most", "forget"], later: &[] };
