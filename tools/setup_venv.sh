#!/bin/sh
# tools/setup_venv.sh EXTRAS: create .venv where there is none, and install this checkout with its
# EXTRAS, in the versions of constraints.txt. One clear line when that is not possible.
set -u
cd "$(dirname "$0")/.." || exit 1
venv=.venv
log=$venv/install.log
busy=$venv/.installing # holds the process id of the installation under way, or of one that was cut short
supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
version='import sys; print("Python %d.%d" % sys.version_info[:2])'

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

if [ -n "${PYTHON:-}" ]; then
  found=$("$PYTHON" -c "$version" 2>/dev/null) || stop "PYTHON=$PYTHON does not run; this book needs Python 3.11, 3.12 or 3.13"
  [ -n "$found" ] || stop "PYTHON=$PYTHON is no Python; this book needs Python 3.11, 3.12 or 3.13"
  "$PYTHON" -c "$supported" || stop "PYTHON=$PYTHON is $found; this book needs Python 3.11, 3.12 or 3.13"
fi

if [ -e $busy ]; then
  kill -0 "$(cat $busy)" 2>/dev/null && stop "another make is installing into .venv; wait for it to end"
  rm -rf $venv # half-written packages would pass for whole ones
fi

if ! $venv/bin/python -c "$supported" >/dev/null 2>&1 || ! $venv/bin/python -m pip --version >/dev/null 2>&1; then
  python=${PYTHON:-$(pick)} || {
    found=$(python3 -c "$version" 2>/dev/null) || found="no Python"
    stop "this book needs Python 3.11, 3.12 or 3.13, and here is $found; install one, or name it: make PYTHON=/path/to/python3.12"
  }
  rm -rf $venv
  "$python" -m venv $venv >/dev/null 2>&1 ||
    stop "$python cannot create .venv; is its venv module installed (Debian: apt-get install python3-venv), and is the disk full?"
fi

offline() {
  stop "no package index can be reached, and .venv still needs packages; connect to the network and run make again (log: $log)"
}

install() { $venv/bin/python -m pip --disable-pip-version-check --no-input "$@" >>$log 2>&1; }

: >$log
echo "Installing into .venv ($($venv/bin/python -c "$version"), a minute or two) ..."
# One small package first, so that a missing network is said in seconds and not after many retries.
probe=$venv/probe
PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=8 install download --no-deps --no-cache-dir --dest $probe nbval || offline
rm -rf $probe
echo $$ >$busy
if install install -c constraints.txt -e ".[$1]"; then
  rm $busy
else
  rm $busy
  grep -aqE 'connection broken by|NewConnectionError|ConnectTimeout|ReadTimeout' $log && offline
  stop "pip could not install the packages: $(grep -a '^ERROR' $log | head -n 1 | cut -c1-200) (log: $log)"
fi
# matplotlib's first import builds a font cache and says so; not in a notebook.
$venv/bin/python -c "import matplotlib.font_manager" >>$log 2>&1 || stop "matplotlib cannot be imported (log: $log)"
