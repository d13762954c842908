#!/usr/bin/env python3
"""Checks that what the documents name exists: paths and tests in backticks, link targets, flags of the program.

    tools/check_docs.py              prints every name that is not there; exit 1 if there is one

A word in backticks counts as a path if it starts with a folder of this repository or ends like a source file. It may be
relative to the document or to the root, may hold wildcards, and may be a file's bare name. Paths below build/, ../shared and
thalweg/ (generated headers) are not looked up. A flag is a word in backticks that starts with "--"; it must stand in the
sources of tools/ or in a script there. A test is written Suite.Name and must stand in tests/.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BACKTICKED = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TEST_NAME = re.compile(r"[A-Z]\w+\.[A-Z]\w+")
TEST_MACRO = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
PATH = re.compile(r"[\w.*+\-/]+")
SOURCE_ENDINGS = (".h", ".cc", ".proto", ".py", ".sh", ".cmake", ".md", ".supp")


def documents():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"],
                            check=True, capture_output=True, text=True)
    return sorted(ROOT / path for path in listed.stdout.split() if (ROOT / path).exists())


def is_path(word, top_level):
    if not PATH.fullmatch(word) or word.startswith(("build/", "../shared", "/", ".", "thalweg/")):
        return False
    return word.split("/")[0] in top_level and "/" in word or word.endswith(SOURCE_ENDINGS)


def exists(word, document):
    word = word.rstrip("/")
    for base in (document.parent, ROOT):
        if "*" in word:
            if any(base.glob(word)):
                return True
        elif (base / word).exists():
            return True
    return "/" not in word and any(path.name == word for path in ROOT.glob("*/**/*.*") if "build" not in path.parts)


def program_text():
    files = [path for pattern in ("*.cc", "*.h", "*.sh", "*.py", "**/*.cc", "**/*.h") for path in (ROOT / "tools").glob(pattern)]
    files += (ROOT / "tests").glob("**/*.py")
    return "\n".join(path.read_text(encoding="utf-8") for path in files if path != pathlib.Path(__file__).resolve())


def flag_exists(flag, text):
    name = re.match(r"--(?:no-)?([a-z0-9-]+)", flag)
    return name is None or re.search(r"\b" + re.escape(name.group(1)) + r"\b", text) is not None


def all_tests():
    sources = (ROOT / "tests").glob("**/*_test.cc")
    return {".".join(names) for path in sources for names in TEST_MACRO.findall(path.read_text(encoding="utf-8"))}


def main():
    top_level = {path.name for path in ROOT.iterdir()}
    text = program_text()
    tests = all_tests()
    faults = []
    for document in documents():
        content = document.read_text(encoding="utf-8")
        prose = FENCE.sub("", content)
        where = document.relative_to(ROOT)
        for word in BACKTICKED.findall(prose):
            if word.startswith("--"):
                if not flag_exists(word, text):
                    faults.append(f"{where}: no such flag: {word}")
            elif TEST_NAME.fullmatch(word):
                if word not in tests:
                    faults.append(f"{where}: no such test: {word}")
            elif is_path(word, top_level) and not exists(word, document):
                faults.append(f"{where}: no such file: {word}")
        for target in LINK.findall(prose):
            if "://" not in target and not exists(target, document):
                faults.append(f"{where}: link to nowhere: {target}")
    print("\n".join(faults) if faults else "check_docs: every path, test, link and flag named in the documents exists")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
