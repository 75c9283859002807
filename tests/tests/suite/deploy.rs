//! What README and `samconfig.toml` have people type, as far as it can be held to what is in the repository.

use crate::harness::repository;
use std::collections::BTreeSet;

/// Bytes of a parameter of SSM that costs nothing (Systems Manager User Guide, "Managing parameter tiers").
const PARAMETER_BYTES: usize = 4096;

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap()
}

/// README and the pages of the guide.
fn documents() -> impl Iterator<Item = String> {
    crate::documents::block::documents().into_iter().map(|file| read(&file))
}

/// The parameters of a template: what is between the heads of its section and the next, two spaces in.
fn parameters(template: &str) -> BTreeSet<String> {
    let text = read(template);
    let lines = text.lines().skip_while(|line| *line != "Parameters:").skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':').map(str::to_owned));
    names.filter(|name| name.starts_with(char::is_alphabetic)).collect()
}

/// Values of parameters that somebody is told to give: `Name=value` behind `--parameter-overrides`, and in `samconfig.toml`.
fn given() -> Vec<(String, String)> {
    let readme = read("README.md");
    let overrides = readme.lines().filter_map(|line| line.split_once("--parameter-overrides ")).map(|(_, words)| words);
    let words = overrides.collect::<Vec<_>>().join("\n") + "\n" + &read("samconfig.toml");
    let words = words.split([' ', '\n', '"', '`', ',']).filter_map(|word| word.split_once('='));
    let named = words.filter(|(name, value)| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().any(|c| c.is_ascii_lowercase())
            && name.bytes().all(|b| b.is_ascii_alphanumeric())
            && !value.is_empty()
    });
    named.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn parameters_that_people_are_told_to_give_are_those_of_the_templates() {
    let templates =
        ["infra/template.yaml", "infra/edge.yaml", "infra/examples/app-runner.yaml", "infra/examples/ecs-express.yaml"];
    let known: BTreeSet<_> = templates.iter().flat_map(|of| parameters(of)).collect();
    assert!(known.len() > 40 && known.contains("PolicyFrom") && known.contains("EdgeOrigin"), "{known:?}");
    let given = given();
    assert!(given.iter().any(|(name, _)| name == "KeySecretsParameter"), "{given:?}");
    let unknown: Vec<_> = given.iter().filter(|(name, _)| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "no template has {unknown:?}");
    // And none is known to the template alone. README tells AppConfig's three together.
    let readme = read("README.md");
    let untold: Vec<_> = parameters("infra/template.yaml").into_iter().filter(|name| !readme.contains(name)).collect();
    assert_eq!(untold, ["AppConfigEnvironment", "AppConfigProfile"]);
}

#[test]
fn the_sample_policy_fits_where_people_are_told_to_put_it() {
    let fits = read("infra/tollgate.toml").len() <= PARAMETER_BYTES;
    let mut pages = documents();
    let told =
        pages.any(|text| text.lines().any(|line| line.contains("put-parameter") && line.contains("tollgate.toml")));
    let in_a_parameter = told || given().contains(&("PolicyFrom".to_owned(), "ssm".to_owned()));
    assert!(fits || !in_a_parameter, "infra/tollgate.toml is larger than a parameter of SSM");
}
