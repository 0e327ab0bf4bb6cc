# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests that are written in Go.

# need_go VERSION WHAT: puts go into PATH; ends the program, loudly, if there is none or an older one.
need_go() {
	local needed=$1 what=$2 found
	# Where Go's own installer puts it; Debian 12's package is too old.
	PATH=$PATH:/usr/local/go/bin
	command -v go >/dev/null || {
		echo "$what is built with Go >= $needed, and there is no go in PATH or /usr/local/go/bin:" \
			"install it from https://go.dev/dl/" >&2
		exit 1
	}
	found=$(go env GOVERSION)
	found=${found#go}
	[ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" = "$needed" ] || {
		echo "$what is built with Go >= $needed, this is $found ($(command -v go))" >&2
		exit 1
	}
}
