//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Rate limiting on one DynamoDB table.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Serve decisions locally, on an embedded DynamoDB or the one you name
    Dev(DevArgs),
    /// Race clients that share nothing for one new key, and count what the table admitted
    Race(RaceArgs),
    /// One process of a race
    #[command(hide = true)]
    RaceWorker(RaceWorkerArgs),
    /// Measure round trips, write units, latency, arithmetic and the limiter function's cold start
    Bench(BenchArgs),
    /// Tell what a policy would have done to an access log
    Replay(ReplayArgs),
    /// Play an attack beside people who sign in, and tell what it got
    Attack(AttackArgs),
    /// Check a policy file
    Policy(PolicyArgs),
    /// Tell which limits a request would be charged on, and under which keys
    Explain(ExplainArgs),
    /// Create the table, or check one that exists
    Table(TableArgs),
    /// Show what the table remembers of a key
    Inspect(KeyArgs),
    /// Fill a key's buckets
    Reset(LimitArgs),
    /// Give one key other figures on one limit, until some time
    Override(OverrideArgs),
    /// Deny a key every call, until some time
    Ban(BanArgs),
    /// Lift a key's ban and overrides, or its override of one limit
    Allow(LimitArgs),
    /// List what is set in the whole table; with --under, check that a secret that is to go takes no ban or override along
    Holds(HoldsArgs),
    /// Set what is set for a caller under one of several secrets under all of them
    Carry(CarryArgs),
    /// Erase a key: its items, and those of every key that has all of its dimensions
    Forget(KeyArgs),
    /// End what a user has proved of who he is
    Session(SessionArgs),
    /// Show the audit log of second factors of a user or a tenant, and check it; exit code 1 if entries are missing or were changed
    Audit(AuditArgs),
    /// Make a policy's rules of AWS WAF, see what differs, bring an ACL to them
    Waf(WafArgs),
}

/// Which table, and where.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// DynamoDB endpoint, for instance http://127.0.0.1:8000; the Region's own if not given
    #[arg(long, value_name = "URL", env = "TOLLGATE_ENDPOINT_URL")]
    pub endpoint_url: Option<String>,
    /// AWS Region; from the environment or the profile if not given
    #[arg(long)]
    pub region: Option<String>,
    /// Table name
    #[arg(long, default_value = "tollgate", env = "TOLLGATE_TABLE")]
    pub table: String,
}

/// Which policy.
#[derive(Debug, Clone, Args)]
pub struct PolicyFile {
    /// Policy file
    #[arg(long, value_name = "FILE", default_value = "infra/tollgate.toml", env = "TOLLGATE_POLICY")]
    pub policy: PathBuf,
}

