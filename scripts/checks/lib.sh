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

# Prints the functions that the headers given declare at the outermost level as "FILE declared NAME LINE".
list_declared() {
	list_code "$@" | awk '
		{
			split($0, place, ":")
			text = substr($0, length(place[1]) + length(place[2]) + 3)
			if (place[1] != file) {
				file = place[1]
				depth = 0
				statement = ""
			}
			if (continued || text ~ /^[ \t]*#/) {
				continued = text ~ /\\$/
				next
			}
			n = length(text)
			for (i = 1; i <= n; i++) {
				c = substr(text, i, 1)
				if (c == "{")
					depth++
				else if (c == "}" && depth > 0) {
					depth--
					# The end of a function; that of a type or a table goes on to its ";".
					if (depth == 0 && statement ~ /\)[ \t]*$/)
						statement = ""
				} else if (depth == 0 && c == ";") {
					declare(statement)
					statement = ""
				} else if (depth == 0) {
					if (statement == "" && c ~ /[^ \t]/)
						line = place[2]
					if (statement != "" || c ~ /[^ \t]/)
						statement = statement c
				}
			}
			if (statement != "")
				statement = statement " "
		}
		function declare(s,    name) {
			if (s ~ /^(static|typedef)[ \t]/ || s ~ /=/)
				return
			gsub(/__attribute__[ \t]*\(\(.*\)\)/, "", s)
			if (!match(s, /[A-Za-z_][A-Za-z0-9_]*[ \t]*\(/))
				return
			name = substr(s, RSTART, RLENGTH)
			sub(/[ \t]*\($/, "", name)
			# A macro call such as DEFINE_CLEANUP() has no type in front of it.
			if (RSTART > 1)
				print file, "declared", name, line
		}'
}

# Passes findings on from stdin and fails if there are any.
report() {
	! grep . || return 1
}
