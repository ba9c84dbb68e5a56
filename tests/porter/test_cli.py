"""The command line from outside: help, usage errors, and what it loads."""

import json
import resource
import subprocess
import sys

import pytest

VERBS = ("port", "verify", "bench", "weights", "inspect", "ops", "zoo", "doctor")


def porter(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "porter", *arguments], capture_output=True, text=True, timeout=300)


def test_help_names_every_verb() -> None:
    done = porter("--help")
    assert done.returncode == 0
    assert all(f"  {verb} " in done.stdout for verb in VERBS)


@pytest.mark.parametrize(
    "verb", [*((verb,) for verb in VERBS), *(("zoo", verb) for verb in ("list", "port", "verify", "bench"))]
)
def test_every_verb_has_help(verb: tuple[str, ...]) -> None:
    done = porter(*verb, "--help")
    assert done.returncode == 0
    assert "Usage: porter" in done.stdout
    if verb != ("zoo",):
        assert "--json" in done.stdout and "--verbose" in done.stdout


def test_help_keeps_the_brackets_of_a_shape() -> None:
    assert "x:float32[batch,3,224,224]" in porter("port", "--help").stdout


def test_help_is_quick() -> None:
    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert porter("--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, and the best of three: what is measured is the import graph, not the load of the machine.
    assert min(seconds() for _ in range(3)) < 0.5


def test_a_bad_reference_is_one_message_and_exit_2() -> None:
    done = porter("port", "zoo:resnet51", "--to", "keras")
    assert done.returncode == 2
    assert done.stderr.startswith("porter: zoo:resnet51: ") and "resnet50" in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_a_bad_reference_in_json() -> None:
    done = porter("port", "zoo:resnet51", "--to", "keras", "--json")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2
    assert error["kind"] == "ReferenceError" and error["exit_code"] == 2 and "resnet50" in error["message"]


@pytest.mark.parametrize("wrong", [["port", "zoo:lenet", "--to", "jax"], ["port", "zoo:lenet"], ["prot"]])
def test_a_usage_error_is_exit_2_and_json_when_asked(wrong: list[str]) -> None:
    assert porter(*wrong).returncode == 2
    done = porter(*wrong, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["exit_code"] == 2


def test_zoo_list() -> None:
    listed = json.loads(porter("zoo", "list", "--framework", "torch", "--json").stdout)
    assert {"name", "framework", "kind", "summary"} <= set(listed[0])
    assert {row["framework"] for row in listed} == {"torch"}
    assert "resnet50" in {row["name"] for row in listed}
    assert porter("zoo", "list", "--framework", "jax").returncode == 2


def test_version() -> None:
    assert porter("--version").stdout.startswith("porter ")


def test_doctor() -> None:
    done = porter("doctor", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["healthy"]
    assert {"torch", "tensorflow", "keras"} <= set(found["versions"])
    assert "TF32 in matmul" in found["torch"] and "TF32" in found["tensorflow"]
    assert all(missing["remedy"] for missing in found["missing"])


def test_output_that_nobody_reads_is_no_failure_to_explain() -> None:
    listing = subprocess.Popen(
        [sys.executable, "-m", "porter", "zoo", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert listing.stdout is not None and listing.stderr is not None
    listing.stdout.close()
    assert "Traceback" not in listing.stderr.read()
    assert listing.wait(timeout=60) not in (1, 2, 3)
