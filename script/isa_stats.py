#!/usr/bin/env python3
"""Facts of every AMDGPU kernel in assembly files (clang -S --cuda-device-only), and checks on them.

For each kernel: registers, spills, scratch, LDS, waves per SIMD, and for the hot loop (of the loops
with the most matrix instructions the one with the least vector work: full tiles, not edges) the cycles of each pipe per iteration of one wave. The cycle
table is AMD's for matrix instructions; other vector instructions take 4, transcendental and 32-bit
integer multiplies 16, LDS 2 cycles per byte and lane (64 lanes over 128 B/clk, 4 SIMDs sharing).

  isa_stats.py FILE.s...                       print
  isa_stats.py FILE.s... --check [limits]      exit 1 and name the kernel if one is exceeded
"""
import argparse
import collections
import re
import subprocess
import sys

MFMA_CYCLES = {
    "gfx908": {"32x32x8": 64, "16x16x16": 32, "32x32x4": 64, "16x16x8": 32},
    "gfx90a": {"32x32x8": 64, "16x16x16": 32, "32x32x4": 64, "16x16x8": 32},
    "gfx942": {"32x32x8": 32, "16x16x16": 16, "32x32x16": 32, "16x16x32": 16},
    "gfx950": {"32x32x8": 32, "16x16x16": 16, "32x32x16": 32, "16x16x32": 16},
}
LDS_CAPACITY = {"gfx950": 160 * 1024}
VECTOR = ("valu", "trans", "mul32", "accmov")
TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
MULTIPLY_32 = re.compile(r"v_(mul_hi_u32|mul_hi_i32|mul_lo_u32|mad_u64_u32|mad_i64_i32|mul_lo_i32)")
NO_CYCLES = (("buffer_", "vmem"), ("global_", "vmem"), ("flat_", "vmem"), ("scratch_", "scratch"),
             ("s_load", "smem"), ("s_buffer", "smem"), ("s_waitcnt", "wait"),
             ("s_barrier", "barrier"), ("s_nop", "nop"), ("s_", "salu"))


def cost(op, arch):
    """Pipe and cycles of one instruction of a wave."""
    if op.startswith("v_mfma"):
        shape = re.search(r"_(\d+x\d+x\d+)", op).group(1)
        return "mfma", MFMA_CYCLES[arch][shape]
    if op.startswith("v_accvgpr"):
        return "accmov", 4
    if TRANSCENDENTAL.match(op):
        return "trans", 16
    if MULTIPLY_32.match(op):
        return "mul32", 16
    if op.startswith("v_"):
        return "valu", 4
    if op.startswith("ds_"):
        width = re.search(r"b(8|16|32|64|96|128)", op)
        size = int(width.group(1)) // 8 if width else 4
        if re.search(r"(read|write|load|store)2", op):
            size *= 2
        if op.startswith(("ds_bpermute", "ds_permute", "ds_swizzle")):
            size = 4
        return "lds", 2 * size
    for prefix, pipe in NO_CYCLES:
        if op.startswith(prefix):
            return pipe, 0
    return "other", 0


