"""The shape of an assignment."""

import re

from make_assignments import STARS, check_cell

from .registry import ASSIGNMENT, rule


def parts(nb):
    """(letter, heading cell, cells) of each exercise."""
    found = []
    for cell in nb.cells:
        heading = re.match(r"## Exercise ([A-Z]): \S", cell.source) if cell.kind == "markdown" else None
        if heading:
            found.append((heading[1], cell, []))
        if found:
            found[-1][2].append(cell)
    return found


@rule(ASSIGNMENT)
def exercises_are_rated(nb):
    do = 'Write "★★☆ · 15 minutes · 4 points" under the heading; points as in the cells that are graded'
    found = []
    for _, heading, cells in parts(nb):
        rating = STARS.search(heading.source)
        points = sum(cell.nbgrader.get("points", 0) for cell in cells)
        if not rating or len(rating[1]) != 3 or int(rating[3]) != points:
            found.append(nb.say(heading, f"an exercise of {points} points that is not rated so", do))
    return found


@rule(ASSIGNMENT)
def exercises_rise_in_difficulty(nb):
    letters = "".join(letter for letter, _, _ in parts(nb))
    stars = [rating[1] for _, cell, _ in parts(nb) if (rating := STARS.search(cell.source))]
    if len(letters) >= 4 and letters == "ABCDEFGH"[: len(letters)] and {"★☆☆", "★★★"} <= set(stars):
        return []
    do = "Four at least, lettered A, B, ..., one of them with one star and one with three"
    return [nb.say(None, f"exercises {letters} with {', '.join(stars)}", do)]


@rule(ASSIGNMENT)
def opening_adds_up(nb):
    ratings = [rating for _, cell, _ in parts(nb) if (rating := STARS.search(cell.source))]
    minutes, points = (sum(int(rating[n]) for rating in ratings) for n in (2, 3))
    wanted = [f"about {minutes} minutes", f"{len(ratings)} exercises and {points} points"]
    wanted += ["**What you will do.**", "**What you will learn.**", "**What you need.**"]
    do = "Say it in the first cell"
    return [nb.say(nb.cells[0], f"{text!r} is missing", do) for text in wanted if text not in nb.cells[0].source]


@rule(ASSIGNMENT)
def checks_are_the_generated_ones(nb):
    do = "A solution cell NAME, then a locked cell check-NAME with the text of check_cell(NAME) in make_assignments.py"
    solved, found = set(), []
    for cell in nb.code:
        name = cell.nbgrader.get("grade_id", "").removeprefix("check-")
        if cell.nbgrader.get("solution"):
            solved.add(name)
            if cell.source.count("### BEGIN SOLUTION") != 1 or cell.source.count("### END SOLUTION") != 1:
                found.append(nb.say(cell, "a solution without its marks", do))
        if cell.nbgrader.get("grade"):
            if name not in solved or cell.source != check_cell(name) or not cell.nbgrader.get("locked"):
                found.append(nb.say(cell, f"the check of {name}", do))
            if not cell.stream("stdout").startswith("Correct: "):
                found.append(nb.say(cell, "a solution that is not stored as correct", "Run `make notebooks`"))
    return found


@rule(ASSIGNMENT)
def asks_for_words(nb):
    texts = [cell for cell in nb.markdown if cell.nbgrader.get("grade") and cell.nbgrader.get("solution")]
    return [] if texts else [nb.say(None, "no explanation in words", "Ask for one; it is graded by hand")]
