#!/bin/sh
# tools/setup_venv.sh VENV EXTRAS: create the environment VENV where there is none, and install this checkout
# with its EXTRAS, in the versions of constraints.txt. One clear line when that is not possible.
# VENV/.ready says what was installed: the extras, the Python, the folder, and all of pyproject.toml and
# constraints.txt. Where that is still so, nothing is done, whatever the times of the files say.
set -u
cd "$(dirname "$0")/.." || exit 1
venv=$1
log=$venv/install.log
ready=$venv/.ready
busy=$venv/.installing # holds the process id of the installation under way, or of one that was cut short
supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
version='import sys; print("Python %d.%d" % sys.version_info[:2])'
needs="this book needs Python 3.11, 3.12 or 3.13"

stop() {
  echo "make: $1" >&2
  exit 1
}

pick() { # the first interpreter that runs and is neither too old nor too new
  for candidate in python3.13 python3.12 python3.11 python3 python; do
    if "$candidate" -c "$supported" >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

facts() { # what an installation depends on, besides the extras
  echo "$("$venv/bin/python" -c "$version" 2>/dev/null) in $PWD"
  cat pyproject.toml constraints.txt
}

asked=any
if [ -n "${PYTHON:-}" ]; then
  asked=$("$PYTHON" -c "$version" 2>/dev/null) || stop "PYTHON=$PYTHON does not run; $needs"
  [ -n "$asked" ] || stop "PYTHON=$PYTHON is no Python; $needs"
  "$PYTHON" -c "$supported" || stop "PYTHON=$PYTHON is $asked; $needs"
fi

# What an earlier run added, such as the extra `site`, stays up to date with the rest.
listed=$(sed -n 1p "$ready" 2>/dev/null)
extras=$(echo "$2,$listed" | tr , '\n' | sed '/^$/d' | sort -u | paste -s -d , -)
found=$("$venv/bin/python" -c "$version" 2>/dev/null) || found=none
[ "$asked" = any ] && asked=$found
if [ "$extras" = "$listed" ] && [ "$asked" = "$found" ] && [ "$(sed 1d "$ready")" = "$(facts)" ]; then
  exit 0
fi

if [ -e "$busy" ]; then
  kill -0 "$(cat "$busy")" 2>/dev/null && stop "another make is installing into $venv; wait for it to end"
  rm -rf "$venv" # half-written packages would pass for whole ones
fi

elsewhere() { # the checkout was moved: scripts and the editable package still point to where it was
  place=$(sed -n '2s/^Python [0-9.]* in //p' "$ready" 2>/dev/null)
  [ -n "$place" ] && [ "$place" != "$PWD" ]
}

if [ "$asked" != "$found" ] || elsewhere || ! "$venv/bin/python" -c "$supported" >/dev/null 2>&1 ||
  ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  python=${PYTHON:-$(pick)} || {
    found=$(python3 -c "$version" 2>/dev/null) || found="no Python"
    stop "$needs, and here is $found; install one, or name it: make PYTHON=/path/to/python3.12"
  }
  rm -rf "$venv"
  "$python" -m venv "$venv" >/dev/null 2>&1 ||
    stop "$python cannot create $venv; is its venv module installed (Debian: apt-get install python3-venv), and is the disk full?"
fi

offline() {
  stop "no package index can be reached, and $venv still needs packages; connect to the network and run make again (log: $log)"
}

install() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@" >>"$log" 2>&1; }

: >"$log"
echo "Installing into $venv ($("$venv/bin/python" -c "$version"), a minute or two) ..."
# One small package first, so that a missing network is said in seconds and not after many retries.
probe=$venv/probe
PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=8 install download --no-deps --no-cache-dir --dest "$probe" nbval || offline
rm -rf "$probe" "$ready"
echo $$ >"$busy"
if install install -c constraints.txt -e ".[$extras]"; then
  rm "$busy"
else
  rm "$busy"
  grep -aqE 'connection broken by|NewConnectionError|ConnectTimeout|ReadTimeout' "$log" && offline
  stop "pip could not install the packages: $(grep -a '^ERROR' "$log" | head -n 1 | cut -c1-200) (log: $log)"
fi
# matplotlib's first import builds a font cache and says so; not in a notebook.
"$venv/bin/python" -c "import matplotlib.font_manager" >>"$log" 2>&1 || stop "matplotlib cannot be imported (log: $log)"
{
  echo "$extras"
  facts
} >"$ready.new" && mv "$ready.new" "$ready" || stop "$ready cannot be written; is the disk full?"
