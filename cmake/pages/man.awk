# SPDX-License-Identifier: Apache-2.0
# A manual page of section 8, as man(7) describes it. version: of the program; others: pages to see also, with spaces between.

# Makes text that groff prints as it is.
function escape(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/`/, "\\(ga", text)
	gsub(/'/, "\\(aq", text)
	if (text ~ /^\./)
		text = "\\\\\\&" text
	return text
}

function paragraph(text) {
	print ".PP\n" escape(text)
}

function write_part(i, text, k) {
	text = part[i]
	if (text == "ROWS") {
		write_rows()
	} else if (text ~ /^Exit status: /) {
		sub(/^Exit status: /, "", text)
		exit_status = text
	} else
		paragraph(text)
}

function write_rows(i) {
	for (i = 1; i <= n_rows; i++) {
		print ".TP\n.B " escape(row_name[i])
		if (row_operands[i] != "")
			print ".I " escape(row_operands[i])
		print escape(row_text[i])
	}
}

function write_flags(i) {
	for (i = 1; i <= n_flags; i++) {
		if (flag_is_ignored[i])
			continue
		if (flag_value[i] != "")
			print ".TP\n.BI " escape(flag_name[i]) " \" " escape(flag_value[i]) "\""
		else
			print ".TP\n.B " escape(flag_name[i])
		print escape(flag_text[i])
	}
	for (i = 1; i <= n_flags; i++) {
		if (flag_is_ignored[i] && !n_ignored++)
			print ".SH \"FLAGS WITHOUT EFFECT\""
		if (flag_is_ignored[i])
			print ".TP\n.B " escape(flag_name[i]) "\n" escape(flag_text[i])
	}
}

function write_see_also(n, i, pages) {
	n = split(others, pages, " ")
	print ".SH \"SEE ALSO\""
	for (i = 1; i <= n; i++)
		print ".BR " escape(pages[i]) " (8)" (i < n ? "," : "")
}

function write_page(i) {
	print ".\\\" SPDX-License-Identifier: Apache-2.0"
	print ".TH " toupper(escape(name)) " 8 \"\" \"pmem\\-csi " version "\" \"PMEM\\-CSI\""
	print ".SH NAME\n" escape(name) " \\- " escape(summary())
	print ".SH SYNOPSIS\n.nf"
	for (i = 1; i <= n_usage; i++)
		print escape(usage[i])
	print ".fi\n.SH DESCRIPTION"
	for (i = 1; i <= n_parts; i++)
		write_part(i)
	print ".SH FLAGS"
	paragraph("A value stands behind its flag as the next word or after \"=\"; \"--\" in place of \"-\" is the same.")
	write_flags()
	if (exit_status != "")
		print ".SH \"EXIT STATUS\"\n" escape(exit_status)
	write_see_also()
}