class Kernel:
    """One kernel: name, metadata, and the instruction mix of its hot loop (None without one)."""

    def __init__(self, arch, name, meta, blocks):
        self.arch, self.name, self.meta = arch, name, meta
        self.total = self._mix(blocks, 0, len(blocks) - 1)[0]
        self.loop = self._hot_loop(blocks)

    def _mix(self, blocks, first, last):
        count, cycles = collections.Counter(), collections.Counter()
        for _, instructions in blocks[first:last + 1]:
            for op, _ in instructions:
                pipe, cy = cost(op, self.arch)
                count[pipe] += 1
                cycles[pipe] += cy
        return count, cycles

    def _hot_loop(self, blocks):
        index = {label: i for i, (label, _) in enumerate(blocks)}
        best = None
        for i, (_, instructions) in enumerate(blocks):
            for op, arguments in instructions:
                target = arguments.split()[0] if arguments else ""
                if not op.startswith(("s_cbranch", "s_branch")) or index.get(target, i + 1) > i:
                    continue
                count, cycles = self._mix(blocks, index[target], i)
                key = (count["mfma"], -sum(cycles[p] for p in VECTOR))
                if count["mfma"] and (best is None or key > best[0]):
                    best = key, count, cycles
        return best and best[1:]

    @property
    def mfma_cycles(self):
        return self.loop[1]["mfma"] if self.loop else 0

    @property
    def valu_cycles(self):
        return sum(self.loop[1][p] for p in VECTOR) if self.loop else 0

    @property
    def lds_cycles(self):
        return self.loop[1]["lds"] if self.loop else 0

    @property
    def ratio(self):
        """VALU cycles over matrix cycles of the hot loop."""
        return self.valu_cycles / max(1, self.mfma_cycles)

    @property
    def waves(self):
        """Waves per SIMD: what registers, LDS and the workgroup's size allow."""
        registers = max(8, (self.meta["vgpr_count"] + 7) // 8 * 8)
        by_registers = min(8, 512 // registers)
        if self.arch == "gfx908":
            by_registers = min(8, 256 // max(self.meta["vgpr_count"], self.meta["agpr_count"], 4))
        lds = self.meta["group_segment_fixed_size"]
        workgroup = max(1, self.meta["max_flat_workgroup_size"] // 256)  # its waves on one SIMD
        groups = by_registers // workgroup
        if lds:
            groups = min(groups, LDS_CAPACITY.get(self.arch, 64 * 1024) // lds)
        return groups * workgroup

    def problems(self, limit):
        m = self.meta
        if m["private_segment_fixed_size"]:
            yield f'{m["private_segment_fixed_size"]} bytes of scratch'
        for kind in ("vgpr", "sgpr"):
            if m[f"{kind}_spill_count"]:
                yield f'{m[f"{kind}_spill_count"]} {kind.upper()} spills'
        capacity = LDS_CAPACITY.get(self.arch, 64 * 1024)
        if m["group_segment_fixed_size"] > capacity:
            yield f'{m["group_segment_fixed_size"]} bytes of LDS, {capacity} exist'
        if limit.lds_cycles and self.lds_cycles > self.mfma_cycles:
            yield f"LDS cycles {self.lds_cycles} > matrix cycles {self.mfma_cycles}"
        if limit.mfma and re.search(limit.mfma, self.demangled()) and not self.mfma_cycles:
            yield "no matrix instruction in a loop"
        if limit.ratio is not None and self.ratio > limit.ratio:
            yield f"VALU/MFMA {self.ratio:.2f} > {limit.ratio}"
        if limit.waves is not None and self.waves < limit.waves:
            yield f"{self.waves} waves per SIMD < {limit.waves}"

    def demangled(self):
        return subprocess.run(["c++filt", self.name], capture_output=True, text=True,
                              check=True).stdout.strip()

    def __str__(self):
        m = self.meta
        text = (f"## {self.arch} {self.demangled()}\n    vgpr {m['vgpr_count']} agpr {m['agpr_count']} "
                f"sgpr {m['sgpr_count']} spills {m['vgpr_spill_count']}+{m['sgpr_spill_count']} "
                f"scratch {m['private_segment_fixed_size']} lds {m['group_segment_fixed_size']} "
                f"waves/SIMD {self.waves}")
        if self.loop:
            text += (f"\n    loop {dict(self.loop[0])}\n    mfma {self.mfma_cycles} valu "
                     f"{self.valu_cycles} lds {self.lds_cycles} valu/mfma {self.ratio:.2f}")
        return text


META = ("vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count",
        "private_segment_fixed_size", "group_segment_fixed_size", "max_flat_workgroup_size")


def read_kernels(path):
    with open(path, errors="replace") as file:
        text = file.read()
    arch = re.search(r"amdgcn-amd-amdhsa--?(gfx\w+)", text)
    if not arch:
        raise ValueError(f"{path}: no amdgcn target in it")
    meta = {}
    for block in re.split(r"\n  - ", text[text.find("amdhsa.kernels"):]):
        symbol = re.search(r"\.symbol:\s+'?(\S+?)\.kd", block)
        if not symbol:
            continue
        number = lambda key: int((re.search(rf"\.{key}:\s+(\d+)", block) or [0, 0])[1])
        meta[symbol.group(1)] = {key: number(key) for key in META}
    kernels = []
    for function in re.split(r"\n(?=\S+:\s+; @)", text):
        start = re.match(r"(\S+):\s+; @", function)
        if not start or start.group(1) not in meta:
            continue
        blocks = [("entry", [])]
        for line in function.splitlines():
            label = re.match(r"(\.LBB\S+):", line)
            instruction = re.match(r"\s+([a-z]\w+)\s*(.*)", line)
            if label:
                blocks.append((label.group(1), []))
            elif instruction:
                blocks[-1][1].append(instruction.groups())
            elif ".Lfunc_end" in line:
                break
        kernels.append(Kernel(arch.group(1), start.group(1), meta[start.group(1)], blocks))
    if len(kernels) != len(meta) or not kernels:
        raise ValueError(f"{path}: {len(meta)} kernels in the metadata, {len(kernels)} in the code")
    return kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--check", action="store_true",
                        help="no scratch, no spills, LDS within bounds, and the limits below")
    parser.add_argument("--mfma", metavar="REGEX", help="kernels so named use matrix instructions")
    parser.add_argument("--lds-cycles", action="store_true",
                        help="LDS takes no more cycles than the matrix pipe")
    parser.add_argument("--ratio", type=float, help="largest VALU/MFMA of the hot loop")
    parser.add_argument("--waves", type=int, help="fewest waves per SIMD")
    options = parser.parse_args()
    bad = count = 0
    for path in options.files:
        for kernel in read_kernels(path):
            count += 1
            if not options.check:
                print(kernel)
                continue
            for problem in kernel.problems(options):
                bad += 1
                print(f"{problem}: {kernel.arch} {kernel.demangled()}")
    if options.check:
        print(f"{count} kernels checked, {bad} limits exceeded")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
