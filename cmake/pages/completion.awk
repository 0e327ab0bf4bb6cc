# SPDX-License-Identifier: Apache-2.0
# A branch of the completion of a program: what follows a command, or the program itself. cmake/pages/make puts them together.

function write_page(i, flags, values, files, folders, commands) {
	for (i = 1; i <= n_flags; i++) {
		if (flag_is_ignored[i])
			continue
		flags = flags " " flag_name[i]
		if (flag_value[i] != "")
			values = values " " flag_name[i]
		if (flag_value[i] == "DIR")
			folders = folders " " flag_name[i]
		if (flag_value[i] == "FILE" || flag_value[i] == "PATH")
			files = files " " flag_name[i]
	}
	for (i = 1; i <= n_rows; i++)
		commands = commands " " row_name[i]
	print "\t" (command == "" ? "*" : command) ")"
	print "\t\tflags='" flags " '"
	print "\t\tvalues='" values " '"
	print "\t\tfiles='" files " '"
	print "\t\tfolders='" folders " '"
	print "\t\tcommands='" commands " '"
	print "\t\t;;"
}
