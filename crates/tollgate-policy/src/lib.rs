//! The policy file: parse, validate, match a request to the limits it is charged on. Pure but for [`Policy::load`] and [`up_to`].
//!
//! ```
//! use tollgate_policy::{Policy, Wanted};
//!
//! let text = r#"
//!     version = 1
//!     [limits.orders]
//!     key  = ["user"]
//!     rate = "50/h"
//!     [[routes]]
//!     match  = "POST /api/orders"
//!     charge = ["orders"]
//! "#;
//! let policy = Policy::parse(text).map_err(|findings| findings.render("tollgate.toml"))?.policy;
//! let found = policy.route("POST", "/api/orders").ok_or("no route")?;
//! assert_eq!(found.route.charges()[0].cost, 1);
//! let wanted = Wanted { limit: "orders", key: &[("user", "alice")], plan: None, cost: 1 };
//! let charges = policy.charges(&[wanted]).map_err(|error| error.to_string())?;
//! assert_eq!(charges[0].key().to_string(), "user:alice");
//! # Ok::<(), String>(())
//! ```
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | `policy` | a checked policy, and its look-ups by limit, request and plan |
//! | `charges` | from names and values to what the core decides on |
//! | `logged` | what lines about denials have of a caller |
//! | `keying` | from values to keys: one spelling, personal ones hashed, one key a secret |
//! | `canonical` | which spellings of a value are one |
//! | `pseudonym` | keyed hashes of personal values, and their secrets |
//! | `device` | devices that are known by a signed token: made, and verified |
//! | `limit`, `route`, `identity`, `message` | what a policy consists of |
//! | `http` | how answers are spoken: older header fields, CORS |
//! | `otp` | the rules of one-time codes |
//! | `mfa` | the rules of second factors |
//! | `step_up` | which authentication a route demands |
//! | `edge` | what AWS WAF does in front |
//! | `address`, `network` | the text of a client's address, and how it is counted |
//! | `pattern` | methods and paths: matching, specificity, conflicts, coverage |
//! | `jitter` | waits as they are told |
//! | `rate` | `50/h`, `5/15min` and `30min` |
//! | `live` | the policy in force, replaceable while it is used |
//! | `decode` | from the spanned TOML tree to a policy, with every mistake |
//! | `syntax` | reading past lines that are not TOML |
//! | `report`, `diagnostic`, `suggest` | mistakes with their place, and what to write instead |
//!
//! # The file
//!
//! TOML, checked as a whole: all mistakes are reported at once, each with line and column. [`JSON_SCHEMA`] describes
//! the same keys to editors. A part of the format that this version lacks is refused, never ignored.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `version` | 1, the version of this format | required |
//! | `revision` | whole number from 1; raised when limits change, so that on a key newer figures win | 1 |
//! | `instances` | how many processes share the limits while each decides by itself (`on_store_failure = "local"`), 1 to 1,000,000: of functions their reserved concurrency together | 1 |
//! | `[identity]` | where dimensions come from, see below | see below |
//! | `[plans]` | plans that callers can be on; without it, plans that callers name are ignored | none |
//! | `plans.names` | array of names (`a-z`, then `a-z 0-9 _ -`) | required |
//! | `plans.default` | the plan of a caller who names none | the first |
//! | `[limits.NAME]` | a limit; the name is 1 to 64 of `a-z A-Z 0-9 - _` | none |
//! | `[[routes]]` | what requests are charged | none |
//! | `[[exempt]]` | requests that are never counted; these win over routes | none |
//! | `[http]` | how answers are spoken | see below |
//! | `[otp]` | the rules of one-time codes | there are none |
//! | `[edge]` | what AWS WAF does in front | nothing |
//! | `[mfa]` | the rules of second factors | there are none |
//!
//! ## `[identity]`
//!
//! | dimension | value | default |
//! | --- | --- | --- |
//! | any name | `"claims.NAME"`: a claim of the verified token | `user` is `claims.sub`, `tenant` is `claims.tenant`, `plan` is `claims.plan`, `session` is `claims.origin_jti` |
//! | any name | `"header.NAME"`, `"query.NAME"`, `"context.NAME"` (the gateway's request context) | |
//! | any name | `"path.NAME"`: a parameter of the route, which then must have it | |
//! | any name | `{ body = "NAME" }`: a top-level field of a JSON or form body | |
//! | any name | `{ from = "SOURCE" }`: one of the above, where more is to be said | |
//! | any name | `"api_key"`: the API key that the gateway accepted | `api_key` |
//! | any name | `{ cookie = "NAME", bound_to = "DIMENSION" }`: a device that is known, see below | |
//! | `everyone` | the same value for every caller, `all`; it cannot be declared | built in |
//! | `client_ip` | `{ trusted_hops = N }`: N proxies before the gateway append to the forwarding header, 0 to 16 | 0 |
//! | `client_ip` | `{ trusted_proxies = ["10.0.0.0/8"] }`: or these proxies do; a block of half the internet is an error | |
//! | `client_ip` | `{ header = "NAME" }`: the header that they write: `X-Forwarded-For`, `Forwarded` (RFC 7239), or one that holds a single address, like `CloudFront-Viewer-Address` | `X-Forwarded-For`, and `Forwarded` where there is only that |
//! | `client_ip` | `{ ipv6_prefix = N }`: IPv6 addresses with the same N bits are one client, 1 to 128 | 64 |
//!
//! Where a dimension is a table it also says how its values are counted:
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `fold` | which spellings are one: `"none"`; `"lower"`, without regard to case; `"email"`, an account; `"mailbox"`, as that without `+tag`; `"phone"`, a number in E.164 (see [`Fold`]) | `"none"` |
//! | `region` | where a number without a country code belongs, like `"IN"` (ISO 3166-1) | none: such a number is its digits |
//! | `personal` | `true`: values go into keys only as keyed hashes, under [`KeySecrets`] | `true` with `"email"`, `"mailbox"`, `"phone"`, which cannot be otherwise; else `false` |
//! | `log` | of `tenant` and `api_key`: a line about a denial has the value, `"plain"` or as a keyed hash, `"hashed"`; in plain only what a gateway or an authorizer vouches for, and an API key only by its id (see [`Policy::logged`]) | not logged |
//!
//! A **device** has a value if the request has that cookie with a token that was issued for this value of `bound_to`
//! ([`Policy::device_cookie`], after a right password), signed by one of the [`KeySecrets`], at most `max_age` ago; else its
//! sender is a stranger. `["device ?? account"]` counts strangers by the account that they try, and each device on which
//! its owner has signed in by itself, so that others cannot lock him out. The value is a random number and not personal.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `cookie` | the cookie's name; one that begins with `__Host-` cannot be set by a subdomain | required |
//! | `bound_to` | the dimension that says whose device it is, like `account` | required |
//! | `max_age` | for how long a token is good, `1h` to `400day` | `90day` |
//!
//! Values are folded for limiting only, and whoever gives them: a request, a caller of the JSON API, an operator. Which
//! topology needs what of `client_ip` is told in the docs of `tollgate-http`.
//!
//! ## `[limits.NAME]`
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `key` | 1 to 4 dimensions that are counted together, like `["tenant", "user ?? client_ip"]`; `a ?? b` takes `b` where `a` has no value (up to 4 alternatives); calls without any value share one bucket | required |
//! | `algorithm` | `"token-bucket"`: calls come back one by one; `"fixed-window"`: a count that starts anew with every period since the Unix epoch, 1 s at least; `"quota"`: one that starts anew with every day or month of `zone`; `"sliding-window"`: the count of the period, and of the one before as much as is left of it; `"sliding-log"`: every call of the last period, 1 s at least, exact, up to 32; `"pacer"`: for calls that go out, each is told when it may go. Windows count up to 999,999,999 | `"token-bucket"` |
//! | `zone` | of a quota: a name of the IANA time zone database, like `"Europe/Bucharest"` | `"UTC"` |
//! | `rate` | `"N/UNIT"` or `"N/MUNIT"`, like `"50/h"` or `"5/15min"`; units `ms`, `s` `sec` `second`, `min`, `h` `hour`, `day` (24 h), `year` (365 days); of a quota `"N/day"` or `"N/month"`; whole numbers | required |
//! | `burst` | of a token bucket, most tokens at once, 1 to 10^12; of a pacer, how many calls beyond the one that is due are taken, 0 to 10^12 - 1 | the N of `rate`; of a pacer 0 |
//! | `debt` | how much beyond what it has a limit lends to calls that turn out to cost more than they were charged, 0 to 10^12; not of a log or a pacer | 0 |
//! | `count` | `"all"` calls, or `"failures"`: those that are answered with 400 or above. Every call is charged before it goes on, and one that succeeds is given back before its answer, so that many at once are no more tries than in turn | `"all"` |
//! | `on_success` | where failures count, what a success does to those before it: `"clear"` forgets them (of a log), `"keep"` does not: for limits of whoever may have accounts of his own, like an address | `"clear"` of a log, else `"keep"` |
//! | `refund_on` | `"5xx"`: a call that the server failed is given back, else it counts; not of a pacer | none |
//! | `delay` | of a pacer: the first so many of the burst go at once, 0 to `burst`; the others wait for their turn | 0 |
//! | `max_wait` | of a pacer: a call that would have to wait longer is denied at once, and not counted, like `"2s"` | as long as the burst lasts |
//! | `plans.PLAN` | `{ rate, burst, debt }` of one plan, which replace the figures of the limit | the limit's own |
//! | `message` | what a denied caller is told: text, or a table by language tag; `{rate}` `{burst}` `{limit}` `{plan}` `{retry_after}` are filled in, `{{` and `}}` are braces | none |
//! | `upgrade_url` | where a denied caller can get more: a path or `http(s)` URL | none |
//! | `on_change` | what a newer revision does with debt: `"proportional"`, `"reset"`, `"keep"` (tokens) | `"proportional"` |
//! | `own_item` | `true`: the limit has an item, and a write, of its own; `false`: limits with the same key share one | `false` |
//! | `lease` | for keys that many call: most tokens that a process takes ahead of the calls that it expects, in the write of one of them, and then spends without asking the table, 1 to 10^12. Implies an item of its own. Not of logs and pacers, nor with `penalty`, `debt`, `count = "failures"`, `refund_on`, `atomic`, shadow mode or `coalesce = false`. What it may cost, and what shows later, is told in [`tollgate_core::lease`] | no leases |
//! | `shards` | 2 to 100: the limit is divided among so many items, for keys that more than 1,000 calls a second are made on; each call is on one of them, and asks another if that has no room. Together they admit what the limit says and no more. A call can be denied while others have room, and must not cost more than the smallest shard takes. Of every plan at least 1 at once for each; 25 at most if the key has personal values. Not of a log or a pacer, nor with `atomic`, `lease` or `penalty` | one item |
//! | `mode` | `"enforce"`, or `"shadow"`: the limit decides, is charged and reports, but never denies | `"enforce"` |
//! | `atomic` | `true`: a decision that charges this limit and others on other keys is one transaction, at double write units; for long quotas, which a charge that could not be given back would dent for long, and not for keys that many call at once, since a transaction keeps the others waiting | `false` |
//! | `first` | `true`: where a decision is on several keys, this one's is asked before the others, which are charged only if it allows. One round trip more; a denial costs one write, and of many calls at once as many go on as it has room for (apart, each key chooses its own, and only those go on that all have chosen). Not in a transaction | `false` |
//! | `coalesce` | `true`: calls of one process that are alike and come while one of them is under way wait for it, and then take one write together; what becomes of that becomes of all. `false`: each takes its own, and so do those of limits that share its item. Those of logs, pacers, limits with `penalty` or in shadow mode, and charges with `settle_within` do in any case | `true` |
//! | `deny_cache` | `true`: a process denies by what it saw of the key up to a second ago where that leaves no room for the call; `false`: the limit denies nothing without asking the table, at a write or a read each | `true` |
//! | `on_store_failure` | while the table gives no answer: `"local"`: each process admits its share, the limit over `instances`, and denies the rest; `"open"`: the call passes; `"closed"`: it is refused with 503. The route's goes first, then the strictest of the failed key's limits (`"closed"`, then `"local"`) | `"local"` |
//! | `headers` | `"visible"`, or `"hidden"`: neither headers nor body of an answer name the limit or its figures | `"visible"` |
//! | `penalty` | how long the limit locks a key that it has denied, see below | none |
//! | `retry_jitter` | a denied caller is told to wait for up to so much longer than it has to, at random, like `"10s"`; up to `"1h"` | `"0s"` |
//!
//! ### `penalty`
//!
//! Whoever is denied by the limit's own arithmetic is locked out: every call is denied until the lock ends, whatever the limit has
//! by then. Each further lock is longer by `factor`.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `first` | the first lock, 1 s to 30 days; like every lock it is at least as long as what the limit itself asks for | required |
//! | `factor` | how many times as long as the last one a lock is, 1 to 10 | 2 |
//! | `most` | the longest lock, `first` to 30 days | `"1h"`, or `first` if that is longer |
//! | `forget` | for each such time since the end of the last lock the next one is a level shorter, up to 365 days | `"24h"` |
//! | `extend` | `true`: a call during a lock has it begin anew, at the same level. A process denies from memory for up to a second, and such calls do not count; so a locked key costs one write a second and process at most | `false` |
//! | `edge_after` | who is locked with so many locks before it that are not forgotten is kept out in front, too, until the lock ends: see `keep_out` of `[edge]`. From 1 to those that it takes to `most`. Of limits whose `key` is the address alone, and not in shadow mode | never |
//!
//! A cost of 0 observes and changes nothing; a cost that never fits locks nobody. A limit in shadow mode is locked alike, and
//! only reports it. Newer revisions and plans leave locks alone; `tollgate reset` lifts them.
//!
//! ## `[[routes]]` and `[[exempt]]`
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `match` | which requests, see below | required |
//! | `charge` (routes) | limits, each once; those with several keys are charged all or none: `"NAME"` costs 1, or `{ limit = "NAME", cost = N }` with N from 1 to the smallest burst of any plan (of a pacer, one more) | required |
//! | `settle_within` (a charge of a route) | `{ limit = "NAME", cost = N, settle_within = "1min" }`: the cost is an estimate, and the handler tells the true one within that time, a day at most. Up to 32 such calls of a key can be unsettled at once; beyond that one is charged as it is estimated, and settled once at most. Not of a pacer | the cost is final |
//! | `on_store_failure` (routes) | as for limits | the limits' |
//! | `atomic` (routes) | as for limits, for every decision of the route | `false` |
//! | `cors` (routes) | `false`: answers of this route leave CORS to others | `true` where `[http]` has `cors` |
//! | `step_up` (routes) | which authentication the route demands, see below | none |
//! | `why` (exempt) | the reason, for whoever reads the policy next | required |
//!
//! A `match` is a method and a path, `POST /api/orders`. The method is one, a list (`GET,HEAD`), or `*` or `ANY`; it is
//! compared with regard to case, and `GET` does not include `HEAD`. The path is compared as it is sent, up to the query:
//! with regard to case, without decoding, slash for slash. `{name}` stands for one segment that is not empty; a last
//! segment `*`, `**` or `{name+}` stands for the rest: `/api/*` matches `/api/`, `/api/x` and `/api/x/y`, but not `/api`.
//! The paths `*`, `/*` and `/**` match any target, also one that is no path (`OPTIONS *`, or a whole URL). `*` alone is
//! `* *`: every request.
//!
//! The most specific route wins, whatever the order in the file: paths are compared segment by segment from the left
//! (literal before `{name}` before rest before any target), then a given method goes before any. Two routes that match
//! a common request with neither more specific are an error, and so is a route that exemptions cover wholly.
//!
//! ### `step_up`
//!
//! Whoever has not proved of late who he is gets 401 and is told what to do (RFC 9470). `user`, `tenant` and `session` say whose
//! authentication counts, and must come from claims or the gateway's context. `session` names one sign-in: a claim that no refresh of
//! a token changes and every sign-in does, like Cognito's `origin_jti`.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `max_age` | how long ago the authentication may be, `1s` to `24h` | required |
//! | `acr` | classes of which it has to be one, like `["mfa"]`; up to 16 | any |
//! | `amr` | methods of which it has to have used one, like `["hwk", "otp"]` (RFC 8176); up to 16 | any |
//! | `bind` | fields of the body that it has to be about, like `["iban"]`, or `[]`: it is then good for one request with this method, target and these values, once | it is good for all that the session does |
//!
//! ## `[http]`
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `legacy_headers` | older fields in addition to `RateLimit` and `RateLimit-Policy`: `"RateLimit"` for `RateLimit-Limit`, `-Remaining`, `-Reset`, `"X-RateLimit"` for the same with `X-` in front; resets are in seconds from now | `[]` |
//! | `cors` | `{ origins, credentials }`: pages that may read denials and the fields of other answers | none |
//! | `cors.origins` | `["https://app.example.com"]` as browsers write them, or `["*"]` for any | required |
//! | `cors.credentials` | `true`: also requests with cookies; not with any origin | `false` |
//!
//! ## `[otp]`
//!
//! One-time codes, as `tollgate-otp` makes and verifies them; what is stored of one is a hash under [`KeySecrets`].
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `purposes` | what codes are for, like `["login", "change-phone"]` (`a-z`, then `a-z 0-9 _ -`); a code for one is good for no other, and each has its own budget and cooldown | required |
//! | `countries` | where codes may be sent to, like `["RO", "VN"]` (ISO 3166-1); numbers of others get none | `[]`: nowhere |
//! | `region` | where a profile's number without a country code belongs, like `"RO"` | such a number is none |
//! | `digits` | how many digits a code has, 6 to 10; codes that are under way are bad input once this changes | 6 |
//! | `ttl` | for how long a code is good, `1min` to `10min` | `5min` |
//! | `attempts` | how often one code can be tried, 1 to 10 | 5 |
//! | `budget` | how often an account can be tried, whatever codes it is sent, like `"10/h"`: 1 to 100 guesses in a window of 1 min to 30 days, which begins with the first code sent after the last one is over. A right code counts only until it is used | `"10/h"` |
//! | `channels` | how codes are sent: the first of `"sms"`, `"email"` and `"event"` (by whoever takes the event) that somebody has verified a number or address for | `["sms"]` |
//! | `message` | the text that a code is sent with, or `{ en = "...", ro = "..." }` by `Accept-Language`; placeholders: `{code}`, which must be there, `{purpose}`, `{minutes}` | English |
//! | `subject` | that of an email, likewise, without `{code}` | English |
//! | `domain` | the site that browsers and telephones may fill the code of an SMS in on, like `"example.com"`: its last line is then `@example.com #123456` (WICG, "Origin-bound one-time codes delivered via SMS") | no such line |
//! | `captcha` | whether every wish to be sent a code needs a solved CAPTCHA | `false` |
//! | `cooldown` | how long after a code the next one can be sent, see `penalty` for its keys `first`, `factor`, `most`, `forget` | `{ first = "1min", forget = "10min" }` |
//! | `acr` | the class of authentication that a right code is, on top of the first factor, like `"mfa"`: it freshens the session for routes with `step_up`. Needs `factors` | it freshens none |
//! | `factors` | purposes whose right code is a second factor, on top of a first one of another kind, and proves `acr`; a fallback where an account has no other. Needs `acr` | none |
//! | `sign_in` | purposes whose right code is how somebody signs in, or gets back in: in that session a code by the same channel is no second factor. None of `factors` | none |
//! | `pumping` | `{ prices, spend, reduced }`: messages are counted by what becomes of them, and whoever only causes costs is stopped; needs secrets | nobody watches |
//! | `pumping.prices` | what a message to each country costs, like `{ RO = 480, VN = 790 }`, in any unit: that of the limits of `spend`; a price for each of `countries` | required |
//! | `pumping.spend` | limits that this is charged on, in place of their cost on the route, like `["otp-spend-hour", "otp-spend-day"]`; nothing is sent that one of them has not counted | required |
//! | `pumping.reduced` | the limit on which a message to suspected numbers costs 1 while few are to be sent, and others nothing; by `context.otp.suspect`, the prefix or country. Not one of `spend`; nothing is sent to them that it has not counted | required |
//!
//! ## `[edge]`
//!
//! Rules of AWS WAF, which count by address before anything is reached that costs more; `tollgate waf` renders and applies them. What
//! `[[exempt]]` names is not counted there either: by its method and the exact bytes of its path, so that no other spelling
//! is exempt. A parameter of such a pattern stands for letters, digits, `.`, `_`, `~` and `-`.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `scope` | `"regional"`: REST APIs, load balancers and the like of one Region; `"cloudfront"`: distributions | `"regional"` |
//! | `web_acl` | the name of the ACL that the rules are in; others may have rules there, too | `"tollgate"` |
//! | `prefix` | how the names of rules, IP sets and bodies begin that are this policy's; what begins otherwise is left alone | `"tollgate-"` |
//! | `stage` | what happens to a request over a limit: `"count"`, `"block"`, `"captcha"`, `"challenge"` | `"count"` |
//! | `priority` | the priority of the first rule; the others count up from it | 40 |
//! | `base_paths` | `["/prod"]`: what requests may have before the paths of rules and exemptions, since WAF sees what clients send: the stage of a REST API that is called by its own URL, the base path of a custom domain | nothing |
//! | `egress` | networks by name whose callers share addresses, `{ hq = ["203.0.113.0/24"] }` | none |
//! | `forwarded` | `{ header = "X-Real-IP", if_invalid = "match" }`: the header that says who is calling, where a proxy in front overwrites it; and whether a request without a valid address there is taken for one over the limit (`"match"`), or for none (`"no-match"`). A request without that header is not counted at all | the address of the connection |
//! | `bodies` | `{ slow = { type = "json", content = '...' } }`: what a blocked request is answered with; `type` is `"json"`, `"text"` or `"html"`, `content` 1 to 4,096 bytes | a JSON object with `error` and `message` |
//! | `headers` | `{ x-limited-by = "edge" }`: header fields of that answer, up to 8; not `content-type`, nor those that a rule sets itself (`Retry-After`, `Cache-Control`) | none |
//! | `users_per_address` | how many people share one address, like those of the largest office, 1 to 1,000,000: `policy check` warns where a rule stops them although each is within his limits | not checked |
//! | `logging` | `{ destination = ARN, keep = "limited" }`: the log group, bucket or delivery stream (`aws-waf-logs-...`) that takes what the rules caught, or with `"all"` every request; without the headers `authorization` and `cookie`, and the query | none |
//!
//! ### `keep_out`
//!
//! Addresses that limits have locked once too often (`edge_after` of their `penalty`) are put into an IP set by the sentinel, every minute, and taken out when
//! the lock ends. None is that overlaps one of `egress` or of `client_ip`'s `trusted_proxies`. What `[[exempt]]` names passes.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `most` | addresses at once, 1 to 2,000; those whose locks end last stay | 1,000 |
//! | `stage` | as above, of their requests | that of `[edge]` |
//! | `body` | one of `bodies` | ours |
//! | `retry_after` | how long they are told to wait, 1 s to 24 h | `"5min"` |
//! | `priority` | the place of the rule in the ACL | before the first rule |
//!
//! ### `[[edge.rules]]`
//!
//! 1 to 10 of them.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `name` | like `"rate-auth"` | required |
//! | `rate` | requests of one address, `"100/5min"`: 10 to 2,000,000,000 over 60, 120, 300 or 600 s. WAF comes near that and does not count exactly | required |
//! | `paths` | which paths, each with all below it and however it is spelled, like `["/api/auth/"]` | every path |
//! | `except` | `{ egress = ["hq"] }`: whose requests it does not count | nobody's |
//! | `stage` | as above, of this rule | that of `[edge]` |
//! | `body` | one of `bodies` | ours |
//! | `retry_after` | how long a blocked caller is told to wait, 1 s to 24 h | the window |
//! | `priority` | its place in the ACL, lower first | counts up |
//!
//! ## `[mfa]`
//!
//! Second factors, as `tollgate-mfa` enrols and verifies them. Their accounts are `user` and `tenant`, which must not be personal values:
//! factors outlive the secrets that these are hashed under.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `issuer` | who issues them, as authenticator apps show it, like `"Example Ltd"`; up to 64 bytes without a colon | required |
//! | `acr` | the class of authentication that a right code is, on top of the first factor | `"mfa"` |
//! | `max_age` | how long ago whoever enrols a factor may have proved who he is, `1s` to `1day`: for the first factor by signing in, for a further one by that class | `"5min"` |
//! | `enrol_acr` | the class of what proves enough to enrol and remove factors, and no more: a factor weaker than what is required, or one of an account that lacks something. Another one than `acr` | `"mfa-enrol"` |
//! | `first_factor` | what somebody has signed in by (`amr`, RFC 8176) where neither his token nor his session says it: a second factor has to be of another kind | `["pwd"]` |
//! | `audit_retention` | for how long an entry of the audit log is kept, `30day` to `3650day` | `"400day"` |
//! | `cooldown` | how long what a change of factors adds beside another factor proves nothing, and the change can be cancelled, `24h` to `72h` | `"24h"` |
//! | `cancel_url` | the page that the link of a notice opens, with `{token}` once; at `https` (`http://localhost` on this machine), up to 200 bytes | none: notices have no link |
//! | `recovery.wait` | how long after it was requested a recovery can be completed at the earliest, `24h` to `72h` | `"24h"` |
//! | `passkeys.rp_id` | the domain that passkeys are made for, like `"example.com"`, or `"localhost"`; another one later makes them useless | required in `passkeys`; without it there are no passkeys |
//! | `passkeys.origins` | the pages that may use them, like `["https://login.example.com"]`: of that domain or one below it, with `https` (`http` for `localhost` only), up to 10 | required in `passkeys` |
//! | `passkeys.user_verification` | whether the authenticator has to know its owner by a PIN, a finger or a face: `"required"`, or `"preferred"`: if it can | `"required"` |
//! | `passkeys.timeout` | for how long a challenge can be answered, `30s` to `10min` | `"5min"` |
//!
//! ### `[mfa.tenants]`
//!
//! What holds for every tenant. A tenant's own rules, in the table, can only be stricter.
//!
//! | key | value | default |
//! | --- | --- | --- |
//! | `allowed` | kinds that may be enrolled and prove something: `"totp"`, `"passkey"`, `"recovery"`, and `"sms"` and `"email"` as fallbacks by `[otp]` | all of them |
//! | `required` | kinds of which every account has to have one, `"totp"`, `"passkey"` or both; what is weaker than the stronger of these proves `enrol_acr` only | none |
//! | `minimum` | how many of `totp` and `passkey` every account has to have, 0 to 2 | 0 |
//! | `grace` | how long after a tenant's admin has said so something may be required of people, or taken away, that they could not do without before, `1day` to `90day` | `"7day"` |
//! | `admin` | `{ claim = "role", value = "admin" }`: who may change a tenant's rules, by a claim; its value may be one of several | nobody |

