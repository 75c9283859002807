//! Text transformations (API Reference, `TextTransformation`). Text is bytes: a decoded path need not be UTF-8.

/// What WAF leaves open, each of which a rule should hold either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Assumptions {
    /// `URL_DECODE` takes `+` for a blank, as in a form.
    pub plus_is_blank: bool,
    /// `NORMALIZE_PATH` leaves `..` at the root where it is: "back-references that are not at the beginning of the input" are removed.
    pub keeps_leading_back_references: bool,
}

impl Assumptions {
    /// Every combination.
    pub const ALL: [Self; 4] = {
        const fn of(plus_is_blank: bool, keeps_leading_back_references: bool) -> Assumptions {
            Assumptions { plus_is_blank, keeps_leading_back_references }
        }
        [of(false, false), of(false, true), of(true, false), of(true, true)]
    };

    /// The text after a transformation; `None` if this one is not known here.
    pub(super) fn apply(self, kind: &str, text: Vec<u8>) -> Option<Vec<u8>> {
        Some(match kind {
            "NONE" => text,
            "LOWERCASE" => text.to_ascii_lowercase(),
            "UPPERCASE" => text.to_ascii_uppercase(),
            "URL_DECODE" => self.decoded(&text, false),
            "URL_DECODE_UNI" => self.decoded(&text, true),
            "NORMALIZE_PATH" => self.normalised(&text),
            "NORMALIZE_PATH_WIN" => {
                self.normalised(&text.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect::<Vec<_>>())
            }
            "REMOVE_NULLS" => text.into_iter().filter(|b| *b != 0).collect(),
            _ => return None,
        })
    }

    fn decoded(self, text: &[u8], wide: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((first, after)) = rest.split_first() {
            let (byte, length) = match first {
                b'%' => escape(after, wide).unwrap_or((b'%', 0)),
                b'+' if self.plus_is_blank => (b' ', 0),
                other => (*other, 0),
            };
            out.push(byte);
            rest = after.get(length..).unwrap_or_default();
        }
        out
    }

    fn normalised(self, text: &[u8]) -> Vec<u8> {
        let is_rooted = text.starts_with(b"/");
        let mut kept: Vec<&[u8]> = Vec::new();
        for segment in text.split(|b| *b == b'/') {
            match segment {
                b"" | b"." => {}
                b".." if kept.last().is_some_and(|last| *last != b"..") => {
                    kept.pop();
                }
                b".." if is_rooted && !self.keeps_leading_back_references => {}
                other => kept.push(other),
            }
        }
        let is_folder = matches!(text.rsplit(|b| *b == b'/').next(), Some(b"" | b"." | b".."));
        let mut out = if is_rooted { b"/".to_vec() } else { Vec::new() };
        out.extend(kept.join(&b'/'));
        if is_folder && !kept.is_empty() {
            out.push(b'/');
        }
        out
    }
}

/// The byte that an escape after `%` stands for, and how long the escape is.
fn escape(after: &[u8], wide: bool) -> Option<(u8, usize)> {
    if let (true, Some(b'u' | b'U'), Some(digits)) = (wide, after.first(), after.get(1..5)) {
        let (high, low) = (hex(digits.get(..2)?)?, hex(digits.get(2..)?)?);
        // Full-width ASCII, U+FF01 to U+FF5E, is told by its lower byte.
        let byte = if high == 0xff && (0x01..=0x5e).contains(&low) { low + 0x20 } else { low };
        return Some((byte, 5));
    }
    Some((hex(after.get(..2)?)?, 2))
}

fn hex(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u8::from_str_radix(text, 16).ok()
}
