#!/usr/bin/env python3
"""public-api.py DOC ALLOWED: holds the public API of each published crate to the crates whose types it may name.

DOC has rustdoc's JSON of them (`.ci/rustdoc`), ALLOWED a list for each of them. A type of another crate in a signature ties our version to
that crate's, so a new one is a decision. Items that are `#[doc(hidden)]` are not public.

Invariant: a crate that is named and not allowed fails, and so does one that is allowed and not named.
"""

import json
import pathlib
import sys
import tomllib

# What rustdoc's JSON calls a place where a type or trait is named.
NAMED = ("resolved_path", "trait", "bounds", "trait_bound")
OURS = ("tollgate", "std", "core", "alloc")


def named(node):
    """The ids of all items of other places that are named in `node`."""
    if isinstance(node, dict):
        if isinstance(node.get("id"), int) and "path" in node:
            yield node["id"], node["path"]
        for value in node.values():
            yield from named(value)
    elif isinstance(node, list):
        for value in node:
            yield from named(value)


def signature(item):
    """What an item shows: of an impl whom and what it is for, since its items are items themselves."""
    (kind, inner), = item["inner"].items()
    if kind == "impl":
        if inner["blanket_impl"] or inner["is_synthetic"]:
            return None
        # What a derive brings from std, and what others can do with what is here, is in the trait and the type.
        return [inner["trait"], inner["for"], inner["generics"]]
    if kind == "use":
        return {"id": inner["id"], "path": inner["source"]} if inner["id"] is not None else None
    return inner


def foreign(doc):
    """By crate: which of our items name something of it."""
    found = {}
    for item in doc["index"].values():
        if item["crate_id"] != 0:
            continue
        for number, path in named(signature(item)):
            known = doc["paths"].get(str(number))
            if not known or known["crate_id"] == 0:
                continue
            crate = doc["external_crates"][str(known["crate_id"])]["name"]
            # What a derive of ours writes in the place of a path of std.
            if not crate.startswith("tollgate") and crate not in OURS:
                where = item["name"] or "impl"
                span = item["span"]
                at = f"{span['filename']}:{span['begin'][0]}" if span else "?"
                found.setdefault(crate, set()).add(f"{at} {where}: {'::'.join(known['path'])}")
    return found


def main(folder, allowed):
    with open(allowed, "rb") as file:
        allowed = {crate: set(names) for crate, names in tomllib.load(file).items()}
    wrong = 0
    for crate, may in sorted(allowed.items()):
        file = pathlib.Path(folder) / f"{crate.replace('-', '_')}.json"
        found = foreign(json.loads(file.read_text()))
        for name in sorted(found.keys() - may):
            wrong += 1
            print(f"{crate}: {name} is in the public API and not allowed there:", *sorted(found[name])[:10], sep="\n    ")
        for name in sorted(may - found.keys()):
            wrong += 1
            print(f"{crate}: {name} is allowed in the public API, and not there any more")
    if wrong:
        sys.exit("a type of another crate in a signature ties our version to its: hide it, wrap it, or allow it in .ci/public-api.toml")
    print(f"{len(allowed)} crates name no types but those of the crates that they may")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    main(*sys.argv[1:])