mod address;
mod algorithm;
mod canonical;
mod charges;
mod decode;
mod device;
mod diagnostic;
mod edge;
mod error;
mod factors;
mod http;
mod identity;
mod jitter;
mod keying;
mod limit;
mod live;
mod logged;
mod message;
mod mfa;
mod network;
mod otp;
mod pattern;
mod policy;
mod pseudonym;
mod rate;
mod report;
mod route;
mod step_up;
mod suggest;
mod syntax;

pub use address::parse as parse_address;
pub use algorithm::Algorithm;
pub use canonical::{Fold, Region};
pub use charges::{IfMissing, Resolution, ResolvedCharge, ResolvedKey, Wanted};
pub use decode::{KEYS, KeyList};
pub use device::{Device, DeviceCookie, KnownDevice};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use edge::{
    BodyKind, Edge, EdgeBody, EdgeLogging, EdgeRule, EdgeScope, EgressSet, ForwardedAddress, KeepsOut, Stage,
};
pub use error::{Error, Result};
pub use factors::{Admin, FactorKind, FactorRules, NoFactorKind, TenantRules, Unfit};
pub use http::{Cors, Http, LegacyHeaders};
pub use identity::{AddressHeader, Cidr, ClientIp, Dimension, Identity, Logged, Source, Trust, is_internal};
pub use jitter::up_to;
pub use limit::{Figures, KeyPart, Limit, OnSuccess};
pub use live::LivePolicy;
pub use message::{Message, Messages, Placeholder};
pub use mfa::{MfaRules, PasskeyRules, UserVerification};
pub use network::Network;
pub use otp::{Channel, OtpRules, OtpUse, PumpingRules, Purpose};
pub use pattern::{PathPart, Pattern, without_stage};
pub use policy::{Parsed, Plans, Policy};
pub use pseudonym::{KeySecrets, KeySecretsError};
pub use rate::{duration, rate_text};
pub use route::{Exemption, Route, RouteCharge, RouteMatch};
pub use step_up::StepUp;
pub use tollgate_core::{Mode, StoreFailure};

/// JSON Schema (draft 2020-12) of the policy file, for editors: `#:schema PATH` in its first line.
pub const JSON_SCHEMA: &str = include_str!("../tollgate.schema.json");
