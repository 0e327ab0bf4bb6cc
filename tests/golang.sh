# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Finds a Go compiler for the tests that are written in Go.

# This Go is fetched as a module where no new enough one is installed: by version and checksum, from the module proxy that the
# settings of the go command name. The checksums are those of golang.org/toolchain@v0.0.1-goVERSION.linux-ARCHITECTURE.
go_version=1.26.8
declare -A go_checksum=(
	[amd64]=h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=
	[arm64]=h1:sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc=
)
go_dir=${XDG_CACHE_HOME:-$HOME/.cache}/pmem-csi-tests/go-$go_version

# is_new_enough GO VERSION: the program GO exists, and is of this version or a later one.
is_new_enough() {
	local found
	found=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	[ "$(printf '%s\n' "$2" "${found#go}" | sort -V | head -n 1)" = "$2" ]
}

# fetch_go INTO: the older Go of Debian downloads the module, checks it against the checksum database if the settings say so, and
# does not mark its programs as executable.
fetch_go() {
	local architecture answer sum dir
	architecture=$(dpkg --print-architecture)
	answer=$(cd / && GOMODCACHE=$1.modules GOFLAGS=-modcacherw GOTOOLCHAIN=local \
		go mod download -json "golang.org/toolchain@v0.0.1-go$go_version.linux-$architecture") || {
		echo "$answer" >&2
		return 1
	}
	sum=$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' <<<"$answer")
	if [ "$sum" != "${go_checksum[$architecture]:-none}" ]; then
		echo "Go $go_version for $architecture has the checksum $sum, expected is ${go_checksum[$architecture]:-none}" >&2
		return 1
	fi
	dir=$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$answer")
	chmod -R u+w "$dir" && chmod +x "$dir"/bin/* "$dir"/pkg/tool/*/* && rm -rf "$1" && mv "$dir" "$1" && rm -rf "$1.modules"
}

# need_go VERSION WHAT: puts a Go of this version or a later one into PATH. If none is found, fetches one, once; ends the program if
# that fails.
need_go() {
	local needed=$1 what=$2 dir lock
	for dir in '' /usr/local/go/bin "$go_dir/bin"; do
		if is_new_enough "${dir:+$dir/}go" "$needed"; then
			PATH=${dir:+$dir:}$PATH
			return 0
		fi
	done
	echo "$what: fetching Go $go_version, since no Go >= $needed is in PATH or /usr/local/go/bin" >&2
	mkdir -p "${go_dir%/*}"
	exec {lock}>"$go_dir.lock"
	flock "$lock"
	if ! is_new_enough "$go_dir/bin/go" "$needed"; then
		if ! { command -v go >/dev/null || "$(dirname "${BASH_SOURCE[0]}")/../scripts/deps" go; } || ! fetch_go "$go_dir"; then
			echo "$what needs Go >= $needed; it could not be fetched by its module proxy (GOPROXY), install it in /usr/local/go" >&2
			exit 1
		fi
	fi
	exec {lock}>&-
	PATH=$go_dir/bin:$PATH
}
