//! README and the guide: each command is run, each policy is parsed, each answer that is shown is given.
//!
//! Invariant: a block whose language and marks nobody here knows fails the test, so nothing is shown that nothing looks at.
//!
//! | block | what is done with it |
//! | --- | --- |
//! | `toml` | parsed, whole if it has a `version`, else as a change of the sample policy; what follows in its section is served by it |
//! | `toml wrong FILE` | refused; commands of its section find it under that name |
//! | `rust` | of the guide: run by rustdoc (with `no_run`: compiled). Of README: its lines are in a block of the guide or in an example |
//! | `sh`, `console` | run against a `tollgate dev`, and compared with what is printed |
//! | `sh build` | takes a build, or this test itself: looked at |
//! | `sh aws`, also of `console`, `json`, `python`, `js`, `ts` | needs an AWS account: looked at, counted, bounded |
//! | `python`, `ts` | held by the test `clients` to files that it runs |
//! | `console log` | needs access logs: looked at |
//! | `json log` | compared with a line of the real function by the test `printed` of `lambda` |
//! | `http` | its lines are in an answer of the sample API |
//! | `text` | a picture |

pub mod block;
mod compare;
mod costs;
mod policy;
mod privacy;
mod shell;
mod unrun;

use crate::dev::Dev;
use crate::harness::repository;
use block::{Block, blocks, documents};
use shell::Shell;
use std::collections::BTreeMap;

/// Blocks that no test can run: those that need an account, a build or the log. Whoever adds one raises it on purpose.
const MOST_UNRUN: usize = 30;

fn read(file: &str) -> String {
    std::fs::read_to_string(repository(file)).unwrap()
}

/// What is shown beside a command is known to be run; the first words that no test knows.
fn kind(block: &Block) -> Result<&'static str, String> {
    let marks: Vec<_> = block.marks.iter().map(String::as_str).collect();
    match (block.language.as_str(), marks.as_slice()) {
        ("toml", [] | ["wrong", _]) => Ok("parsed"),
        ("python" | "ts", []) => Ok("run elsewhere"),
        ("rust", [] | ["no_run"]) => Ok("compiled"),
        ("sh" | "console", []) => Ok("run"),
        ("sh" | "console" | "json" | "python" | "js" | "ts", ["aws"]) | ("sh", ["build"]) | ("console", ["log"]) => {
            Ok("looked at only")
        }
        ("json", ["log"]) | ("http", []) => Ok("compared"),
        ("text", []) => Ok("pictures"),
        _ => Err(format!("{}: nobody knows what a block `{} {}` is", block.place(), block.language, marks.join(" "))),
    }
}

#[test]
fn every_block_of_readme_and_guide_is_true() {
    let (mut wrong, mut counted) = (Vec::new(), BTreeMap::<_, usize>::new());
    let runs = shell::is_here();
    let answers = answers();
    for file in documents() {
        let found = blocks(&file, &read(&file));
        for section in found.chunk_by(|a, b| a.section == b.section) {
            let (mut shell, mut served) = (None, policy::sample());
            for block in section {
                let looked = kind(block).and_then(|kind| {
                    *counted.entry(kind).or_default() += 1;
                    let run = kind == "run" && runs;
                    match (block.language.as_str(), kind) {
                        ("toml", _) => toml(block, &mut served, &mut shell),
                        (language, "run") if run => {
                            shell.get_or_insert_with(Shell::new).run(&block.text, language, &policy::text(&served))
                        }
                        (language, "looked at only" | "run") => unrun::looked_at(&block.text, language),
                        ("http", _) => is_answered(&block.text, &answers),
                        _ => Ok(()),
                    }
                });
                wrong.extend(looked.err().map(|what| format!("{}: {what}", block.place())));
            }
        }
    }
    println!("blocks: {counted:?}{}", if runs { "" } else { "; there is no bash or no curl: nothing was run" });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(counted["looked at only"] <= MOST_UNRUN, "{counted:?}");
    assert!(counted["run"] >= 20 && counted["parsed"] >= 20, "{counted:?}");
}

/// Checks a policy and leaves it for what follows in its section.
fn toml(block: &Block, served: &mut ::toml::Table, shell: &mut Option<Shell>) -> Result<(), String> {
    if let [_, name] = block.marks.as_slice() {
        std::fs::write(shell.get_or_insert_with(Shell::new).file(name), &block.text).unwrap();
        let refused = tollgate::Policy::parse(&block.text).is_err();
        return if refused { Ok(()) } else { Err("is right".to_owned()) };
    }
    policy::with(policy::sample(), &block.text).and_then(|alone| policy::checked(&alone))?;
    *served = policy::with(std::mem::take(served), &block.text)?;
    policy::checked(served).map_err(|e| format!("with what its section shows before: {e}"))
}

