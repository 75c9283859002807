//! Which requests a route or an exemption is about: `METHOD /path`. Invariant: of two different patterns that match one
//! request, either one is more specific or they conflict; the order in the file never decides.
//!
//! The path is compared exactly, segment by segment, without decoding and with regard to case: what the gateway routes
//! differently is a different path here, too.

mod parse;
mod stage;

pub use stage::without_stage;

use crate::rate::Problem;
use std::cmp::Ordering;
use std::fmt;

/// Methods that a pattern is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Methods {
    Any,
    Only(Vec<String>),
}

/// One part of a path. Declared from the least to the most specific.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// Any target at all, also one that is not a path (`OPTIONS *`).
    Anything,
    /// One or more segments, the last of which may be empty; with a name if it was given one.
    Rest(Option<String>),
    /// One segment that is not empty.
    Param(String),
    /// Exactly this text.
    Literal(String),
}

impl Segment {
    fn rank(&self) -> u8 {
        match self {
            Self::Anything => 0,
            Self::Rest(_) => 1,
            Self::Param(_) => 2,
            Self::Literal(_) => 3,
        }
    }
}

/// One part of a pattern's path, as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathPart<'a> {
    /// Exactly this segment.
    Literal(&'a str),
    /// One segment that is not empty.
    Param,
    /// One or more segments, the last of which may be empty; nothing follows.
    Rest,
}

/// A parsed `match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    methods: Methods,
    segments: Vec<Segment>,
}