/// Output as JSON.
#[derive(Debug, Clone, Copy, Args)]
pub struct Json {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Where time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockKind {
    /// The operating system's clock
    System,
    /// A clock that moves only by `POST /dev/clock`
    Manual,
}

/// `tollgate dev`
#[derive(Debug, Args)]
pub struct DevArgs {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:8787")]
    pub addr: SocketAddr,
    /// Where time comes from
    #[arg(long, value_enum, default_value_t = ClockKind::System)]
    pub clock: ClockKind,
    /// Who has verified which number, as JSON: {"alice":{"phone":"+40721234567","verified":true}}; alice, bob and a crowd if not given
    #[arg(long, value_name = "FILE")]
    pub profiles: Option<PathBuf>,
    /// Issuer whose bearer tokens are believed, as `iss` has it; without it x-dev-principal alone says who calls
    #[arg(long, value_name = "URL", requires = "audience")]
    pub issuer: Option<String>,
    /// Who the tokens are for: `aud`, or Cognito's `client_id`
    #[arg(long, value_name = "NAME")]
    pub audience: Vec<String>,
    /// Algorithms that tokens may be signed with
    #[arg(long, value_name = "NAME", default_value = "RS256")]
    pub algorithm: Vec<String>,
    /// Policy
    #[command(flatten)]
    pub policy: PolicyFile,
    /// Table
    #[command(flatten)]
    pub target: Target,
    /// Output
    #[command(flatten)]
    pub json: Json,
}

/// `tollgate race`
#[derive(Debug, Clone, Args)]
pub struct RaceArgs {
    /// Clients that ask at once, each with a connection and a memory of its own
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clients: u32,
    /// Tokens that the new key has
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub capacity: u64,
    /// Processes that the clients are spread over
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub processes: u32,
    /// Keys in each decision, all or nothing: the first has the capacity, the others a token for every client
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub keys: u32,
    /// Let every client read the system's clock, instead of all asking at the instant at which the race began
    #[arg(long)]
    pub running_clocks: bool,
    /// Kill one process (SIGKILL) while it races; needs --processes 2 or more
    #[arg(long)]
    pub kill: bool,
    /// Table
    #[command(flatten)]
    pub target: Target,
    /// Output
    #[command(flatten)]
    pub json: Json,
}

/// One process of a race: told what to do by its parent.
#[derive(Debug, Clone, Args)]
pub struct RaceWorkerArgs {
    /// Clients in this process
    #[arg(long)]
    pub clients: u32,
    /// Tokens of the key
    #[arg(long)]
    pub capacity: u64,
    /// The tokens of the other keys
    #[arg(long)]
    pub plenty: u64,
    /// The keys' values, the first that of the key that is raced for
    #[arg(long = "key")]
    pub keys: Vec<String>,
    /// The instant that all clients ask at, nanoseconds since the epoch; the system's clock if not given
    #[arg(long)]
    pub at_ns: Option<u64>,
    /// Table
    #[command(flatten)]
    pub target: Target,
}

/// `tollgate bench`
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Seconds for each throughput line; counts do not depend on it
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Folder with the `limiter` and `hello` executables; beside this program if not given
    #[arg(long, value_name = "DIR")]
    pub lambda_dir: Option<PathBuf>,
    /// Table
    #[command(flatten)]
    pub target: Target,
    /// Output
    #[command(flatten)]
    pub json: Json,
}

/// `tollgate replay`
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Logs, each plain or gzip, in any format that is known (combined, ALB, CloudFront, API Gateway and AWS WAF JSON); patterns like
    /// 'logs/*.gz' in quotes; `-` for standard input
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<String>,
    /// A dimension of the policy and the field of the log that has it, for instance user=claims.sub; may be repeated
    #[arg(long, value_name = "DIMENSION=FIELD")]
    pub identity: Vec<String>,
    /// Plan of callers of whom the log tells none; the policy's default if not given
    #[arg(long)]
    pub plan: Option<String>,
    /// Another policy: tell who would be newly denied by it, and who freed
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Suggest limits out of the traffic: the table, and as policy the row of this percentile (p99 if none is named)
    #[arg(long, value_name = "PERCENTILE", num_args = 0..=1, require_equals = true, default_missing_value = "p99", value_parser = ["p50", "p90", "p99", "p99.9", "max"])]
    pub suggest: Option<String>,
    /// Write the report with charts to this file, a page that opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Denied keys shown for each limit
    #[arg(long, default_value_t = 10)]
    pub top: usize,
    /// Policy
    #[command(flatten)]
    pub policy: PolicyFile,
    /// Output
    #[command(flatten)]
    pub json: Json,
}

/// `tollgate attack`
#[derive(Debug, Args)]
pub struct AttackArgs {
    /// Which
    #[command(subcommand)]
    pub command: AttackCommand,
}

/// The attacks.
#[derive(Debug, Subcommand)]
pub enum AttackCommand {
    /// Somebody shares in what messages cost, and has them sent: a simulated day that would be a bill of 40 times the usual
    SmsPumping(PumpingArgs),
    /// Somebody who has a password guesses the codes, for a simulated day
    OtpBruteforce(GuessArgs),
    /// Fifty callers at once type the right code, or wrong ones
    OtpRace(GuessArgs),
    /// A few passwords are tried on many accounts from many addresses, for a simulated hour
    PasswordSpray(GuessArgs),
}

