//! The whole report as a page for a person.

use super::Replayed;
use super::edge::RuleReport;
use super::suggest::Suggested;
use tollgate_replay::text;

pub(super) fn render(replayed: &Replayed) -> String {
    let mut page = text::render(&replayed.report);
    page.extend(replayed.edge.iter().map(RuleReport::text));
    if !replayed.edge_of_other.is_empty() {
        page.push_str("\nwith the other policy");
        page.extend(replayed.edge_of_other.iter().map(RuleReport::text));
    }
    page.push_str(&replayed.suggest.as_ref().map_or_else(String::new, Suggested::text));
    page
}
