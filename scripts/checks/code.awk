# SPDX-License-Identifier: Apache-2.0
# C without what is not code: comments become blanks, strings and characters become empty. Prints FILE:LINE:TEXT.
# Include lines stay whole, since what they name stands in quotes. With -v comments=1 it prints the comments instead.
FNR == 1 { in_comment = 0 }
{
	rest = $0
	code = ""
	said = ""
	if (!comments && !in_comment && rest ~ /^[ \t]*#[ \t]*include/) {
		sub(/[ \t]*\/[*\/].*/, "", rest)
		print FILENAME ":" FNR ":" rest
		next
	}
	while (rest != "") {
		if (in_comment) {
			end = index(rest, "*/")
			if (!end) {
				said = said rest
				break
			}
			said = said substr(rest, 1, end - 1) " "
			rest = substr(rest, end + 2)
			in_comment = 0
			code = code " "
		} else if (match(rest, /\/\*|\/\/|"|'/)) {
			mark = substr(rest, RSTART, RLENGTH)
			code = code substr(rest, 1, RSTART - 1)
			rest = substr(rest, RSTART + RLENGTH)
			if (mark == "//") {
				said = said rest
				break
			}
			if (mark == "/*") {
				in_comment = 1
				continue
			}
			code = code mark mark
			text = (mark == "'") ? "^([^'\\\\]|\\\\.)*'" : "^([^\"\\\\]|\\\\.)*\""
			if (!match(rest, text))
				break
			rest = substr(rest, RLENGTH + 1)
		} else {
			code = code rest
			rest = ""
		}
	}
	print FILENAME ":" FNR ":" (comments ? said : code)
}