/// `tollgate attack sms-pumping`
#[derive(Debug, Args)]
pub struct PumpingArgs {
    /// First seed; a new one if not given
    #[arg(long)]
    pub seed: Option<u64>,
    /// Seeds, each with other people, prefixes, volumes and habits; the worst is what is told
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Write a page with charts, which opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Policy
    #[command(flatten)]
    pub policy: PolicyFile,
    /// Output
    #[command(flatten)]
    pub json: Json,
}

/// `tollgate attack otp-bruteforce|otp-race|password-spray`
#[derive(Debug, Args)]
pub struct GuessArgs {
    /// Seed of the guesses
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Development server of this machine, started with --clock manual; one of the command's own if not given
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Write a page with a chart, which opens without a network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Policy of the command's own server
    #[command(flatten)]
    pub policy: PolicyFile,
    /// Output
    #[command(flatten)]
    pub json: Json,
}

/// `tollgate policy`
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// What to do
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// The policy commands.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Show every mistake of a policy file at once; exit code 1 if there is one
    Check {
        /// Policy file
        file: PathBuf,
        /// Output
        #[command(flatten)]
        json: Json,
    },
    /// Print the JSON Schema of the policy file, for editors
    Schema {
        /// Output; a schema is JSON either way
        #[command(flatten)]
        json: Json,
    },
}

/// What hands a request over to the function or server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GatewayKind {
    /// A REST API of API Gateway
    Rest,
    /// An HTTP API of API Gateway
    Http,
    /// A function URL
    Url,
    /// An Application Load Balancer
    Alb,
    /// None: a server of one's own
    None,
}

/// `tollgate explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Method
    #[arg(long, required_unless_present_any = ["event", "response", "log"])]
    pub method: Option<String>,
    /// Path, with a query if there is one; begins with `/`
    #[arg(long, required_unless_present_any = ["event", "response", "log"])]
    pub path: Option<String>,
    /// Why an answer was given: as `curl -i` prints it, or only header fields or a body; `-` for standard input. With --method and
    /// --path, on which route
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["gateway", "headers", "claims", "source_ip", "body", "event", "user", "tenant", "api_key", "client_ip", "dimensions"]
    )]
    pub response: Option<PathBuf>,
    /// Why calls were denied: lines that functions have logged; `-` for standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["response", "method", "path", "gateway", "headers", "claims", "source_ip", "body", "event", "user", "tenant", "api_key", "client_ip", "dimensions"]
    )]
    pub log: Option<PathBuf>,
    /// What hands the request over; who is believed for the client's address depends on it
    #[arg(long, value_enum, default_value_t = GatewayKind::Http)]
    pub gateway: GatewayKind,
    /// Header of the request as it reaches the gateway, as "NAME: VALUE"; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", allow_hyphen_values = true)]
    pub headers: Vec<String>,
    /// Claim of the caller's verified token, as NAME=VALUE; may be repeated
    #[arg(long = "claim", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub claims: Vec<String>,
    /// Address that the gateway saw, which it appends to `X-Forwarded-For`; of a load balancer it must be given
    #[arg(long, value_name = "ADDRESS")]
    pub source_ip: Option<String>,
    /// Body of the request
    #[arg(long, allow_hyphen_values = true)]
    pub body: Option<String>,
    /// The request as the event that a function got, in JSON, instead of all of these
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["method", "path", "gateway", "headers", "claims", "source_ip", "body"]
    )]
    pub event: Option<PathBuf>,
    /// User, as the policy's identity mapping would find it
    #[arg(long, allow_hyphen_values = true)]
    pub user: Option<String>,
    /// Tenant
    #[arg(long, allow_hyphen_values = true)]
    pub tenant: Option<String>,
    /// Plan
    #[arg(long)]
    pub plan: Option<String>,
    /// API key
    #[arg(long, allow_hyphen_values = true)]
    pub api_key: Option<String>,
    /// Client address
    #[arg(long)]
    pub client_ip: Option<String>,
    /// Any other dimension, as NAME=VALUE; may be repeated
    #[arg(long = "dimension", value_name = "NAME=VALUE")]
    pub dimensions: Vec<String>,
    /// Policy
    #[command(flatten)]
    pub policy: PolicyFile,
    /// Output
    #[command(flatten)]
    pub json: Json,
}

