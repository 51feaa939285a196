"""The list of rules, and for which kinds of notebooks each of them holds."""

CHAPTER, EVIDENCE, ASSIGNMENT = "chapter", "evidence", "assignment"
GUIDE = "guide"  # a notebook beside the chapters that has no number: in their form, with no claims, no evidence
RULES = {}  # name -> (function, the kinds that it holds for, the forms that it holds for)


def rule(*kinds, two_tier=None):
    """Register a rule: a function from a Notebook to its complaints.

    kinds      for which kinds it holds; all four when none is named
    two_tier   True for notebooks in the form of two tiers alone, False for the others alone. A chapter has that
               form when notebooks/evidence/ has a notebook of its name; evidence and guides always have it.
    """

    def register(function):
        forms = {True, False} if two_tier is None else {two_tier}
        RULES[function.__name__] = (function, set(kinds) or {CHAPTER, EVIDENCE, ASSIGNMENT, GUIDE}, forms)
        return function

    return register


def rules_for(kind, two_tier):
    """The names of the rules that hold for one kind of notebook in one form."""
    return [name for name, (_, kinds, forms) in RULES.items() if kind in kinds and two_tier in forms]


def check(notebook, name):
    """The complaints of one rule about a notebook."""
    return RULES[name][0](notebook)
