//! The page on proof that ships with the crate `tollgate` tells how much was searched; it has the figures of the tables here.

const PAGE: &str = include_str!("../../../crates/tollgate/guide/proof.md");
const TABLES: &str = include_str!("main.rs");
const MUTANTS: &str = include_str!("mutant.rs");

/// Guards without which nothing is wrong, since others do the same (`not_needed`).
const NOT_NEEDED: usize = 3;
/// What is caught and no variant of the enum: three rules of shards.
const RULES: usize = 3;

/// The last cells of the table of [`TABLES`] that begins so.
fn last_cells(head: &str) -> Vec<&'static str> {
    let lines = TABLES.lines().skip_while(|line| !line.starts_with(head)).take_while(|line| line.starts_with("//! |"));
    lines.skip(2).filter_map(|line| line.trim_end_matches('|').rsplit('|').next()).collect()
}

#[test]
fn the_page_tells_how_many_scenarios_states_properties_and_mutants_there_are() {
    let scenarios = last_cells("//! | scenario");
    let states = scenarios.iter().flat_map(|cell| cell.split('+'));
    let states: u64 = states.map(|n| n.replace(',', "").trim().parse::<u64>().unwrap()).sum();
    let grouped = format!("{},{:03},{:03}", states / 1_000_000, states / 1_000 % 1_000, states % 1_000);
    let variants = MUTANTS.split("enum Mutant {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let guards = variants.lines().filter(|line| line.trim_end().ends_with(',') && !line.contains("///")).count() - 1;
    let properties = last_cells("//! | property").len();
    let told = format!("**{} scenarios, {grouped} states, {properties} properties**", scenarios.len());
    assert!(PAGE.contains(&told), "{told}");
    assert!(PAGE.contains(&format!("**{} mutants**", guards - NOT_NEEDED + RULES)), "{guards} guards");
}
