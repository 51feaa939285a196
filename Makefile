# make book, make test: each does all its own set-up, in .venv. `make help` lists the rest.
SHELL := /bin/sh
PY := .venv/bin/python
# The longest first, so that two at a time end together: the evidence, the chapters, the assignments.
NOTEBOOKS := $(foreach folder,notebooks/evidence notebooks notebooks/assignments,$(sort $(wildcard $(folder)/*.ipynb)))
READY := .venv/.ready
GLOVE_READY := .venv/.ready-glove
WEIGHTS_READY := .venv/.ready-weights

# A container may run as a user without a home folder, for which Jupyter and gensim ask.
export HOME := $(or $(HOME),$(shell getent passwd "$$(id -u)" 2>/dev/null | cut -d: -f6),$(CURDIR)/_build/home)

.PHONY: help book test lint check serve notebooks assignments new-chapter site-test reference-test clean always site-ready
.DEFAULT_GOAL := help

help:
	@echo "make book        build the site into _build/html"
	@echo "make serve       build it and open it on a local address"
	@echo "make test        re-run every notebook and compare, test the package, build and check the site"
	@echo "make site-test   open every page in Chromium: errors, sliders, screenshots in _build/screenshots"
	@echo "make check NB=03 everything about chapter 3, in a minute or two: rules, claims, exercises, outputs"
	@echo "make new-chapter NAME=my_topic   begin the next chapter: a notebook and its evidence that run"
	@echo "make reference-test   compare the package with PyTorch, in an environment of its own"
	@echo "make notebooks   execute all notebooks in place"
	@echo "make assignments the student versions, the chapters' exercises, a course folder in _build/course"
	@echo "make lint        ruff, biome and the notebooks' rules, in seconds"
	@echo "make style       how the notebooks are written: a table beside the guide, which stops nothing"
	@echo "make clean       remove what was built; .venv stays"

# The script compares what is installed with what is asked for, by content: it installs when pyproject.toml,
# constraints.txt or Python changed, and leaves the stamp alone when only the times of files did.
$(READY): always
	@tools/setup_venv.sh .venv book,test,course

site-ready: $(READY)
	@tools/setup_venv.sh .venv book,test,course,site

# The full GloVe table, against which the vendored subset is tested, is fetched once into the cache folder.
$(GLOVE_READY): $(READY)
	@$(PY) tools/fetch_glove.py
	@touch $@

# The weights of MiniLM and SmolLM2 (177 MB), for chapters 7 and 8: make goes on without them, except in CI.
$(WEIGHTS_READY): $(READY)
	@$(PY) tools/fetch_weights.py $@

book: $(READY)
	@$(PY) tools/build_book.py

serve: book
	@$(PY) tools/serve.py

notebooks: $(READY) $(WEIGHTS_READY)
	@$(PY) tools/claims.py --rows
	@$(PY) tools/execute_notebooks.py

assignments: $(READY)
	@$(PY) tools/make_assignments.py

check: $(READY)
	@$(PY) tools/check_chapter.py "$(NB)"

new-chapter: $(READY)
	@$(PY) tools/new_chapter.py "$(NAME)"

lint:
	@test -e $(READY) || { echo "make: lint installs nothing, and .venv is not there yet; run make book or make test once" >&2; exit 1; }
	@$(PY) -m ruff check --quiet --output-format=concise .
	@$(PY) tools/lint_scripts.py
	@$(PY) -m pytest -q tests/test_notebooks.py

.PHONY: style
style:
	@test -e $(READY) || { echo "make: style installs nothing, and .venv is not there yet; run make book or make test once" >&2; exit 1; }
	@$(PY) tools/style.py

test: $(READY) $(GLOVE_READY) $(WEIGHTS_READY)
	@echo "== ruff"
	@$(PY) -m ruff check --quiet --output-format=concise .
	@$(PY) tools/lint_scripts.py
	@echo "== unit tests and the notebooks' rules"
	@$(PY) -m pytest -q -n 2 --ignore=tests/site tests
	@echo "== every notebook, re-executed and compared"
	@$(PY) tools/compare_notebooks.py $(NOTEBOOKS)
	@echo "== the site"
	@$(PY) tools/build_book.py
	@$(PY) -m pytest -q tests/site/test_static.py

site-test: site-ready
	@$(PY) tools/build_book.py
	@$(PY) -m pytest -q tests/site

# PyTorch is a reference only: .venv, and with it the book, stays free of it.
reference-test:
	@tools/setup_venv.sh .venv-reference reference
	@.venv-reference/bin/python -m pytest -q -m reference $$(grep -l 'mark\.reference' tests/test_*.py)

# A course folder with grades or submissions in it was not only built: it stays.
clean:
	@for path in _build/* _build/.[!.]*; do \
	  if [ -e "$$path/gradebook.db" ] || [ -e "$$path/submitted" ]; then echo "$$path holds a course: it stays"; \
	  else rm -rf "$$path"; fi; done
	@rmdir _build 2>/dev/null || true
	@rm -rf book/claims.md .pytest_cache .ruff_cache .hypothesis
	@find . -path './.venv*' -prune -o -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
	@echo "Removed what was built; .venv stays (rm -rf .venv .venv-reference removes it too)."
