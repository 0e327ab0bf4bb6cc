# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the checks share. A check runs in the root of the tree and prints "FILE:LINE: what is wrong" to stdout for each
# finding; its status is 1 when there was one, and 2 when it could not do its work.

checks=$(dirname "${BASH_SOURCE[0]}")

# Without git there would be no files, and so no findings.
if ! git ls-files --error-unmatch "$checks/lib.sh" >/dev/null 2>&1; then
	echo "not the root of a git checkout"
	exit 2
fi

# Prints the files known to git that match the pathspecs and exist, one per line.
list_files() {
	local file
	git ls-files -- "$@" | while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done
}

# Prints each C file given, comments and the content of strings blanked, as FILE:LINE:TEXT.
list_code() {
	awk -f "$checks/code.awk" "$@"
}

# Prints the comments of each C file given as FILE:LINE:TEXT.
list_comments() {
	awk -v comments=1 -f "$checks/code.awk" "$@"
}

# Passes findings on from stdin and fails if there are any.
report() {
	! grep . || return 1
}
