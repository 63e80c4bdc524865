#!/usr/bin/env python3
"""Runs the compiled AMD machine code of forward kernels on a CPU, with an emulator that is not part
of this project, and compares the results with the CPU target's and the reference's.

  emulate_forward.py --build DIR --tinygrad DIR [--run ARCH:COMPILER]... [--case REGEX] [--table]

DIR of --build is a build of the CPU target (FLASHXDL_TARGET=host) with the program
flashxdl_emulated_forward; DIR of --tinygrad is a checkout of https://github.com/tinygrad/tinygrad.
One line for each case; exit status 0 if every case passed, 1 if one failed or was refused. See
docs/emulator.md.
"""
import argparse
import faulthandler
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from emulator.code_object import CodeObject, Refused, unwrap
from emulator.machine import Machine
from emulator.memory import Memory

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEFAULT_RUNS = ("gfx90a:clang++-15", "gfx942:clang++-22")
FLAGS = ("-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-std=c++20", "-O3")


class Failed(Exception):
    """A step that had to work did not."""


def command(arguments, what):
    """Runs a program; (exit status, its standard output)."""
    try:
        done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as reason:
        raise Failed(f"{what}: {reason}") from reason
    return done.returncode, done.stdout


def find_program(build):
    for folder in ("bin/test", "bin", "test/emulator"):
        path = os.path.join(build, folder, "flashxdl_emulated_forward")
        if os.access(path, os.X_OK):
            return path
    raise Failed(f"no flashxdl_emulated_forward in {build}: build that target there first")


def compile_kernel(compiler, arch, kernel, folder):
    """The code object of a kernel of test/emulator/emulated_kernels.hpp."""
    output = os.path.join(folder, f"{kernel}.{arch}.{os.path.basename(compiler)}.co")
    if not os.path.exists(output):
        status, _ = command(
            [compiler, *FLAGS, f"--offload-arch={arch}", f"-I{ROOT}/include", f"-I{ROOT}/test",
             f'-DFLASHXDL_EMULATED_KERNEL="{kernel}"', f"{ROOT}/test/emulator/forward_kernels.cpp",
             "-o", output], compiler)
        if status != 0:
            raise Failed(f"{compiler} did not compile {kernel} for {arch}")
    with open(output, "rb") as file:
        code = CodeObject(unwrap(file.read()))
    if code.arch != arch:
        raise Failed(f"{output} is for {code.arch}, not {arch}")
    return code


def kernel_arguments(code, name, launch, buffers):
    """The launch's by-value argument with the buffers' addresses in it."""
    arguments = bytearray.fromhex(launch["arguments"])
    for offset, buffer, addend in launch["pointers"]:
        address = buffers[buffer].address + addend
        arguments[offset:offset + 8] = address.to_bytes(8, "little")
    metadata = code.kernels[name].get(".args", [])
    sizes = [argument[".size"] for argument in metadata]
    if sizes != [len(arguments)]:
        kinds = [argument[".value_kind"] for argument in metadata]
        raise Failed(f"{name}: arguments of {len(arguments)} bytes on the CPU target, in the code "
                     f"object {list(zip(kinds, sizes))}")
    return bytes(arguments) + bytes(64)  # scalar loads may be wider than what is used


def run_launches(machine, code, folder):
    """Runs what launches.json says on the buffers beside it; what that took."""
    with open(os.path.join(folder, "launches.json"), encoding="utf-8") as file:
        plan = json.load(file)
    paths = [os.path.join(folder, name) for name in plan["buffers"]]
    buffers = []
    for path in paths:
        with open(path, "rb") as file:
            buffers.append(Memory(file.read()))
    total = {"instructions": 0, "seconds": 0.0, "compiling": 0.0, "mended": {}}
    for launch in plan["launches"]:
        name = code.find(launch["kernel"])
        arguments = kernel_arguments(code, name, launch, buffers)
        done = machine.launch(code, name, arguments, launch["grid"], launch["block"])
        total["instructions"] += done.instructions
        total["seconds"] += done.seconds
        total["compiling"] += done.compiling
        for kind, count in done.mended.items():
            total["mended"][kind] = total["mended"].get(kind, 0) + count
    for path, buffer in zip(paths, buffers):
        with open(path, "wb") as file:
            file.write(buffer.read())
    return total