/// `tollgate table`
#[derive(Debug, Args)]
pub struct TableArgs {
    /// What to do
    #[command(subcommand)]
    pub command: TableCommand,
}

/// The table commands.
#[derive(Debug, Subcommand)]
pub enum TableCommand {
    /// Create the table: on demand, TTL on
    Create {
        /// Turn point-in-time recovery on
        #[arg(long)]
        point_in_time_recovery: bool,
        /// Turn deletion protection on
        #[arg(long)]
        deletion_protection: bool,
        /// On what
        #[command(flatten)]
        on: Operated,
    },
    /// Check the table and say for each thing that is wrong how to mend it; exit code 1 if decisions would go wrong
    Describe {
        /// On what
        #[command(flatten)]
        on: Operated,
    },
}

/// What an operator's command works on, and how it answers.
#[derive(Debug, Clone, Args)]
pub struct Operated {
    /// Policy file, to check names against, and to read the values of a KEY by; commands on a key need one and take
    /// infra/tollgate.toml if it is there
    #[arg(long, value_name = "FILE", env = "TOLLGATE_POLICY")]
    pub policy: Option<PathBuf>,
    /// Table
    #[command(flatten)]
    pub target: Target,
    /// Output
    #[command(flatten)]
    pub json: Json,
}

/// `tollgate inspect|forget`
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Key, like `user:alice` or `tenant:acme,user:alice` (`,` `:` `%` in values percent-escaped); values as people write
    /// them, or personal ones as a key shows them
    pub key: String,
    /// Take KEY exactly as it is written, and whether a limit is counted by it or not; `ban` and `override` need a policy that
    /// declares its dimensions all the same
    #[arg(long)]
    pub literal_key: bool,
    /// On what
    #[command(flatten)]
    pub on: Operated,
}

/// `tollgate reset|allow`
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Only this limit
    #[arg(long)]
    pub limit: Option<String>,
    /// Key
    #[command(flatten)]
    pub key: KeyArgs,
}

/// `tollgate override`
#[derive(Debug, Args)]
pub struct OverrideArgs {
    /// Which limit
    #[arg(long)]
    pub limit: String,
    /// Rate, as a policy writes it: 100/h, 5/15min
    #[arg(long)]
    pub rate: String,
    /// Most tokens at once, the number of the rate if not given; of a pacer, how many calls beyond the one that is due, 0 if
    /// not given
    #[arg(long)]
    pub burst: Option<u64>,
    /// For how long, 1 second to 10 years: 90s, 30min, 2h, 7day
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: String,
    /// Key
    #[command(flatten)]
    pub key: KeyArgs,
}

/// `tollgate ban`
#[derive(Debug, Args)]
pub struct BanArgs {
    /// For how long, 1 second to 10 years: 90s, 30min, 2h, 7day
    #[arg(long = "for", value_name = "DURATION", default_value = "24h")]
    pub duration: String,
    /// Key
    #[command(flatten)]
    pub key: KeyArgs,
}

/// `tollgate holds`
#[derive(Debug, Args)]
pub struct HoldsArgs {
    /// Only what is in force under this retiring secret and not under the active one; exit code 1 if there is something
    #[arg(long, value_name = "ID")]
    pub under: Option<String>,
    /// On what
    #[command(flatten)]
    pub on: Operated,
}

/// `tollgate carry`
#[derive(Debug, Args)]
pub struct CarryArgs {
    /// Key with its personal values as people write them, or `-` for keys on standard input, one a line
    pub key: String,
    /// On what
    #[command(flatten)]
    pub on: Operated,
}

/// `tollgate session`
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// What to do
    #[command(subcommand)]
    pub command: SessionCommand,
}

/// The session commands.
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// Revoke all that a user has proved so far, in all his sessions: records of factors, grants, and the `auth_time` of tokens;
    /// in force with the next request of every process
    Revoke(RevokeArgs),
}

