# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs the commands of a document as they are. $document is its path; what "kubectl" means is for those who source this.

# commands_of HEADING: its indented blocks.
# shellcheck disable=SC2154 # of those who source this
commands_of() {
	awk -v heading="## $1" '/^## / { inside = $0 == heading } inside && sub(/^    /, "")' "$document"
}

# follow HEADING [WITHOUT]: runs them one by one; lines that match WITHOUT are left out.
follow() {
	local line lines=0
	while read -r line <&3; do
		[ -z "${2:-}" ] || [[ ! $line =~ $2 ]] || continue
		echo "\$ $line"
		eval "$line"
		lines=$((lines + 1))
	done 3< <(commands_of "$1")
	[ "$lines" -gt 0 ]
}
