#!/usr/bin/env python3
"""sbom.py FOLDER PACKAGE:EXECUTABLE:TARGET...: the software bill of materials of each executable, as CycloneDX 1.6 in JSON.

What is in it is what Cargo resolves for that package alone on that target (`cargo tree`): `cargo metadata`, which other tools read, resolves
the whole workspace at once, so that a function would seem to have in it what only the command has. Crates that only ran while it was
built (build scripts, procedural macros) are there with the scope "excluded".

Invariant: the file is valid by CycloneDX's own schema, and the same for the same commit.
"""

import re
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

VALIDATOR = JsonStrictValidator(SchemaVersion.V1_6)
LINE = re.compile(r"^(\d+)(\S+) v(\S+)(?: \(.*\))?\t(.*?)(?: \(\*\))?$")


def tree(package, target, edges):
    """The package's name and version, then those of all that it depends on: licences, and who depends on whom."""
    command = ["cargo", "tree", "--locked", "--offline", "-p", package, "--target", target, "-e", edges]
    lines = subprocess.run(
        [*command, "--prefix", "depth", "--format", "{p}\t{l}"], check=True, text=True, stdout=subprocess.PIPE
    ).stdout.splitlines()
    licences, edges, path = {}, {}, []
    for line in filter(None, lines):
        found = LINE.match(line)
        if not found:
            sys.exit(f"`cargo tree` said something else than name, version and licence: {line!r}")
        depth, crate = int(found[1]), (found[2], found[3])
        licences[crate] = found[4]
        edges.setdefault(crate, set())
        path[depth:] = [crate]
        if depth:
            edges[path[depth - 1]].add(crate)
    return path[0], licences, edges


def component(crate, licence, checksum, runs):
    """A crate as a component."""
    name, version = crate
    purl = PackageURL("cargo", None, name, version)
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        purl=purl,
        bom_ref=str(purl),
        scope=ComponentScope.REQUIRED if runs else ComponentScope.EXCLUDED,
        # Some still write the `/` of old.
        licenses=[LicenseFactory().make_from_string(licence.replace("/", " OR "))] if licence else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)] if checksum else [],
    )


def write(package, executable, target, file):
    """The file of one executable."""
    root, licences, edges = tree(package, target, "normal,build")
    _, runs, _ = tree(package, target, "normal,no-proc-macro")
    with open("Cargo.lock", "rb") as lock:
        checksums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(lock)["package"]}
    components = {crate: component(crate, licences[crate], checksums[crate], crate in runs) for crate in licences}
    components[root] = Component(
        type=ComponentType.APPLICATION,
        name=executable,
        version=root[1],
        bom_ref=executable,
        licenses=[LicenseFactory().make_from_string(licences[root])],
    )
    committed = subprocess.run(["git", "log", "-1", "--format=%ct"], check=True, text=True, stdout=subprocess.PIPE).stdout
    bom = Bom(
        components=[made for crate, made in components.items() if crate != root],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"{executable} {target} {sorted(licences)} {committed}"),
    )
    bom.metadata.timestamp = datetime.fromtimestamp(int(committed), timezone.utc)
    bom.metadata.component = components[root]
    for crate, needed in edges.items():
        bom.register_dependency(components[crate], [components[other] for other in needed])
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if wrong := VALIDATOR.validate_str(text):
        sys.exit(f"{file} would not be CycloneDX 1.6: {wrong}")
    with open(file, "w", encoding="utf-8") as out:
        out.write(text + "\n")
    print(f"{file}: {len(runs) - 1} crates are in it, {len(licences) - len(runs)} only built it")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.splitlines()[0])
    for each in sys.argv[2:]:
        package, executable, target = each.split(":")
        write(package, executable, target, f"{sys.argv[1]}/{executable}.cdx.json")