/// Names and values of path parameters.
pub(crate) type Params<'a> = Vec<(&'a str, &'a str)>;

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let trimmed = text.trim();
        // Blanks are allowed around the commas of the method list, so the path is what follows the last blank.
        let (methods, path) = match trimmed.rsplit_once(char::is_whitespace) {
            Some((methods, path)) => (methods, path),
            None if trimmed == "*" => ("*", "*"),
            None => return Err(Problem::new(format!("{text:?} is not a method and a path"), parse::EXAMPLE)),
        };
        Ok(Self { text: trimmed.to_owned(), methods: parse::methods(methods)?, segments: parse::path(path)? })
    }

    /// The pattern as the policy writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Names of the path parameters, in order.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Param(name) | Segment::Rest(Some(name)) => Some(name.as_str()),
            Segment::Anything | Segment::Rest(None) | Segment::Literal(_) => None,
        })
    }

    /// The methods; `None`: any.
    #[must_use]
    pub fn methods(&self) -> Option<&[String]> {
        match &self.methods {
            Methods::Any => None,
            Methods::Only(list) => Some(list),
        }
    }

    /// The parts of the path, each with a `/` before it; `None`: any target at all, also one that is not a path.
    #[must_use]
    pub fn path(&self) -> Option<Vec<PathPart<'_>>> {
        let part = |segment| match segment {
            &Segment::Anything => None,
            Segment::Rest(_) => Some(PathPart::Rest),
            Segment::Param(_) => Some(PathPart::Param),
            Segment::Literal(text) => Some(PathPart::Literal(text)),
        };
        self.segments.iter().map(part).collect()
    }

    /// Whether the pattern matches every request.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.methods == Methods::Any && self.segments == [Segment::Anything]
    }

    /// The path parameters if `method` and `target` match; a query is cut off first.
    pub(crate) fn matches<'a>(&'a self, method: &str, target: &'a str) -> Option<Params<'a>> {
        if !self.methods.include(method) {
            return None;
        }
        if self.segments == [Segment::Anything] {
            return Some(Vec::new());
        }
        let path = target.split(['?', '#']).next().unwrap_or(target);
        let mut rest = Some(path.strip_prefix('/')?);
        let mut params = Vec::new();
        for segment in &self.segments {
            let remaining = rest?;
            if let Segment::Rest(name) = segment {
                params.extend(name.as_deref().map(|name| (name, remaining)));
                return Some(params);
            }
            let (part, next) = remaining.split_once('/').map_or((remaining, None), |(part, next)| (part, Some(next)));
            match segment {
                Segment::Literal(text) if text == part => {}
                Segment::Param(name) if !part.is_empty() => params.push((name.as_str(), part)),
                _ => return None,
            }
            rest = next;
        }
        rest.is_none().then_some(params)
    }

    /// Greater is more specific: paths first, segment by segment from the left, then methods.
    pub(crate) fn specificity(&self, other: &Self) -> Ordering {
        let path = |pattern: &Self| pattern.segments.iter().map(Segment::rank).collect::<Vec<_>>();
        let exact = |pattern: &Self| pattern.methods != Methods::Any;
        path(self).cmp(&path(other)).then(exact(self).cmp(&exact(other)))
    }

    /// Whether some request matches both and neither is more specific.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        let same = |pair: (&Segment, &Segment)| match pair {
            (Segment::Literal(a), Segment::Literal(b)) => a == b,
            _ => true,
        };
        self.specificity(other) == Ordering::Equal
            && self.segments.iter().zip(&other.segments).all(same)
            && self.methods.meet(&other.methods)
    }

    /// Whether every request that `other` matches is matched by one of `patterns`.
    pub(crate) fn covered_by<'p>(&self, patterns: impl Iterator<Item = &'p Self> + Clone) -> bool {
        let mut on_path = patterns.filter(|pattern| pattern.path_covers(self));
        match &self.methods {
            Methods::Any => on_path.any(|pattern| pattern.methods == Methods::Any),
            Methods::Only(list) => {
                let on_path: Vec<_> = on_path.collect();
                list.iter().all(|method| on_path.iter().any(|pattern| pattern.methods.include(method)))
            }
        }
    }

    fn path_covers(&self, other: &Self) -> bool {
        let mut theirs = other.segments.iter();
        for mine in &self.segments {
            let covered = match (mine, theirs.next()) {
                (Segment::Anything, _) => return true,
                (Segment::Rest(_), Some(Segment::Literal(_) | Segment::Param(_) | Segment::Rest(_))) => return true,
                (Segment::Param(_), Some(Segment::Param(_))) => true,
                (Segment::Param(_), Some(Segment::Literal(text))) => !text.is_empty(),
                (Segment::Literal(a), Some(Segment::Literal(b))) => a == b,
                _ => false,
            };
            if !covered {
                return false;
            }
        }
        theirs.next().is_none()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Methods {
    fn include(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(list) => list.iter().any(|known| known == method),
        }
    }

    fn meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::Only(list), other) => list.iter().any(|method| other.include(method)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{Ordering, Pattern};

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).expect(text)
    }

    #[test]
    fn every_spelling_of_the_catch_all_matches_everything() {
        for text in ["*", "* *", "* /*", "ANY /*", "*  /**", "ANY *", " * "] {
            assert!(pattern(text).is_catch_all(), "{text}");
            for (method, target) in [("GET", "/"), ("OPTIONS", "*"), ("GET", "http://h/p"), ("get", ""), ("M", "//")] {
                assert!(pattern(text).matches(method, target).is_some(), "{text}: {method} {target}");
            }
        }
        assert!(!pattern("GET *").is_catch_all());
        assert!(pattern("GET *").matches("POST", "/").is_none());
    }

    #[test]
    fn paths_match_exactly() {
        let matches = |text: &str, target: &str| pattern(text).matches("GET", target).is_some();
        assert!(matches("GET /a/b", "/a/b?q=/x"));
        for other in ["/a/b/", "/a//b", "/A/b", "/a/%62", "a/b", "/a", "/a/b/c", "//a/b"] {
            assert!(!matches("GET /a/b", other), "{other}");
        }
        assert!(matches("GET /a/{x}", "/a/b"));
        assert!(!matches("GET /a/{x}", "/a/"));
        assert!(!matches("GET /a/{x}", "/a/b/"));
        assert!(matches("GET /a/", "/a/"));
        assert!(matches("GET /", "/"));
        for (target, expected) in [("/a/", true), ("/a/b", true), ("/a/b/c", true), ("/a", false), ("/ab", false)] {
            assert_eq!(matches("GET /a/*", target), expected, "{target}");
            assert_eq!(matches("GET /a/{rest+}", target), expected, "{target}");
        }
        assert!(pattern("GET,HEAD /a").matches("get", "/a").is_none());
        assert!(pattern("GET, HEAD /a").matches("HEAD", "/a").is_some());
    }

    #[test]
    fn parameters_are_captured_as_they_are_sent() {
        let pattern = pattern("GET /u/{id}/f/{path+}");
        assert_eq!(pattern.matches("GET", "/u/a%2Fb/f/x/y?z"), Some(vec![("id", "a%2Fb"), ("path", "x/y")]));
        assert_eq!(pattern.params().collect::<Vec<_>>(), ["id", "path"]);
    }

    #[test]
    fn specificity_goes_by_path_from_the_left_and_then_by_method() {
        let rising = [
            "* *",
            "GET *",
            "* /{p+}",
            "* /{a}",
            "* /{a}/*",
            "* /{a}/b",
            "* /a/*",
            "* /a/{b}",
            "GET /a/{b}",
            "GET /a/b",
        ];
        for pair in rising.windows(2) {
            assert_eq!(pattern(pair[1]).specificity(&pattern(pair[0])), Ordering::Greater, "{pair:?}");
        }
        assert!(pattern("GET /a/{x}").conflicts_with(&pattern("GET,PUT /a/{y}")));
        assert!(pattern("* /a/*").conflicts_with(&pattern("ANY /a/{y+}")));
        for other in ["POST /a/{x}", "* /a/{x}", "GET /b/{x}", "GET /a/x", "GET /{a}/{x}"] {
            assert!(!pattern("GET /a/{x}").conflicts_with(&pattern(other)), "{other}");
        }
    }

    #[test]
    fn coverage_takes_methods_and_paths_together() {
        let covered = |text: &str, by: &[&str]| {
            let by: Vec<_> = by.iter().map(|text| pattern(text)).collect();
            pattern(text).covered_by(by.iter())
        };
        assert!(covered("GET /a/b", &["* /a/*"]));
        assert!(covered("GET,PUT /a", &["GET /a", "PUT /a"]));
        assert!(covered("GET /a/{x}/*", &["GET /a/{y+}"]));
        assert!(covered("* /a", &["*"]));
        assert!(!covered("GET,PUT /a", &["GET /a"]));
        assert!(!covered("* /a", &["GET /a"]));
        assert!(!covered("GET /a/{x}", &["GET /a/b"]));
        assert!(!covered("GET /a", &["GET /a/*"]));
        assert!(!covered("GET *", &["GET /{p+}"]));
        assert!(!covered("GET /a/*", &["GET /a/{x}"]));
    }

    #[test]
    fn what_is_not_a_pattern_is_refused_with_help() {
        for text in [
            "",
            "GET",
            "/a",
            "get /a",
            "GET a",
            "GET /a//b",
            "GET /a?b",
            "GET /{}",
            "GET /{a}{b}",
            "GET /a*",
            "GET /*/a",
            "GET /{a+}/b",
            "GET /{a}/{a}",
            "GET, /a",
            "GET,GET /a",
            "GET,* /a",
            "G(T /a",
            "GET,ANY /a",
            "GET /{a b}",
        ] {
            assert!(!Pattern::parse(text).expect_err(text).help.is_empty(), "{text}");
        }
    }
}