/// `tollgate session revoke`
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// User, like `user:alice`, or `tenant:acme,user:alice` where tokens name a tenant (`,` `:` `%` in values percent-escaped);
    /// values as people write them, or personal ones as a key shows them
    pub key: String,
    /// On what
    #[command(flatten)]
    pub on: Operated,
}

/// `tollgate audit`
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Account, like `tenant:acme,user:alice` or `user:alice`, or `tenant:acme` for the tenant's rules (`,` `:` `%` in values
    /// percent-escaped)
    pub key: String,
    /// Only entries since then: a time like 2026-01-31T00:00:00Z or 2026-01-31, or an age like 90s, 2h, 30day. All are checked all
    /// the same
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// On what
    #[command(flatten)]
    pub on: Operated,
}

/// `tollgate waf`
#[derive(Debug, Args)]
pub struct WafArgs {
    /// What to do
    #[command(subcommand)]
    pub command: WafCommand,
}

/// The commands of AWS WAF.
#[derive(Debug, Subcommand)]
pub enum WafCommand {
    /// Print the rules for other tools; asks nobody
    Render {
        /// For whom
        #[arg(long, value_enum, default_value_t = WafFormat::Cloudformation)]
        format: WafFormat,
        /// Where the ACL is to be; as the policy says if not given
        #[arg(long, value_enum)]
        scope: Option<WafScope>,
        /// Policy
        #[command(flatten)]
        policy: PolicyFile,
        /// Output; everything but YAML is JSON either way
        #[command(flatten)]
        json: Json,
    },
    /// Show what differs between the policy and the ACL; exit code 2 if something does
    Plan {
        /// On what
        #[command(flatten)]
        on: WafTarget,
    },
    /// Make the ACL what the policy says; writes nothing if it is
    Apply {
        /// On what
        #[command(flatten)]
        on: WafTarget,
        /// Write; without it, only show what would be written
        #[arg(long)]
        yes: bool,
    },
    /// Take the policy's rules away, and an ACL that it has made if nobody else has rules in it
    Destroy {
        /// On what
        #[command(flatten)]
        on: WafTarget,
        /// Write
        #[arg(long)]
        yes: bool,
    },
    /// Tell what each rule has caught: addresses over its limit now, and a sample of requests
    Status {
        /// On what
        #[command(flatten)]
        on: WafTarget,
    },
    /// List the addresses that limits have handed over to be kept out (`edge_after`), or let one in again
    KeptOut {
        /// An address, or the block that counts as one: it is let in with the sentinel's next run, a minute later at most
        #[arg(long, value_name = "ADDRESS")]
        release: Option<String>,
        /// Table
        #[command(flatten)]
        target: Target,
        /// Policy
        #[command(flatten)]
        policy: PolicyFile,
        /// Output
        #[command(flatten)]
        json: Json,
    },
}

/// Who takes the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WafFormat {
    /// A template of CloudFormation (and SAM) in JSON
    Cloudformation,
    /// The same in YAML
    Yaml,
    /// Properties of the CDK's constructs CfnWebACL, CfnIPSet and CfnLoggingConfiguration
    Cdk,
    /// The calls of the API
    Api,
}

/// Where an ACL is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WafScope {
    /// Of REST APIs, load balancers and the like of one Region
    Regional,
    /// Of distributions of CloudFront, in us-east-1
    Cloudfront,
}

/// Which ACL, and where.
#[derive(Debug, Clone, Args)]
pub struct WafTarget {
    /// Endpoint of AWS WAF, for instance an emulator's; the Region's own if not given
    #[arg(long, value_name = "URL", env = "TOLLGATE_WAF_ENDPOINT_URL")]
    pub endpoint_url: Option<String>,
    /// AWS Region; from the environment or the profile if not given, and us-east-1 for CloudFront
    #[arg(long)]
    pub region: Option<String>,
    /// Resource that the ACL is put on: the ARN of a REST API's stage, a load balancer, ...; may be repeated
    #[arg(long = "associate", value_name = "ARN")]
    pub resources: Vec<String>,
    /// Policy
    #[command(flatten)]
    pub policy: PolicyFile,
    /// Output
    #[command(flatten)]
    pub json: Json,
}
