# SPDX-License-Identifier: Apache-2.0
"""Manual pages, completions and docs/reference are made of what the programs print for -help: that they are whole, that man and
bash read them, and that docs/reference is up to date.

usage: test_pages.py BIN PAGES SOURCE [UNITTEST...]      as root or not
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

BIN, PAGES, SOURCE = map(os.path.abspath, sys.argv[1:4])
PROGRAMS = ("pmem-ns-init", "pmem-vgm", "pmem-csi-driver", "scheduler-extender", "csi-client")
COMMANDS = ("volumes", "regions", "doctor", "check", "cluster")
# Words of the command line and the page for them.
HELPS = [((program,), program) for program in PROGRAMS] + [
    (("pmem-csi-driver", command), f"pmem-csi-driver-{command}") for command in COMMANDS]


def flags_of(words):
    """(flag, whether it has an effect) by the lines of -help itself."""
    text = subprocess.run([f"{BIN}/{words[0]}", *words[1:], "-help"], capture_output=True, text=True, check=True).stdout
    table = text.split("\nFlags:\n")[1].split("\n\n")[0]
    return [(line.split()[0], "  no effect: " not in line) for line in table.splitlines()]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def render(path):
    """The page as a terminal shows it, and what man complains of."""
    env = {**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    shown = subprocess.run(["man", "--warnings=all", "--no-hyphenation", "--no-justification", "-l", path],
                           capture_output=True, text=True, check=True, env=env)
    return shown.stdout, shown.stderr


def complete(line, folder="/"):
    """What bash offers at the end of the line, whose words are separated as it does it."""
    words = [word for word in re.split(r"[ ]+|(=)", line) if word]
    if line.endswith((" ", "=")):
        words += [""] if line.endswith(" ") else []
    script = f"""
        . {PAGES}/bash-completion/completions/{words[0]}
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        $(complete -p {words[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    run = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True, cwd=folder)
    if run.stderr:
        raise AssertionError(run.stderr)
    return [word for word in run.stdout.split("\n") if word]


class Manual(unittest.TestCase):
    def test_each_program_and_command_has_a_page(self):
        self.assertEqual(sorted(f"{page}.8" for _, page in HELPS), sorted(os.listdir(f"{PAGES}/man/man8")))

    def test_pages_are_rendered_without_a_warning_and_have_each_flag(self):
        for words, page in HELPS:
            with self.subTest(page):
                text, complaints = render(f"{PAGES}/man/man8/{page}.8")
                self.assertEqual("", complaints)
                for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "FLAGS", "EXIT STATUS", "SEE ALSO"):
                    self.assertRegex(text, rf"(?m)^{section}$")
                for flag, _ in flags_of(words):
                    self.assertRegex(text, rf"(?m)^ +{re.escape(flag)}\b")

    def test_name_is_found_by_whatis(self):
        for _, page in HELPS:
            run = subprocess.run(["lexgrog", f"{PAGES}/man/man8/{page}.8"], capture_output=True, text=True, check=False)
            self.assertRegex(run.stdout, rf'"{page} - [a-z]', run.stderr)


class Completion(unittest.TestCase):
    def test_flags_of_programs_and_commands(self):
        for words, _ in HELPS:
            with self.subTest(words):
                offered = complete(" ".join(words) + " -")
                self.assertEqual([flag for flag, has_effect in flags_of(words) if has_effect], offered)
                self.assertEqual(["-help"], complete(" ".join(words) + " -hel"))
                self.assertEqual(["-help"], complete(" ".join(words) + " --hel"))

    def test_commands(self):
        self.assertEqual(sorted(COMMANDS), sorted(complete("pmem-csi-driver ")))
        self.assertEqual(["check"], complete("pmem-csi-driver cluster "))
        self.assertEqual(["status"], complete("pmem-vgm st"))
        self.assertEqual(["convert"], complete("pmem-ns-init -dry-run con"))
        self.assertEqual(["unstage"], complete("csi-client -timeout=5s unst"))

    def test_files_and_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/a folder")
            with open(f"{folder}/a file", "w", encoding="utf-8"):
                pass
            self.assertEqual(["a folder"], complete("pmem-vgm -statePath a", folder))
            self.assertEqual(["a folder"], complete("pmem-vgm -statePath=a", folder))
            self.assertEqual(["a file", "a folder"], sorted(complete("pmem-csi-driver -caFile=", folder)))
            self.assertEqual(["a file", "a folder"], sorted(complete("pmem-csi-driver --caFile ", folder)))

    def test_nothing_for_values_that_are_not_known(self):
        self.assertEqual([], complete("pmem-csi-driver -nodeid "))
        self.assertEqual([], complete("pmem-csi-driver -nodeid=-"))


class Reference(unittest.TestCase):
    def test_what_is_in_docs_is_up_to_date(self):
        for program in PROGRAMS:
            self.assertEqual(read(f"{PAGES}/reference/{program}.md"), read(f"{SOURCE}/docs/reference/{program}.md"),
                             "cmake --build --preset dev --target reference puts it right")
        self.assertEqual(sorted(os.listdir(f"{SOURCE}/docs/reference")), sorted(os.listdir(f"{PAGES}/reference")))

    def test_each_flag_has_a_row(self):
        for words, _ in HELPS:
            text = read(f"{SOURCE}/docs/reference/{words[0]}.md")
            section = re.split(r"(?m)^#+ ", text)[1 + (COMMANDS.index(words[1]) + 1 if len(words) > 1 else 0)]
            self.assertTrue(section.startswith(" ".join(words) + "\n"), section[:60])
            for flag, _ in flags_of(words):
                self.assertRegex(section, rf"(?m)^\| `{re.escape(flag)}[ `]")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
