# List the recipes
default:
    @just --list

# Run every test
test:
    cargo test --workspace

# Run every case with the real agents under ph, on a fake model (see docs/lab.md)
lab *ARGS:
    PH_LAB=1 PH_CI=1 cargo test --workspace --test cases --locked -- {{ARGS}}

# Run the real agents alone, without ph; --keep rewrites the fixtures of their screens
lab-bare *ARGS:
    PH_LAB=1 PH_CI=1 cargo test --workspace --test agents --locked -- {{ARGS}}

# Kill sessions, programs, senders and hooks at random, then check for lost or duplicated messages and leaks
chaos *ARGS:
    PH_CHAOS=1 cargo test --workspace --test chaos --locked -- {{ARGS}}

# Fuzz one target with coverage guidance, for some seconds (needs a nightly toolchain); without TARGET, list the targets
fuzz TARGET="" SECONDS="60":
    @if [ -z "{{TARGET}}" ]; then \
        sed -n 's/^name = "\([a-z_]*\)"$/\1/p' fuzz/Cargo.toml; \
    else \
        (command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz) && \
        cargo +nightly fuzz run --fuzz-dir fuzz {{TARGET}} -- -max_total_time={{SECONDS}} -max_len=4096; \
    fi

# Change the session driver and delivery in about COUNT ways, and list the changes that no test notices
mutants COUNT="200":
    command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
    total=$(cargo mutants -p posthaste-core --list | wc -l) && PH_SIM_SEEDS=300 cargo mutants -p posthaste-core --sharding round-robin --shard 0/$(( (total + {{COUNT}} - 1) / {{COUNT}} ))

# Check formatting and lints
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Build the documentation, with warnings as errors
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Benchmark mail and sessions against limits and other programs; ph is built like a release
[linux]
bench:
    rustup target add {{arch()}}-unknown-linux-musl
    CARGO_BUILD_TARGET={{arch()}}-unknown-linux-musl cargo bench -p posthaste-lab --bench mail --bench session --locked

# Benchmark mail and sessions against limits and other programs
[macos]
bench:
    cargo bench -p posthaste-lab --bench mail --bench session --locked

# Run the demo, in a temporary home
demo:
    cargo run --release -- demo

# Check licences, duplicates and sources of the dependencies
deny:
    cargo deny check licenses bans sources

# Run every check that a change must pass
ci:
    bash .ci/run

# Install ph from this checkout, built like a release; needs musl-gcc (Debian: musl-tools)
[linux]
install:
    rustup target add {{arch()}}-unknown-linux-musl
    cargo install --path crates/ph --profile dist --target {{arch()}}-unknown-linux-musl --locked

# Install ph from this checkout
[macos]
install:
    cargo install --path crates/ph --profile dist --locked

# Redraw the README's picture from a real run
picture:
    cargo build -p posthaste -p posthaste-lab --bins --locked
    sh docs/picture.sh "${CARGO_TARGET_DIR:-target}/debug/ph" | cargo run -q -p posthaste-lab --bin lab-picture > docs/picture.svg
