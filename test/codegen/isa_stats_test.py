"""Pins isa_stats.py on a small assembly file: what it reads, and what it refuses."""
import argparse
import os
import tempfile
import unittest

import isa_stats

ASSEMBLY = """\
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
_Z6kernelv:                             ; @_Z6kernelv
; %bb.0:
\ts_load_dwordx2 s[0:1], s[4:5], 0x0
.LBB0_1:                                ; outer
\tv_mov_b32_e32 v0, 0
.LBB0_2:                                ; inner
\tv_mfma_f32_32x32x8f16 v[2:17], v[18:19], v[20:21], v[2:17]
\tv_exp_f32_e32 v0, v0
\tv_mad_u64_u32 v[0:1], s[0:1], v0, v1, 0
\tv_add_f32_e32 v0, v0, v1
\tds_read_b128 v[0:3], v4
\ts_cbranch_scc1 .LBB0_2
; %bb.3:
\ts_cbranch_scc1 .LBB0_1
\ts_endpgm
.Lfunc_end0:
amdhsa.kernels:
  - .agpr_count:     0
    .group_segment_fixed_size: {lds}
    .max_flat_workgroup_size: 256
    .private_segment_fixed_size: {scratch}
    .sgpr_count:     10
    .sgpr_spill_count: 0
    .symbol:         _Z6kernelv.kd
    .vgpr_count:     {vgpr}
    .vgpr_spill_count: {spills}
"""


def read(lds=16384, scratch=0, vgpr=128, spills=0):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.s")
        with open(path, "w") as file:
            file.write(ASSEMBLY.format(lds=lds, scratch=scratch, vgpr=vgpr, spills=spills))
        (kernel,) = isa_stats.read_kernels(path)
        return kernel


def problems(kernel, mfma="kernel", ratio=None, waves=None, lds_cycles=False):
    return list(kernel.problems(argparse.Namespace(mfma=mfma, ratio=ratio, waves=waves,
                                                   lds_cycles=lds_cycles)))


class IsaStats(unittest.TestCase):
    def test_hot_loop_is_the_inner_one(self):
        kernel = read()
        self.assertEqual(kernel.mfma_cycles, 64)
        self.assertEqual(kernel.valu_cycles, 16 + 16 + 4)
        self.assertEqual(kernel.lds_cycles, 32)
        self.assertEqual(problems(kernel, ratio=0.6, waves=4), [])

    def test_waves_by_registers_and_lds(self):
        self.assertEqual(read(vgpr=128).waves, 4)
        self.assertEqual(read(vgpr=129).waves, 3)
        self.assertEqual(read(lds=33000).waves, 1)

    def test_each_limit_is_seen(self):
        self.assertEqual(len(problems(read(scratch=8))), 1)
        self.assertEqual(len(problems(read(spills=1))), 1)
        self.assertEqual(len(problems(read(lds=70000))), 1)
        self.assertEqual(len(problems(read(), ratio=0.5)), 1)
        self.assertEqual(len(problems(read(), waves=5)), 1)
        self.assertEqual(len(problems(read(), lds_cycles=True)), 0)

    def test_kernels_are_not_lost(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "none.s")
            with open(path, "w") as file:
                file.write('\t.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"\n')
            with self.assertRaises(ValueError):
                isa_stats.read_kernels(path)


if __name__ == "__main__":
    unittest.main()
