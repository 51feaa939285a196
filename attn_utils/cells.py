"""The finished cases of a sweep, in memory and in a folder where a killed sweep finds them again."""

import hashlib
import re
from pathlib import Path

from attn_utils.fingerprints import fingerprint, name_of
from attn_utils.records import read_record, remove_left_over, to_text, write_record


def case_key(case):
    """A text that is the same for equal cases."""
    return to_text(dict(sorted(case.items())))


def in_words(case):
    """A case as it would be written in a call: seed=3, rate=0.1."""
    return ", ".join(f"{name}={value!r}" for name, value in case.items())


class Cells:
    """The finished cases of a sweep.

    run, cases, store, version   as sweep() takes them, cases checked

    done       dict: place among the cases -> (value, seconds)
    run_name   what run is called
    A case of the store is taken when case and fingerprint are the same; the first of the others is printed.
    """

    def __init__(self, run, cases, store, version):
        self.cases, self.run_name, self.done = cases, name_of(run), {}
        self.store = None if store is None else Path(store).expanduser()
        if self.store is not None:
            self.code = fingerprint(run, version)
            self._open()
            self._read()

    def _open(self):
        try:
            self.store.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ValueError(f"store is {str(self.store)!r}, a file or below one, expected a folder.") from None
        except OSError as error:
            raise self._trouble(error) from error
        remove_left_over(self.store)

    def _read(self):
        trouble = []
        for place, case in enumerate(self.cases):
            try:
                self.done[place] = self._read_one(case)
            except FileNotFoundError:
                continue
            except (ValueError, OSError) as error:
                trouble.append(f"{in_words(case)}: {error}")
        if trouble:
            print(f"{len(trouble)} of the cases in {self.store} are computed anew, such as {trouble[0]}")

    def _read_one(self, case):
        record = read_record(self._path(case))
        if set(record) != {"case", "code", "value", "seconds"} or case_key(record["case"]) != case_key(case):
            raise ValueError("its file holds something else.")
        if record["code"] != self.code:
            raise ValueError("it was made by other code, or with other values or packages that the code reads.")
        return record["value"], record["seconds"]

    def _path(self, case):
        digest = hashlib.sha256(case_key(case).encode()).hexdigest()[:16]
        name = re.sub(r"\W+", "-", self.run_name).strip("-")
        return self.store / f"{name}-{digest}.json"

    def missing(self):
        """Places of the cases that are still to be computed."""
        return [place for place in range(len(self.cases)) if place not in self.done]

    def keep(self, place, value, seconds):
        """Add a finished case. Raises TypeError for a value that a file cannot hold."""
        if self.store is not None:
            record = {"case": self.cases[place], "code": self.code, "value": value, "seconds": seconds}
            try:
                write_record(self._path(self.cases[place]), record)
            except TypeError as error:
                call = f"{self.run_name}({in_words(self.cases[place])})"
                raise TypeError(f"the result of {call} does not go into a store: {error}") from None
            except OSError as error:
                raise self._trouble(error) from error
        self.done[place] = value, seconds

    def _trouble(self, error):
        return RuntimeError(
            f"store is {str(self.store)!r}, which cannot be written to ({error.strerror or error}), expected a folder "
            "with room. Choose another one; copies of the files in this one are found there."
        )

    def so_far(self):
        """How many are finished, for a progress bar."""
        return f"sweep: {len(self.done)} of {len(self.cases)}"

    def kept(self):
        """How many are finished and where they are, for messages."""
        finished = f"{len(self.done)} of {len(self.cases)} cases are finished"
        if self.store is None:
            return f"{finished} and lost: with store=FOLDER they would have been kept."
        return f"{finished} and kept in {self.store}: the same sweep goes on from there."
