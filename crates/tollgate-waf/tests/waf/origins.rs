//! What common origins take a path for, each written down by what it is known to do: segments, or `None` if it refuses the request.
//!
//! Invariant: nothing here knows what WAF does.

/// A way to read the path of a request.
pub(crate) type Origin = (&'static str, fn(&[u8]) -> Option<Vec<String>>);

pub(crate) const ALL: [Origin; 11] = [
    ("API Gateway: as it is sent", exact),
    ("Express: without regard to case, not decoded, not resolved", express),
    ("nginx: decoded once, slashes merged, resolved", nginx),
    ("nginx in front of a router that ignores case and suffixes", rails),
    ("Tomcat: parameters cut off, then decoded and resolved", tomcat),
    ("Tomcat, lenient above the root", tomcat_lenient),
    ("WHATWG URL: \\ is /, %2e is a dot, resolved, then decoded", whatwg),
    ("IIS: decoded with %u, \\ is /, resolved, without regard to case", iis),
    ("a proxy that decodes and resolves before an origin that does the same", twice),
    ("WSGI: decoded once, slashes merged, not resolved", wsgi),
    ("a C string: decoded, up to the first NUL", c_string),
];

/// Whether an origin takes a path for one under `prefix`.
pub(crate) fn routes_to(origin: Origin, path: &str, prefix: &[&str]) -> bool {
    origin.1(path.as_bytes()).is_some_and(|segments| {
        segments.len() >= prefix.len() && segments.iter().zip(prefix).all(|(segment, wanted)| segment == wanted)
    })
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

fn split(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|b| *b == b'/').skip(1).map(<[u8]>::to_vec).collect()
}

fn named(segments: Vec<Vec<u8>>) -> Vec<String> {
    segments.iter().map(|segment| text(segment)).collect()
}

fn lower(segments: Vec<String>) -> Vec<String> {
    segments.into_iter().map(|segment| segment.to_ascii_lowercase()).collect()
}

fn merged(segments: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    segments.into_iter().filter(|segment| !segment.is_empty()).collect()
}

/// `None` above the root, unless it is lenient.
fn resolved(segments: Vec<Vec<u8>>, is_lenient: bool) -> Option<Vec<Vec<u8>>> {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for segment in segments {
        match segment.as_slice() {
            b"." => {}
            b".." => {
                if kept.pop().is_none() && !is_lenient {
                    return None;
                }
            }
            _ => kept.push(segment),
        }
    }
    Some(kept)
}

fn decoded(path: &[u8], wide: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut i = 0;
    let digits = |from: usize, to: usize| {
        let digits = path.get(from..to).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    while i < path.len() {
        if path[i] == b'%' {
            if let (true, Some(b'u'), Some(code)) = (wide, path.get(i + 1), digits(i + 2, i + 6)) {
                // Best fit: full-width letters are letters.
                let code = if (0xff01..=0xff5e).contains(&code) { code - 0xfee0 } else { code };
                out.push(u8::try_from(code).unwrap_or(b'?'));
                i += 6;
                continue;
            }
            if let Some(byte) = digits(i + 1, i + 3) {
                out.push(u8::try_from(byte).unwrap());
                i += 3;
                continue;
            }
        }
        out.push(path[i]);
        i += 1;
    }
    out
}

fn slashed(path: &[u8]) -> Vec<u8> {
    path.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect()
}

fn exact(path: &[u8]) -> Option<Vec<String>> {
    Some(named(split(path)))
}

fn express(path: &[u8]) -> Option<Vec<String>> {
    Some(lower(named(split(path))))
}

fn nginx(path: &[u8]) -> Option<Vec<String>> {
    Some(named(resolved(merged(split(&decoded(path, false))), false)?))
}

fn rails(path: &[u8]) -> Option<Vec<String>> {
    let mut segments = lower(nginx(path)?);
    if let Some(last) = segments.last_mut() {
        last.truncate(last.find('.').unwrap_or(last.len()));
    }
    Some(segments)
}

fn without_parameters(path: &[u8]) -> Vec<u8> {
    let cut = |segment: &[u8]| segment.split(|b| *b == b';').next().unwrap_or_default().to_vec();
    path.split(|b| *b == b'/').map(cut).collect::<Vec<_>>().join(&b'/')
}

fn tomcat(path: &[u8]) -> Option<Vec<String>> {
    Some(named(resolved(merged(split(&decoded(&without_parameters(path), false))), false)?))
}

fn tomcat_lenient(path: &[u8]) -> Option<Vec<String>> {
    Some(named(resolved(merged(split(&slashed(&decoded(&without_parameters(path), false)))), true)?))
}

fn whatwg(path: &[u8]) -> Option<Vec<String>> {
    let dots = |segment: Vec<u8>| match text(&segment).to_ascii_lowercase().replace("%2e", ".").as_str() {
        "." => b".".to_vec(),
        ".." => b"..".to_vec(),
        _ => segment,
    };
    let segments = split(&slashed(path)).into_iter().map(dots).collect();
    let path = resolved(segments, true)?.iter().map(|segment| decoded(segment, false)).collect();
    Some(named(path))
}

fn iis(path: &[u8]) -> Option<Vec<String>> {
    Some(lower(named(resolved(merged(split(&slashed(&decoded(path, true)))), true)?)))
}

fn twice(path: &[u8]) -> Option<Vec<String>> {
    let once = resolved(merged(split(&decoded(path, false))), true)?;
    let sent: Vec<u8> = once.iter().flat_map(|segment| [b"/".as_slice(), segment].concat()).collect();
    Some(named(resolved(merged(split(&slashed(&decoded(&sent, false)))), true)?))
}

fn wsgi(path: &[u8]) -> Option<Vec<String>> {
    Some(named(merged(split(&decoded(path, false)))))
}

fn c_string(path: &[u8]) -> Option<Vec<String>> {
    let decoded = decoded(path, false);
    let seen = decoded.split(|b| *b == 0).next().unwrap_or_default();
    Some(named(resolved(merged(split(seen)), true)?))
}
