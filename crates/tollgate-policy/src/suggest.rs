//! "Did you mean": the known name that is nearest to a wrong one. Invariant: a suggestion is always a known name.

/// The candidate that `wrong` is most likely a misspelling of, if any is near: at most a third of its characters differ.
pub(crate) fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Distances of long texts cost their product; no name is that long.
    if wrong.len() > 64 {
        return None;
    }
    let wrong = wrong.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wrong, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A help text: the nearest name if there is one, else all of them.
pub(crate) fn help<'a>(wrong: &str, noun: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(wrong, candidates.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let all = quoted(candidates);
            if all.is_empty() {
                format!("there is no {noun} yet; declare one")
            } else {
                format!("known {noun}s: {all}")
            }
        }
    }
}

/// Names in backquotes, separated by commas.
pub(crate) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn misspellings_are_recognised_and_strangers_are_not() {
        assert_eq!(nearest("brust", ["burst", "rate"]), Some("burst"));
        assert_eq!(nearest("Orders", ["orders", "order-items"]), Some("orders"));
        assert_eq!(nearest("xyz", ["burst", "rate"]), None);
    }
}
