# SPDX-License-Identifier: Apache-2.0
"""The commands that a document shows, by section: what is indented, and behind "$ " between fences. Fences are for the rest.

usage: readme.py DOCUMENT SECTION     prints the commands of the section that are not part of a transcript
"""
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    section: str
    text: str  # without the remark behind it
    is_transcript: bool  # follows "$ ", and what it prints follows it


def strip_remark(line):
    return re.sub(r"\s\s+#.*$|\s# .*$", "", line).rstrip()


def is_whole(text):
    syntax = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    return not text.endswith("\\") and syntax.returncode == 0


def join(lines):
    """Whole commands: lines that a backslash or an open quotation mark continues, and loops up to their end."""
    whole = ""
    for line in lines:
        whole += ("\n" if whole else "") + strip_remark(line)
        if whole and is_whole(whole):
            yield whole
            whole = ""
    assert not whole, f"the document breaks off in the middle of a command: {whole}"


def blocks(text):
    """(section, lines, is_fenced) of each block of code."""
    section, fenced, lines = "", False, []
    for line in [*text.splitlines(), ""]:
        if line.startswith("```"):
            if fenced:
                yield section, lines, True
            fenced, lines = not fenced, []
        elif fenced:
            lines.append(line)
        elif line.startswith("    "):
            lines.append(line[4:])
        else:
            if lines:
                # within a list all of it is further in
                yield section, textwrap.dedent("\n".join(lines)).splitlines(), False
                lines = []
            if line.startswith("#"):
                section = line.lstrip("# ")


def commands(text):
    for section, lines, is_fenced in blocks(text):
        if is_fenced:
            for line in lines:
                shown = re.match(r"\s*\$ (.*?)(\s\s+[0-9.]+ s)?$", line)
                if shown:
                    yield Command(section, shown.group(1), True)
        else:
            for whole in join(lines):
                yield Command(section, whole, False)


def of_section(text, section):
    return [c.text for c in commands(text) if c.section == section and not c.is_transcript]


def transcript(text, section):
    """(command, what it prints) of the section's transcript."""
    steps = []
    for name, lines, is_fenced in blocks(text):
        if name != section or not is_fenced or not lines[0].startswith("$ "):
            continue
        for line in lines:
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
    return [(command, "".join(f"{line}\n" for line in output)) for command, output in steps]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as readme:
        shown = of_section(readme.read(), sys.argv[2])
    if not shown:
        sys.exit(f"no command in section {sys.argv[2]}")
    print("\n".join(shown))
