# SPDX-License-Identifier: Apache-2.0
# Reads what a program prints for -help (args_help() and the text before and after it), and calls write_page() of the file
# that is loaded after this one. Its format is a part of this: what cannot be read ends the build.
#
# name: of the page; command: of the program that has it, "" for the program itself.

function stop(text) {
	print "pages: " name ": " text ": " $0 >"/dev/stderr"
	status = 1
	exit 1
}

# A line of the text before the flags: what belongs to the row or the paragraph above is joined with it.
function add_text(line) {
	if (line ~ /^  [^ ]/)
		add_command(line)
	else if (line ~ /^   / && in_rows)
		row_text[n_rows] = row_text[n_rows] " " trim(line)
	else if (line == "")
		ends = 1
	else if (line ~ /^ /)
		stop("cannot read an indented line")
	else {
		in_rows = 0
		if (ends || n_parts == 0 || part[n_parts] == "ROWS")
			part[++n_parts] = line
		else
			part[n_parts] = part[n_parts] " " line
	}
	if (line != "")
		ends = 0
}

# "  NAME [OPERANDS]  what it does": two spaces and more separate.
function add_command(line, n, cells) {
	sub(/^  /, "", line)
	n = split(line, cells, /  +/)
	if (n < 2)
		stop("cannot read a row")
	if (!in_rows) {
		part[++n_parts] = "ROWS"
		in_rows = 1
	}
	row_name[++n_rows] = cells[1]
	row_operands[n_rows] = n > 2 ? cells[2] : ""
	row_text[n_rows] = cells[n]
}

# "  -NAME [VALUE]  what it is for"
function add_flag(line, n, words) {
	if (line !~ /^  -[^ ]+( [^ ]+)?  +[^ ]/)
		stop("cannot read a flag")
	n_flags++
	n = match(line, /[^ ]  +[^ -]/)
	flag_text[n_flags] = trim(substr(line, n + 1))
	split(trim(substr(line, 1, n)), words, " ")
	flag_name[n_flags] = words[1]
	flag_value[n_flags] = words[2]
	flag_is_ignored[n_flags] = sub(/^no effect: /, "", flag_text[n_flags])
}

function trim(text) {
	gsub(/^ +| +$/, "", text)
	return text
}

# The first sentence, or the part before its colon, as it follows "NAME - ".
function summary(text) {
	text = part[1]
	if (text == "" || text == "ROWS")
		stop("begins with no sentence that says what it is")
	sub(/[.:]( .*)?$/, "", text)
	if (match(part[1], /[.:]( |$)/))
		text = substr(part[1], 1, RSTART - 1)
	return tolower(substr(text, 1, 1)) substr(text, 2)
}

NR == 1 && !/^usage: / { stop("does not begin with its usage") }
NR == 1 {
	sub(/^usage: /, "")
	usage[++n_usage] = $0
	section = "usage"
	next
}
section == "usage" && /^       [^ ]/ {
	usage[++n_usage] = trim($0)
	next
}
/^Flags:$/ {
	section = "flags"
	next
}
/^Commands:$/ {
	section = "commands"
	next
}
section == "flags" && NF {
	add_flag($0)
	next
}
section == "commands" && NF {
	add_command($0)
	next
}
section == "usage" || section == "text" {
	section = "text"
	add_text($0)
}
END {
	if (status)
		exit status
	if (!n_flags)
		stop("has no flags")
	write_page()
}
