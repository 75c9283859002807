//! The escapes that servers write into a log's fields, undone: `\"`, `\\`, `\n` and the like, and `\xhh` for bytes that do not
//! print.
//!
//! Invariant: a field without a backslash is borrowed, and a backslash that escapes nothing stays itself.

use std::borrow::Cow;

/// A field without its escapes. Bytes that are not UTF-8 are replaced.
pub(crate) fn text(field: &[u8]) -> Cow<'_, str> {
    if field.contains(&b'\\') {
        Cow::Owned(String::from_utf8_lossy(&unescaped(field)).into_owned())
    } else {
        String::from_utf8_lossy(field)
    }
}

fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let (byte, after) = if *first == b'\\' { escape(after) } else { (*first, after) };
        out.push(byte);
        rest = after;
    }
    out
}

/// The byte that a backslash before `after` stands for, and what follows it.
fn escape(after: &[u8]) -> (u8, &[u8]) {
    let hex = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    if let [b'x', high, low, rest @ ..] = after
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        return (high << 4 | low, rest);
    }
    let Some((kind, rest)) = after.split_first() else { return (b'\\', after) };
    let byte = match kind {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'"' | b'\\' => *kind,
        _ => return (b'\\', after),
    };
    (byte, rest)
}
