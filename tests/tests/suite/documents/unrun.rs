//! What a document shows and no test can run, as far as it can be looked at: it is the language that it says, commands and their
//! options are there, parameters are those of the templates, packages those of the workspace.

use super::shell::commands;
use crate::harness::{repository, run, stdout};
use std::process::Command;

/// Programs of others, of which only the shell's grammar is looked at.
const OTHERS: [&str; 10] = ["aws", "pip", "npm", "npx", "rustup", "curl", "export", "cat", "tar", "crane"];
const SAM_OPTIONS: [&str; 4] = ["--config-env", "--parameter-overrides", "--stack-name", "--region"];

pub fn looked_at(text: &str, language: &str) -> Result<(), String> {
    match language {
        "sh" | "console" => commands(text, language).iter().try_for_each(|command| shell(command)),
        "json" => serde_json::from_str::<serde_json::Value>(text).map(drop).map_err(|e| e.to_string()),
        "python" => parses("python3", &["-c", "import ast, sys; ast.parse(sys.stdin.read())"], text),
        // Of a module, so that `await` may stand outside of functions.
        "js" | "ts" => parses("node", &["--input-type=module", "--check"], text).or_else(|e| match language {
            "ts" => parses("node", &["--input-type=module-typescript", "--check"], text),
            _ => Err(e),
        }),
        other => Err(format!("nothing looks at {other} that is not run")),
    }
}

/// Whether a program takes the text from its standard input; a program that is not there takes all.
fn parses(program: &str, args: &[&str], text: &str) -> Result<(), String> {
    use std::io::Write;
    use std::process::Stdio;
    let child =
        Command::new(program).args(args).stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
    let Ok(mut child) = child else { return Ok(()) };
    // Who does not read all has said why.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn shell(command: &str) -> Result<(), String> {
    parses("bash", &["-n"], command)?;
    let text = command.replace("\\\n", " ");
    let text = text.split(" # ").next().unwrap_or_default();
    for part in text.split(['|', ';']).flat_map(|part| part.split("&&")) {
        let words: Vec<_> = part.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["tollgate", args @ ..] => tollgate(args)?,
            ["cargo", "run", "--", args @ ..] => tollgate(args)?,
            ["cargo", args @ ..] => cargo(args)?,
            ["sam", args @ ..] => sam(args)?,
            [program, ..] if OTHERS.contains(program) => {}
            // A variable of the shell.
            [name, ..]
                if name.split_once('=').is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_lowercase())) => {}
            _ => return Err(format!("nobody knows the command `{}`", part.trim())),
        }
    }
    Ok(())
}

/// The command and its options, by what it says of itself.
fn tollgate(args: &[&str]) -> Result<(), String> {
    let words: Vec<_> = args
        .iter()
        .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-'))
        .copied()
        .collect();
    let mut help = None;
    // Trailing words may be values.
    for depth in (1..=words.len()).rev() {
        let output = run(&[&words[..depth], &["--help"]].concat());
        if output.status.success() {
            help = Some(stdout(&output));
            break;
        }
    }
    let help = help.ok_or_else(|| format!("there is no `tollgate {}`", args.join(" ")))?;
    match args.iter().find(|word| {
        word.starts_with("--") && !help.contains(&format!("{word} ")) && !help.contains(&format!("{word}\n"))
    }) {
        Some(option) => Err(format!("`tollgate {}` has no {option}", words.join(" "))),
        None => Ok(()),
    }
}

fn cargo(args: &[&str]) -> Result<(), String> {
    let lock = std::fs::read_to_string(repository("Cargo.lock")).unwrap();
    let known = ["test", "build", "run", "doc", "bench", "lambda"].iter().any(|known| args.first() == Some(known));
    let packages = args.windows(2).filter(|pair| pair[0] == "-p").map(|pair| pair[1]);
    match packages.into_iter().find(|package| !lock.contains(&format!("\nname = \"{package}\"\n"))) {
        Some(package) => Err(format!("there is no package {package}")),
        None if known => Ok(()),
        None => Err(format!("nobody knows `cargo {}`", args.join(" "))),
    }
}

fn sam(args: &[&str]) -> Result<(), String> {
    let templates =
        ["infra/template.yaml", "infra/edge.yaml"].map(|path| std::fs::read_to_string(repository(path)).unwrap());
    if !args.first().is_some_and(|first| ["build", "deploy", "delete", "validate"].contains(first)) {
        return Err(format!("nobody knows `sam {}`", args.join(" ")));
    }
    for word in args[1..].iter().map(|word| word.trim_matches('"')) {
        let unknown = match word.split_once('=') {
            Some((name, _)) => !templates.iter().any(|text| text.contains(&format!("\n  {name}:\n    Type: "))),
            None => word.starts_with("--") && !SAM_OPTIONS.contains(&word),
        };
        if unknown {
            return Err(format!("neither an option of sam nor a parameter of a template: {word}"));
        }
    }
    Ok(())
}

#[test]
fn what_is_not_there_is_found_out() {
    for good in [
        "tollgate waf plan",
        "tollgate waf render --format yaml > x",
        "cargo build --release -p limiter",
        "sam deploy --config-env prod",
    ] {
        looked_at(good, "sh").unwrap();
    }
    for bad in [
        "tollgate wafs",
        "tollgate waf render --fomat yaml",
        "cargo build -p limitr",
        "sam deploy --parameter-overrides NoSuch=1",
        "rm -rf x",
        "aws 'x",
    ] {
        assert!(looked_at(bad, "sh").is_err(), "{bad}");
    }
    assert!(looked_at("{", "json").is_err() && looked_at("x", "ruby").is_err());
}
