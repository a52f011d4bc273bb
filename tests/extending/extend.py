#!/usr/bin/env python3
"""Follows docs/extending.md: adds one of each kind to a copy of the tree, and runs its tests.

usage: extend.py FOLDER [SECTION...]

The copy, FOLDER/tree, has the files that git tracks, as in the work tree. First with all additions (additions.py): it
builds, the additions work, all checks pass, and the places are exactly those of the page. Then each place is left out in
turn: the build, the addition or a check must fail; otherwise the place is not needed.
"""

import os
import re
import shutil
import subprocess
import sys

import additions

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.abspath(sys.argv[1])
TREE, BUILD = os.path.join(FOLDER, "tree"), os.path.join(FOLDER, "build")
CHECKS = [["tools/layers"], ["tools/named-files"], ["meson", "test", "-C", BUILD, "docs", "shown", "findings", "help", "commands"]]
MOST = {"A sub-command": 3, "An export format": 3, "An analysis": 3}


def run(*command):
    """What it prints, and whether it succeeds."""
    done = subprocess.run(command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def places_of_page():
    """The path that each item of a section's list begins with, by section."""
    page = open(os.path.join(ROOT, "docs", "extending.md")).read()
    sections = re.split(r"^## (.*)\n", page, flags=re.M)[1:]
    return {title: re.findall(r"^\d+\. `([^`]+)`", text, re.M) for title, text in zip(sections[::2], sections[1::2])}


def paths_of(section):
    return list(dict.fromkeys(place.path for place in additions.ADDITIONS[section][0]))


def copy_tree():
    shutil.rmtree(TREE, ignore_errors=True)
    for path in subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]:
        os.makedirs(os.path.dirname(os.path.join(TREE, path)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, path), os.path.join(TREE, path), follow_symlinks=False)
    assert run("git", "init", "-q")[0]


def write(path, text):
    """Only if it differs: what does not change is not built again."""
    whole = os.path.join(TREE, path)
    now = open(whole).read() if os.path.exists(whole) else None
    if text is None and now is not None:
        os.remove(whole)
    elif text != now:
        with open(whole, "w") as file:
            file.write(text)


def original(path):
    whole = os.path.join(ROOT, path)
    return open(whole).read() if os.path.exists(whole) else None


def apply(places):
    """The tree with these places, of all."""
    files = {place.path: original(place.path) for of, _ in additions.ADDITIONS.values() for place in of}
    for place in places:
        files[place.path] = place.apply(files[place.path])
    for path, text in files.items():
        write(path, text)
    assert run("git", "add", "-A")[0]


def wrong(of_sections):
    """What fails; empty: nothing."""
    built, said = run("ninja", "-C", BUILD, "trail")
    if not built:
        return "build: " + said[-2000:]
    for section in of_sections:
        try:
            if not additions.ADDITIONS[section][1](os.path.join(BUILD, "trail"), os.path.join(TREE, "tests", "data")):
                return section + ": is not there"
        except subprocess.CalledProcessError as failure:
            return f"{section}: {failure} {failure.stderr}"
    for check in CHECKS:
        passed, said = run(*check)
        if not passed:
            return f"{' '.join(check)}: {said[-4000:]}"
    return ""


def main():
    sections = sys.argv[2:] or list(additions.ADDITIONS)
    page, failures = places_of_page(), 0

    def report(good, text, more=""):
        nonlocal failures
        failures += not good
        print("ok      " if good else "FAILED  ", text, "" if good else more, flush=True)

    for section in sections:
        paths = paths_of(section)
        names = [path.replace("NAME", re.split(r"[/.-]", paths[1])[-2]) for path in page[section]]
        report(names == paths, f"{section}: {len(paths)} places, those of the page", f"{names} {paths}")
        if section in MOST:
            report(len(paths) <= MOST[section], f"{section}: at most {MOST[section]}")
    copy_tree()
    assert run("meson", "setup", "--wipe" if os.path.exists(BUILD) else BUILD, *([BUILD] if os.path.exists(BUILD) else []))[0]
    places = [place for section in sections for place in additions.ADDITIONS[section][0]]
    apply(places)
    failure = wrong(sections)
    report(not failure, "with all places it builds, works and passes", failure)
    if failure:
        return 1
    for section in sections:
        for path in paths_of(section):
            apply([place for place in places if place not in additions.ADDITIONS[section][0] or place.path != path])
            failure = wrong(sections)
            first = re.search(r".*(error|FAIL|not ok|is not there|returned|no such).*", failure, re.I)
            report(failure, f"{section}: without its place in {path}: {first[0][:150] if first else failure[-150:]}", "nothing fails")
    return failures > 0


sys.exit(main())
