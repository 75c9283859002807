#!/usr/bin/env python3
"""workflow.py FILE...: holds workflows to running the scripts of this folder and nothing else, so that what they find can be found without them,
and to keeping nothing in a cache that the scripts compile.

The one exception is the command that drafts a release.
"""

import os
import re
import sys

import yaml

SCRIPT = re.compile(r"(\.ci/[a-z]+)( [0-9]+)?")
BUILT = re.compile(r"(?:--target-dir |CARGO_TARGET_DIR=)\"?\$cache/(\w+)")
RELEASE = re.compile(r"gh release create [^\n;&|]*")


def wrong(jobs, built):
    """What a job does that it should not, or does not do that it should."""
    whole = [job for job in jobs.values() if any(step.get("run") == ".ci/run" for step in job["steps"])]
    if not whole:
        yield "no job runs .ci/run"
    for name, job in jobs.items():
        for step in [job, *job["steps"]]:
            if "continue-on-error" in step:
                yield f"{name}: what fails there is let pass"
            kept = str(step.get("with", {}).get("path", "")).split()
            if "~/.cache/tollgate-ci" in kept:
                for folder in sorted(built):
                    if f"!~/.cache/tollgate-ci/{folder}" not in kept:
                        yield f"{name}: what is compiled into {folder} is kept in a cache"
            if "run" not in step:
                continue
            script = SCRIPT.fullmatch(step["run"].strip())
            if not script and not RELEASE.fullmatch(step["run"].strip()):
                yield f"{name}: runs something else than a script of .ci: {step['run']!r}"
            elif script and not os.access(script[1], os.X_OK):
                yield f"{name}: {script[1]} cannot be executed"
            elif step["run"] == ".ci/run" and ("if" in step or "env" in step or "shell" in step):
                yield f"{name}: .ci/run is run on a condition, or in another way than by hand"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.splitlines()[0])
    built = set()
    for script in os.scandir(os.path.dirname(os.path.abspath(__file__))):
        if script.is_file():
            with open(script.path, encoding="utf-8") as file:
                built.update(BUILT.findall(file.read()))
    found = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            found += [f"{name}: {each}" for each in wrong(yaml.safe_load(file)["jobs"], built)]
    if found:
        sys.exit("\n".join(found))
