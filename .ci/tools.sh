# What the scripts of this folder share: where tools are kept and how they get there. Sourced at the top level of the repository.
export CARGO_TERM_COLOR=never RUST_BACKTRACE=1 SAM_CLI_TELEMETRY=0
cache=${TOLLGATE_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tollgate-ci}
mkdir -p "$cache"

# The workflow asks for a toolchain by name; here it is whichever there is.
if [ -n "${RUSTUP_TOOLCHAIN:-}" ] && ! rustup toolchain list | grep -q "^$RUSTUP_TOOLCHAIN"; then
    rustup toolchain install "$RUSTUP_TOOLCHAIN" --profile minimal
fi

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

# venv NAME PACKAGE...: a virtual environment with exactly these packages, made again when the list changes.
venv() {
    local at="$cache/$1"
    if ! command -v uv >/dev/null; then
        [ -x "$cache/uv/bin/uv" ] || { python3 -m venv "$cache/uv" && "$cache/uv/bin/pip" install --quiet uv; }
        PATH="$PATH:$cache/uv/bin"
    fi
    if [ "$(cat "$at/.packages" 2>/dev/null)" != "${*:2}" ]; then
        rm -rf "$at"
        uv venv --quiet --python python3 "$at"
        uv pip install --quiet --python "$at/bin/python" "${@:2}"
        echo "${*:2}" >"$at/.packages"
    fi
}

sam_tools() { venv sam aws-sam-cli==1.170.0 cfn-lint==1.58.0 cargo-lambda==1.9.2 ziglang==0.17.1; }
release_tools() { venv release 'cyclonedx-python-lib[json-validation]==11.12.0' check-jsonschema==0.39.0 PyYAML==6.0.3 zizmor==1.32.0; }

# The version that all crates have, and the oldest Rust that they are for.
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
msrv=$(sed -n '/^\[workspace.package\]/,/^\[/s/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# The packages of the workspace that are not on crates.io.
unpublished() {
    cargo metadata --no-deps --offline --locked --format-version 1 |
        python3 -c 'import json, sys; print(*(p["name"] for p in json.load(sys.stdin)["packages"] if p["publish"] == []), sep="\n")'
}

# What is shipped: package, executable and target.
arm64=aarch64-unknown-linux-gnu
shipped=(
    limiter:limiter:$arm64 sample-api:sample-api:$arm64 authorizer:authorizer:$arm64 otp:otp:$arm64 otp:courier:$arm64
    mfa:mfa:$arm64 sentinel:sentinel:$arm64 webhook:webhook:$arm64 tollgate-cli:tollgate:x86_64-unknown-linux-gnu
)

# sboms FOLDER: of everything that is shipped.
sboms() {
    mkdir -p "$1"
    "$cache/release/bin/python" .ci/sbom.py "$1" "${shipped[@]}"
}