def in_child(work):
    """work()'s result, computed in a process of its own, which may crash: a kernel that leaves its
    buffers runs into an unmapped page."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            answer = {"result": work()}
        except (Refused, Failed) as reason:
            answer = {"error": f"{type(reason).__name__.lower()}: {reason}"}
        except BaseException:  # the parent must hear of everything  pylint: disable=broad-except
            answer = {"error": traceback.format_exc()}
        with os.fdopen(writer, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise Failed(f"the emulation ended with {signal.Signals(os.WTERMSIG(status)).name}: "
                     "an access outside of all buffers")
    answer = json.loads(text)
    if "error" in answer:
        raise Failed(answer["error"])
    return answer["result"]


def run_case(program, machine, code, case):
    """(what the emulation took, the comparisons)"""
    with tempfile.TemporaryDirectory(prefix="flashxdl-emulate-") as folder:
        status, _ = command([program, "prepare", case["name"], folder], program)
        if status != 0:
            raise Failed(f"preparing {case['name']} ended with exit status {status}")
        took = in_child(lambda: run_launches(machine, code, folder))
        status, text = command([program, "check", case["name"], folder], program)
        if not text:
            raise Failed(f"checking {case['name']} ended with exit status {status}")
        outcome = json.loads(text)
        for comparison in outcome["comparisons"]:  # JSON has no infinity
            for numbers in comparison.values():
                numbers.update((key, math.inf) for key, x in numbers.items() if x is None)
        if status != 0 and not outcome["failures"]:
            raise Failed(f"checking {case['name']} ended with exit status {status}")
        return took, outcome


def worst(comparisons, tensor):
    """The comparison of that tensor that comes nearest to its limit, or None."""
    found = [c[tensor] for c in comparisons if tensor in c]

    def ratio(c):
        return max(c["reference"], c["cpu_target"]) / c["allowed"]
    return max(found, key=ratio) if found else None


def describe(comparisons):
    texts = []
    for tensor in ("O", "LSE"):
        c = worst(comparisons, tensor)
        if c is not None:
            texts.append(f"{tensor} differs by {c['cpu_target']:.2g} from the CPU target, "
                         f"{c['reference']:.2g} from the reference, allowed {c['allowed']:.2g}")
    return "; ".join(texts)


def table_row(case, arch, compiler, took, comparisons):
    cells = [case["name"], case["dtype"], arch, os.path.basename(compiler),
             f"{took['instructions']:,}", f"{took['seconds']:.0f}"]
    for tensor in ("O", "LSE"):
        c = worst(comparisons, tensor)
        cells += (["-"] * 3 if c is None else
                  [f"{c['cpu_target']:.1e}", f"{c['reference']:.1e}", f"{c['allowed']:.1e}"])
    return "| " + " | ".join(cells) + " |"


def run_all(options, program, machine, folder):
    """Runs every case for every architecture; (number of cases, of failures, rows of the table)."""
    status, text = command([program, "list"], program)
    if status != 0:
        raise Failed(f"{program} list ended with exit status {status}")
    cases = [json.loads(line) for line in text.splitlines()]
    cases = [case for case in cases if re.search(options.case, case["name"])]
    if not cases:
        raise Failed(f"no case matches {options.case!r}")
    count, failures, rows = 0, 0, []
    for pair in options.run or DEFAULT_RUNS:
        arch, _, compiler = pair.partition(":")
        if not compiler or shutil.which(compiler) is None:
            raise Failed(f"--run {pair}: ARCH:COMPILER with a compiler that is there is needed")
        for case in cases:
            count += 1
            label = f"{case['name']} {case['dtype']} {arch} {os.path.basename(compiler)}"
            try:
                code = compile_kernel(compiler, arch, case["kernel"], folder)
                took, outcome = run_case(program, machine, code, case)
            except (Refused, Failed) as reason:
                failures += 1
                print(f"FAILED  {label}: {reason}", flush=True)
                continue
            failures += bool(outcome["failures"])
            print(f"{'FAILED' if outcome['failures'] else 'passed'}  {label}: "
                  f"{outcome['failures']}{describe(outcome['comparisons'])}; "
                  f"{took['instructions']} wave instructions in {took['seconds']:.0f} s, "
                  f"mended {took['mended']}", flush=True)
            rows.append(table_row(case, arch, compiler, took, outcome["comparisons"]))
    return count, failures, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build folder of the CPU target")
    parser.add_argument("--tinygrad", required=True, help="checkout of tinygrad")
    parser.add_argument("--run", action="append", metavar="ARCH:COMPILER",
                        help=f"default: {' and '.join(DEFAULT_RUNS)}")
    parser.add_argument("--case", default="", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--table", action="store_true", help="print the table of docs/emulator.md")
    options = parser.parse_args()
    start = time.time()
    try:
        program = find_program(options.build)
        machine = Machine(os.path.abspath(options.tinygrad))
        with tempfile.TemporaryDirectory(prefix="flashxdl-kernels-") as folder:
            count, failures, rows = run_all(options, program, machine, folder)
    except (Refused, Failed) as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    if options.table:
        print("\n".join(rows))
    print(f"{count - failures} of {count} cases passed in {time.time() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
