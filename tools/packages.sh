# The packages of Debian 12 and 13 by purpose, and functions that install them. Sourced by ./try, ./test and .ci/run.

packages_build="build-essential meson ninja-build pkg-config zlib1g-dev libzstd-dev liblzma-dev libdw-dev libelf-dev libiberty-dev libmicrohttpd-dev xz-utils"
packages_test="libcmocka-dev libunwind8 python3 golang-go gzip zstd babeltrace2 protobuf-compiler musl-tools libcap2-bin libomp-dev libboost-fiber-dev libuv1-dev zsh fish bash-completion curl linux-perf lttng-tools liblttng-ust-dev"
packages_sql="clickhouse-server clickhouse-client nodejs" # tests of the tables with two shards
packages_web="chromium chromium-headless-shell nodejs" # browsers for the tests of the viewer: the second one starts less
packages_firefox="firefox-esr" # the same tests in a second browser, if it is there: 300 MB, so nothing installs it
packages_wasm="clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32" # for tools/build-wasm
packages_lint="clang clang-tidy clang-format cppcheck ccache"
packages_words="codespell" # for tools/words
packages_models="spin gcc libc6-dev"
packages_abi="abigail-tools" # abidiff
packages_debian="debhelper dh-python dpkg-dev esbuild lintian nodejs" # for tools/build-packages
packages_fresh="debootstrap" # installs Debian into a folder
packages_s390x="gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user"
packages_arm64="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user qemu-user-static"

say() {
    printf '\n== %s\n' "$*"
}

# Prints the packages that are not installed.
packages_missing() {
    for package in "$@"; do
        status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$status" = installed ] || printf '%s ' "$package"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "This needs root or sudo: $*" >&2
        return 1
    fi
}

# Installs missing packages. If there are none, it does nothing, and needs no rights.
packages_install() {
    missing=$(packages_missing "$@")
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "Please install what these packages of Debian contain: $missing" >&2
        return 1
    fi
    say "Installing $missing"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing </dev/null
}

# Prints 'ADDRESS SUITE COMPONENT' of each Debian source of this system, for a release.
debian_sources() {
    apt-get indextargets --format '$(CREATED_BY) $(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)' |
        sed -nE "s#^Packages Debian ([^ ]*) [a-z]*(-updates|-security)? main\$#\1 $1\2 main#p" |
        sort -u
}

# Prints the address of apt's mirror of Debian; nothing if there is none.
debian_mirror() {
    debian_sources suite | awk '$2 == "suite" { print $1; exit }'
}

# Installs the npm packages for the tests of tables and exports into a folder, and sets TRAIL_DUCKDB to it; without them these
# tests are skipped.
packages_npm() {
    if ! command -v npm >/dev/null; then
        say "No npm: trail sql is not tried"
        return 0
    fi
    mkdir -p "$1"
    if ! cmp -s tests/commands/npm/package-lock.json "$1/package-lock.json" || [ ! -d "$1/node_modules" ]; then
        say "Installing DuckDB's library, and readers of Parquet, OTLP and trace events"
        cp tests/commands/npm/package.json tests/commands/npm/package-lock.json "$1"
        (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund </dev/null) || return 0
    fi
    TRAIL_DUCKDB=$(cd "$1" && pwd)
    export TRAIL_DUCKDB
}

# Prints the newest Go toolchain of the system; fails if there is none.
find_go() {
    for go in /usr/lib/go-1.23/bin/go /usr/lib/go-1.22/bin/go /usr/lib/go-1.21/bin/go go \
        /usr/lib/go-1.19/bin/go; do
        if command -v "$go" >/dev/null; then
            command -v "$go"
            return 0
        fi
    done
    return 1
}

# Installs the npm packages that build and test the viewer's page; without them its tests are skipped.
packages_page() {
    if ! command -v npm >/dev/null; then
        say "No npm: the page of trail view is not tried"
        return 0
    fi
    if [ ! web/node_modules -nt web/package-lock.json ]; then
        say "Installing what the page of trail view is built and tested with"
        (cd web && npm ci --ignore-scripts --no-audit --no-fund </dev/null && touch node_modules) || return 0
    fi
}
