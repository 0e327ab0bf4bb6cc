# SPDX-License-Identifier: Apache-2.0
# A section of the page of a program in docs/reference; the program's own begins the file.

function escape(text) {
	gsub(/[<>|*_]/, "\\\\&", text)
	return text
}

function write_rows(i) {
	print "| command | what |\n|---|---|"
	for (i = 1; i <= n_rows; i++)
		print "| `" row_name[i] (row_operands[i] != "" ? " " row_operands[i] : "") "` | " escape(row_text[i]) " |"
	print ""
}

function write_page(i) {
	if (command == "") {
		print "<!-- SPDX-License-Identifier: Apache-2.0 -->"
		print "<!-- Made of what -help prints: cmake --build --preset dev --target reference -->"
	}
	print (command == "" ? "# " : "\n## ") name "\n"
	for (i = 1; i <= n_usage; i++)
		print "    " usage[i]
	print ""
	for (i = 1; i <= n_parts; i++) {
		if (part[i] == "ROWS")
			write_rows()
		else
			print escape(part[i]) "\n"
	}
	print "| flag | what |\n|---|---|"
	for (i = 1; i <= n_flags; i++)
		print "| `" flag_name[i] (flag_value[i] != "" ? " " flag_value[i] : "") "` | " \
			(flag_is_ignored[i] ? "no effect: " : "") escape(flag_text[i]) " |"
}