/// What the sample API says to whoever has used up a limit, and to whoever has not proved who he is.
fn answers() -> Vec<String> {
    let dev = Dev::start(&["--clock", "manual"]);
    let by = "x-dev-principal: user=alice,plan=free\r\n";
    for _ in 0..50 {
        dev.ask_with("POST", "/api/orders", by, "{}");
    }
    vec![dev.answer("POST", "/api/orders", by, "{}"), dev.answer("PUT", "/api/payout-account", by, "{}")]
}

/// Whether one of the answers has all lines of the head, and of the body what is shown.
fn is_answered(shown: &str, answers: &[String]) -> Result<(), String> {
    let (head, body) = shown.split_once("\n\n").unwrap_or((shown.trim_end(), "…"));
    let body: String = body.lines().map(str::trim_start).collect();
    let is = |answer: &String| {
        let (theirs, printed) = answer.split_once("\r\n\r\n").unwrap();
        let line = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            theirs.lines().any(|their| match their.split_once(": ") {
                Some((theirs, their_value)) => theirs.eq_ignore_ascii_case(name) && their_value == value,
                None => their == line,
            })
        };
        head.lines().all(line) && compare::is_shown(&body, printed, &mut compare::Learned::new())
    };
    if answers.iter().any(is) { Ok(()) } else { Err(format!("no answer is that, but\n{}", answers.join("\n\n"))) }
}

/// A line of code without its indentation, and without what hides it from readers.
fn code(line: &str) -> Option<&str> {
    let line = line.trim();
    (!line.is_empty() && line != "#" && !line.starts_with("# ")).then_some(line)
}

#[test]
fn the_code_in_readme_is_code_that_is_compiled() {
    let mut compiled = String::from("\n");
    for file in documents().iter().skip(1) {
        for block in blocks(file, &read(file)).iter().filter(|block| block.language == "rust") {
            compiled.extend(block.text.lines().filter_map(code).flat_map(|line| [line, "\n"]));
            compiled += "\n";
        }
    }
    for file in ["crates/tollgate/examples/axum.rs", "crates/tollgate/examples/lambda_http.rs"] {
        compiled.extend(read(file).lines().filter_map(code).flat_map(|line| [line, "\n"]));
    }
    let facade = read("crates/tollgate/src/lib.rs");
    let docs = facade.lines().filter_map(|line| code(line.strip_prefix("//!")?));
    compiled.extend(docs.flat_map(|line| [line, "\n"]));
    for file in ["README.md", "crates/tollgate/README.md"] {
        for block in blocks(file, &read(file)).iter().filter(|block| block.language == "rust") {
            let shown: String = block.text.lines().filter_map(code).flat_map(|line| [line, "\n"]).collect();
            let is_compiled = compiled.contains(&format!("\n{shown}"));
            assert!(is_compiled, "{}: nothing that is compiled has\n{shown}", block.place());
        }
    }
}

#[test]
fn the_policy_in_the_readme_of_the_facade_has_no_mistake() {
    let file = "crates/tollgate/README.md";
    let policies: Vec<_> = blocks(file, &read(file)).into_iter().filter(|block| block.language == "toml").collect();
    assert!(!policies.is_empty());
    for block in policies {
        tollgate::Policy::parse(&block.text).unwrap_or_else(|e| panic!("{}: {e}", block.place()));
    }
}

#[test]
fn readme_and_the_module_list_every_page_and_each_link_leads_somewhere() {
    let (readme, module) = (read("README.md"), read("crates/tollgate/src/guide/mod.rs"));
    for page in documents().iter().skip(1) {
        assert!(readme.contains(&format!("]({page})")), "README has no link to {page}");
        let name = page.rsplit('/').next().unwrap();
        assert!(module.contains(&format!("../../guide/{name}\")]")), "the module has no {name}");
    }
    for file in
        ["README.md", "ARCHITECTURE.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md", "infra/cdk/README.md"]
    {
        let folder = file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        for target in read(file).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            if path.contains("://") || path.contains(' ') {
                continue;
            }
            let text = if path.is_empty() { file.to_owned() } else { format!("{folder}{path}") };
            assert!(repository(&text).exists(), "{file}: {target}");
            if !anchor.is_empty() && text.ends_with(".md") {
                let headings = read(&text);
                let mut headings = headings.lines().filter(|line| line.starts_with('#'));
                assert!(headings.any(|heading| slug(heading) == anchor), "{file}: {target}");
            }
        }
    }
}

/// A heading as GitHub names it.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}
