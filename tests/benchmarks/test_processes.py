"""Fresh processes, their memory, and results that are taken up again."""

import json
import os
import sys

import pytest
from _processes import Failed, peak_mib, run_fresh
from _results import read_earlier, write_json


def test_run_fresh_returns_the_last_line_and_passes_arguments():
    code = "import os, sys; print('noise'); print('{\"a\": %s}' % sys.argv[1])"
    assert run_fresh("-c", [code, 7]) == {"a": 7}


def test_run_fresh_passes_the_environment():
    code = "import json, os; print(json.dumps({'a': os.environ['ANYTHING']}))"
    assert run_fresh("-c", [code], environment={"ANYTHING": "b"}) == {"a": "b"}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise SystemExit('so')", "exit status 1: so"),
        ("pass", "no result"),
        ("print('text')", "no result"),
        ("print(3)", "no result"),
        ("print('{}'); raise SystemExit(3)", "exit status 3"),
    ],
)
def test_run_fresh_fails_without_a_result(code, problem):
    with pytest.raises(Failed, match=problem):
        run_fresh("-c", [code])


def test_run_fresh_stops_at_the_limit():
    with pytest.raises(Failed, match="stopped after 1 s"):
        run_fresh("-c", ["import time; time.sleep(60)"], limit=1)


def test_run_fresh_reports_a_missing_interpreter(tmp_path):
    with pytest.raises(Failed, match="No such file"):
        run_fresh("-c", [""], python=tmp_path / "python")


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="ru_maxrss is inherited"
)
def test_peak_of_a_process_is_its_own():
    # long enough ago to be gone, but still in the parent's peak
    large = bytearray(b"x") * 2**28
    del large
    code = "import json; from _processes import peak_mib; print(json.dumps({'a': %s}))"
    prefix = f"import sys; sys.path[:0] = {sys.path!r}; "
    assert peak_mib() > 2**8
    small = run_fresh("-c", [prefix + code % "peak_mib()"])["a"]
    assert 0 < small < 2**7
    filled = prefix + "x = bytearray(b'x') * 2**28; " + code % "peak_mib()"
    assert run_fresh("-c", [filled])["a"] > small + 2**8 - 1


def test_results_are_taken_up_with_the_same_settings(tmp_path):
    path, settings = tmp_path / "results.json", {"sizes": (1, 2)}
    assert read_earlier(None, settings) == {}
    assert read_earlier(path, settings) == {}
    write_json(path, {"settings": settings, "cells": {"a": 1}})
    assert read_earlier(path, settings)["cells"] == {"a": 1}


def test_results_of_something_else_are_refused(tmp_path):
    path, settings = tmp_path / "results.json", {"sizes": [1, 2]}
    write_json(path, {"settings": settings})
    with pytest.raises(SystemExit, match="must be a new file"):
        read_earlier(path, {"sizes": [1, 3]})
    content = json.loads(path.read_text())
    for change in ({"processor": "another"}, {"versions": {}}, {"cores": 0}):
        path.write_text(json.dumps(content | change))
        with pytest.raises(SystemExit, match="must be a new file"):
            read_earlier(path, settings)
